"""The constraints of a contract, as dbt's adapters parse them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from dbt.adapters.events.types import ConstraintNotSupported
from dbt_common.contracts.constraints import ConstraintType, ModelLevelConstraint
from dbt_common.events.functions import warn_or_error


class ConstraintParser(Protocol):
    """An adapter, which knows the constraints that it supports."""

    def type(self) -> str: ...

    def _parse_model_constraint(self, raw_constraint: dict[str, Any]) -> ModelLevelConstraint: ...

    def process_parsed_constraint(
        self,
        parsed_constraint: ModelLevelConstraint,
        render_func: Callable[[ModelLevelConstraint], str],
    ) -> str | None: ...


def supported_constraints(
    adapter: ConstraintParser, declared: Iterable[dict[str, Any]]
) -> list[ModelLevelConstraint]:
    """Return the constraints that an adapter supports. Warn about all others.

    Args:
        declared: the constraints, in the form of a node's constraints
    """
    found = []
    for raw in declared:
        constraint = adapter._parse_model_constraint(raw)
        if constraint.type == ConstraintType.custom:
            warn_or_error(ConstraintNotSupported(constraint="custom", adapter=adapter.type()))
        elif adapter.process_parsed_constraint(constraint, lambda _: "supported"):
            found.append(constraint)
    return found
