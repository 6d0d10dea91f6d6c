"""Tables that exist only during a run, and their folders.

A killed process may leave a folder whose table it had not created yet, or had dropped already.
Spark creates no table over such a folder. But the table may also be missing because the metastore
was lost, and then the folder has the only rows of it. So nothing is removed but what has the name
of a table that exists only during a run. Only folders in the embedded Spark's warehouse are
changed, because no other process can be writing there.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import BATCH_ID, new_batch_id
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.protocol.facts import NEXT_KINDS, PART, PUBLISHED
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.text.codes import with_code
from dbt.adapters.openmirroring.text.errors import RefusedError

# Further kinds of tables that a run has beside a relation, named <identifier>__<kind>_<batch id>.
NEW_ROWS = "new_rows"  # of an incremental model
TYPED_ROWS = "typed_rows"  # the new rows, in the types of the snapshot
STORED = "stored"  # the rows of a dbt snapshot in other types
MIRRORED = "mirrored"  # the rows of the mirrored table, as they landed
CHANGED = "changed"  # the keys of changed rows
BEFORE = "before"  # the rows that may change, of a snapshot that is changed in place
DRY_RUN = "dry_run"  # built by a dry run in place of the relation
LEFT = "left"  # a folder that had lost its table, and was in the place of a new one

# a name that Spark's `SessionCatalog` takes
_METASTORE_NAME = re.compile(r"\w+", re.ASCII)

ROLES_OF_ROWS = (NEW_ROWS, TYPED_ROWS, STORED, MIRRORED, CHANGED, BEFORE, PART)


class ScratchTables:
    """Tables beside a relation, which are dropped when the node ends, even after an error.

    They stay if a batch is committed then, because the next run needs them to finish it.

    Args:
        batch_id: the id in the names of the tables
    """

    def __init__(
        self,
        warehouse: Warehouse,
        relation: OpenMirroringRelation,
        batch_id: str,
        is_committed: Callable[[], bool] = lambda: False,
    ) -> None:
        self._warehouse = warehouse
        self._relation = relation
        self._batch_id = batch_id
        self._is_committed = is_committed
        self._tables: dict[str, OpenMirroringRelation] = {}

    def table(self, kind: str) -> OpenMirroringRelation:
        """Return the table of a kind, one of the constants above."""
        return self._tables.setdefault(kind, table_beside(self._relation, kind, self._batch_id))

    def keep(
        self,
        kind: str,
        query: str,
        partition_by: Sequence[str] = (),
        options: Mapping[str, str] | None = None,
    ) -> OpenMirroringRelation:
        """Compute rows once, and keep them until the node ends.

        Args:
            partition_by: partition columns of the snapshot. If there are any, the rows are stored
                as in the snapshot
            options: options of a partitioned table
        """
        table = self.table(kind)
        if partition_by:
            sql = self._warehouse.sql(
                "mirror_keep_partitioned",
                table=table,
                query=query,
                partition_by=partition_by,
                options=options or {},
            )
        else:
            sql = self._warehouse.sql("mirror_keep", table=table, query=query)
        self._warehouse.build(sql)
        self._warehouse.adapter.cache_added(table)
        return table

    def release(self, kind: str) -> None:
        """Leave a table to the next run, if this one fails while it becomes the snapshot."""
        self._tables.pop(kind, None)

    def __enter__(self) -> ScratchTables:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_committed():
            for table in self._tables.values():
                self._warehouse.drop_if_there(table)


def table_beside(
    relation: OpenMirroringRelation, kind: str, batch_id: str
) -> OpenMirroringRelation:
    """Return a table of a run, beside the relation that the run publishes."""
    path = {"identifier": f"{relation.identifier}__{kind}_{batch_id}"}
    table: OpenMirroringRelation = relation.incorporate(path=path)
    return table


def leftovers(
    warehouse: Warehouse, relation: OpenMirroringRelation, kinds: Collection[str]
) -> list[OpenMirroringRelation]:
    """Return the tables that earlier runs left beside a relation."""
    is_leftover = made_for(str(relation.identifier), *kinds)
    return [found for found in warehouse.beside(relation) if is_leftover(str(found.identifier))]


def check_name(schema: str, identifier: str, file_format: str, is_embedded: bool) -> None:
    """Check that Spark can have a relation with this name.

    Args:
        is_embedded: whether Spark is the embedded one, whose metastore finds a wrong name only
            when it has written the rows, and leaves their folder

    Raises:
        CompilationError: if the schema or the identifier is a path, or no name for the metastore
    """
    has_catalog = "." in schema
    # Iceberg may take the place of Spark's own catalog, with rules of its own
    is_in_metastore = is_embedded and not has_catalog and file_format.lower() != "iceberg"
    for name in (schema, identifier):
        if not is_plain(name):
            raise CompilationError(
                f"{name!r} cannot be the name of a table or its schema: Spark makes a folder "
                "of it. Nothing was changed. Set another `alias` or `schema`."
            )
        if is_in_metastore and not _METASTORE_NAME.fullmatch(name):
            raise CompilationError(
                f"{name!r} cannot be the name of a table or its schema: the embedded Spark takes "
                "the letters a to z, digits and _ only. Nothing was changed. Set another `alias` "
                "or `schema`."
            )


def made_for(identifier: str, *kinds: str) -> Callable[[str], object]:
    """Return a check by its name whether a run made a table of some kinds beside a relation."""
    name = f"{re.escape(identifier)}__(?:{'|'.join(kinds)})_{BATCH_ID}"
    return re.compile(name, re.IGNORECASE).fullmatch


def is_plain(name: str) -> bool:
    """Check whether a name is a plain folder name and not a path."""
    return name not in ("", ".", "..") and not {"/", "\\", "\0"}.intersection(name)


def tidy(warehouse: Warehouse, relation: OpenMirroringRelation) -> None:
    """Bring the folders of a relation, and of a run's tables beside it, in order."""
    give_back(warehouse, relation)
    remove_unfinished(warehouse, relation)


def give_back(warehouse: Warehouse, relation: OpenMirroringRelation) -> None:
    """Undo a rename that was left half done. Spark renames the folder of a table first."""
    home, name = _home(warehouse, relation), str(relation.identifier).lower()
    if home is None:
        return
    tables = _tables(warehouse, relation)
    is_beside, is_published = made_for(name, *NEXT_KINDS, PUBLISHED), made_for(name, PUBLISHED)
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
    home, name = _home(warehouse, relation), str(relation.identifier).lower()
    if home is None:
        return
    tables = _tables(warehouse, relation)
    # without the relation, the rows that were published last may be the only ones
    kinds = (PUBLISHED,) if name in tables else ()
    is_leftover = made_for(name, *NEXT_KINDS, *ROLES_OF_ROWS, *kinds)
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
    aside = folder.with_name(f"{folder.name}__{LEFT}_{new_batch_id()}")
    folder.rename(aside)
    told = (
        f"{folder} had files, but Spark had no table {relation}: a run was killed while it "
        f"dropped the table, or Spark's metastore has lost it. The files are in {aside} now. "
        "Delete them if nobody needs their rows."
    )
    logger.warning(with_code(told, "OM411"))


def refuse_lost(warehouse: Warehouse, relations: Iterable[OpenMirroringRelation]) -> None:
    """Check that the relations of nodes whose rows are to be read have their folders.

    Raises:
        CompilationError: if a folder is missing
    """
    for relation in relations:
        if folder := warehouse.lost_folder(warehouse.found(relation)):
            raise folder_lost(folder, relation, relation)


def folder_lost(
    folder: Path, table: OpenMirroringRelation, relation: OpenMirroringRelation
) -> RefusedError:
    """Return an error that names the way out of a lost folder.

    Args:
        table: whose folder it was: the relation of a node, or one beside it
    """
    return RefusedError(
        f"The folder {folder} is gone, with all rows that Spark has of {table}. Spark would read "
        "none, and they would be deleted from the mirror. Nothing was changed. Put the folder "
        f"back. If it is lost, run the node of {relation} with --full-refresh, which computes its "
        "rows anew, and publishes them as a full load if it is mirrored. Rows that its sources no "
        "longer have are gone then, and a dbt snapshot begins its history anew.",
        code="OM407",
    )


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
