"""The difference between a mirrored table and the rows of its model."""

from __future__ import annotations

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.types.columns import landing_columns

# needs no quotes: when Spark's Thrift server closes a session, it accepts only such names
_VIEW = "openmirroring_replica"


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
        raise CompilationError(
            f"The mirrored table of {model} has the columns {', '.join(mirrored)}, the model has "
            f"{', '.join(names)}."
        )
    warehouse.execute(warehouse.sql("mirror_replica_view", view=_VIEW, replica=replica))
    keys = replica.key_columns or names
    return warehouse.sql("mirror_difference", model=rows, columns=columns, mirror=_VIEW, keys=keys)
