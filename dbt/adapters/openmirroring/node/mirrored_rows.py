"""The rows of a mirrored table, brought to Spark or compared with those of its model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    MirroredTableMismatchError,
)
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable, compute_anew
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.build import create_table
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.plan import published_columns
from dbt.adapters.openmirroring.node.progress import RESTORING
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    ScratchTables,
)
from dbt.adapters.openmirroring.node.snapshot.snapshot import (
    snapshot_state,
)
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.protocol.facts import NEXT
from dbt.adapters.openmirroring.spark.relation import (
    BUILD_PROPERTY,
    RESTORED_PROPERTY,
    OpenMirroringRelation,
)
from dbt.adapters.openmirroring.text.errors import RefusedError
from dbt.adapters.openmirroring.types.columns import landing_columns

# seconds, in which the service has time for a round over all tables
ROUND = 60.0

# they need no quotes: when Spark's Thrift server closes a session, it accepts only such names
_VIEW, _COMPARED = "openmirroring_mirrored", "openmirroring_replica"

_CHANGED = "Somebody else has changed it. Nothing was changed by this run."


def is_of(node: Node, journal: Journal) -> bool:
    """Check whether a journal is that of a node."""
    published, owner = journal.batch.owner, node.owner
    return (published.project, published.node, published.schema) == (
        owner.project,
        owner.node,
        owner.schema,
    )


def rows_as_published(
    node: Node, destination: Destination, table: PublishedTable, scratch: ScratchTables
) -> OpenMirroringRelation:
    """Write the rows that were published last to a scratch table, stored as the snapshot was.

    Raises:
        MirroredTableMismatchError: if the mirrored table has other rows than were published
        DbtRuntimeError: if it cannot be read, or if not everything published is applied in time
    """
    warehouse, journal = node.warehouse, table.last
    assert journal, "only what was published can be brought back"
    warehouse.adapter.progress.show_step(RESTORING)
    batch = journal.batch
    columns = published_columns(batch.definition)
    restored = scratch.table(NEXT).carrying(batch.build)
    anew = compute_anew(node.owner.node, batch.table_rows)
    rows = mirrored_rows(node, destination, table, journal, anew)
    with rows if batch.table_rows else nullcontext() as view:
        query = warehouse.sql("mirror_restored_rows", view=view, columns=columns)
        names = [column.name for column in columns]
        create_table(node, restored, query, {BUILD_PROPERTY: batch.build}, names)
        warehouse.adapter.cache_added(restored)
        state = snapshot_state(warehouse, restored, warehouse.describe(restored))
        if state:
            warehouse.mark(restored, {RESTORED_PROPERTY: f"{batch.build} {state}"})
    _verify(node, journal, restored)
    return restored


@contextmanager
def mirrored_rows(
    node: Node, destination: Destination, table: PublishedTable, journal: Journal, way_out: str
) -> Iterator[str]:
    """Let Spark read the rows of the mirrored table, once everything published is applied.

    Args:
        journal: that of the table
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
                f"{', '.join(published)} were published. {_CHANGED} {way_out}",
                code="OM406",
            )
        node.warehouse.run("mirror_replica_view", view=_VIEW, replica=replica)
        yield _VIEW
        if table.is_published_again():
            raise ConcurrentPublicationError(
                f"Another run has published {table.table} while its rows were read. Nothing was "
                "changed by this run; run it again.",
                code="OM502",
            )


def _verify(node: Node, journal: Journal, restored: OpenMirroringRelation) -> None:
    """Check that the rows are as many as were published, each with a key of its own."""
    warehouse, definition = node.warehouse, journal.batch.definition
    by_name = {column.name: column for column in published_columns(definition)}
    keys = [by_name[name] for name in definition.key_columns]
    [counts] = warehouse.read("mirror_count_load", table=restored, keys=keys, is_small=False).rows
    found, published = int(counts["inserted"]), journal.batch.table_rows
    if found != published:
        finding = f"{found:,} rows, and {published:,} were published."
    elif counts["refused"]:
        key = ", ".join(definition.key_columns)
        finding = f"rows with the same key, or without one. Its key is {key}."
    else:
        return
    raise MirroredTableMismatchError(
        f"The mirrored table of {node.target} has {finding} {_CHANGED} "
        f"{compute_anew(node.owner.node, published)}",
        code="OM406",
    )


def difference(
    warehouse: Warehouse,
    model: OpenMirroringRelation,
    rows: OpenMirroringRelation,
    destination: Destination,
    seconds: float,
) -> str:
    """Return a query of the rows that a model and its mirrored table do not have equally often.

    It also creates the temporary view of the mirrored table that the query reads.

    Args:
        rows: the rows of the model, possibly an earlier state of its relation
        seconds: seconds to wait until all that was published is applied

    Raises:
        CompilationError: if the model and the mirrored table have different columns
        DbtRuntimeError: if the mirrored table is not applied in time, or cannot be read
    """
    columns = landing_columns(warehouse.columns(model))
    names = [column.name for column in columns]
    # after the first statement: where its rows are copied depends on the Spark that is connected
    replica = destination.replica_of(str(model.schema), str(model.identifier), seconds)
    mirrored = [column.name for column in replica.columns]
    if sorted(names) != sorted(mirrored):
        raise RefusedError(
            f"The mirrored table of {model} has the columns {', '.join(mirrored)}, the model has "
            f"{', '.join(names)}.",
            code="OM406",
        )
    warehouse.run("mirror_replica_view", view=_COMPARED, replica=replica)
    keys = replica.key_columns or names
    return warehouse.sql(
        "mirror_difference", model=rows, columns=columns, mirror=_COMPARED, keys=keys
    )
