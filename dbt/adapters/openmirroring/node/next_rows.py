"""The rows of the next snapshot: those of the model, or the snapshot changed by new rows.

The new rows may have other columns than the snapshot, and other types.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.node.compare import listed
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.history import source_rows
from dbt.adapters.openmirroring.node.node import Node, refuse_stale_compilation
from dbt.adapters.openmirroring.node.snapshot.reuse import (
    KeptFiles,
    Reuse,
    TouchedRows,
    can_keep_files,
    can_merge,
    kept_files,
)
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import (
    BEFORE,
    NEW_ROWS,
    STORED,
    TYPED_ROWS,
    ScratchTables,
)
from dbt.adapters.openmirroring.node.snapshot.snapshot import KeyRange, key_ranges, ranged_columns
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn, OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import TableDescription
from dbt.adapters.openmirroring.text.errors import RefusedError, RunError
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.casts import (
    Cast,
    common_type,
    has_same_fields,
    with_fields_of,
    with_new_fields,
    without_length,
)
from dbt.adapters.openmirroring.types.columns import TypedColumn, require_comparable

# the quoted name of a column, how its values are converted (None if they stay), and its new name
ConvertedColumn = tuple[str, Cast | None, str]

# the columns of a dbt snapshot that have the type of `updated_at`
_TIMES = ("dbt_valid_from", "dbt_valid_to", "dbt_updated_at")


@dataclass(frozen=True)
class NextRows:
    """The rows of a next snapshot.

    Args:
        query: SQL of the rows to write
        reuse: the rows or files of the snapshot that stay; None if that is not known yet
    """

    query: str
    reuse: TouchedRows | KeptFiles | None = None

    @property
    def touched(self) -> TouchedRows | None:
        """The rows that the snapshot takes in place; None if there is a next snapshot."""
        return self.reuse if isinstance(self.reuse, TouchedRows) else None


def next_rows(
    node: Node,
    scratch: ScratchTables,
    was_incremental: bool,
    snapshot: TableDescription | None = None,
) -> NextRows:
    """Return the rows of the next snapshot.

    Args:
        scratch: keeps the new rows, which are computed only once
        was_incremental: value of is_incremental() when the node was compiled
        snapshot: the snapshot, if its files and rows may be kept; None considers all rows

    Raises:
        CompilationError: if is_incremental() has changed since the node was compiled, or if the
            columns or their types are not allowed
        DbtRuntimeError: if several new rows have the same key
    """
    if node.is_history:
        return _history(node, scratch, snapshot)
    if node.is_incremental != was_incremental:
        raise refuse_stale_compilation()
    if not was_incremental:
        return live_rows(node)
    return _incremental(node, scratch, snapshot)


def live_rows(node: Node) -> NextRows:
    """Return the rows of a model, without those that `delete_when` marks as deletes.

    Raises:
        CompilationError: if it is an incremental model, and a later run could not extend them
    """
    if node.reads_itself:
        with node.warehouse.users_session():
            columns = node.warehouse.columns_of(node.query)
        _check_columns(node, columns)
        if node.batch:
            _event_time(node, columns)
    return NextRows(
        node.warehouse.sql(
            "mirror_live_rows", query=node.query, delete_when=node.options.delete_when
        )
    )


def first_rows(node: Node) -> NextRows:
    """Return the rows of a node that is built for the first time."""
    if node.is_history:
        with node.warehouse.users_session():
            return NextRows(node.first_history(source_rows(node)))
    return live_rows(node)


def _incremental(
    node: Node, scratch: ScratchTables, snapshot: TableDescription | None
) -> NextRows:
    warehouse, target = node.warehouse, node.target
    with warehouse.users_session():
        computed = _keep_new_rows(node, scratch, NEW_ROWS, node.query)
    found, before = warehouse.columns(computed), warehouse.columns(target)
    _check_columns(node, [*before, *found])
    columns = incremental_columns(before, found, node.options)
    predicates = node.options.incremental_predicates
    if node.batch:
        new = {column.name.lower() for column in found}
        common = [column for column in before if column.name.lower() in new]
        in_batch = warehouse.sql(
            "mirror_in_batch",
            event_time=_event_time(node, common).quoted,
            start=node.batch["event_time_start"],
            end=node.batch["event_time_end"],
            keys=node.options.unique_key,
        )
        predicates = (in_batch,)
    _check_casts(node, computed, columns)
    new_rows = _typed_rows(node, scratch, computed, found, columns)
    options = node.options = node.options.spelled(column.name for column in columns)
    if options.incremental_strategy == "merge" and options.unique_key:
        ambiguous = warehouse.read(
            "mirror_ambiguous_rows", new_rows=new_rows, keys=options.unique_key
        )
        if ambiguous.rows:
            raise RunError(
                f"Several new rows have the same key ({', '.join(options.unique_key)}), e.g. "
                f"{listed(options.unique_key, ambiguous)}: a row of the table can be "
                "merged with one of them only. Nothing was changed. Make the new rows unique, or "
                "set another `unique_key`.",
                code="OM306",
            )
    reused = _reused(node, scratch, new_rows, snapshot, before, columns)
    query = warehouse.sql(
        options.strategy_macro,
        snapshot=_stored_rows(node, reused, columns),
        new_rows=new_rows,
        columns=columns,
        options=options,
        predicates=predicates,
    )
    return NextRows(query, reused)


def _check_columns(node: Node, columns: Sequence[OpenMirroringColumn]) -> None:
    """Check that an incremental model has the columns of a merge, and can compare its keys."""
    has = {column.name.lower() for column in columns}
    for option in ("merge_update_columns", "merge_exclude_columns"):
        missing = [name for name in getattr(node.options, option) if name.lower() not in has]
        if missing:
            raise CompilationError(
                f"`{option}` names {', '.join(map(repr, missing))}, and neither the model nor its "
                f"table has such a column. They have: {', '.join(sorted(has))}. Nothing was "
                "changed. Correct the name, or remove it."
            )
    # otherwise nothing is looked for by its key
    keys = _folded(node.options.unique_key) if node.options.touched_by is not None else set()
    for column in columns:
        if column.name.lower() in keys:
            require_comparable("unique_key", column.quoted, column.dtype)


def _event_time(node: Node, columns: Sequence[OpenMirroringColumn]) -> OpenMirroringColumn:
    """Return the column with the time of the rows of a microbatch model."""
    name = str(node.config.get("event_time"))
    for column in columns:
        if column.name.lower() == name.strip("`").lower():
            return column
    raise CompilationError(
        f"The `event_time` of this microbatch model is {name}, and its table has no such column: "
        "a batch could replace rows of other batches in the same partition. Nothing was changed. "
        "Select that column in the model, and run with --full-refresh."
    )


def _history(node: Node, scratch: ScratchTables, snapshot: TableDescription | None) -> NextRows:
    """Return the rows of a dbt snapshot. Its changes, as dbt defines them, are computed once."""
    warehouse, target = node.warehouse, node.target
    if not warehouse.found(target):
        return first_rows(node)
    with warehouse.users_session():
        query, stored = _comparable(node, scratch)
        query = node.history_changes(query, stored)
        computed = _keep_new_rows(node, scratch, NEW_ROWS, query)
    found, before = warehouse.columns(computed), warehouse.columns(target)
    names = node.history_columns
    columns = history_columns(before, found, names)
    changes = _typed_rows(node, scratch, computed, found, columns)
    reused = _reused(node, scratch, changes, snapshot, before, columns)
    query = warehouse.sql(
        "mirror_history",
        snapshot=_stored_rows(node, reused, columns),
        changes=changes,
        columns=columns,
        names=names,
        valid_to_current=node.config.get("dbt_valid_to_current"),
    )
    return NextRows(query, reused)


def _keep_new_rows(
    node: Node, scratch: ScratchTables, kind: str, query: str
) -> OpenMirroringRelation:
    # Spark changes values that it stores as partitions: an empty string becomes NULL. New rows are
    # partitioned as the snapshot is, so that the published values are those that it stores.
    return scratch.keep(kind, query, node.options.partition_by, node.zone_options)


def _typed_rows(
    node: Node,
    scratch: ScratchTables,
    computed: OpenMirroringRelation,
    found: Sequence[OpenMirroringColumn],
    columns: Sequence[IncrementalColumn],
) -> OpenMirroringRelation:
    """Return new rows in the types of the next snapshot, so that they match its stored values.

    A column that the next snapshot does not have keeps its type, because `delete_when` may use it.
    """
    casts = {c.name.lower(): c.new_cast for c in columns if c.new_type not in (None, c.dtype)}
    if not casts:
        return computed
    typed = [(c.quoted, casts.get(c.name.lower()), c.quoted) for c in found]
    return _keep_new_rows(node, scratch, TYPED_ROWS, _converted(node, str(computed), typed))


def _stored_rows(node: Node, reused: Reuse | None, columns: Sequence[IncrementalColumn]) -> str:
    """Return the SQL of the rows that may change of the snapshot, in the types of the next one."""
    return node.warehouse.sql(
        "mirror_typed_snapshot",
        rows=(reused or Reuse()).before(node.target),
        columns=columns,
        remedy=node.cast_remedy,
    )


def _reused(
    node: Node,
    scratch: ScratchTables,
    new_rows: OpenMirroringRelation,
    snapshot: TableDescription | None,
    before: Sequence[OpenMirroringColumn],
    columns: Sequence[IncrementalColumn],
) -> TouchedRows | KeptFiles | None:
    """Determine the rows or files of the snapshot that an incremental run cannot change.

    Nothing is reused if the columns differ: then all rows are written and compared again.
    """
    touched_by = node.options.touched_by
    if snapshot is None or touched_by is None or node.config.get("clustered_by"):
        return None
    has_other_types = any(column.snapshot_type != column.dtype for column in columns)
    if has_other_types or len(columns) != len(before):
        return None
    warehouse, target, keys = node.warehouse, node.target, node.options.unique_key

    def ranges(columns: Sequence[str]) -> tuple[KeyRange, ...]:
        ranged = ranged_columns(before, columns)
        # a small snapshot is read as fast; its size may cost a query, as the ranges do
        if not ranged or warehouse.is_small(target, snapshot):
            return ()
        return key_ranges(warehouse, new_rows, ranged)

    if _changes_in_place(node, snapshot):
        if not touched_by:
            return TouchedRows(new_rows, keys, None)
        query = warehouse.sql(
            "mirror_touched_rows",
            snapshot=target,
            new_rows=new_rows,
            keys=keys,
            ranges=ranges(keys),
        )
        return TouchedRows(new_rows, keys, scratch.keep(BEFORE, query))
    if not warehouse.is_driven_here or not can_keep_files(snapshot, node.planned_layout):
        return None
    if not touched_by:
        return kept_files(snapshot, [])
    touched = warehouse.read(
        "mirror_touched_files",
        snapshot=target,
        new_rows=new_rows,
        touched_by=[(columns, ranges(columns)) for columns in touched_by],
    )
    return kept_files(snapshot, [str(row[0]) for row in touched.rows])


def _changes_in_place(node: Node, snapshot: TableDescription) -> bool:
    """Check whether a snapshot can take the changes of an incremental run in place."""
    keys, touched_by = node.options.unique_key, node.options.touched_by or []
    if node.has_contract or any(columns != keys for columns in touched_by):
        return False
    # keys are known to be unique only in rows that are published
    if touched_by and not node.options.mirror:
        return False
    if not can_merge(snapshot.layout, node.planned_layout):
        return False
    # a Spark server may still be running an INSERT of a dead client, and only Delta can fence it
    is_fenced = snapshot.layout.format == "delta" or node.warehouse.is_driven_here
    return bool(touched_by) or is_fenced


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
    options: NodeConfig,
) -> list[IncrementalColumn]:
    """Return the columns of the next snapshot, with the sources of their values.

    Raises:
        CompilationError: if the columns differ in a way that `on_schema_change` does not allow
    """
    on_schema_change = options.on_schema_change
    had = {column.name.lower(): column for column in snapshot}
    has = {column.name.lower(): column for column in new_rows}
    added = [column for name, column in has.items() if name not in had]
    gone = [column for name, column in had.items() if name not in has]
    changed = [c for name, c in has.items() if name in had and had[name].dtype != c.dtype]
    kinds = (("added", added), ("gone", gone), ("of another type", changed))
    differences = [f"{kind}: {_names(columns)}" for kind, columns in kinds if columns]
    if on_schema_change == "fail" and differences:
        raise RefusedError(
            "The source and target schemas on this incremental model are out of sync: "
            f"{'; '.join(differences)}. Set `on_schema_change` to append_new_columns "
            "or sync_all_columns, or run with --full-refresh.",
            code="OM313",
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
    updated = _folded(options.merge_update_columns) or set(has)
    updated = updated & has.keys() - _folded(options.merge_exclude_columns)
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
            raise RefusedError(
                f"{differ}. `on_schema_change: ignore` neither adds nor drops fields. Nothing was "
                "changed. Set `on_schema_change` to append_new_columns or sync_all_columns, or "
                "run with --full-refresh.",
                code="OM309",
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
    """Return the columns of the next version of a dbt snapshot, without dbt's helper columns.

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
    return RefusedError(
        f"The column {column} has the type {stored} in the dbt snapshot, and {new} in its source. "
        "No type holds the values of both as they are. Nothing was changed. Cast the column in "
        f"the source, e.g. cast({column} as {stored}), or give it a new name there: then it "
        "becomes a new column, and the history keeps the old one.",
        code="OM310",
    )


def _folded(names: Iterable[str]) -> set[str]:
    return {name.lower() for name in names}


def _names(columns: Iterable[OpenMirroringColumn]) -> str:
    return ", ".join(column.name for column in columns)


def _comparable(node: Node, scratch: ScratchTables) -> tuple[str, OpenMirroringRelation]:
    """Return the source of a dbt snapshot and its stored rows, with the same names and types.

    dbt compares names with their case, and values with `!=`: the number 7 and the text '7A' would
    be cast to one type, and the change would be lost.

    Returns:
        a query of the source, and a table of the stored rows
    """
    warehouse, target, query = node.warehouse, node.target, source_rows(node)
    stored = warehouse.columns(target)
    source = warehouse.columns_of(node.first_history(query))
    types = _compared_types(node, stored, source)
    dbts_own = {name.lower() for name in node.history_columns.values()}
    own = [c for c in source if c.name.lower() not in dbts_own]
    spelled = {column.name.lower(): column.name for column in stored}
    columns = [
        (c.quoted, _cast(c, types), quoted(spelled.get(c.name.lower(), c.name))) for c in own
    ]
    if any(cast or name != alias for name, cast, alias in columns):
        query = _converted(node, f"(\n{query}\n)", columns)
    plain = [OpenMirroringColumn(c.name, without_length(c.dtype)) for c in stored]
    columns = [(c.quoted, _cast(c, types), c.quoted) for c in plain]
    if not any(cast for _, cast, _ in columns):
        return query, target
    return query, scratch.keep(STORED, _converted(node, str(target), columns))


def _compared_types(
    node: Node, stored: Sequence[OpenMirroringColumn], source: Sequence[OpenMirroringColumn]
) -> dict[str, str]:
    """Return the types in which dbt compares the columns of a dbt snapshot with its source."""
    # the times of changes are compared by their order, which texts of numbers do not have
    is_ordered = node.history.strategy == "timestamp"
    had = {column.name.lower(): column for column in stored}
    times = {node.history_columns[name].lower() for name in _TIMES}
    types = {}
    for column in source:
        name = column.name.lower()
        if name not in had:
            continue
        before = without_length(had[name].dtype)
        common = common_type(before, column.dtype)
        if name in times:
            if is_ordered and before != column.dtype and common in (None, "string"):
                raise RefusedError(
                    f"`updated_at` of the dbt snapshot had the type {before}, and has the type "
                    f"{column.dtype} in its source: their order may differ. Nothing was changed. "
                    f"Cast the column in the source, e.g. as {before}.",
                    code="OM311",
                )
            common = common or before
        if common is None:
            raise _no_common_type(had[name].quoted, before, column.dtype)
        types[name] = common
    return types


def _check_casts(
    node: Node, new_rows: OpenMirroringRelation, columns: Sequence[IncrementalColumn]
) -> None:
    """Check whether Spark has the casts that an incremental run needs."""
    new = [(c, c.new_cast) for c in columns if c.new_cast]
    before = [(c, c.snapshot_cast) for c in columns if c.snapshot_cast]
    for table, casts in ((new_rows, new), (node.target, before)):
        typed = [(c, (c.quoted, cast, c.quoted)) for c, cast in casts if not cast.is_void]
        if not typed or _is_possible(node, table, [each for _, each in typed]):
            continue
        for column, each in typed:
            if not _is_possible(node, table, [each]):
                raise RefusedError(
                    f"The column {column.quoted} has the type {column.snapshot_type} in the "
                    f"table, and {column.new_type} in the new rows, and Spark cannot cast one to "
                    f"the other. Nothing was changed. {node.cast_remedy}",
                    code="OM308",
                )


def _is_possible(
    node: Node, table: OpenMirroringRelation, columns: Sequence[ConvertedColumn]
) -> bool:
    try:
        node.warehouse.columns_of(_converted(node, str(table), columns))
    except DbtRuntimeError as error:
        if "DATATYPE_MISMATCH" in str(error):
            return False
        raise
    return True


def _converted(node: Node, rows: str, columns: Sequence[ConvertedColumn]) -> str:
    """Return a query of rows in other types."""
    return node.warehouse.sql(
        "mirror_typed_rows", rows=rows, columns=columns, remedy=node.cast_remedy
    )


def _cast(column: OpenMirroringColumn, types: Mapping[str, str]) -> Cast | None:
    target = types.get(column.name.lower(), column.dtype)
    return None if target == column.dtype else Cast.of(column.dtype, target)
