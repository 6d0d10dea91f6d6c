"""The snapshot: replaced, changed in place, compared with its state, and ahead of the mirror.

A snapshot is ahead of the mirror while its rows are held, and while post-hooks run. The rows that
were published last are then in the table `<identifier>__published_<build>`. If the snapshot was
changed in place, they are an earlier version of the snapshot's own table.

A record of the last publication has the state that it left. If the snapshot is in another state
now, a hook at the end of a run, a package or a person has written to it.

Delta, Iceberg and Parquet keep the least and the greatest value of a column for each file or
group of rows. A condition on a range of keys lets Spark skip those that have no key of a new row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.snapshot.reuse import MERGING_FORMATS, TouchedRows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import make_way
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.protocol.facts import Facts, Itself, Kept
from dbt.adapters.openmirroring.protocol.start import baseline_of, is_ahead, published_build
from dbt.adapters.openmirroring.spark.relation import (
    BUILD_PROPERTY,
    VERSION_PROPERTY,
    Marks,
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


@dataclass(frozen=True)
class PublishedRows:
    """The rows that were published last, as Spark has them.

    Args:
        relation: the relation of these rows, possibly an earlier version of the snapshot; None if
            there is no such relation
        marks: the marks of the snapshot
        facts: what was known when they were found
    """

    warehouse: Warehouse
    relation: OpenMirroringRelation | None
    marks: Marks
    facts: Facts

    @property
    def build(self) -> str | None:
        """The id of the build that has made them; None if they were not published."""
        match baseline_of(self.facts):
            case Itself(build):
                return build
        return published_build(self.facts)

    @property
    def is_ahead(self) -> bool:
        """Whether the snapshot is ahead of these rows, or may be."""
        return is_ahead(self.facts)

    @property
    def are_beside(self) -> bool:
        """Whether they are in a separate table beside the snapshot."""
        return isinstance(baseline_of(self.facts), Kept)

    @property
    def is_view(self) -> bool:
        return self.relation is not None and self.relation.is_view

    @property
    def is_there(self) -> bool:
        return self.relation is not None

    @property
    def is_past(self) -> bool:
        """Whether they are an earlier version of a table: readable, but not describable."""
        return self.relation is not None and self.relation.version is not None

    @cached_property
    def description(self) -> TableDescription | None:
        """The table of these rows; None if there is none, or an earlier version of one."""
        if self.relation is None or self.is_view or self.is_past:
            return None
        return self.warehouse.describe(self.relation)


def note_version(
    warehouse: Warehouse,
    target: OpenMirroringRelation,
    published: str,
    version: str,
    build: str | None = None,
) -> None:
    """Note which version of a table has published rows, before the table is changed in place.

    Args:
        published: the id of the build whose rows that version has
        build: the id of the build that changes the table; None if others change it
    """
    marks = {VERSION_PROPERTY: f"{published} {version}"}
    warehouse.mark(target, {BUILD_PROPERTY: build, **marks} if build else marks)


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
    expected = _state_left(warehouse, relation, description, journal)
    if found == expected:
        return published
    kind, _, version = str(expected).partition(":")
    if kind == "version" and description.layout.format in MERGING_FORMATS:
        if not _is_changed_since(warehouse, relation, description, version):
            return published
        if not has_published_columns(description, journal):
            return replace(published, relation=relation.incorporate(version=version))
    left = replace(journal, snapshot_state=expected)
    table.verify_state(left, found, lambda: _count(warehouse, relation))
    return published


def published_version(
    warehouse: Warehouse, table: PublishedTable, published: PublishedRows
) -> str | None:
    """Return the version of a snapshot that has the rows which were published last, if any."""
    journal, relation, description = table.last, published.relation, published.description
    if journal is None or relation is None or description is None:
        return None
    state = _state_left(warehouse, relation, description, journal)
    kind, _, version = str(state).partition(":")
    if kind != "version":
        return None
    past: OpenMirroringRelation = relation.incorporate(version=version)
    return version if _count(warehouse, past) == journal.batch.table_rows else None


def _state_left(
    warehouse: Warehouse,
    relation: OpenMirroringRelation,
    description: TableDescription,
    journal: Journal,
) -> str | None:
    """Return the state in which a publication or a restore has left a snapshot.

    The journal cannot have that of a restore, nor that of a change in place whose run was killed.
    """
    restored = Marks.of(warehouse.properties(relation)).restored_state(journal.batch.build)
    kind, _, version = (restored or str(journal.snapshot_state)).partition(":")
    if kind != "before" or description.layout.format not in MERGING_FORMATS:
        return restored or journal.snapshot_state
    changes = row_changes_since(warehouse, relation, description, version)
    return f"version:{changes[0] if changes else version}"


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
    warehouse: Warehouse, table: OpenMirroringRelation, description: TableDescription, version: str
) -> bool:
    """Check whether rows of a Delta or Iceberg table may have changed since a version."""
    return row_changes_since(warehouse, table, description, version) != []


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
