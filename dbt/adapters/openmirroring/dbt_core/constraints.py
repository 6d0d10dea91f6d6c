"""The constraints of a contract, as dbt's adapters parse them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dbt.adapters.base.impl import BaseAdapter
from dbt.adapters.events.types import ConstraintNotSupported
from dbt_common.contracts.constraints import ConstraintType, ModelLevelConstraint
from dbt_common.events.functions import warn_or_error


def supported_constraints(
    adapter: BaseAdapter, declared: Iterable[dict[str, Any]]
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
