"""The rows that were published last, and a snapshot that is ahead of them.

A snapshot is ahead of the mirror while its rows are held, and while post-hooks run. The rows that
were published last are then in the table `<identifier>__published_<build>`. If the snapshot was
changed in place, they are an earlier version of the snapshot's own table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dbt.adapters.openmirroring.landing_zone.records import HeldRecord
from dbt.adapters.openmirroring.node.next_rows import NextRows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import PUBLISHED, table_beside
from dbt.adapters.openmirroring.node.snapshot.swap import (
    move,
    snapshot_version,
    swap,
    take_in_place,
)
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import (
    BUILD_PROPERTY,
    VERSION_PROPERTY,
    Marks,
    OpenMirroringRelation,
)
from dbt.adapters.openmirroring.spark.table import TableDescription


@dataclass(frozen=True)
class PublishedRows:
    """The rows that were published last, as Spark has them.

    Args:
        warehouse: Spark's tables
        relation: the relation of these rows, possibly an earlier version of the snapshot; None if
            there is no such relation
        build: the id of the build that has made them; None if they were not published
        marks: the marks of the snapshot
        is_ahead: whether the snapshot is ahead of these rows, or may be
        are_beside: whether they are in a separate table beside the snapshot
    """

    warehouse: Warehouse
    relation: OpenMirroringRelation | None
    build: str | None
    marks: Marks
    is_ahead: bool = False
    are_beside: bool = False

    @property
    def is_view(self) -> bool:
        return self.relation is not None and self.relation.is_view

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


def published_rows(
    warehouse: Warehouse,
    target: OpenMirroringRelation,
    last: str | None,
    held: HeldRecord | None,
) -> PublishedRows:
    """Find the rows that were published last.

    Args:
        last: the id of the build that was published last
        held: the record of a snapshot that is ahead; None if there is none
    """
    snapshot = warehouse.found(target)
    marks = warehouse.marks(snapshot)
    kept = warehouse.found(beside(target, last)) if last else None
    if kept:
        kept = kept.incorporate(version=warehouse.marks(kept).version_of(last))
        return PublishedRows(warehouse, kept, last, marks, is_ahead=True, are_beside=True)
    version = marks.version_of(last)
    if snapshot and version:
        past: OpenMirroringRelation = snapshot.incorporate(version=version)
        return PublishedRows(warehouse, past, last, marks, is_ahead=True)
    if held and held.build == marks.build != last:
        return PublishedRows(warehouse, snapshot, None, marks, is_ahead=True)
    return PublishedRows(warehouse, snapshot, marks.build, marks)


def go_ahead(
    warehouse: Warehouse,
    target: OpenMirroringRelation,
    built: OpenMirroringRelation,
    rows: NextRows,
    published: PublishedRows,
    last: str | None,
    build: str,
) -> None:
    """Make a build the snapshot before it is published.

    The rows that were published last stay beside it. If the process is killed in between, the next
    run finishes or undoes this step (`catch_up`).

    Args:
        built: the next snapshot; or the rows that the snapshot takes in place
        last: the id of the build that was published last
        build: the id of this build

    Raises:
        DbtRuntimeError: if the snapshot refuses the rows
    """
    if rows.touched:
        if last and not published.is_ahead:
            note_version(warehouse, target, last, snapshot_version(warehouse, target), build)
        else:
            warehouse.mark(target, {BUILD_PROPERTY: build})
        take_in_place(warehouse, target, built, rows.touched.new_rows, rows.touched.keys)
        warehouse.replaced(target)
        return
    snapshot = warehouse.found(target)
    if snapshot and last and published.build == last and not published.are_beside:
        move(warehouse, snapshot, beside(target, last))
    swap(warehouse, target, built)


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


def beside(target: OpenMirroringRelation, build: str) -> OpenMirroringRelation:
    """Return the relation that keeps the rows of a published build while the snapshot is ahead."""
    return table_beside(target, PUBLISHED, build)
