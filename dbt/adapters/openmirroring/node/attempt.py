"""An attempt to publish a node: its lock, leftovers of earlier runs, and the published rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import HeldRecord, Manifest
from dbt.adapters.openmirroring.node.advance import recover
from dbt.adapters.openmirroring.node.foreign_changes import with_foreign_changes
from dbt.adapters.openmirroring.node.hooks import CodeBefore
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.planning import Planner, meanwhile, returned
from dbt.adapters.openmirroring.node.snapshot.published_rows import PublishedRows, published_rows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import ScratchTables
from dbt.adapters.openmirroring.node.snapshot.state import has_published_columns
from dbt.adapters.openmirroring.spark.table import TableDescription


@dataclass(frozen=True)
class Attempt:
    """The state for publishing one node, after the leftovers of earlier runs were handled.

    Args:
        publication: the publication, which holds the lock of the table
        scratch: tables that exist only during this attempt
        published: the rows that were published last
        finished: the manifest of an earlier run's batch that has just been finished, if any
    """

    node: Node
    destination: Destination
    publication: Publication
    scratch: ScratchTables
    published: PublishedRows
    finished: Manifest | None

    @property
    def planner(self) -> Planner:
        return Planner(self.node, self.publication, self.published, self.scratch)

    @property
    def held(self) -> HeldRecord | None:
        """The record of the build that is the snapshot, if that is ahead of the mirror."""
        held = self.publication.held
        return held if held and held.build == self.published.marks.build else None

    @property
    def held_rebuild(self) -> str | None:
        """Why the snapshot will be published as a rebuild, if that was known when it was built."""
        return self.held.rebuild if self.held else None

    def with_published_rows(self) -> Attempt:
        """Return the attempt with the published rows as Spark has them now."""
        return replace(self, published=rows_published_by(self.node, self.publication))


@contextmanager
def begin_attempt(node: Node, destination: Destination) -> Iterator[Attempt]:
    """Lock the table of a node, and finish or drop what earlier runs left of it."""
    warehouse, target = node.warehouse, node.target
    with (
        destination.publication(node.table_folder, node.owner) as publication,
        ScratchTables(
            warehouse, target, publication.batch_id, lambda: publication.committed
        ) as scratch,
    ):
        finished = recover(warehouse, publication, target, node.is_full_refresh)  # 0
        if finished:
            node.print_line(
                f"Finished batch {finished.batch.id} of {target}, which an earlier run had left"
            )
        published = rows_published_by(node, publication)
        yield Attempt(node, destination, publication, scratch, published, finished)


def rows_published_by(node: Node, publication: Publication) -> PublishedRows:
    """Return the rows that were published last, as Spark has them now."""
    last, held = publication.last_build, publication.held
    return published_rows(node.warehouse, node.target, last, held)


def before_build(
    attempt: Attempt, extends: bool, rebuild: str | None
) -> tuple[Attempt, str | None]:
    """Check that nobody else has changed the published rows, and run the user's code.

    Returns:
        the attempt with the published rows after that code, and a rebuild if one is due
    """
    node, publication, published = attempt.node, attempt.publication, attempt.published
    if publication.last:
        zone_id = attempt.destination.zone_id
        rebuild = rebuild or attempt.held_rebuild or meanwhile(published)
        rebuild = rebuild or returned(node, publication, published, zone_id)
    if rebuild:  # nothing is compared, so nothing has to be kept
        node.run_code_before(lambda _: True)
        return attempt, rebuild
    if node.has_code_before or node.has_post_hooks:
        # this code cannot be undone if the table is refused later
        publication.verify(published.build, rebuilds=False)
    published = with_foreign_changes(
        node, attempt.destination, publication, published, attempt.scratch
    )
    attempt = replace(attempt, published=published)
    if not node.has_code_before:
        return attempt, None
    published, replaced = CodeBefore(node, publication, published, extends).run()
    return replace(attempt, published=published), replaced


def reusable(attempt: Attempt, is_held: bool) -> TableDescription | None:
    """Return the snapshot, if a build may keep rows and files of it; None to consider all rows."""
    published, last = attempt.published, attempt.publication.last
    has_hooks = attempt.node.has_post_hooks
    if published.marks.unmirrored:
        return None  # the snapshot loses the mark of `mirror: false` when it is replaced
    if published.is_ahead and (has_hooks or not is_held):
        return None  # keys may repeat in rows that no publication has checked
    if is_held and published.is_ahead:
        found = attempt.node.warehouse.found(attempt.node.target)
        return attempt.node.warehouse.describe(found) if found and found.is_table else None
    description = published.description
    if is_held or has_hooks:  # then the publication compares all rows, whatever the build keeps
        return description
    if description is None or last is None or not has_published_columns(description, last):
        return None
    return description
