"""Restoring the snapshot that Spark has lost from the mirrored table.

Only Spark is changed: the records in the landing zone stay as they are, so a dry run restores too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    MirroredTableMismatchError,
)
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.attempt import begin_attempt
from dbt.adapters.openmirroring.node.build import build_again
from dbt.adapters.openmirroring.node.columns import published_columns
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.progress import RESTORING
from dbt.adapters.openmirroring.node.snapshot.held import is_half_held, published_rows
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import NEXT, ScratchTables
from dbt.adapters.openmirroring.node.snapshot.state import snapshot_state, verify_state
from dbt.adapters.openmirroring.node.snapshot.swap import swap
from dbt.adapters.openmirroring.node.snapshot.table_folders import refuse_lost
from dbt.adapters.openmirroring.spark.relation import (
    BATCH_ID_PROPERTY,
    RESTORED_PROPERTY,
    OpenMirroringRelation,
)
from dbt.adapters.openmirroring.text.ways_out import compute_anew

# seconds, in which the service has time for a round over all tables
ROUND = 60.0

# needs no quotes: when Spark's Thrift server closes a session, it accepts only such names
_VIEW = "openmirroring_mirrored"

_CHANGED = "Somebody else has changed it. Nothing was changed by this run."


@dataclass(frozen=True)
class Restored:
    """A snapshot that was restored.

    Args:
        batch_id: the batch that has published its rows
        rows: the number of its rows
        replaced: what was in its place; empty if Spark had lost it
    """

    batch_id: str
    rows: int
    replaced: str = ""

    def __str__(self) -> str:
        place = f", in place of {self.replaced}" if self.replaced else ""
        return f"restored {self.rows:,} rows of batch {self.batch_id}{place}"


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
        if destination.dry_run and is_half_held(warehouse, target):
            return None  # a run repairs it
        warehouse.show_step(RESTORING)
        warehouse.create_schema(target)
        if journal.batch.table_rows:
            anew = compute_anew(node.owner.node, journal.batch.table_rows)
            with mirrored_rows(node, destination, table, journal, anew) as view:
                following = _next_snapshot(node, scratch, journal, view)
        else:
            following = _next_snapshot(node, scratch, journal, None)
        _verify(node, journal, following)
        swap(warehouse, target, following)
        return Restored(journal.batch.id, journal.batch.table_rows, other)


@contextmanager
def _table_of(
    node: Node, destination: Destination
) -> Iterator[tuple[PublishedTable, ScratchTables]]:
    """Lock the table, unless this is a dry run, which may have no right to."""
    if not destination.dry_run:
        with begin_attempt(node, destination) as attempt:
            yield attempt.publication, attempt.scratch
        return
    table = destination.published_table(node.table_folder, node.owner)
    table.open()
    with ScratchTables(node.warehouse, node.target, table.batch_id) as scratch:
        yield table, scratch


def is_of(node: Node, journal: Journal) -> bool:
    """Check whether a journal is that of a node."""
    published, owner = journal.batch.owner, node.owner
    return (published.project, published.node, published.schema) == (
        owner.project,
        owner.node,
        owner.schema,
    )


def _other_rows(node: Node, table: PublishedTable, journal: Journal) -> str:
    """Describe the rows that Spark has, if they are not those that were published last."""
    published = published_rows(node.warehouse, node.target, journal.batch.id)
    if published.is_view:
        return "a view"
    if published.batch_id != journal.batch.id:
        return f"batch {published.batch_id}" if published.batch_id else "rows never published"
    try:
        refuse_lost(node.warehouse, [node.target])
        verify_state(node.warehouse, table, published)
    except DbtRuntimeError:
        return "rows that were changed, or lost, since they were published"
    return ""


@contextmanager
def mirrored_rows(
    node: Node, destination: Destination, table: PublishedTable, journal: Journal, way_out: str
) -> Iterator[str]:
    """Let Spark read the rows of the mirrored table, once everything published is applied.

    Args:
        table: the table as it was published last
        journal: its journal
        way_out: what the user can do if it is another table than was published

    Yields:
        the name of a temporary view of the rows, with the columns of the mirrored table

    Raises:
        MirroredTableMismatchError: if the mirrored table has other columns
        ConcurrentPublicationError: if another run publishes the table meanwhile
        DbtRuntimeError: if it cannot be read, or if not everything published is applied in time
    """
    seconds = max(destination.target.wait_for_mirror, ROUND)
    with destination.replica(table.table, journal, seconds) as replica:
        published = [column.name for column in journal.batch.definition.columns]
        mirrored = [column.name for column in replica.columns]
        if sorted(published) != sorted(mirrored):
            raise MirroredTableMismatchError(
                f"The mirrored table of {node.target} has the columns {', '.join(mirrored)}, and "
                f"{', '.join(published)} were published. {_CHANGED} {way_out}"
            )
        warehouse = node.warehouse
        warehouse.execute(warehouse.sql("mirror_replica_view", view=_VIEW, replica=replica))
        yield _VIEW
        if table.is_published_again():
            raise ConcurrentPublicationError(
                f"Another run has published {table.table} while its rows were read. Nothing was "
                "changed by this run; run it again."
            )


def _next_snapshot(
    node: Node, scratch: ScratchTables, journal: Journal, view: str | None
) -> OpenMirroringRelation:
    """Write the rows that were published to a table, with the types that they had."""
    warehouse, definition = node.warehouse, journal.batch.definition
    columns = published_columns(definition)
    query = warehouse.sql("mirror_restored_rows", view=view, columns=columns)
    marks = {BATCH_ID_PROPERTY: journal.batch.id}
    following = scratch.table(NEXT).carrying(journal.batch.id)
    build_again(node, following, query, [column.name for column in columns], marks)
    state = snapshot_state(warehouse, following, warehouse.describe(following))
    if state:
        warehouse.mark(following, {RESTORED_PROPERTY: f"{journal.batch.id} {state}"})
    return following


def _verify(node: Node, journal: Journal, restored: OpenMirroringRelation) -> None:
    """Check that the rows are as many as were published, each with a key of its own."""
    warehouse, definition = node.warehouse, journal.batch.definition
    by_name = {column.name: column for column in published_columns(definition)}
    keys = [by_name[name] for name in definition.key_columns]
    sql = warehouse.sql("mirror_count_load", table=restored, keys=keys, is_small=False)
    counts = warehouse.query(sql).rows[0]
    found, published = int(counts["inserted"]), journal.batch.table_rows
    if found != published:
        raise MirroredTableMismatchError(
            f"The mirrored table of {node.target} has {found:,} rows, and {published:,} were "
            f"published. {_CHANGED} {compute_anew(node.owner.node, published)}"
        )
    if counts["refused"]:
        raise MirroredTableMismatchError(
            f"The mirrored table of {node.target} has rows with the same key, or without one. "
            f"Its key is {', '.join(definition.key_columns)}. {_CHANGED} "
            f"{compute_anew(node.owner.node, published)}"
        )
