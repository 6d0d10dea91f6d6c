"""The rows of the next snapshot: those of the model, or the snapshot changed by new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.node.incremental import (
    IncrementalColumn,
    check_casts,
    comparable,
    history_columns,
    incremental_columns,
    typed_rows,
)
from dbt.adapters.openmirroring.node.node import Node, refuse_stale_compilation
from dbt.adapters.openmirroring.node.refusals import listed
from dbt.adapters.openmirroring.node.snapshot.key_ranges import (
    KeyRange,
    key_ranges,
    ranged_columns,
)
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
    TYPED_ROWS,
    ScratchTables,
)
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn, OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import TableDescription

# lists of columns; a new row may change a row of the snapshot that agrees in all columns of a list
ColumnLists = Sequence[Sequence[str]]


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
            columns differ in a way that `on_schema_change` does not allow, or if a microbatch
            model does not have its `event_time`
        DbtRuntimeError: if several new rows have the same key
    """
    if node.is_history:
        return _history(node, scratch, snapshot)
    if node.is_incremental != was_incremental:
        raise refuse_stale_compilation()
    if not was_incremental:
        if node.batch:
            with node.warehouse.users_session():
                _event_time(node, node.warehouse.columns_of(node.query()))
        return live_rows(node)
    return _incremental(node, scratch, snapshot)


def live_rows(node: Node) -> NextRows:
    """Return the rows of a model, without those that `delete_when` marks as deletes."""
    return NextRows(
        node.warehouse.sql(
            "mirror_live_rows", query=node.query(), delete_when=node.options.delete_when
        )
    )


def first_rows(node: Node) -> NextRows:
    """Return the rows of a node that is built for the first time."""
    if node.is_history:
        with node.warehouse.users_session():
            return NextRows(node.first_history(node.query()))
    return live_rows(node)


def _incremental(
    node: Node, scratch: ScratchTables, snapshot: TableDescription | None
) -> NextRows:
    warehouse, target = node.warehouse, node.target
    with warehouse.users_session():
        computed = _keep_new_rows(node, scratch, NEW_ROWS, node.query())
    found, before = warehouse.columns(computed), warehouse.columns(target)
    columns = incremental_columns(before, found, node.on_schema_change, node.config)
    predicates = node.predicates
    if node.batch:
        new = {column.name.lower() for column in found}
        common = [column for column in before if column.name.lower() in new]
        predicates = [_in_batch(node, node.batch, common)]
    check_casts(node, computed, columns)
    new_rows = _typed_rows(node, scratch, computed, found, columns)
    options = node.options = node.options.spelled(column.name for column in columns)
    if options.incremental_strategy == "merge" and options.unique_key:
        ambiguous = warehouse.read(
            "mirror_ambiguous_rows", new_rows=new_rows, keys=options.unique_key
        )
        if ambiguous.rows:
            raise DbtRuntimeError(
                f"Several new rows have the same key ({', '.join(options.unique_key)}), e.g. "
                f"{listed(options.unique_key, ambiguous)}: a row of the table can be "
                "merged with one of them only. Nothing was changed. Make the new rows unique, or "
                "set another `unique_key`."
            )
    reused = _reused(node, scratch, new_rows, snapshot, before, columns, options.touched_by)
    query = warehouse.sql(
        options.strategy_macro,
        snapshot=_stored_rows(node, reused, columns),
        new_rows=new_rows,
        columns=columns,
        options=options,
        predicates=predicates,
    )
    return NextRows(query, reused)


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


def _in_batch(node: Node, batch: Mapping[str, Any], columns: Sequence[OpenMirroringColumn]) -> str:
    """Return the SQL of which rows a batch replaces in the partitions of its rows."""
    return node.warehouse.sql(
        "mirror_in_batch",
        event_time=_event_time(node, columns).quoted,
        start=batch["event_time_start"],
        end=batch["event_time_end"],
        keys=node.options.unique_key,
    )


def _history(node: Node, scratch: ScratchTables, snapshot: TableDescription | None) -> NextRows:
    """Return the rows of a dbt snapshot. Its changes, as dbt defines them, are computed once."""
    warehouse, target = node.warehouse, node.target
    if not warehouse.found(target):
        return first_rows(node)
    with warehouse.users_session():
        query, stored = comparable(node, scratch)
        query = node.history_changes(query, stored)
        computed = _keep_new_rows(node, scratch, NEW_ROWS, query)
    found, before = warehouse.columns(computed), warehouse.columns(target)
    names = node.history_columns
    columns = history_columns(before, found, names)
    changes = _typed_rows(node, scratch, computed, found, columns)
    touched_by = [[names["dbt_scd_id"]]]
    reused = _reused(node, scratch, changes, snapshot, before, columns, touched_by)
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
    """Compute new rows in a scratch table with the partitions of the snapshot.

    Spark changes some values when it stores them as partitions: an empty string becomes NULL. The
    published values must be those that the snapshot stores.
    """
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
    return _keep_new_rows(node, scratch, TYPED_ROWS, typed_rows(node, str(computed), typed))


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
    touched_by: ColumnLists | None,
) -> TouchedRows | KeptFiles | None:
    """Determine the rows or files of the snapshot that an incremental run cannot change.

    Nothing is reused if the columns differ: then all rows are written and compared again.

    Args:
        snapshot: None if nothing of it may be kept
        touched_by: lists of columns. A row may change if it agrees with a new row in all columns
            of one list. None means that any row may change
    """
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

    if _changes_in_place(node, snapshot, touched_by):
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


def _changes_in_place(node: Node, snapshot: TableDescription, touched_by: ColumnLists) -> bool:
    """Check whether a snapshot can take the changes of an incremental run in place."""
    keys = node.options.unique_key
    if node.has_contract or any(tuple(columns) != keys for columns in touched_by):
        return False
    # keys are known to be unique only in rows that are published
    if touched_by and not node.options.mirror:
        return False
    if not can_merge(snapshot.layout, node.planned_layout):
        return False
    # a Spark server may still be running an INSERT of a dead client, and only Delta can fence it
    is_fenced = snapshot.layout.format == "delta" or node.warehouse.is_driven_here
    return bool(touched_by) or is_fenced
