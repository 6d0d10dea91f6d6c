"""Changes of a relation by others, which a node publishes (`on_foreign_changes: publish`).

A package may fill a table at the end of each run, and a person may correct rows by hand. Then the
relation is ahead of the mirror, as held rows are: the rows that were published last are put beside
it, and the difference is published.
"""

from __future__ import annotations

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.errors import SnapshotMismatchError
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.node.mirrored_rows import rows_as_published
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.snapshot.held import (
    PublishedRows,
    beside,
    marks_of_build,
    published_rows,
    refuse_taken,
)
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import ScratchTables
from dbt.adapters.openmirroring.node.snapshot.state import published_version, verify_state
from dbt.adapters.openmirroring.node.snapshot.swap import move
from dbt.adapters.openmirroring.spark.relation import (
    BATCH_ID_PROPERTY,
    VERSION_PROPERTY,
    OpenMirroringRelation,
)


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
    try:
        return verify_state(warehouse, table, published, counts_unknown=publishes)
    except SnapshotMismatchError:
        if not publishes:
            raise
    version = published_version(warehouse, table, published)
    if destination.dry_run:
        rows = _rows(node, destination, table, scratch) if version is None else target
        past = rows.incorporate(version=version)
        return PublishedRows(warehouse, past, published.batch_id, published.marks)
    held = marks_of_build(table.batch_id, None, is_unfinished=True)
    if version is not None:
        warehouse.mark(target, {**held, VERSION_PROPERTY: version})
    else:
        place = beside(target)
        if warehouse.found(place):
            raise refuse_taken(place)
        move(warehouse, _rows(node, destination, table, scratch), place)
        warehouse.remark(target, [BATCH_ID_PROPERTY], held)
    return published_rows(warehouse, target, table.last_batch_id)


def _rows(
    node: Node, destination: Destination, table: PublishedTable, scratch: ScratchTables
) -> OpenMirroringRelation:
    assert table.last, "only what was published can have changed since"
    return rows_as_published(node, destination, table, table.last, scratch)
