"""The snapshot: replaced, changed in place, and the state of its data.

Delta, Iceberg and Parquet keep the least and the greatest value of a column for each file or
group of rows. A condition on a range of keys lets Spark skip those that have no key of a new row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.snapshot.reuse import MERGING_FORMATS, TouchedRows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import make_way
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import (
    OpenMirroringColumn,
    OpenMirroringRelation,
)
from dbt.adapters.openmirroring.spark.table import RECORDING_FORMATS, TableDescription, data_files


def move(warehouse: Warehouse, relation: OpenMirroringRelation, to: OpenMirroringRelation) -> None:
    """Rename a table. No table may have the new name yet."""
    make_way(warehouse, to)
    warehouse.adapter.rename_relation(relation, to)
    _show_rows(warehouse, to)


def _show_rows(warehouse: Warehouse, table: OpenMirroringRelation) -> None:
    """Let each session see the rows of a table that was renamed."""
    # without a metastore, the catalog of a session forgets partitions when a table is renamed
    if not warehouse.adapter.connections.has_metastore():
        layout = warehouse.describe(table).layout
        # Delta and Iceberg list their own
        if layout.partitions and layout.format not in RECORDING_FORMATS:
            warehouse.run("mirror_find_partitions", table=table)
    warehouse.replaced(table)


def take_in_place(
    warehouse: Warehouse,
    target: OpenMirroringRelation,
    part: OpenMirroringRelation,
    touched: TouchedRows,
) -> None:
    """Replace rows of a snapshot by those of a part, in one commit.

    Rows with the key of one of the new rows are replaced or deleted. Without keys, rows are only
    added.
    """
    columns, keys, new_rows = warehouse.columns(target), touched.keys, touched.new_rows
    names = [column.quoted for column in columns]
    if keys:
        warehouse.run(
            "mirror_merge_part",
            snapshot=target,
            part=part,
            new_rows=new_rows,
            keys=keys,
            names=names,
            ranges=key_ranges(warehouse, new_rows, ranged_columns(columns, keys)),
        )
    else:
        warehouse.run("mirror_insert_part", snapshot=target, part=part, names=names)


def snapshot_version(warehouse: Warehouse, target: OpenMirroringRelation) -> str:
    """Return the version of a snapshot that can be changed in place. Each change alters it."""
    version = warehouse.properties(target).get("current-snapshot-id")  # Iceberg's
    if version:
        return version
    [last] = warehouse.read("mirror_delta_operations", table=target, limit=1).rows
    return str(last["version"])


# Types whose values are equal only if they are the same, with their literals. A literal of another
# type would be compared after a cast, and then Delta skips no files in a MERGE.
_LITERALS = {
    "tinyint": "{}Y",
    "smallint": "{}S",
    "int": "{}",
    "bigint": "{}L",
    "date": "date '{}'",
}

_EPOCH = date(1970, 1, 1).toordinal()
# With Spark's settings for the calendar of old dates, Delta's statistics may tell of another day
# than the table has, if it is in October 1582 or earlier.
_FIRST_DAY, _LAST_DAY = (day.toordinal() - _EPOCH for day in (date(1583, 1, 1), date.max))


@dataclass(frozen=True)
class KeyRange:
    """The range of a key column, with a quoted name, in new rows. Its ends are literals of SQL."""

    column: str
    first: str
    last: str


def ranged_columns(
    columns: Sequence[OpenMirroringColumn], keys: Sequence[str]
) -> list[OpenMirroringColumn]:
    """Return those keys among all columns of a snapshot that can have ranges."""
    by_name = {column.name.lower(): column for column in columns}
    # a session that is case-sensitive may have two columns of one name
    if len(by_name) < len(columns):
        return []
    names = {key.lower() for key in keys}
    return [each for name, each in by_name.items() if name in names and each.dtype in _LITERALS]


def key_ranges(
    warehouse: Warehouse, new_rows: OpenMirroringRelation, ranged: Sequence[OpenMirroringColumn]
) -> tuple[KeyRange, ...]:
    """Return the ranges of the keys that can have them (`ranged_columns`) in new rows.

    A row outside of a range has the key of no new row, unless its key has NULL there.
    """
    if not ranged:
        return ()
    [bounds] = warehouse.read("mirror_key_bounds", new_rows=new_rows, columns=ranged).rows
    ranges = []
    for column, least, greatest in zip(ranged, bounds[0::2], bounds[1::2], strict=True):
        first, last = _literal(column.dtype, least), _literal(column.dtype, greatest)
        if first and last:
            ranges.append(KeyRange(column.quoted, first, last))
    return tuple(ranges)


def _literal(dtype: str, value: Any) -> str | None:
    """Return a literal of SQL; None for NULL, and for a date before 1583 or after 9999.

    Args:
        value: of a date the days since 1970
    """
    if value is None:
        return None
    number = int(value)
    if dtype != "date":
        return _LITERALS[dtype].format(number)
    if not _FIRST_DAY <= number <= _LAST_DAY:
        return None
    return _LITERALS[dtype].format(date.fromordinal(_EPOCH + number))


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
        return f"version:{snapshot_version(warehouse, table)}"
    folder = description.folder if warehouse.is_driven_here else None
    if not folder:
        return None
    files = sorted(
        (str(path.relative_to(folder)), path.stat().st_size) for path in data_files(folder)
    )
    return f"files:{hashlib.sha256(repr(files).encode()).hexdigest()}"


def has_published_columns(description: TableDescription, journal: Journal) -> bool:
    """Check whether a table has the columns that were published last, and no others."""
    columns = [(column.name, column.dtype) for column in description.columns]
    return columns == [(c.name, c.type) for c in journal.batch.definition.columns]


def row_changes_since(
    warehouse: Warehouse, table: OpenMirroringRelation, description: TableDescription, version: str
) -> list[str] | None:
    """Return the versions that changed rows of a Delta or Iceberg table since a version.

    Returns:
        the earliest first; None if the history does not reach back to that version
    """
    changes: list[str] = []
    for row in warehouse.read(f"mirror_{description.layout.format}_operations", table=table).rows:
        if str(row["version"]) == version:
            return changes[::-1]
        if str(row["operation"]) not in _CHANGES_NO_ROW:
            changes.append(str(row["version"]))
    return None
