"""The constraints of a contract as queries. Spark does not enforce them on Parquet tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.base.impl import BaseAdapter
from dbt_common.contracts.constraints import ConstraintType, ModelLevelConstraint
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.dbt_core.constraints import supported_constraints
from dbt.adapters.openmirroring.text.sql import ended, quoted
from dbt.adapters.openmirroring.types.parsed import length_of, parse
from dbt.adapters.openmirroring.types.value_checks import condition_inside

_WITH_LENGTH = re.compile(r"\b(varchar|char|character)\s*\(", re.IGNORECASE)

# the types of constraints that are verified; dbt warns about all others
VERIFIED = ("check", "not_null", "primary_key", "unique")


@dataclass(frozen=True)
class Constraint:
    """A condition on each row of a table, or on all its rows together.

    Args:
        name: the name for messages to the user
        broken: SQL that is true for a row that breaks the constraint; None for a condition on
            all rows together
        unique: the columns whose values must be unique, apart from NULLs
    """

    name: str
    broken: str | None = None
    unique: tuple[str, ...] = ()


def contract_constraints(adapter: BaseAdapter, node: Mapping[str, Any]) -> list[Constraint]:
    """Return the constraints of a node that Spark can verify. Warn about all others.

    Args:
        adapter: the adapter, which knows the supported constraints
        node: the node as in dbt's graph

    Raises:
        CompilationError: if a constraint lacks its columns or its expression, or if the length of
            a type cannot be checked
    """
    columns = node.get("columns", {}).values()
    lengths = [length for column in columns for length in _length(column)]
    return lengths + constraints_of(supported_constraints(adapter, declared_constraints(node)))


def _length(column: Mapping[str, Any]) -> Iterator[Constraint]:
    """Yield a condition for the length of the texts of a column, which Spark does not keep."""
    name, declared = column["name"], str(column.get("data_type") or "")
    if not _WITH_LENGTH.search(declared):
        return
    text = re.sub(r"\s*([<>,:()])\s*", r"\1", declared.strip().lower().replace("`", ""))
    try:
        type_ = parse(re.sub(r"\bcharacter\(", "char(", text))
    except ValueError as error:
        raise CompilationError(
            f"The column {quoted(name)} has the data_type {declared!r} in the contract, whose "
            "lengths cannot be checked. Write it as Spark does, e.g. struct<a:varchar(3)>; or "
            "declare string, and a constraint such as {type: check, expression: length(a) <= 3}."
        ) from error
    broken = condition_inside(type_, quoted(name), _too_long)
    yield Constraint(f"{declared} ({name})", broken=broken)


def _too_long(type_: str, value: str) -> str:
    length = length_of(type_)
    return "" if length is None else f"char_length({value}) > {length}"


def constraints_of(declared: Sequence[ModelLevelConstraint]) -> list[Constraint]:
    """Return the conditions to verify.

    Args:
        declared: constraints that can be enforced; a constraint of a column names that column

    Raises:
        CompilationError: if a constraint lacks its columns or its expression
    """
    constraints = [constraint for one in declared for constraint in _constraints(one)]
    return list(dict.fromkeys(constraints))


def _constraints(declared: ModelLevelConstraint) -> Iterator[Constraint]:
    kind, columns = declared.type, tuple(declared.columns)
    if kind == ConstraintType.check:
        if not declared.expression:
            raise CompilationError("A check constraint needs an `expression`.")
        yield Constraint(
            _name(declared, declared.expression), broken=f"not ({ended(declared.expression)})"
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
    """Return the constraints of a node and its columns, in the form of a node's constraints."""
    of_columns = [
        {**constraint, "columns": [column["name"]]}
        for column in node.get("columns", {}).values()
        for constraint in column.get("constraints") or []
    ]
    return [*of_columns, *(node.get("constraints") or [])]
