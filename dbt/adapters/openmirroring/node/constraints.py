"""The constraints of a contract, as questions to Spark: on Parquet it enforces none itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbt.adapters.events.types import ConstraintNotSupported
from dbt_common.contracts.constraints import ConstraintType, ModelLevelConstraint
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.node.refusals import shown
from dbt.adapters.openmirroring.spark.relation import quoted

if TYPE_CHECKING:
    import agate
    from dbt.adapters.base.impl import BaseAdapter


@dataclass(frozen=True)
class Constraint:
    """What holds for a table: for each of its rows, or for all of them together.

    Args:
        name: as the user knows it
        broken: SQL that is true for a row that breaks it; None for one on all rows together
        unique: the columns whose values, without NULLs, occur once
    """

    name: str
    broken: str | None = None
    unique: tuple[str, ...] = ()


@dataclass(frozen=True)
class BrokenConstraint:
    """A constraint that does not hold.

    Args:
        count: of the rows that break it, or of the values that occur more than once
        columns: whose values name an example; empty if nothing does
        examples: their values, and how many rows have them; None without columns
    """

    constraint: Constraint
    count: int
    columns: tuple[str, ...]
    examples: agate.Table | None

    def __str__(self) -> str:
        what = "value" if self.constraint.unique else "row"
        told = f"{self.constraint.name} by {self.count} {what}{'s' if self.count > 1 else ''}"
        return told + (
            f", e.g. {shown(self.columns, self.examples)}" if self.examples is not None else ""
        )


def contract_constraints(adapter: BaseAdapter, node: Mapping[str, Any]) -> list[Constraint]:
    """What the contract of a node promises and Spark can verify; warns about all else.

    Args:
        adapter: that knows what is supported
        node: as in the graph

    Raises:
        CompilationError: a constraint without what it is about
    """
    declared = []
    for raw in declared_constraints(node):
        constraint = adapter._parse_model_constraint(raw)
        if constraint.type == ConstraintType.custom:
            warn_or_error(ConstraintNotSupported(constraint="custom", adapter=adapter.type()))
        elif adapter.process_parsed_constraint(constraint, lambda _: "supported"):
            declared.append(constraint)
    return constraints_of(declared)


def constraints_of(declared: Sequence[ModelLevelConstraint]) -> list[Constraint]:
    """What to verify.

    Args:
        declared: those that can be enforced; a column's own names that column

    Raises:
        CompilationError: a constraint without what it is about
    """
    constraints = [constraint for one in declared for constraint in _constraints(one)]
    return list(dict.fromkeys(constraints))


def _constraints(declared: ModelLevelConstraint) -> Iterator[Constraint]:
    kind, columns = declared.type, tuple(declared.columns)
    if kind == ConstraintType.check:
        if not declared.expression:
            raise CompilationError("A check constraint needs an `expression`.")
        yield Constraint(
            _name(declared, declared.expression), broken=f"not ({declared.expression})"
        )
        return
    if not columns:
        raise CompilationError(f"A {kind.value} constraint needs `columns`.")
    if kind in (ConstraintType.not_null, ConstraintType.primary_key):
        for column in columns:
            yield Constraint(f"not_null ({column})", broken=f"{quoted(column)} is null")
    if kind in (ConstraintType.unique, ConstraintType.primary_key):
        yield Constraint(_name(declared, ", ".join(columns)), unique=columns)


def _name(declared: ModelLevelConstraint, about: str) -> str:
    return " ".join(filter(None, (declared.type.value, declared.name, f"({about})")))


def declared_constraints(node: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The constraints of a node and of its columns, all in the form of the node's own."""
    of_columns = [
        {**constraint, "columns": [column["name"]]}
        for column in node.get("columns", {}).values()
        for constraint in column.get("constraints") or []
    ]
    return [*of_columns, *(node.get("constraints") or [])]


def broken_constraints(broken: Sequence[BrokenConstraint]) -> DbtRuntimeError:
    """Constraints that do not hold."""
    return DbtRuntimeError(
        f"The model breaks its contract: {'; '.join(map(str, broken))}. Nothing was published, "
        "and the table is as it was. Correct the rows of the model, or its constraints."
    )
