"""Folders without a table in the embedded Spark's warehouse, and tables without a folder.

A killed process may leave a folder whose table it had not created yet, or had dropped already.
Spark creates no table over such a folder. But the table may also be missing because the metastore
was lost, and then the folder has the only rows of it. So nothing is removed but what has the name
of a table that exists only during a run.

Only the embedded Spark's warehouse is changed, because no other process can be writing there.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import new_batch_id
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    LEFT,
    NEXT,
    PUBLISHED,
    ROLES_OF_ROWS,
    is_plain,
    made_for,
    name_beside,
)
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import local_path


def tidy(warehouse: Warehouse, relation: OpenMirroringRelation) -> None:
    """Bring the folders of a relation, and of a run's tables beside it, in order."""
    give_back(warehouse, relation)
    remove_unfinished(warehouse, relation)


def give_back(warehouse: Warehouse, relation: OpenMirroringRelation) -> None:
    """Undo the rename of a table that a killed process has left half done.

    Spark renames the folder of a table first, and then the table.
    """
    home = _home(warehouse, relation)
    if home is None:
        return
    tables = _tables(warehouse, relation)
    name = str(relation.identifier).lower()
    is_beside, is_published = made_for(name, NEXT, PUBLISHED), made_for(name, PUBLISHED)
    lost = [table for table in tables if is_beside(table) and not (home / table).exists()]
    if name not in tables and (home / name).is_dir() and lost:
        (home / name).rename(home / lost[0])
    elif name in tables and not (home / name).exists():
        for folder in home.glob("*"):
            if is_published(folder.name) and folder.name not in tables:
                folder.rename(home / name)
                return


def remove_unfinished(warehouse: Warehouse, relation: OpenMirroringRelation) -> None:
    """Remove the folders of a run's tables that were never finished, or dropped only half.

    The tables of a committed batch that is not completed may be needed.
    """
    home = _home(warehouse, relation)
    if home is None:
        return
    name, tables = str(relation.identifier).lower(), _tables(warehouse, relation)
    # without the relation, the rows that were published last may be the only ones
    kinds = (NEXT, *ROLES_OF_ROWS, PUBLISHED) if name in tables else (NEXT, *ROLES_OF_ROWS)
    is_leftover = made_for(name, *kinds)
    for folder in home.glob("*"):
        if is_leftover(folder.name) and folder.name not in tables:
            shutil.rmtree(folder)


def remove_dropped(warehouse: Warehouse, relation: OpenMirroringRelation) -> None:
    """Remove the folder of a table that a killed process was certainly about to drop."""
    folder = _folder_without_table(warehouse, relation)
    if folder:
        shutil.rmtree(folder)


def make_way(warehouse: Warehouse, relation: OpenMirroringRelation) -> None:
    """Move a folder aside that is in the place of a table to be created, and tell the user."""
    folder = _folder_without_table(warehouse, relation)
    if folder is None:
        return
    if not any(folder.iterdir()):
        folder.rmdir()
        return
    aside = folder.with_name(name_beside(folder.name, LEFT, new_batch_id()))
    folder.rename(aside)
    logger.warning(
        f"{folder} had files, but Spark had no table {relation}: a run was killed while it "
        f"dropped the table, or Spark's metastore has lost it. The files are in {aside} now. "
        "Delete them if nobody needs their rows."
    )


def refuse_lost(warehouse: Warehouse, relations: Iterable[OpenMirroringRelation]) -> None:
    """Check that tables whose rows are to be read have their folders, if these are local.

    Spark reads a table without a folder as one without rows.

    Raises:
        CompilationError: if a folder is missing
    """
    if not warehouse.is_local:
        return
    for relation in relations:
        found = warehouse.found(relation)
        if not found or not found.is_table or not _missing_folder(found.location):
            continue
        # the list may be of before the table was renamed
        folder = _missing_folder(warehouse.describe(found).location)
        if folder:
            raise CompilationError(
                f"The folder {folder} is gone, with all rows that Spark has of {relation}. Spark "
                "would read none, and they would be deleted from the mirror. Nothing was changed. "
                f"Put the folder back. If it is lost, run the node of {relation} with "
                "--full-refresh, which computes its rows anew, and publishes them as a full load "
                "if it is mirrored. Rows that its sources no longer have are gone then, and a "
                "dbt snapshot begins its history anew."
            )


def _missing_folder(location: str) -> Path | None:
    """Return the folder of a table if it is to be on this machine, but is not; else None."""
    folder = local_path(location)
    return folder if folder and not folder.is_dir() else None


def _folder_without_table(warehouse: Warehouse, relation: OpenMirroringRelation) -> Path | None:
    home, name = _home(warehouse, relation), str(relation.identifier).lower()
    if home is None or name in _tables(warehouse, relation) or not (home / name).is_dir():
        return None
    return home / name


def _tables(warehouse: Warehouse, relation: OpenMirroringRelation) -> set[str]:
    beside = warehouse.beside(relation)
    return {str(found.identifier).lower() for found in beside if found.is_table}


def _home(warehouse: Warehouse, relation: OpenMirroringRelation) -> Path | None:
    """Return the folder of a relation's schema; None if it is not the embedded Spark's."""
    if warehouse.embedded is None:
        return None
    schema, identifier = str(relation.schema), str(relation.identifier)
    if not is_plain(schema) or not is_plain(identifier):
        raise ValueError(f"{schema!r} or {identifier!r} is a path")
    name = schema.lower()
    return warehouse.embedded if name == "default" else warehouse.embedded / f"{name}.db"
