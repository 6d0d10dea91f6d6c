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
    Owner,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.delimited import DelimitedText
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.compare import Comparer, Comparison
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.decide import Change, decide
from dbt.adapters.openmirroring.node.plan import SparkPlan
from tests.unit.macros.rendered import warehouse
from tests.unit.node.test_changes import table

PUBLISHED = table("id int, a string, b date")
KEYLESS = replace(PUBLISHED, key_columns=())
CSV = table("id int, a string, b date", landing_format="csv")

LOAD = RowCounts(inserted=100)
NOTHING = RowCounts()
ADDED = RowCounts(inserted=1)
CHANGED = RowCounts(inserted=1, updated=2, deleted=3)
GONE = RowCounts(inserted=1, deleted=1)
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


def refuse_to_decide(change: Change) -> str:
    raise AssertionError(f"{change} decides nothing here")


def decided(
    published: TableDefinition | None,
    wanted: TableDefinition,
    counts: Counted | None = None,
    outcome_of: Callable[[Change], str] = word_of,
    options: NodeConfig | None = None,
    rebuild: str | None = None,
    **why: Any,
) -> SparkPlan:
    before = journal(published) if published else None
    plan = decide(
        before,
        wanted,
        options or NodeConfig(),
        cast(Comparer, counts or Counted()),
        outcome_of,
        rebuild=rebuild,
        **why,
    )
    assert plan.definition == wanted
    assert plan.journal == before
    return plan


@pytest.mark.parametrize(
    ("published", "wanted", "found", "publication", "reason"),
    [
        pytest.param(PUBLISHED, PUBLISHED, CHANGED, "changes", "", id="rows"),
        pytest.param(PUBLISHED, PUBLISHED, NOTHING, "unchanged", "", id="nothing"),
        pytest.param(
            PUBLISHED,
            table("id int, a string, b date, c int"),
            CHANGED,
            "changes",
            "column added: c",
            id="column added",
        ),
        pytest.param(
            PUBLISHED,
            table("id int, a string, b date, c int"),
            NOTHING,
            "changes",
            "column added: c",
            id="column added, without a value",
        ),
        pytest.param(
            PUBLISHED,
            table("b date, id int, a string"),
            NOTHING,
            "unchanged",
            "columns reordered",
            id="columns reordered",
        ),
        pytest.param(
            PUBLISHED,
            table("b date, id int, a string"),
            CHANGED,
            "changes",
            "",
            id="columns reordered, and rows",
        ),
        pytest.param(
            table("id int, a varchar(10):string, b date"),
            PUBLISHED,
            NOTHING,
            "unchanged",
            "types changed in Spark only",
            id="types changed that land the same",
        ),
        pytest.param(KEYLESS, KEYLESS, ADDED, "changes", "", id="no unique_key: rows added"),
    ],
)
def test_a_change_set_is_published_of_what_a_table_can_take(
    published: TableDefinition,
    wanted: TableDefinition,
    found: RowCounts,
    publication: str,
    reason: str,
) -> None:
    counts = Counted(found)

    plan = decided(published, wanted, counts)

    assert (plan.publication, plan.reason) == (publication, reason)
    assert (plan.rows, plan.changed, plan.in_full) == (found, "changed_keys", True)
    assert counts.counted == ["changes"]


@pytest.mark.parametrize(
    ("published", "wanted", "reason"),
    [
        pytest.param(PUBLISHED, table("id int, b date"), "column dropped: a", id="column dropped"),
        pytest.param(
            PUBLISHED,
            table("id int, z string, b date"),
            "column dropped: a; column added: z",
            id="column renamed",
        ),
        pytest.param(
            PUBLISHED,
            table("id int, A string, b date"),
            "case of a column changed: a to A",
            id="case changed",
        ),
        pytest.param(
            PUBLISHED,
            table("id bigint, a string, b date"),
            "column type changed: id from int to bigint",
            id="type changed",
        ),
        pytest.param(
            PUBLISHED,
            table("id int, a string, b date", keys="id a"),
            "key columns changed from id to id, a",
            id="key columns changed",
        ),
        pytest.param(
            PUBLISHED,
            CSV,
            "landing format changed from parquet to csv",
            id="landing format changed",
        ),
        pytest.param(
            PUBLISHED,
            replace(PUBLISHED, file_detection=LAST_UPDATE_TIME),
            "file_detection changed from 'sequential' to 'last_update_time'",
            id="file_detection changed",
        ),
        pytest.param(
            PUBLISHED,
            replace(PUBLISHED, default_row_marker=UPSERT),
            "default_row_marker changed from 'insert' to 'upsert'",
            id="default_row_marker changed",
        ),
        pytest.param(
            CSV,
            table("id int, a string, b date, c int", landing_format="csv"),
            "column added: c",
            id="delimited: column added",
        ),
        pytest.param(
            CSV,
            table("b date, id int, a string", landing_format="csv"),
            "columns reordered",
            id="delimited: columns reordered",
        ),
        pytest.param(
            CSV,
            replace(CSV, delimited=DelimitedText(null_value="")),
            "null_value changed from 'null' to ''",
            id="delimited: spelling changed",
        ),
        pytest.param(
            PUBLISHED,
            table("id bigint, a string, c int", keys="id a"),
            "key columns changed from id to id, a; column dropped: b; "
            "column type changed: id from int to bigint; column added: c",
            id="several",
        ),
    ],
)
def test_changes_that_no_table_can_take_are_a_rebuild_without_a_comparison(
    published: TableDefinition, wanted: TableDefinition, reason: str
) -> None:
    counts = Counted()

    plan = decided(published, wanted, counts)

    assert (plan.publication, plan.reason) == ("rebuild", reason)
    assert (plan.rows, plan.changed) == (LOAD, None)
    assert counts.counted == ["load"]


def test_rows_that_are_gone_and_have_no_key_are_a_rebuild() -> None:
    counts = Counted(GONE)

    plan = decided(KEYLESS, KEYLESS, counts)

    assert (plan.publication, plan.reason) == ("rebuild", KEYLESS_GONE)
    assert (plan.rows, plan.changed) == (LOAD, None)
    assert counts.counted == ["changes", "load"]


def test_reasons_of_a_rebuild_are_joined_with_those_of_changes_that_come_with_it() -> None:
    plan = decided(
        KEYLESS,
        table("id int, a string, b date, c int", keys=""),
        Counted(GONE),
        moved="stored as orc in Spark, before as parquet",
    )

    assert plan.reason == f"{KEYLESS_GONE}; column added: c"


@pytest.mark.parametrize("initial", ["", "the table folder was gone"])
def test_a_table_that_is_not_there_is_loaded(initial: str) -> None:
    counts = Counted()

    plan = decided(None, PUBLISHED, counts, initial=initial)

    assert (plan.publication, plan.reason, plan.rows) == ("initial", initial, LOAD)
    assert counts.counted == ["load"]


@pytest.mark.parametrize("why", ["--full-refresh", "was a view meanwhile", "mirror_rebuild"])
@pytest.mark.parametrize("wanted", [PUBLISHED, table("id int, b date")])
@pytest.mark.parametrize("on_breaking_change", ["rebuild", "fail"])
def test_a_rebuild_that_is_wanted_is_one_whatever_has_changed(
    why: str, wanted: TableDefinition, on_breaking_change: str
) -> None:
    counts = Counted()
    options = NodeConfig(on_breaking_change=on_breaking_change)

    plan = decided(PUBLISHED, wanted, counts, refuse_to_decide, options, rebuild=why)

    assert (plan.publication, plan.reason, plan.rows) == ("rebuild", why, LOAD)
    assert counts.counted == ["load"]


def test_a_table_that_is_not_there_is_no_rebuild() -> None:
    plan = decided(None, PUBLISHED, rebuild="--full-refresh")

    assert (plan.publication, plan.reason) == ("initial", "")


@pytest.mark.parametrize(
    ("found", "publication", "reason"),
    [(NOTHING, "unchanged", "stored as orc"), (CHANGED, "changes", "")],
)
def test_a_table_that_is_stored_in_another_way_publishes_only_its_changed_rows(
    found: RowCounts, publication: str, reason: str
) -> None:
    plan = decided(PUBLISHED, PUBLISHED, Counted(found), moved="stored as orc")

    assert (plan.publication, plan.reason) == (publication, reason)
    assert not plan.is_void


def test_every_reason_that_publishes_nothing_is_reported() -> None:
    plan = decided(PUBLISHED, table("b date, id int, a string"), moved="stored as orc")

    assert (plan.publication, plan.reason) == ("unchanged", "stored as orc; columns reordered")


@pytest.mark.parametrize(
    ("published", "wanted", "found", "reason"),
    [
        (PUBLISHED, table("id int, b date"), NOTHING, "column dropped: a"),
        (KEYLESS, KEYLESS, GONE, KEYLESS_GONE),
    ],
)
def test_a_breaking_change_is_refused_where_the_configuration_says_so(
    published: TableDefinition, wanted: TableDefinition, found: RowCounts, reason: str
) -> None:
    counts = Counted(found)

    with pytest.raises(CompilationError) as error:
        decided(published, wanted, counts, options=NodeConfig(on_breaking_change="fail"))

    assert f"needs a rebuild of the mirrored table ({reason})" in str(error.value)
    assert "Nothing was changed" in str(error.value)
    assert "load" not in counts.counted


def test_a_change_that_breaks_nothing_is_not_refused() -> None:
    options = NodeConfig(on_breaking_change="fail")

    plan = decided(
        PUBLISHED, table("id int, a string, b date, c int"), Counted(CHANGED), options=options
    )

    assert plan.publication == "changes"


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
    def own(change: Change) -> str:
        return word if change.kind == "columns_dropped" else word_of(change)

    plan = decided(PUBLISHED, table("id int, b date"), Counted(found), own)

    assert (plan.publication, plan.reason, plan.rows) == (publication, reason, found)


def test_a_word_that_nobody_knows_is_refused() -> None:
    counts = Counted()

    with pytest.raises(CompilationError) as error:
        decided(PUBLISHED, table("id int, b date"), counts, lambda _: "ignore")

    assert "mirror_on_columns_dropped returned 'ignore'" in str(error.value)
    assert "Allowed: rebuild, changes, unchanged" in str(error.value)
    assert not counts.counted


@pytest.mark.parametrize("word", ["changes", "unchanged"])
@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (KEYLESS, KEYLESS, "keyless_rows_gone"),
        (PUBLISHED, KEYLESS, "key_columns_changed"),
        (PUBLISHED, CSV, "landing_format_changed"),
        (
            CSV,
            table("id int, a string, b date, c int", landing_format="csv"),
            "declared_columns_changed",
        ),
    ],
)
def test_a_project_cannot_override_changes_that_files_cannot_express(
    before: TableDefinition, after: TableDefinition, kind: str, word: str
) -> None:
    def own(change: Change) -> str:
        return word if change.kind == kind else word_of(change)

    with pytest.raises(CompilationError) as error:
        decided(before, after, Counted(GONE), own)

    assert f"mirror_on_{kind} returned '{word}'. Allowed: rebuild." in str(error.value)
