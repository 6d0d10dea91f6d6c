"""2. Deciding what a publication is, by the changes of a table's definition and of its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import TableDefinition
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.compare import Comparer
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.plan import SparkPlan
from dbt.adapters.openmirroring.text.shown import shown

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
    """A difference between the published definition and the new one.

    Args:
        kind: the suffix of the macro that decides what to do, `mirror_on_<kind>`
        detail: the description for the user
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
        definition: the new definition of the table
        rows: counts rows, which is done only if a decision needs it
        outcome_of: returns the outcome that a change of the definition leads to
        rebuild: why the table is rebuilt; None if the changes decide
        moved: how the next snapshot is stored differently; None if it is not
        runs_code: whether code of the user has run
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
    """Return the changes of a table's definition since its last publication, by their outcome.

    Args:
        definition: the new definition of the table
        outcome_of: returns the outcome that a change of the definition leads to

    Raises:
        CompilationError: if a macro of the project returns an outcome that is not allowed
    """
    reasons: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
    for change in changes_between(journal.batch.definition, definition):
        reasons[_checked(change, outcome_of(change))].append(change.detail)
    return reasons


def refuse_rebuild(
    reasons: Mapping[str, list[str]], options: NodeConfig, runs_code: bool = False
) -> None:
    """Check that a rebuild is allowed, if one is needed.

    Args:
        reasons: the changes by their outcome
        runs_code: whether code of the user has run, which may have changed the table in Spark

    Raises:
        CompilationError: if a rebuild is needed and `on_breaking_change` is `fail`
    """
    if reasons["rebuild"] and options.on_breaking_change == "fail":
        left = "Nothing was changed. Undo the change in the model"
        if runs_code:
            left = (
                "Nothing was published, but hooks and other code of the node may have changed its "
                "table in Spark. Undo the change in the model and in this code"
            )
        raise CompilationError(
            f"Publishing this needs a rebuild of the mirrored table ({_told(reasons)}), and "
            f"on_breaking_change is fail. {left}, or run with --full-refresh to drop the table "
            "and publish a full load."
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
    """Return the changes between two definitions of a table; an empty list if they are equal.

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
