"""2. Deciding what a publication is: the mapping of changes, as a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import TableDefinition
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.changes import Change, changes_between
from dbt.adapters.openmirroring.node.compare import Comparer
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.plan import SparkPlan

OUTCOMES = ("rebuild", "changes", "unchanged")

# These changes always need a rebuild. `_metadata.json` declares the first three, and only a new
# folder can declare them anew. And no file can delete a row that has no key.
_REBUILT = (
    "key_columns_changed",
    "landing_format_changed",
    "declared_columns_changed",
    "keyless_rows_gone",
)


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
