"""Restoring the snapshot that Spark has lost from the mirrored table.

Only Spark is changed: the records in the landing zone stay as they are, so a dry run restores too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.batch import Batch
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.advance import is_interrupted
from dbt.adapters.openmirroring.node.attempt import begin_attempt
from dbt.adapters.openmirroring.node.mirrored_rows import is_of, rows_as_published
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.snapshot.published_rows import published_rows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import ScratchTables
from dbt.adapters.openmirroring.node.snapshot.state import verify_state
from dbt.adapters.openmirroring.node.snapshot.swap import swap
from dbt.adapters.openmirroring.node.snapshot.table_folders import refuse_lost


@dataclass(frozen=True)
class Restored:
    """A snapshot that was restored.

    Args:
        batch: the batch that has published its rows
        replaced: what was in its place; empty if Spark had lost it
    """

    batch: Batch
    replaced: str = ""

    def __str__(self) -> str:
        place = f", in place of {self.replaced}" if self.replaced else ""
        return f"restored {self.batch.table_rows:,} rows of batch {self.batch.id}{place}"


def restore(node: Node, destination: Destination, replaces: bool = False) -> Restored | None:
    """Bring back the rows of a node that were published last, if Spark does not have them.

    Args:
        replaces: whether they may take the place of other rows that Spark has

    Returns:
        the restored snapshot; None if Spark has its rows, or if this node has published none

    Raises:
        MirroredTableMismatchError: if the mirrored table has other rows than were published
        DbtRuntimeError: if it cannot be read, or if not everything published is applied in time
    """
    with node.warehouse.own_session(), _table_of(node, destination) as (table, scratch):
        journal = table.last
        if journal is None or not is_of(node, journal):
            return None
        warehouse, target = node.warehouse, node.target
        found = warehouse.found(target)
        if found and not replaces:
            return None
        other = _other_rows(node, table, journal) if found else ""
        if found and not other:
            return None
        if destination.dry_run and is_interrupted(warehouse, target):
            return None  # a run repairs it
        warehouse.create_schema(target)
        restored = rows_as_published(node, destination, table, journal, scratch)
        swap(warehouse, target, restored)
        return Restored(journal.batch, other)


@contextmanager
def _table_of(
    node: Node, destination: Destination
) -> Iterator[tuple[PublishedTable, ScratchTables]]:
    """Lock the table, unless this is a dry run, which may have no right to."""
    if not destination.dry_run:
        with begin_attempt(node, destination) as attempt:
            yield attempt.publication, attempt.scratch
        return
    table = PublishedTable(destination.storage(), node.table_folder, node.owner)
    table.open()
    with ScratchTables(node.warehouse, node.target, table.batch_id) as scratch:
        yield table, scratch


def _other_rows(node: Node, table: PublishedTable, journal: Journal) -> str:
    """Describe the rows that Spark has, if they are not those that were published last."""
    published = published_rows(node.warehouse, node.target, table.last_build, None)
    if published.is_view:
        return "a view"
    if published.build != journal.batch.build:
        return f"batch {published.build}" if published.build else "rows never published"
    try:
        refuse_lost(node.warehouse, [node.target])
        verify_state(node.warehouse, table, published)
    except DbtRuntimeError:
        return "rows that were changed, or lost, since they were published"
    return ""
