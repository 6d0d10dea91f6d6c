"""How many rows one publication may take away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import RowCounts
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.node.max_deleted import MaxDeleted
from tests.unit.node.test_decide import PUBLISHED, journal


def plan(publication: str, rows: RowCounts, published: int | None) -> Plan:
    last = None
    if published is not None:
        last = journal(PUBLISHED)
        last = replace(last, batch=replace(last.batch, table_rows=published))
    return Plan(publication, "", PUBLISHED, rows, journal=last)


@pytest.mark.parametrize(
    ("limit", "deleted", "is_held"),
    [
        *((0, 0, False), (0, 1, True), (10, 10, False), (10, 11, True)),
        *(("10%", 100, False), ("10%", 101, True), ("0%", 1, True), ("100%", 1000, False)),
        *(("0.1%", 1, False), ("0.1 %", 2, True)),
    ],
)
def test_a_limit_is_a_number_of_rows_or_a_share(limit: Any, deleted: int, is_held: bool) -> None:
    parsed = MaxDeleted.parse(limit)

    assert parsed
    assert bool(parsed.finding(plan("changes", RowCounts(deleted=deleted), 1000))) is is_held


def test_a_rebuild_takes_away_what_it_has_less() -> None:
    limit = MaxDeleted(rows=99)

    assert not limit.finding(plan("rebuild", RowCounts(inserted=901), 1000))
    assert limit.finding(plan("rebuild", RowCounts(inserted=900), 1000)) == (
        "100 of 1,000 rows would be deleted, and `max_deleted` is 99"
    )


def test_an_initial_load_takes_no_rows_away() -> None:
    assert not MaxDeleted(rows=0).finding(plan("initial", RowCounts(), None))


def test_no_limit_is_none() -> None:
    assert MaxDeleted.parse(None) is None


@pytest.mark.parametrize("value", [-1, "ten", "101%", "-1%", True, 1.5, [], "1000 rows"])
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(CompilationError, match="max_deleted"):
        MaxDeleted.parse(value)
