"""The state of a snapshot's data, which shows whether others have changed it since.

A record of the last publication has the state that it left. If the snapshot is in another state
now, a hook at the end of a run, a package or a person has written to it.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.snapshot.published_rows import PublishedRows
from dbt.adapters.openmirroring.node.snapshot.reuse import MERGING_FORMATS
from dbt.adapters.openmirroring.node.snapshot.swap import snapshot_version
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.spark.relation import Marks, OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import TableDescription, data_files

# Operations in Delta's and Iceberg's histories that change no row. Delta also records changes of
# properties, comments and constraints.
_CHANGES_NO_ROW = {
    *("OPTIMIZE", "REORG", "VACUUM START", "VACUUM END", "COMPUTE STATS", "CLUSTER BY"),
    *("SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "UPGRADE PROTOCOL", "ADD FEATURE"),
    *("CHANGE COLUMN", "CHANGE COLUMNS", "UPDATE COLUMN METADATA", "UPDATE SCHEMA"),
    *("ADD CONSTRAINT", "DROP CONSTRAINT", "ADD COLUMNS"),
    "replace",
}


def snapshot_state(
    warehouse: Warehouse, table: OpenMirroringRelation, description: TableDescription
) -> str | None:
    """Return the state of a table's data; None if only reading its rows would show a change.

    It is the version of a Delta or Iceberg table, and a digest of the names and sizes of the data
    files of another table, if they are on this machine.
    """
    if description.layout.format in MERGING_FORMATS:
        return version_state(warehouse, table)
    folder = description.folder if warehouse.is_driven_here else None
    if not folder:
        return None
    files = sorted(
        (str(path.relative_to(folder)), path.stat().st_size) for path in data_files(folder)
    )
    return f"files:{hashlib.sha256(repr(files).encode()).hexdigest()}"


def version_state(warehouse: Warehouse, table: OpenMirroringRelation) -> str:
    """Return the state of a Delta or Iceberg table."""
    return f"version:{snapshot_version(warehouse, table)}"


def verify_state(
    warehouse: Warehouse,
    table: PublishedTable,
    published: PublishedRows,
    counts_unknown: bool = False,
) -> PublishedRows:
    """Check that nobody else has changed the rows that were published last.

    A column that somebody has added and filled is no such change: its values were never
    published. Then the rows are read from the version of the table that was published, if its
    format keeps versions.

    Args:
        counts_unknown: whether to count the rows if the state of the snapshot is unknown

    Returns:
        the rows that were published last

    Raises:
        SnapshotMismatchError: if somebody else has changed the rows
    """
    journal, relation, description = table.last, published.relation, published.description
    if journal is None or relation is None or description is None or published.is_ahead:
        return published
    expected, found = journal.snapshot_state, None
    if expected and published.build == journal.batch.build:
        found = snapshot_state(warehouse, relation, description)
    if found is None and counts_unknown and published.build == journal.batch.build:
        table.verify_rows(journal, warehouse.count_rows(relation))
    # a restored table counts its versions anew, so it may come to the number of the old one
    expected = published.marks.restored_state(journal.batch.build) or expected
    if found is None or found == expected:
        return published
    expected = _restored_state(warehouse, relation, journal) or expected
    if found == expected:
        return published
    kind, _, version = str(expected).partition(":")
    if kind == "version" and description.layout.format in MERGING_FORMATS:
        if not _is_changed_since(warehouse, relation, description, version):
            return published
        if not has_published_columns(description, journal):
            past: OpenMirroringRelation = relation.incorporate(version=version)
            return PublishedRows(warehouse, past, published.build, published.marks)
    left = replace(journal, snapshot_state=expected)
    table.verify_state(left, found, lambda: _count(warehouse, relation))
    return published


def published_version(
    warehouse: Warehouse, table: PublishedTable, published: PublishedRows
) -> str | None:
    """Return the version of a snapshot that has the rows which were published last.

    Returns:
        the version; None if its format keeps no versions, or if that version is gone
    """
    journal, relation = table.last, published.relation
    if journal is None or relation is None:
        return None
    state = _restored_state(warehouse, relation, journal) or journal.snapshot_state or ""
    kind, _, version = state.partition(":")
    if kind != "version":
        return None
    past: OpenMirroringRelation = relation.incorporate(version=version)
    return version if _count(warehouse, past) == journal.batch.table_rows else None


def _restored_state(
    warehouse: Warehouse, relation: OpenMirroringRelation, journal: Journal
) -> str | None:
    """Return the state in which a restore has left a snapshot; None if it was not restored.

    The journal has the state of the snapshot on the machine that has published it.
    """
    return Marks.of(warehouse.properties(relation)).restored_state(journal.batch.build)


def _count(warehouse: Warehouse, table: OpenMirroringRelation) -> int:
    """Return the number of rows of a table; 0 if Spark cannot read them."""
    try:
        return warehouse.count_rows(table)
    except DbtRuntimeError as error:  # only a message needs the number
        logger.debug(f"{table}: {error.msg}")
        return 0


def has_published_columns(description: TableDescription, journal: Journal) -> bool:
    """Check whether a table has the columns that were published last, and no others."""
    columns = [(column.name, column.dtype) for column in description.columns]
    return columns == [(c.name, c.type) for c in journal.batch.definition.columns]


def _is_changed_since(
    warehouse: Warehouse,
    table: OpenMirroringRelation,
    description: TableDescription,
    version: str,
) -> bool:
    """Check whether rows of a Delta or Iceberg table may have changed since a version."""
    operations: list[str] = []
    for row in warehouse.read(f"mirror_{description.layout.format}_operations", table=table).rows:
        if str(row["version"]) == version:
            return not _CHANGES_NO_ROW.issuperset(operations)
        operations.append(str(row["operation"]))
    return True  # the history does not reach back to that version
