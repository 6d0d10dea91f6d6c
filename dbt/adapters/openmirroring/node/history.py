"""The values of its source by which a dbt snapshot finds changed rows.

dbt compares them from the second run on. Each run checks them, so that the first one is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.options import column_names
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.columns import comparable, is_comparable, require_comparable


class SourceValue(NamedTuple):
    """A value that an option of a dbt snapshot names.

    Args:
        is_column: dbt writes a table before it, so that it cannot be an expression
    """

    option: str
    sql: str
    is_column: bool


def compared_columns(check_cols: Any, source: Sequence[OpenMirroringColumn]) -> list[str]:
    """Return the columns that the check strategy compares, each once.

    Args:
        check_cols: `all`, or names

    Raises:
        CompilationError: if there is no such column, or Spark cannot compare its values
    """
    has = {column.name.lower(): column for column in source}
    chosen = tuple(has) if check_cols == "all" else column_names("check_cols", check_cols)
    missing = [name for name in chosen if name.lower() not in has]
    if missing or not chosen:
        named = f"names {', '.join(map(repr, missing))}, but" if missing else "is empty, and"
        raise CompilationError(
            f"`check_cols` {named} it must have columns of the source of the dbt snapshot: "
            f"{_listed(source)}. Nothing was changed. To compare another value, select it in the "
            "source under a name, and set the name."
        )
    columns = [has[name.lower()] for name in chosen]
    others = [column for column in columns if is_comparable(column.dtype)]
    if columns == others:
        return [column.name for column in columns]
    wrong = [column for column in columns if column not in others]
    # under another name, because the table may have the column already
    selected = ", ".join(
        f"{comparable(c.dtype, c.quoted)} as {quoted(f'{c.name}_value')}" for c in wrong
    )
    way_out = f"Select in the source, in place of them: {selected}"
    if others:
        way_out += f"; or leave them out: `check_cols: [{_listed(others)}]`"
    raise CompilationError(
        f"`check_cols` has {', '.join(f'{c.quoted} of the type {c.dtype}' for c in wrong)}, and "
        f"Spark cannot compare such values. Nothing was changed. {way_out}."
    )


def source_rows(node: Node) -> str:
    """Return a query of the rows of the source of a dbt snapshot.

    Raises:
        CompilationError: if a run could not compute or compare their keys or times
    """
    history, warehouse = node.history, node.warehouse
    if history.strategy not in ("check", "timestamp"):  # a macro of the project
        return node.query
    # dbt takes a list of keys from a table in the version that records a deleted row
    is_column = history.records_deletes and not isinstance(node.config["unique_key"], str)
    values = [SourceValue("unique_key", key, is_column) for key in history.key]
    if history.strategy == "timestamp":
        values.append(SourceValue("updated_at", str(history.updated_at), True))
    for value, dtype in zip(values, _types(node, values), strict=True):
        require_comparable(value.option, value.sql, dtype)
    equal_nulls = warehouse.adapter.behavior.enable_truthy_nulls_equals_macro.no_warn
    # by the first key alone, dbt knows rows that it has not found
    required = history.key[:1] if equal_nulls else history.key
    return warehouse.sql("mirror_source_rows", query=node.query, keys=required)


def _types(node: Node, values: Sequence[SourceValue]) -> list[str]:
    warehouse = node.warehouse

    def types(values: Sequence[SourceValue]) -> list[str]:
        query = warehouse.sql("mirror_source_values", query=node.query, values=values)
        return [column.dtype for column in warehouse.columns_of(query)]

    try:
        found = types(values)
    except DbtRuntimeError:
        found = []
    if len(found) == len(values):
        return found
    source = warehouse.columns_of(node.query)  # fails if the source is what Spark cannot compute
    for value in values:
        try:
            is_value = len(types([value])) == 1
        except DbtRuntimeError:
            is_value = False
        if not is_value:
            what = "column" if value.is_column else "column, or SQL of columns,"
            raise CompilationError(
                f"`{value.option}` of the dbt snapshot is {value.sql!r}, but it must be a {what} "
                f"of its source: {_listed(source)}. Nothing was changed. Select that value in the "
                "source under a name, and set the name."
            )
    return found


def _listed(columns: Sequence[OpenMirroringColumn]) -> str:
    return ", ".join(column.name for column in columns)
