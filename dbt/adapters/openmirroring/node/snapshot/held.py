"""Held rows: a snapshot that is ahead of the mirror.

The snapshot is marked as held. The rows that were published last are in the table
`<identifier>__published`. If the snapshot was changed in place, they are an earlier version of
the snapshot's own table.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.node.next_rows import NextRows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    NEXT,
    PUBLISHED_SUFFIX,
    leftovers,
)
from dbt.adapters.openmirroring.node.snapshot.swap import (
    move,
    snapshot_version,
    swap,
    take_in_place,
)
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import (
    BATCH_ID_PROPERTY,
    HELD_PROPERTY,
    REBUILD_PROPERTY,
    UNFINISHED_PROPERTY,
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
        batch_id: the id of the batch that published them; None if they were not published
        marks: the marks of the snapshot
        are_beside: whether they are in a separate table beside the snapshot
    """

    warehouse: Warehouse
    relation: OpenMirroringRelation | None
    batch_id: str | None
    marks: Marks
    are_beside: bool = False

    @property
    def is_held(self) -> bool:
        """Whether the snapshot is ahead of these rows, or may be."""
        return bool(self.marks.held or self.marks.version) or self.are_beside

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
    warehouse: Warehouse, target: OpenMirroringRelation, last: str | None
) -> PublishedRows:
    """Find the rows that were published last.

    Args:
        last: the id of the batch that was published last
    """
    snapshot = warehouse.found(target)
    marks = warehouse.marks(snapshot)
    kept = _published_beside(warehouse, target, last)
    if kept:
        kept_marks = warehouse.marks(kept)
        relation = kept.incorporate(version=kept_marks.version)
        return PublishedRows(warehouse, relation, kept_marks.batch_id, marks, are_beside=True)
    if snapshot and marks.version:
        snapshot = snapshot.incorporate(version=marks.version)
    return PublishedRows(warehouse, snapshot, marks.batch_id, marks)


def marks_of_build(
    build_id: str, rebuild: str | None, is_unfinished: bool = False
) -> dict[str, str]:
    """Return the properties of a next snapshot that will be held.

    Args:
        build_id: the id of this build
        rebuild: why the held rows will be published as a rebuild; None if the changes decide
        is_unfinished: whether the run may still fail after the build is the snapshot
    """
    marks = {HELD_PROPERTY: build_id}
    if rebuild:
        marks[REBUILD_PROPERTY] = rebuild
    if is_unfinished:
        marks[UNFINISHED_PROPERTY] = "true"
    return marks


def hold(
    warehouse: Warehouse,
    target: OpenMirroringRelation,
    built: OpenMirroringRelation,
    rows: NextRows,
    published: PublishedRows,
    last: str | None,
    build_id: str,
    is_unfinished: bool = False,
) -> None:
    """Make a build the snapshot, and keep the rows that were published last beside it.

    If the process is killed in between, the next run finishes this step (`finish_hold`).

    Args:
        built: the next snapshot, marked as held; or the rows that the snapshot takes in place
        last: the id of the batch that was published last
        build_id: the id of this build
        is_unfinished: whether the run may still fail after the build is the snapshot

    Raises:
        CompilationError: if another table has the name that the published rows need
        DbtRuntimeError: if the snapshot refuses the rows
    """
    if rows.touched:
        marks = marks_of_build(build_id, None, is_unfinished)
        if not published.is_held:
            marks[VERSION_PROPERTY] = snapshot_version(warehouse, target)
        warehouse.mark(target, marks)
        take_in_place(warehouse, target, built, rows.touched.new_rows, rows.touched.keys)
        warehouse.replaced(target)
        return
    snapshot = warehouse.found(target)
    if snapshot and not published.are_beside and last and published.batch_id == last:
        place = beside(target)
        if warehouse.found(place):
            raise refuse_taken(place)
        move(warehouse, snapshot, place)
    swap(warehouse, target, built)


def refuse_taken(place: OpenMirroringRelation) -> CompilationError:
    """Return the error for a table of somebody else that has the name for published rows."""
    return CompilationError(
        f"{place} already exists, and dbt-openmirroring did not create it. Rows that are "
        "held back need that name for those that were published last. Nothing was "
        "changed. Drop it, or give that model another `alias`."
    )


def finish_hold(warehouse: Warehouse, target: OpenMirroringRelation, last: str | None) -> None:
    """Finish a hold that a killed process interrupted between its two renames.

    Args:
        last: the id of the batch that was published last
    """
    if warehouse.found(target):
        return
    kept = _published_beside(warehouse, target, last)
    if kept:
        # the process moved the snapshot away only after its build was complete and marked
        nexts = sorted(leftovers(warehouse, target, [NEXT]), key=str)
        builds = [following for following in nexts if warehouse.marks(following).held]
        move(warehouse, builds[-1] if builds else kept, target)


def mark_published(
    warehouse: Warehouse, target: OpenMirroringRelation, last: str | None, batch_id: str
) -> None:
    """Mark the snapshot as published, so that it is no longer held. This can be repeated.

    Args:
        last: the id of the batch that was published before
        batch_id: the id of the batch that published the snapshot
    """
    marks = Marks.of(warehouse.properties(target))
    if marks.batch_id != batch_id:
        warehouse.mark(target, {BATCH_ID_PROPERTY: batch_id})
    if marks.held or marks.rebuild or marks.version:
        names = (HELD_PROPERTY, REBUILD_PROPERTY, UNFINISHED_PROPERTY, VERSION_PROPERTY)
        warehouse.unmark(target, names)
    warehouse.cache(target.carrying(batch_id))
    drop_published_rows(warehouse, target, last)


def drop_published_rows(
    warehouse: Warehouse, target: OpenMirroringRelation, last: str | None
) -> None:
    """Drop the rows that were published before, if they are in a table beside the snapshot.

    Args:
        last: the id of the batch that published these rows
    """
    kept = _published_beside(warehouse, target, last)
    if kept:
        warehouse.drop(kept)


def _published_beside(
    warehouse: Warehouse, target: OpenMirroringRelation, last: str | None
) -> OpenMirroringRelation | None:
    """Find the table of the rows published last; ignore a user's table of the same name."""
    found = warehouse.found(beside(target))
    return found if found and last and warehouse.marks(found).batch_id == last else None


def beside(target: OpenMirroringRelation) -> OpenMirroringRelation:
    """Return the relation that keeps the rows published last while other rows are held."""
    identifier = f"{target.identifier}{PUBLISHED_SUFFIX}"
    relation: OpenMirroringRelation = target.incorporate(path={"identifier": identifier})
    return relation


def is_half_held(warehouse: Warehouse, target: OpenMirroringRelation) -> bool:
    """Check whether a killed process has moved the snapshot away without a replacement."""
    if warehouse.found(target):
        return False
    return warehouse.marks(warehouse.found(beside(target))).batch_id is not None


def refuse_half_held(warehouse: Warehouse, target: OpenMirroringRelation) -> None:
    """Check, before a run that publishes nothing, that a killed process has left no half hold.

    Raises:
        CompilationError: if it has moved the snapshot away without a replacement
    """
    if is_half_held(warehouse, target):
        raise CompilationError(
            f"An earlier run was killed while it held rows of {target}. Nothing was changed. Run "
            "the node once without `--empty`, `--sample` and `dry_run`, which repairs it."
        )
