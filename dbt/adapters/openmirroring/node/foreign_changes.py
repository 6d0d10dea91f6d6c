"""Changes of a relation by others, which a node publishes (`on_foreign_changes: publish`).

A package may fill a table at the end of each run, and a person may correct rows by hand. Then the
relation is ahead of the mirror, as held rows are: the rows that were published last are put beside
it, and the difference is published.
"""

from __future__ import annotations

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.errors import SnapshotMismatchError
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.node.config import IMMEDIATELY
from dbt.adapters.openmirroring.node.mirrored_rows import rows_as_published
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.snapshot.published_rows import (
    PublishedRows,
    beside,
    note_version,
    published_rows,
)
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import ScratchTables
from dbt.adapters.openmirroring.node.snapshot.state import published_version, verify_state
from dbt.adapters.openmirroring.node.snapshot.swap import move
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation


def with_foreign_changes(
    node: Node,
    destination: Destination,
    table: PublishedTable,
    published: PublishedRows,
    scratch: ScratchTables,
) -> PublishedRows:
    """Return the rows that were published last, whatever others have made of the relation since.

    Args:
        table: the table as it was published last
        published: the rows that the relation has

    Raises:
        SnapshotMismatchError: if somebody else has changed them, and the node does not publish
            such changes
        MirroredTableMismatchError: if the mirrored table has other rows than were published
        DbtRuntimeError: if it cannot be read
    """
    warehouse, target = node.warehouse, node.target
    publishes = node.options.publishes_foreign_changes
    # Hooks and holds keep these rows as those that were published, before anything compares them.
    # No later run could take that back.
    are_kept = node.has_code_before or node.has_post_hooks or node.options.publish != IMMEDIATELY
    try:
        return verify_state(warehouse, table, published, counts_unknown=publishes or are_kept)
    except SnapshotMismatchError:
        if not publishes:
            raise
    assert published.build, "only what was published can have changed since"
    version = published_version(warehouse, table, published)
    if destination.dry_run:
        rows = _rows(node, destination, table, scratch) if version is None else target
        past = rows.incorporate(version=version)
        return PublishedRows(warehouse, past, published.build, published.marks)
    if version is not None:
        note_version(warehouse, target, published.build, version)
    else:
        rows = _rows(node, destination, table, scratch)
        move(warehouse, rows, beside(target, published.build))
    return published_rows(warehouse, target, published.build, None)


def _rows(
    node: Node, destination: Destination, table: PublishedTable, scratch: ScratchTables
) -> OpenMirroringRelation:
    assert table.last, "only what was published can have changed since"
    return rows_as_published(node, destination, table, table.last, scratch)
