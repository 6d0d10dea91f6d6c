"""A plan, and the batch that it becomes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import (
    DelimitedText,
    RowCounts,
    StagedFile,
    TableDefinition,
    new_batch_id,
)
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.records import Journal
from tests.unit.landing_zone.publishing import DEFINITION, OWNER

UPSERTS = replace(DEFINITION, default_row_marker="upsert")
TEXT = replace(DEFINITION, landing_format="csv", delimited=DelimitedText())
ID = new_batch_id()


@pytest.mark.parametrize(
    ("definition", "rows", "marked"),
    [
        (DEFINITION, RowCounts(1, 0, 0), True),
        (UPSERTS, RowCounts(1, 1, 0), False),
        (UPSERTS, RowCounts(1, 1, 1), True),
        (
            replace(TEXT, default_row_marker="upsert"),
            RowCounts(1, 1, 0),
            True,
        ),
        (replace(DEFINITION, key_columns=()), RowCounts(1, 0, 0), False),
    ],
    ids=["inserts", "upserts", "upserts with deletes", "delimited text", "keyless"],
)
def test_changes_have_row_markers_where_they_need_them(
    definition: TableDefinition, rows: RowCounts, marked: bool
) -> None:
    assert Plan("changes", "", definition, rows).is_marked == marked
    assert not Plan("rebuild", "", definition, rows).is_marked


@pytest.mark.parametrize(
    ("publication", "reason", "is_void"),
    [("unchanged", "", True), ("unchanged", "columns reordered", False), ("changes", "", False)],
)
def test_only_an_unchanged_plan_without_a_reason_is_void(
    publication: str, reason: str, is_void: bool
) -> None:
    assert Plan(publication, reason, DEFINITION, RowCounts()).is_void == is_void


@pytest.mark.parametrize(
    ("publication", "rows", "files", "reason", "line", "table_rows"),
    [
        ("changes", (120, 30, 4), 1, "", "+120 ~30 -4 · #18", 1116),
        ("changes", (7,), 2, "column added: a", "+7 ~0 -0 · #18-#19 · column added: a", 1007),
        ("initial", (7,), 1, "", "initial +7 · #1", 7),
        ("rebuild", (7,), 3, "--full-refresh", "rebuild +7 · #1-#3 · --full-refresh", 7),
        ("unchanged", (), 0, "", "unchanged · #17", 1000),
    ],
    ids=["changes", "several files", "initial", "rebuild", "unchanged"],
)
def test_a_batch_follows_the_last_one_and_its_line_says_what_happens_to_the_mirror(
    publication: str, rows: tuple[int, ...], files: int, reason: str, line: str, table_rows: int
) -> None:
    loaded = Plan("initial", "", DEFINITION, RowCounts(1000)).batch(ID, ID, OWNER, [], 17)
    last = Journal(loaded, "2026-11-21T17:39:12.345+00:00")
    plan = Plan(publication, reason, DEFINITION, RowCounts(*rows), last)
    staged = [StagedFile(f"part-{n}.parquet", 10) for n in range(files)]

    batch = plan.batch(ID, ID, OWNER, staged, 0 if plan.starts_folder else 17)

    assert batch.summary == line
    assert (batch.table_rows, batch.bytes_written) == (table_rows, 10 * files)


@pytest.mark.parametrize(
    ("definition", "name", "extension"),
    [(TEXT, "0.csv", "csv"), (TEXT, "0.csv.gz", "csv.gz"), (DEFINITION, "0.gz", "parquet")],
)
def test_only_the_names_of_text_files_say_that_they_are_compressed(
    definition: TableDefinition, name: str, extension: str
) -> None:
    plan = Plan("initial", "", definition, RowCounts(1))

    assert plan.batch(ID, ID, OWNER, [StagedFile(name, 10)], 0).extension == extension


def test_batch_ids_are_unique_and_fit_into_a_table_name() -> None:
    ids = {new_batch_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(batch_id.isalnum() and batch_id.lower() == batch_id for batch_id in ids)
