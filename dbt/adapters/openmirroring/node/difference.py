"""Whether a mirrored table has the rows of its model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.node.columns import landing_columns
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation

# Spark's Thrift server, when it closes a session, takes only names that need no quotes
_VIEW = "openmirroring_replica"


class NamedColumn(Protocol):
    """A column of a mirrored table."""

    @property
    def name(self) -> str:
        """As in the table."""


class ReplicatedTable(Protocol):
    """A mirrored table at one version."""

    @property
    def columns(self) -> Sequence[NamedColumn]:
        """In the order of the table."""

    @property
    def key_columns(self) -> Sequence[str]:
        """Empty without a key."""


def difference(
    warehouse: Warehouse,
    model: OpenMirroringRelation,
    rows: OpenMirroringRelation,
    mirrored_table: Callable[[], ReplicatedTable],
) -> str:
    """A query of the rows that a model and its mirrored table do not have equally often.

    Args:
        rows: the model's, maybe an earlier state of it
        mirrored_table: gets it, once Spark is known: how depends on which Spark it is

    Raises:
        CompilationError: they have other columns
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
