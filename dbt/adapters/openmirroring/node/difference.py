"""The difference between a mirrored table and the rows of its model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.node.columns import landing_columns
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation

# needs no quotes: when Spark's Thrift server closes a session, it accepts only such names
_VIEW = "openmirroring_replica"


class NamedColumn(Protocol):
    """A column of a mirrored table."""

    @property
    def name(self) -> str:
        """The name as in the table."""


class ReplicatedTable(Protocol):
    """A mirrored table at one version."""

    @property
    def columns(self) -> Sequence[NamedColumn]:
        """The columns in the order of the table."""

    @property
    def key_columns(self) -> Sequence[str]:
        """The columns of the key; empty without a key."""


def difference(
    warehouse: Warehouse,
    model: OpenMirroringRelation,
    rows: OpenMirroringRelation,
    mirrored_table: Callable[[], ReplicatedTable],
) -> str:
    """Return a query of the rows that a model and its mirrored table do not have equally often.

    It also creates the temporary view of the mirrored table that the query reads.

    Args:
        rows: the rows of the model, possibly an earlier state of its relation
        mirrored_table: returns the mirrored table. It is called only after the first statement,
            because it depends on the Spark that is connected

    Raises:
        CompilationError: if the model and the mirrored table have different columns
    """
    columns = landing_columns(warehouse.columns(model))
    names = [column.name for column in columns]
    replica = mirrored_table()
    mirrored = [column.name for column in replica.columns]
    if sorted(names) != sorted(mirrored):
        raise CompilationError(
            f"The mirrored table of {model} has the columns {', '.join(mirrored)}, the model has "
            f"{', '.join(names)}."
        )
    warehouse.execute(warehouse.sql("mirror_replica_view", _VIEW, replica))
    keys = replica.key_columns or names
    return warehouse.sql("mirror_difference", rows, columns, _VIEW, keys)
