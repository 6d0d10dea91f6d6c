"""The publication that each change leads to: the table in docs/changes.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, cast

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import (
    LAST_UPDATE_TIME,
    UPSERT,
    Batch,
    DelimitedText,
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.compare import Comparer, Comparison
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.decide import Change, decide
from dbt.adapters.openmirroring.node.plan import SparkPlan
from tests.unit.macros.rendered import warehouse


def table(columns: str, keys: str = "id") -> TableDefinition:
    """A definition from `name type[:landed type]`, comma separated."""
    parsed = []
    for column in columns.split(", "):
        name, spelled = column.split()
        kind, _, landed = spelled.partition(":")
        parsed.append(MirroredColumn(name, kind, landed or kind))
    return TableDefinition(tuple(parsed), tuple(keys.split()), "parquet", None)


def csv(definition: TableDefinition, **options: str) -> TableDefinition:
    return replace(definition, landing_format="csv", delimited=DelimitedText(**options))


PUBLISHED = table("id int, a string, b date")
KEYLESS = replace(PUBLISHED, key_columns=())
WIDER = table("id int, a string, b date, c int")
NARROWER = table("id int, b date")
RECASED = table("id int, A string, b date")
REORDERED = table("b date, id int, a string")
SHORTER = table("id int, a varchar(9):string, b date")
TWO_KEYS = replace(PUBLISHED, key_columns=("id", "a"))
CSV = csv(PUBLISHED)

LOAD = RowCounts(inserted=100)
NOTHING = RowCounts()
ADDED = RowCounts(inserted=1)
CHANGED = RowCounts(inserted=1, updated=2, deleted=3)
GONE = RowCounts(inserted=1, deleted=1)
SPARK_ONLY = "types changed in Spark only"
KEYLESS_GONE = "rows changed or gone, and no unique_key to name them"


@dataclass
class Counted:
    """Rows, and what of them was counted."""

    found: RowCounts = NOTHING
    counted: list[str] = field(default_factory=list)

    def load(self) -> RowCounts:
        self.counted.append("load")
        return LOAD

    def changes(self, journal: Journal) -> Comparison:
        self.counted.append("changes")
        return Comparison(self.found, "changed_keys", in_full=True)


def journal(definition: TableDefinition) -> Journal:
    batch = Batch(
        id="20261121204415ef7e865d",
        build="20261121204415ef7e865d",
        publication="initial",
        reason="",
        owner=Owner("shop", "model.shop.orders", "sales"),
        definition=definition,
        rows=LOAD,
        extension=definition.landing_format,
        first_file=1,
        last_file=1,
        files_written=1,
        bytes_written=1000,
        table_rows=LOAD.inserted,
    )
    return Journal.of(batch, datetime(2026, 11, 21, tzinfo=timezone.utc))


def word_of(change: Change) -> str:
    """Return the word of the package's own macro."""
    return str(warehouse().ask(f"mirror_on_{change.kind}", change=change))


def noting(kinds: list[str]) -> Callable[[Change], str]:
    """Return `word_of`, which notes the kinds of the changes that it is asked about."""

    def word(change: Change) -> str:
        kinds.append(change.kind)
        return word_of(change)

    return word


def decided(
    published: TableDefinition | None,
    wanted: TableDefinition,
    counts: Counted | None = None,
    outcome_of: Callable[[Change], str] = word_of,
    on_breaking_change: str = "rebuild",
    **why: Any,
) -> SparkPlan:
    before = journal(published) if published else None
    options = NodeConfig(on_breaking_change=on_breaking_change)
    rows = cast(Comparer, counts or Counted())
    plan = decide(before, wanted, options, rows, outcome_of, **why)
    assert plan.definition == wanted
    assert plan.journal == before
    return plan


@pytest.mark.parametrize(
    ("wanted", "kinds", "reason"),
    [
        (NARROWER, "columns_dropped", "column dropped: a"),
        (
            table("id int, z string, b date"),
            "columns_dropped columns_added",
            "column dropped: a; column added: z",
        ),
        (RECASED, "column_case_changed", "case of a column changed: a to A"),
        (
            table("id bigint, a string, b timestamp"),
            "column_types_changed",
            "column type changed: id from int to bigint, b from date to timestamp",
        ),
        (TWO_KEYS, "key_columns_changed", "key columns changed from id to id, a"),
        (KEYLESS, "key_columns_changed", "key columns changed from id to none"),
        (CSV, "landing_format_changed", "landing format changed from parquet to csv"),
        (
            replace(PUBLISHED, file_detection=LAST_UPDATE_TIME),
            "landing_format_changed",
            "file_detection changed from 'sequential' to 'last_update_time'",
        ),
        (
            replace(PUBLISHED, default_row_marker=UPSERT),
            "landing_format_changed",
            "default_row_marker changed from 'insert' to 'upsert'",
        ),
    ],
)
def test_changes_that_no_table_can_take_are_a_rebuild_without_a_comparison(
    wanted: TableDefinition, kinds: str, reason: str
) -> None:
    found: list[str] = []
    counts = Counted()

    plan = decided(PUBLISHED, wanted, counts, noting(found))

    assert " ".join(found) == kinds
    assert (plan.publication, plan.reason) == ("rebuild", reason)
    assert (plan.rows, plan.changed) == (LOAD, None)
    assert counts.counted == ["load"]


@pytest.mark.parametrize(
    ("wanted", "kind", "reason"),
    [
        (csv(WIDER), "declared_columns_changed", "column added: c"),
        (csv(REORDERED), "declared_columns_changed", "columns reordered"),
        (
            csv(PUBLISHED, column_separator=";"),
            "landing_format_changed",
            "column_separator changed from ',' to ';'",
        ),
    ],
)
def test_declared_columns_of_delimited_text_do_not_evolve(
    wanted: TableDefinition, kind: str, reason: str
) -> None:
    found: list[str] = []

    plan = decided(CSV, wanted, outcome_of=noting(found))

    assert found == [kind]
    assert (plan.publication, plan.reason, plan.rows) == ("rebuild", reason, LOAD)
    assert decided(CSV, CSV).publication == "unchanged"


@pytest.mark.parametrize(
    ("wanted", "found", "moved", "kinds", "publication", "reason"),
    [
        (PUBLISHED, NOTHING, None, [], "unchanged", ""),
        (PUBLISHED, CHANGED, None, [], "changes", ""),
        (WIDER, NOTHING, None, ["columns_added"], "changes", "column added: c"),
        (WIDER, CHANGED, None, ["columns_added"], "changes", "column added: c"),
        (REORDERED, NOTHING, None, ["columns_reordered"], "unchanged", "columns reordered"),
        (REORDERED, CHANGED, None, ["columns_reordered"], "changes", ""),
        (SHORTER, NOTHING, None, ["spark_types_changed"], "unchanged", SPARK_ONLY),
        (PUBLISHED, CHANGED, "stored as orc", [], "changes", ""),
        (PUBLISHED, NOTHING, "stored as orc", [], "unchanged", "stored as orc"),
        (
            SHORTER,
            NOTHING,
            "as orc",
            ["spark_types_changed"],
            "unchanged",
            f"as orc; {SPARK_ONLY}",
        ),
    ],
)
def test_a_change_set_is_published_of_what_a_table_can_take(
    wanted: TableDefinition,
    found: RowCounts,
    moved: str | None,
    kinds: list[str],
    publication: str,
    reason: str,
) -> None:
    noted: list[str] = []
    counts = Counted(found)

    plan = decided(PUBLISHED, wanted, counts, noting(noted), moved=moved)

    assert noted == kinds
    assert (plan.publication, plan.reason) == (publication, reason)
    assert (plan.rows, plan.changed, plan.in_full) == (found, "changed_keys", True)
    assert counts.counted == ["changes"]
    assert plan.is_void is (publication == "unchanged" and not reason)


def test_rows_without_a_key_are_only_added() -> None:
    assert decided(KEYLESS, KEYLESS, Counted(ADDED)).publication == "changes"


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (KEYLESS, KEYLESS_GONE),
        (replace(WIDER, key_columns=()), f"{KEYLESS_GONE}; column added: c"),
    ],
)
def test_rows_that_are_gone_and_have_no_key_are_a_rebuild(
    wanted: TableDefinition, reason: str
) -> None:
    counts = Counted(GONE)

    plan = decided(KEYLESS, wanted, counts, moved="stored as orc")

    assert (plan.publication, plan.reason) == ("rebuild", reason)
    assert (plan.rows, plan.changed) == (LOAD, None)
    assert counts.counted == ["changes", "load"]


@pytest.mark.parametrize("rebuild", [None, "--full-refresh"])
@pytest.mark.parametrize("initial", ["", "the table folder was gone"])
def test_a_table_that_is_not_there_is_loaded(initial: str, rebuild: str | None) -> None:
    counts = Counted()

    plan = decided(None, PUBLISHED, counts, initial=initial, rebuild=rebuild)

    assert (plan.publication, plan.reason, plan.rows) == ("initial", initial, LOAD)
    assert counts.counted == ["load"]


@pytest.mark.parametrize("wanted", [PUBLISHED, NARROWER])
def test_a_rebuild_that_is_wanted_is_one_whatever_has_changed(wanted: TableDefinition) -> None:
    def refuse_to_decide(change: Change) -> str:
        raise AssertionError(f"{change} decides nothing here")

    counts = Counted()

    plan = decided(PUBLISHED, wanted, counts, refuse_to_decide, "fail", rebuild="mirror_rebuild")

    assert (plan.publication, plan.reason, plan.rows) == ("rebuild", "mirror_rebuild", LOAD)
    assert counts.counted == ["load"]


@pytest.mark.parametrize(
    ("published", "wanted", "reason"),
    [(PUBLISHED, NARROWER, "column dropped: a"), (KEYLESS, KEYLESS, KEYLESS_GONE)],
)
def test_a_breaking_change_is_refused_where_the_configuration_says_so(
    published: TableDefinition, wanted: TableDefinition, reason: str
) -> None:
    counts = Counted(GONE)

    with pytest.raises(CompilationError) as error:
        decided(published, wanted, counts, on_breaking_change="fail")

    assert f"needs a rebuild of the mirrored table ({reason})" in str(error.value)
    assert "Nothing was changed" in str(error.value)
    assert "load" not in counts.counted
    harmless = decided(PUBLISHED, WIDER, Counted(CHANGED), on_breaking_change="fail")
    assert harmless.publication == "changes"


@pytest.mark.parametrize(
    ("word", "found", "publication", "reason"),
    [
        ("changes", NOTHING, "changes", "column dropped: a"),
        ("changes", CHANGED, "changes", "column dropped: a"),
        ("unchanged", NOTHING, "unchanged", "column dropped: a"),
        ("unchanged", CHANGED, "changes", ""),
    ],
)
def test_a_project_may_decide_otherwise(
    word: str, found: RowCounts, publication: str, reason: str
) -> None:
    plan = decided(PUBLISHED, NARROWER, Counted(found), lambda _: word)

    assert (plan.publication, plan.reason, plan.rows) == (publication, reason, found)


@pytest.mark.parametrize(
    ("before", "after", "kind", "word", "allowed"),
    [
        (PUBLISHED, NARROWER, "columns_dropped", "ignore", "rebuild, changes, unchanged"),
        *(
            (before, after, kind, word, "rebuild")
            for word in ("changes", "unchanged")
            for before, after, kind in (
                (KEYLESS, KEYLESS, "keyless_rows_gone"),
                (PUBLISHED, KEYLESS, "key_columns_changed"),
                (PUBLISHED, CSV, "landing_format_changed"),
                (CSV, csv(WIDER), "declared_columns_changed"),
            )
        ),
    ],
)
def test_a_project_cannot_decide_what_files_cannot_express(
    before: TableDefinition, after: TableDefinition, kind: str, word: str, allowed: str
) -> None:
    with pytest.raises(CompilationError) as error:
        decided(before, after, Counted(GONE), lambda _: word)

    assert f"mirror_on_{kind} returned '{word}'. Allowed: {allowed}." in str(error.value)
