from dataclasses import replace

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.delimited import DelimitedText
from dbt.adapters.openmirroring.landing_zone.plan import Plan

PUBLISHED = TableDefinition((MirroredColumn("id", "int", "int"),), ("id",), "parquet")


def plan(publication: str = "changes", rows: int = 0, reason: str = "") -> Plan:
    return Plan(publication, reason, PUBLISHED, RowCounts(inserted=rows))


@pytest.mark.parametrize(
    ("definition", "rows", "marked"),
    [
        (PUBLISHED, RowCounts(1, 0, 0), True),
        (replace(PUBLISHED, default_row_marker="upsert"), RowCounts(1, 1, 0), False),
        (replace(PUBLISHED, default_row_marker="upsert"), RowCounts(1, 1, 1), True),
        (
            replace(
                PUBLISHED,
                default_row_marker="upsert",
                landing_format="csv",
                delimited=DelimitedText(),
            ),
            RowCounts(1, 1, 0),
            True,
        ),
        (replace(PUBLISHED, key_columns=()), RowCounts(1, 0, 0), False),
    ],
    ids=["inserts", "upserts", "upserts with deletes", "delimited text", "keyless"],
)
def test_changes_have_row_markers_where_they_need_them(
    definition: TableDefinition, rows: RowCounts, marked: bool
) -> None:
    assert Plan("changes", "", definition, rows).is_marked == marked
    assert not Plan("rebuild", "", definition, rows).is_marked


def test_only_an_unchanged_plan_without_a_reason_is_void() -> None:
    assert plan("unchanged").is_void
    assert not plan("unchanged", reason="columns reordered").is_void
    assert not plan("changes", reason="column added: c").is_void
