"""Repairing a mirrored table from the snapshot, and restoring a lost snapshot from the mirror.

A repair publishes the difference as a change set. A restore changes only Spark: the records in the
landing zone stay as they are, so a dry run restores too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.batch import Batch, MirroredColumn
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable, publish_present
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.compare import Comparer
from dbt.adapters.openmirroring.node.decide import refuse_deletion
from dbt.adapters.openmirroring.node.mirrored_rows import mirrored_rows, rows_as_published
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.plan import SparkPlan, published_columns
from dbt.adapters.openmirroring.node.progress import COMPARING
from dbt.adapters.openmirroring.node.publish import begin_attempt, commit
from dbt.adapters.openmirroring.node.response import MirrorResponse
from dbt.adapters.openmirroring.node.snapshot.reuse import NextSnapshot, Reuse
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    MIRRORED,
    ScratchTables,
    table_beside,
)
from dbt.adapters.openmirroring.node.snapshot.snapshot import move
from dbt.adapters.openmirroring.node.start import Attempt
from dbt.adapters.openmirroring.protocol.actions import Done
from dbt.adapters.openmirroring.protocol.facts import NEXT, GoAhead, Repair, Restore
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.text.errors import RefusedError


def repair(node: Node, destination: Destination) -> MirrorResponse:
    """Publish the difference between a mirrored table and the snapshot of its node.

    Raises:
        MirrorError: if Spark does not have the rows that were published last
        DbtRuntimeError: if no change set can make the tables equal, or if a step fails
    """
    with begin_attempt(node, destination) as attempt:
        records, warehouse = attempt.records, node.warehouse
        journal, options = records.last, node.options
        published = journal.batch.definition if journal else None
        wanted = (options.landing_format, options.delimited)
        has_format = not published or wanted == (published.landing_format, published.delimited)
        attempt.start(Repair(has_format))
        assert journal, "it was published"
        destination.check_table(records.table, rebuilds=False)
        attempt.verify(rebuilds=False)
        rebuild = publish_present(records.table)
        with mirrored_rows(node, destination, records, journal, rebuild) as view:
            columns = published_columns(journal.batch.definition)
            query = warehouse.sql("mirror_landed_rows", view=view, columns=columns)
            mirrored = attempt.scratch.keep(MIRRORED, query)
        plan, snapshot = _plan(attempt, journal, mirrored)
        if not plan.row_count:
            return MirrorResponse.unchanged(plan)
        refuse_deletion(node, plan)
        return commit(attempt, plan, snapshot, journal.batch.build)


def _plan(
    attempt: Attempt, journal: Journal, mirrored: OpenMirroringRelation
) -> tuple[SparkPlan, NextSnapshot]:
    """Compare the snapshot with the mirrored rows."""
    node, publication, warehouse = attempt.node, attempt.records, attempt.node.warehouse
    warehouse.adapter.progress.show_step(COMPARING)
    publication.verify_rows(journal, warehouse.count_rows(node.target))
    definition, keys = journal.batch.definition, journal.batch.definition.key_columns
    without_key = (
        warehouse.count("mirror_count_without_key", table=mirrored, keys=keys) if keys else 0
    )
    if without_key:
        raise RefusedError(
            f"The mirrored table of {node.target} has {without_key:,} rows without a key "
            f"({', '.join(keys)}). Nothing was changed: no change set can delete them. "
            f"{publish_present(publication.table)}",
            code="OM406",
        )
    description = warehouse.describe(node.target)
    snapshot = NextSnapshot(node.target, description, published_columns(definition), Reuse())
    comparer = Comparer(
        warehouse, attempt.scratch, publication, node.options, definition, mirrored, snapshot
    )
    as_landed = replace(
        journal.batch,
        definition=replace(
            definition,
            columns=tuple(
                MirroredColumn(column.name, column.landed_type, column.landed_type)
                for column in definition.columns
            ),
        ),
        table_rows=warehouse.count_rows(mirrored),
    )
    found = comparer.changes(replace(journal, batch=as_landed))
    if found.rows.deleted and not keys:
        raise RefusedError(
            f"The mirrored table of {node.target} has {found.rows.deleted:,} rows that were not "
            f"published, and lacks {found.rows.inserted:,}. Nothing was changed: without a "
            "`unique_key` no change set can delete rows. "
            f"{publish_present(publication.table)}",
            code="OM406",
        )
    plan = SparkPlan(
        "changes" if found.rows else "unchanged",
        "mirror_repair" if found.rows else "",
        definition,
        found.rows,
        journal,
        table_rows=journal.batch.table_rows,
        changed=found.changed,
        in_full=found.in_full,
    )
    return plan, snapshot


@dataclass(frozen=True)
class Restored:
    """A snapshot that was restored, and what was in its place; empty if Spark had lost it."""

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
    with _begin(node, destination) as attempt:
        warehouse, target, journal = node.warehouse, node.target, attempt.records.last
        if isinstance(attempt.start(Restore(replaces, destination.dry_run)), Done):
            return None
        assert journal, "only what was published is restored"
        replaced = _other_rows(attempt, journal)
        warehouse.adapter.create_schema(target.without_identifier())
        restored = rows_as_published(node, destination, attempt.records, attempt.scratch)
        # under this name, a later run takes them for the rows that were published
        move(warehouse, restored, table_beside(target, NEXT, journal.batch.build))
        attempt.advance(GoAhead(journal.batch.build))
        return Restored(journal.batch, replaced)


@contextmanager
def _begin(node: Node, destination: Destination) -> Iterator[Attempt]:
    """Lock the table, unless this is a dry run, which may have no right to."""
    if not destination.dry_run:
        with begin_attempt(node, destination) as attempt:
            yield attempt
        return
    table = PublishedTable(destination.storage(), node.table_folder, node.owner)
    manifest = table.pending()
    with (
        node.warehouse.adapter.connections.own_session(),
        ScratchTables(node.warehouse, node.target, table.batch_id) as scratch,
    ):
        attempt = Attempt(node, destination, table, scratch)
        attempt.manifest = manifest
        attempt.look()
        yield attempt


def _other_rows(attempt: Attempt, journal: Journal) -> str:
    """Describe the rows that Spark had in place of those that were published last, if any."""
    if attempt.relation is None:
        return ""
    if attempt.relation.is_view:
        return "a view"
    if attempt.build != journal.batch.build:
        return f"batch {attempt.build}" if attempt.build else "rows never published"
    return "rows that were changed, or lost, since they were published"
