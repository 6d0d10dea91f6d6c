"""1 and 3. Building the next snapshot beside the snapshot, and checking its contract."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.contracts.constraints import ConstraintType, ModelLevelConstraint
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.dbt_core.project import supported_constraints
from dbt.adapters.openmirroring.node.compare import listed
from dbt.adapters.openmirroring.node.next_rows import NextRows
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.progress import BUILDING
from dbt.adapters.openmirroring.node.snapshot.reuse import KeptFiles
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import ScratchTables
from dbt.adapters.openmirroring.protocol.facts import NEXT, PART
from dbt.adapters.openmirroring.spark.relation import BUILD_PROPERTY, OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import ZONE
from dbt.adapters.openmirroring.text.errors import RunError
from dbt.adapters.openmirroring.text.sql import ended, quoted
from dbt.adapters.openmirroring.types.columns import condition_inside
from dbt.adapters.openmirroring.types.parsed import length_of, parse

_DOCUMENTED = "openmirroring_documented"
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


def build(
    node: Node,
    rows: NextRows,
    scratch: ScratchTables,
    marks: Mapping[str, str],
    beside: OpenMirroringRelation | None = None,
) -> tuple[OpenMirroringRelation, AdapterResponse]:
    """1. Compute the rows of the next snapshot, or the rows that the snapshot takes in place.

    Args:
        marks: properties that will identify the snapshot
        beside: the table to build instead of the next snapshot of this run
    """
    warehouse = node.warehouse
    warehouse.adapter.progress.show_step(BUILDING)
    if rows.touched:
        return scratch.keep(PART, rows.query), AdapterResponse(_message="OK")
    query = rows.query
    following = beside or scratch.table(NEXT)
    if BUILD_PROPERTY in marks:
        following = following.carrying(marks[BUILD_PROPERTY])
    with warehouse.users_session():  # it may have views or settings for the model's SQL
        if node.has_contract:
            query = node.checked_contract(query)
        response = create_table(node, following, query, marks)
    if isinstance(rows.reuse, KeptFiles):
        rows.reuse.link_into(warehouse.describe(following))
        kind = "partitions" if node.options.partition_by else "files"
        warehouse.run(f"mirror_find_{kind}", table=following)
    warehouse.adapter.cache_added(following)
    return following, response


def create_table(
    node: Node,
    table: OpenMirroringRelation,
    query: str,
    marks: Mapping[str, str],
    names: Collection[str] | None = None,
) -> AdapterResponse:
    """Create a table of a query, as the node stores its rows.

    Args:
        marks: properties that identify its rows
        names: the names of its columns, if these are not the present ones of the node
    """
    partition_by: Sequence[str] = node.options.partition_by
    if names is not None:  # the configuration may have changed since
        present = {name.lower() for name in names}
        partition_by = [name for name in partition_by if name.lower() in present]
    statements, query = _documented(node, query)
    sql = node.warehouse.sql(
        "mirror_create_table",
        table=table,
        query=query,
        properties={**(node.config.get("tblproperties") or {}), **marks},
        options=_options(node),
        partition_by=partition_by,
    )
    return node.warehouse.build(*statements, sql)


def _documented(node: Node, query: str) -> tuple[list[str], str]:
    """Return statements to run first, and a query of the same rows with comments on its columns.

    Spark stores a table again for each comment that is added to it. But a table that is made of a
    view takes the view's comments over. As for dbt, a name that is to be quoted means only the
    column of exactly this name.
    """
    declared = node.documented_columns
    if not declared:
        return [], query
    exact = {column["name"]: column["description"] for column in declared}
    folded = {c["name"].lower(): c["description"] for c in declared if not c.get("quote")}
    warehouse = node.warehouse
    view = OpenMirroringRelation.create(identifier=_DOCUMENTED)
    warehouse.run("mirror_documented_rows", view=view, query=query, comments={})
    comments = {
        # under a comment, a view has a string in place of `char` and `varchar`
        column.name: ""
        if "char(" in column.dtype
        else exact.get(column.name) or folded.get(column.name.lower(), "")
        for column in warehouse.columns(view)
    }
    sql = warehouse.sql("mirror_documented_rows", view=view, query=query, comments=comments)
    return [sql], f"select * from {view}"


def _options(node: Node) -> dict[str, str]:
    """Return the options of a snapshot; none if those that dbt-spark writes are all."""
    is_ours = node.options.mirror and node.options.landing_format == "parquet"
    is_parquet = (node.config.get("file_format") or "parquet").lower() == "parquet"
    given = node.config.get("options") or {}
    if is_ours and is_parquet and not given:
        # the compression of the landing zone, so that files can be published unchanged
        return {"compression": node.options.compression, **node.zone_options}
    others = {name: value for name, value in given.items() if name.lower() != ZONE.lower()}
    return {**others, **node.zone_options} if node.zone_options else {}


def verify_contract(node: Node, table: OpenMirroringRelation) -> None:
    """3. Check that the rows satisfy the contract. Spark does not enforce it on Parquet tables.

    Raises:
        DbtRuntimeError: if a constraint is broken
        CompilationError: if a constraint cannot be checked
    """
    if not node.has_contract:
        return
    warehouse = node.warehouse
    lengths = [each for column in node.model["columns"].values() for each in _length(column)]
    supported = supported_constraints(warehouse.adapter, declared_constraints(node.model))
    constraints = lengths + constraints_of(supported)
    if not constraints:
        return
    [counts] = warehouse.read("mirror_count_broken", table=table, constraints=constraints).rows
    broken = []
    for constraint, count in zip(constraints, counts, strict=True):
        if not count:
            continue
        what = "value" if constraint.unique else "row"
        told = f"{constraint.name} by {int(count)} {what}{'s' if count > 1 else ''}"
        columns = constraint.unique or node.options.unique_key
        if columns:
            examples = warehouse.read(
                "mirror_broken_rows", table=table, constraint=constraint, columns=columns
            )
            told += f", e.g. {listed(columns, examples)}"
        broken.append(told)
    if broken:
        raise RunError(
            f"The model breaks its contract: {'; '.join(broken)}. Nothing was published, "
            "and the table is as it was. Correct the rows of the model, or its constraints.",
            code="OM312",
        )


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
    """Return the conditions of declared constraints, in which those of columns name these.

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
