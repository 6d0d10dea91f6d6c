"""2. Deciding what a publication is, by the changes of a table's definition and of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import TableDefinition
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.compare import Comparer, why_left
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.next_rows import NextRows
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.plan import SparkPlan, table_definition
from dbt.adapters.openmirroring.node.progress import CHECKING, COMPARING
from dbt.adapters.openmirroring.node.snapshot.reuse import NextSnapshot, Reuse, same_files
from dbt.adapters.openmirroring.node.start import Attempt
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import RECORDING_FORMATS, TableDescription
from dbt.adapters.openmirroring.text.errors import RefusedError
from dbt.adapters.openmirroring.text.shown import shown
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.columns import landing_columns

OUTCOMES = ("rebuild", "changes", "unchanged")

# These changes always need a rebuild. `_metadata.json` declares the first three, and only a new
# folder can declare them anew. And no file can delete a row that has no key.
_REBUILT = (
    "key_columns_changed",
    "landing_format_changed",
    "declared_columns_changed",
    "keyless_rows_gone",
)


@dataclass(frozen=True)
class Change:
    """A difference between the published definition and the new one, described for the user.

    A macro, `mirror_on_<kind>`, decides what to do.
    """

    kind: str
    detail: str

    def __post_init__(self) -> None:
        # the published definition comes from a record, which others can edit
        object.__setattr__(self, "detail", shown(self.detail))


def decide(
    journal: Journal | None,
    definition: TableDefinition,
    options: NodeConfig,
    rows: Comparer,
    outcome_of: Callable[[Change], str],
    *,
    rebuild: str | None = None,
    moved: str | None = None,
    runs_code: bool = False,
    initial: str = "",
) -> SparkPlan:
    """Decide what to publish.

    Changes of the table's definition decide first: each kind of change leads to `rebuild`,
    `changes` or `unchanged`. Then the rows decide.

    Args:
        journal: the journal of the last publication; None if the table folder does not exist
        rows: counts rows, which is done only if a decision needs it
        outcome_of: returns the outcome that a change of the definition leads to
        moved: how the next snapshot is stored differently; None if it is not
        runs_code: whether code of the user has run, which may have changed the table in Spark
        initial: why a table that was published before no longer exists

    Raises:
        CompilationError: if a rebuild is needed and `on_breaking_change` is `fail`, or if a macro
            of the project returns an outcome that is not allowed
    """
    if journal is None:
        return SparkPlan("initial", initial, definition, rows.load())
    if rebuild:
        return SparkPlan("rebuild", rebuild, definition, rows.load(), journal=journal)
    reasons = reasons_of(journal, definition, outcome_of)
    if moved:
        reasons["unchanged"].insert(0, moved)
    found = None if reasons["rebuild"] else rows.changes(journal)
    if found and found.rows.deleted and not definition.key_columns:
        gone = Change("keyless_rows_gone", "rows changed or gone, and no unique_key to name them")
        reasons[_checked(gone, outcome_of(gone))].append(gone.detail)
    if found is None or reasons["rebuild"]:
        refuse_rebuild(reasons, options, runs_code)
        reason = _told(reasons)
        return SparkPlan("rebuild", reason, definition, rows.load(), journal=journal)
    publication = "changes" if found.rows or reasons["changes"] else "unchanged"
    return SparkPlan(
        publication,
        "; ".join(reasons[publication]),
        definition,
        found.rows,
        journal,
        changed=found.changed,
        in_full=found.in_full,
    )


def reasons_of(
    journal: Journal, definition: TableDefinition, outcome_of: Callable[[Change], str]
) -> dict[str, list[str]]:
    """Return the changes of a table's definition since its last publication, by their outcome."""
    reasons: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
    for change in changes_between(journal.batch.definition, definition):
        reasons[_checked(change, outcome_of(change))].append(change.detail)
    return reasons


def refuse_rebuild(reasons: Mapping[str, list[str]], options: NodeConfig, runs_code: bool) -> None:
    """Check that a rebuild is allowed, if the reasons, by their outcome, have one."""
    if reasons["rebuild"] and options.on_breaking_change == "fail":
        left = "Nothing was changed. Undo the change in the model"
        if runs_code:
            left = (
                "Nothing was published, but hooks and other code of the node may have changed its "
                "table in Spark. Undo the change in the model and in this code"
            )
        raise RefusedError(
            f"Publishing this needs a rebuild of the mirrored table ({_told(reasons)}), and "
            f"on_breaking_change is fail. {left}, or run with --full-refresh to drop the table "
            "and publish a full load.",
            code="OM211",
        )


def _told(reasons: Mapping[str, list[str]]) -> str:
    return "; ".join(reasons["rebuild"] + reasons["changes"])


def _checked(change: Change, outcome: str) -> str:
    allowed = OUTCOMES[:1] if change.kind in _REBUILT else OUTCOMES
    if outcome not in allowed:
        raise CompilationError(
            f"The macro mirror_on_{change.kind} returned {outcome!r}. Allowed: "
            f"{', '.join(allowed)}. Nothing was changed."
        )
    return outcome


def changes_between(published: TableDefinition, wanted: TableDefinition) -> list[Change]:
    """Return the changes between two definitions of a table.

    Names are compared with their case, because the mirror's Delta table and the `keyColumns` are
    case sensitive. Spark is not.
    """
    before = {column.name: column.landed_type for column in published.columns}
    after = {column.name: column.landed_type for column in wanted.columns}
    recased = {
        old: new
        for old in before.keys() - after.keys()
        for new in after.keys() - before.keys()
        if old.lower() == new.lower()
    }
    dropped = [name for name in before if name not in after and name not in recased]
    added = [name for name in after if name not in before and name not in recased.values()]
    retyped = [name for name in after if name in before and before[name] != after[name]]

    changes = _format_changes(published, wanted)
    if published.key_columns != wanted.key_columns:
        keys = f"{_names(published.key_columns)} to {_names(wanted.key_columns)}"
        changes.append(Change("key_columns_changed", f"key columns changed from {keys}"))
    if dropped:
        changes.append(Change("columns_dropped", f"column dropped: {_names(dropped)}"))
    if recased:
        cases = ", ".join(f"{old} to {new}" for old, new in sorted(recased.items()))
        changes.append(Change("column_case_changed", f"case of a column changed: {cases}"))
    if retyped:
        types = ", ".join(f"{name} from {before[name]} to {after[name]}" for name in retyped)
        changes.append(Change("column_types_changed", f"column type changed: {types}"))
    if added:
        kind = "declared_columns_changed" if wanted.delimited else "columns_added"
        changes.append(Change(kind, f"column added: {_names(added)}"))
    if not changes and list(before) != list(after):
        kind = "declared_columns_changed" if wanted.delimited else "columns_reordered"
        changes.append(Change(kind, "columns reordered"))
    elif not changes and published.columns != wanted.columns:
        changes.append(Change("spark_types_changed", "types changed in Spark only"))
    return changes


def _format_changes(published: TableDefinition, wanted: TableDefinition) -> list[Change]:
    """Return the changes in `_metadata.json` other than columns and keys."""
    kind = "landing_format_changed"
    if published.landing_format != wanted.landing_format:
        formats = f"{published.landing_format} to {wanted.landing_format}"
        return [Change(kind, f"landing format changed from {formats}")]
    before, after = (_format_options(definition) for definition in (published, wanted))
    return [
        Change(kind, f"{name} changed from {before[name]!r} to {after[name]!r}")
        for name in before
        if before[name] != after[name]
    ]


def _format_options(definition: TableDefinition) -> dict[str, str]:
    options = {
        "file_detection": definition.file_detection,
        "default_row_marker": definition.default_row_marker,
    }
    return options | (asdict(definition.delimited) if definition.delimited else {})


def _names(columns: tuple[str, ...] | list[str]) -> str:
    return ", ".join(columns) or "none"


def described(node: Node, built: OpenMirroringRelation) -> NextSnapshot:
    """Return the built rows, all of which need a comparison.

    Raises:
        CompilationError: if a column cannot be mirrored, or is read in the zone of a session
    """
    description = node.warehouse.describe(built)
    _refuse_zone_of_session(built, description)
    return NextSnapshot(built, description, landing_columns(description.columns), Reuse())


def next_snapshot(
    attempt: Attempt, built: OpenMirroringRelation, rows: NextRows | None
) -> NextSnapshot:
    """Return the built rows, and what part of them needs no comparison.

    Args:
        rows: the rows that this run built it from; None if it was held
    """
    found, stored = described(attempt.node, built), attempt.description
    if rows and rows.touched:
        stored = None
    reuse: Reuse | None = rows.reuse if rows else None
    if reuse is None and stored and not attempt.rebuild and attempt.warehouse.is_local:
        reuse = same_files(stored, found.description)
    layout, moved = found.description.layout, None
    # a held snapshot is stored already as it is to be
    if rows and stored and stored.layout != layout:
        moved = f"stored as {layout} in Spark, before as {stored.layout}"
    return replace(found, reuse=reuse or found.reuse, moved=moved)


def check(attempt: Attempt, built: NextSnapshot, with_rows: bool = True) -> None:
    """Check whether the built rows, or only their definition, could be published.

    Errors are those of `compare`.
    """
    node = attempt.node
    node.warehouse.adapter.progress.show_step(CHECKING)
    journal = attempt.verify(attempt.rebuild is not None)
    comparer = _comparer(attempt, built)
    if with_rows:
        with attempt.reading(attempt.relation):
            comparer.load()
    if journal and not attempt.rebuild:
        reasons = reasons_of(journal, comparer.definition, partial(_outcome_of, node))
        refuse_rebuild(reasons, node.options, node.has_own_code)


def _outcome_of(node: Node, change: Change) -> str:
    return str(node.warehouse.ask(f"mirror_on_{change.kind}", change=change))


def compare(attempt: Attempt, built: NextSnapshot) -> SparkPlan:
    """Compare built rows with those that were published last, and decide what to publish.

    Raises:
        MirrorError: if the rows in Spark and the landing zone do not belong together
        DbtRuntimeError: if the rows cannot be published
    """
    node = attempt.node
    node.warehouse.adapter.progress.show_step(COMPARING)
    journal = attempt.verify(attempt.rebuild is not None)
    comparer = _comparer(attempt, built)
    with attempt.reading(attempt.relation):
        return decide(
            journal,
            comparer.definition,
            node.options,
            comparer,
            partial(_outcome_of, node),
            rebuild=attempt.rebuild,
            moved=built.moved,
            runs_code=node.has_own_code,
            initial="" if journal else _why_initial(attempt),
        )


def _why_initial(attempt: Attempt) -> str:
    """Return why a published table has no table folder; empty if none was published."""
    if not attempt.build:
        return ""
    # Spark ignores the case of a name, so the snapshot may be that of an alias in another case
    former = attempt.records.former_folder(attempt.build)
    return f"the table folder was {f'{former.path} before' if former else 'gone'}"


def _comparer(attempt: Attempt, built: NextSnapshot) -> Comparer:
    node = attempt.node
    return Comparer(
        node.warehouse,
        attempt.scratch,
        attempt.records,
        node.options,
        table_definition(built.columns, node.options),
        attempt.relation or node.target,
        built,
        node.history.key if node.is_history else (),
        why_left(node.options) if node.is_incremental else None,
    )


def beyond_limit(node: Node, plan: SparkPlan) -> str | None:
    """Describe by how much a publication exceeds the limit of its node; None if it does not.

    A full load deletes as many rows as the table has fewer after it.
    """
    limit = node.options.max_deleted
    if limit is None or not plan.journal:
        return None
    published, deleted = plan.journal.batch.table_rows, plan.rows.deleted
    if plan.starts_folder:
        deleted = published - plan.row_count
    is_share = isinstance(limit, float)
    if deleted <= (published * limit / 100 if is_share else limit):
        return None
    told = f"{limit:g}%" if is_share else f"{limit:,}"
    return f"{deleted:,} of {published:,} rows would be deleted, and `max_deleted` is {told}"


def too_many_deleted(node: Node, finding: str) -> CompilationError:
    """Return the error for a publication that is held because of its limit."""
    return RefusedError(
        f"{finding}. Nothing was published: {node.target} has the new rows in Spark, and the "
        "mirror keeps the old ones. Correct the model and run it again. If the rows are right, "
        f"`dbt run-operation mirror_publish --args '{{table: {node.table_folder}}}'` publishes "
        "them; or set another `max_deleted`.",
        code="OM319",
    )


def refuse_deletion(node: Node, plan: SparkPlan) -> None:
    """Check that a plan to publish what Spark has, without computing it, leaves enough rows.

    Raises:
        CompilationError: if it exceeds the limit of the node, or if none of the published rows
            would be left: Spark may have lost them
    """
    published = plan.journal.batch.table_rows if plan.journal else 0
    finding = beyond_limit(node, plan)
    if finding:
        raise RefusedError(
            f"{finding}. Nothing was changed. If the {plan.row_count:,} rows that Spark has of "
            f"{node.target} are right, set another `max_deleted`.",
            code="OM319",
        )
    if published and not plan.row_count:
        raise CompilationError(
            f"Spark has no rows of {node.target}, and {published:,} were published: its files may "
            "be lost. Nothing was changed. Put them back. If no rows are right, run the node with "
            "--full-refresh, which computes its rows anew and publishes those."
        )


def _refuse_zone_of_session(relation: OpenMirroringRelation, table: TableDescription) -> None:
    """Check that every session of Spark reads the same times in the partitions of a table."""
    if table.layout.zone or table.layout.format in RECORDING_FORMATS:
        return
    times = [quoted(name) for name, dtype in table.partition_types if dtype == "timestamp"]
    if times:
        raise CompilationError(
            f"{relation} is partitioned by the timestamp {', '.join(times)}, and has no option "
            "`timeZone`: each session of Spark would read its partitions in another time zone. "
            "Nothing was published. If a hook creates the table, let it set `options (timeZone "
            "'UTC')`. Otherwise set `file_format: delta` or `iceberg`, or partition by "
            f"cast({times[0]} as string)."
        )
