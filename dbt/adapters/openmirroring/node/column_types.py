"""Columns whose type in a table differs from that of the rows it is compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.node import refusals
from dbt.adapters.openmirroring.node.incremental import IncrementalColumn
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import STORED, ScratchTables
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn, OpenMirroringRelation
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.casts import Cast, common_type, without_length

# the quoted name of a column, how its values are converted (None if they stay), and its new name
TypedColumn = tuple[str, Cast | None, str]

# the columns of a dbt snapshot that have the type of `updated_at`
_TIMES = ("dbt_valid_from", "dbt_valid_to", "dbt_updated_at")


def comparable(node: Node, scratch: ScratchTables) -> tuple[str, OpenMirroringRelation]:
    """Return the source of a dbt snapshot and its stored rows, with the same names and types.

    dbt compares names with their case, and values with `!=`: the number 7 and the text '7A' would
    be cast to one type, and the change would be lost.

    Args:
        scratch: keeps the stored rows in other types, if they need any

    Returns:
        a query of the source, and a table of the stored rows

    Raises:
        CompilationError: if no type holds the stored and the new values of a column
    """
    warehouse, target, query = node.warehouse, node.target, node.query()
    stored = warehouse.columns(target)
    source = warehouse.columns_of(node.first_history(node.history_strategy(False), query))
    names = node.history_columns
    types = compared_types(stored, source, names, node.config.get("strategy") == "timestamp")
    own = [c for c in source if c.name.lower() not in {name.lower() for name in names.values()}]
    spelled = {column.name.lower(): column.name for column in stored}
    columns = [
        (c.quoted, _cast(c, types), quoted(spelled.get(c.name.lower(), c.name))) for c in own
    ]
    if any(cast or name != alias for name, cast, alias in columns):
        query = _typed(node, f"(\n{query}\n)", columns)
    plain = [OpenMirroringColumn(c.name, without_length(c.dtype)) for c in stored]
    columns = [(c.quoted, _cast(c, types), c.quoted) for c in plain]
    if not any(cast for _, cast, _ in columns):
        return query, target
    return query, scratch.keep(STORED, _typed(node, str(target), columns))


def compared_types(
    stored: Sequence[OpenMirroringColumn],
    source: Sequence[OpenMirroringColumn],
    names: Mapping[str, str],
    is_ordered: bool,
) -> dict[str, str]:
    """Return the types in which dbt compares the columns of a dbt snapshot with its source.

    Args:
        source: the columns that a first run would make
        names: the names of dbt's own columns, by dbt's names for them
        is_ordered: whether the times of changes are compared by their order, which texts of
            numbers do not have

    Raises:
        CompilationError: if no type holds the values of both
    """
    had = {column.name.lower(): column for column in stored}
    times = {names[name].lower() for name in _TIMES}
    types = {}
    for column in source:
        name = column.name.lower()
        if name not in had:
            continue
        before = without_length(had[name].dtype)
        common = common_type(before, column.dtype)
        if name in times:
            if is_ordered and before != column.dtype and common in (None, "string"):
                raise refusals.no_common_time(before, column.dtype)
            common = common or before
        if common is None:
            raise refusals.no_common_type(had[name].quoted, before, column.dtype)
        types[name] = common
    return types


def check_casts(
    node: Node, new_rows: OpenMirroringRelation, columns: Sequence[IncrementalColumn]
) -> None:
    """Check whether Spark has the casts that an incremental run needs.

    Raises:
        CompilationError: if Spark cannot cast the values of a column
    """
    new = [(c, c.new_cast) for c in columns if c.new_cast]
    before = [(c, c.snapshot_cast) for c in columns if c.snapshot_cast]
    for table, casts in ((new_rows, new), (node.target, before)):
        typed = [(c, (c.quoted, cast, c.quoted)) for c, cast in casts if not cast.is_void]
        if not typed or _is_possible(node, table, [each for _, each in typed]):
            continue
        for column, each in typed:
            if not _is_possible(node, table, [each]):
                types = str(column.snapshot_type), str(column.new_type)
                raise refusals.no_cast(column.quoted, *types)


def _is_possible(node: Node, table: OpenMirroringRelation, columns: Sequence[TypedColumn]) -> bool:
    try:
        node.warehouse.columns_of(_typed(node, str(table), columns))
    except DbtRuntimeError as error:
        if "DATATYPE_MISMATCH" in str(error):
            return False
        raise
    return True


def _typed(node: Node, rows: str, columns: Sequence[TypedColumn]) -> str:
    return node.warehouse.sql(
        "mirror_typed_rows", rows=rows, columns=columns, remedy=refusals.CAST_IN_SOURCE
    )


def _cast(column: OpenMirroringColumn, types: Mapping[str, str]) -> Cast | None:
    target = types.get(column.name.lower(), column.dtype)
    return None if target == column.dtype else Cast.of(column.dtype, target)
