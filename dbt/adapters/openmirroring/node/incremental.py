"""The columns of a snapshot, whose new rows may have other columns and other types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import STORED, ScratchTables
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn, OpenMirroringRelation
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.casts import (
    Cast,
    common_type,
    has_same_fields,
    with_fields_of,
    with_new_fields,
    without_length,
)
from dbt.adapters.openmirroring.types.columns import TypedColumn

# the quoted name of a column, how its values are converted (None if they stay), and its new name
ConvertedColumn = tuple[str, Cast | None, str]

# the columns of a dbt snapshot that have the type of `updated_at`
_TIMES = ("dbt_valid_from", "dbt_valid_to", "dbt_updated_at")


@dataclass(frozen=True)
class IncrementalColumn(TypedColumn):
    """A column of the next snapshot.

    Args:
        snapshot_type: its type in the snapshot; None if the snapshot does not have it
        new_type: its type in the new rows; None if they do not have it
        is_updated: whether a merge updates it in existing rows
        is_exact: whether a value that would lose something in the column's type is refused
    """

    snapshot_type: str | None
    new_type: str | None
    is_updated: bool
    is_exact: bool = True

    @property
    def snapshot_cast(self) -> Cast | None:
        """How values of the snapshot are converted; None if it does not have the column."""
        if self.snapshot_type is None:
            return None
        return Cast.of(self.snapshot_type, self.dtype, self.is_exact)

    @property
    def new_cast(self) -> Cast | None:
        """How values of the new rows are converted; None if they do not have the column."""
        if self.new_type is None:
            return None
        return Cast.of(self.new_type, self.dtype, self.is_exact)


def incremental_columns(
    snapshot: Sequence[OpenMirroringColumn],
    new_rows: Sequence[OpenMirroringColumn],
    on_schema_change: str,
    config: Mapping[str, Any],
) -> list[IncrementalColumn]:
    """Return the columns of the next snapshot, with the sources of their values.

    Args:
        on_schema_change: `ignore`, `fail`, `append_new_columns` or `sync_all_columns`
        config: the node's configuration, with `merge_update_columns` and `merge_exclude_columns`

    Raises:
        CompilationError: if the columns differ in a way that `on_schema_change` does not allow
    """
    had = {column.name.lower(): column for column in snapshot}
    has = {column.name.lower(): column for column in new_rows}
    added = [column for name, column in has.items() if name not in had]
    gone = [column for name, column in had.items() if name not in has]
    changed = [c for name, c in has.items() if name in had and had[name].dtype != c.dtype]
    if on_schema_change == "fail" and (added or gone or changed):
        raise CompilationError(
            "The source and target schemas on this incremental model are out of sync: "
            f"{_differences(added, gone, changed)}. Set `on_schema_change` to append_new_columns "
            "or sync_all_columns, or run with --full-refresh."
        )
    if on_schema_change == "ignore" and gone:
        raise CompilationError(
            f"The new rows do not have the columns {_names(gone)}, and `on_schema_change` is "
            "ignore. Select them, set `on_schema_change`, or run with --full-refresh."
        )
    kept = {name: column.dtype for name, column in had.items()}
    for column in changed:
        name = column.name.lower()
        kept[name] = _kept_type(had[name], column.dtype, on_schema_change)
    if on_schema_change == "sync_all_columns":
        kept = {name: dtype for name, dtype in kept.items() if name in has}
    result = [OpenMirroringColumn(had[name].name, dtype) for name, dtype in kept.items()]
    if on_schema_change in ("append_new_columns", "sync_all_columns"):
        result += added
    # only one of the two options is set
    updated = _folded(config.get("merge_update_columns")) or set(has)
    updated = updated & has.keys() - _folded(config.get("merge_exclude_columns"))
    before, new = ({name: c.dtype for name, c in columns.items()} for columns in (had, has))
    return [
        IncrementalColumn(c.name, c.dtype, before.get(name), new.get(name), name in updated)
        for c, name in ((column, column.name.lower()) for column in result)
    ]


def _kept_type(stored: OpenMirroringColumn, new: str, on_schema_change: str) -> str:
    """Return the type of a column of the snapshot that has another type in the new rows."""
    if on_schema_change == "ignore":
        kept = stored.dtype if has_same_fields(stored.dtype, new) else None
    elif on_schema_change == "append_new_columns":
        kept = with_new_fields(stored.dtype, new)
    else:
        kept = with_fields_of(stored.dtype, new)
    if kept is None:
        differ = (
            f"The column {stored.quoted} has the type {stored.dtype} in the table, and {new} in "
            "the new rows"
        )
        if on_schema_change == "ignore":
            raise CompilationError(
                f"{differ}, and `on_schema_change` is ignore, with which fields are not added or "
                "left out. Nothing was changed. Set `on_schema_change` to append_new_columns or "
                "sync_all_columns, or run with --full-refresh."
            )
        raise CompilationError(
            f"{differ}. The names of some fields differ only in case, so that Spark cannot find "
            "the fields by name. Nothing was changed. Rename them in the model, or run with "
            "--full-refresh."
        )
    return kept


def history_columns(
    snapshot: Sequence[OpenMirroringColumn],
    changes: Sequence[OpenMirroringColumn],
    names: Mapping[str, str],
) -> list[IncrementalColumn]:
    """Return the columns of the next version of a dbt snapshot.

    The helper columns of dbt's comparison are left out.

    Args:
        names: the names of dbt's own columns, by dbt's names for them
    """
    had = {column.name.lower(): column for column in snapshot}
    dbts_own = {name.lower() for name in names.values()}
    new = {
        column.name.lower(): column
        for column in changes
        if column.name.lower() != "dbt_change_type"
        and not column.name.lower().startswith("dbt_unique_key")
    }
    result = []
    for name in dict.fromkeys((*had, *new)):
        stored, found = had.get(name), new.get(name)
        column = stored or new[name]
        dtype = column.dtype
        if stored and found:
            common = common_type(stored.dtype, found.dtype)
            if common is None and name not in dbts_own:
                raise _no_common_type(stored.quoted, stored.dtype, found.dtype)
            # a deleted row ends now, which may have to become a day
            dtype = common or stored.dtype
        result.append(
            IncrementalColumn(
                column.name,
                dtype,
                stored.dtype if stored else None,
                found.dtype if found else None,
                name == names["dbt_valid_to"].lower(),
                is_exact=name not in dbts_own,
            )
        )
    return result


def _no_common_type(column: str, stored: str, new: str) -> CompilationError:
    """Return the error for a column of a dbt snapshot whose type has changed too much."""
    return CompilationError(
        f"The column {column} has the type {stored} in the dbt snapshot, and {new} in its source. "
        "No type holds the values of both as they are. Nothing was changed. Cast the column in "
        f"the source, e.g. cast({column} as {stored}), or give it a new name there: then it "
        "becomes a new column, and the history keeps the old one."
    )


def _folded(names: Any) -> set[str]:
    return {str(name).lower() for name in ([names] if isinstance(names, str) else names or [])}


def _differences(
    added: Iterable[OpenMirroringColumn],
    gone: Iterable[OpenMirroringColumn],
    changed: Iterable[OpenMirroringColumn],
) -> str:
    kinds = (("added", added), ("gone", gone), ("of another type", changed))
    return "; ".join(f"{kind}: {_names(columns)}" for kind, columns in kinds if columns)


def _names(columns: Iterable[OpenMirroringColumn]) -> str:
    return ", ".join(column.name for column in columns)


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
    source = warehouse.columns_of(node.first_history(query))
    names = node.history_columns
    types = _compared_types(stored, source, names, node.config.get("strategy") == "timestamp")
    own = [c for c in source if c.name.lower() not in {name.lower() for name in names.values()}]
    spelled = {column.name.lower(): column.name for column in stored}
    columns = [
        (c.quoted, _cast(c, types), quoted(spelled.get(c.name.lower(), c.name))) for c in own
    ]
    if any(cast or name != alias for name, cast, alias in columns):
        query = typed_rows(node, f"(\n{query}\n)", columns)
    plain = [OpenMirroringColumn(c.name, without_length(c.dtype)) for c in stored]
    columns = [(c.quoted, _cast(c, types), c.quoted) for c in plain]
    if not any(cast for _, cast, _ in columns):
        return query, target
    return query, scratch.keep(STORED, typed_rows(node, str(target), columns))


def _compared_types(
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
                raise CompilationError(
                    f"`updated_at` of the dbt snapshot had the type {before}, and has the type "
                    f"{column.dtype} in its source: their order may differ. Nothing was changed. "
                    f"Cast the column in the source, e.g. as {before}."
                )
            common = common or before
        if common is None:
            raise _no_common_type(had[name].quoted, before, column.dtype)
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
                raise CompilationError(
                    f"The column {column.quoted} has the type {column.snapshot_type} in the "
                    f"table, and {column.new_type} in the new rows, and Spark cannot cast one to "
                    f"the other. Nothing was changed. {node.cast_remedy}"
                )


def _is_possible(
    node: Node, table: OpenMirroringRelation, columns: Sequence[ConvertedColumn]
) -> bool:
    try:
        node.warehouse.columns_of(typed_rows(node, str(table), columns))
    except DbtRuntimeError as error:
        if "DATATYPE_MISMATCH" in str(error):
            return False
        raise
    return True


def typed_rows(node: Node, rows: str, columns: Sequence[ConvertedColumn]) -> str:
    """Return a query of rows in other types."""
    return node.warehouse.sql(
        "mirror_typed_rows", rows=rows, columns=columns, remedy=node.cast_remedy
    )


def _cast(column: OpenMirroringColumn, types: Mapping[str, str]) -> Cast | None:
    target = types.get(column.name.lower(), column.dtype)
    return None if target == column.dtype else Cast.of(column.dtype, target)
