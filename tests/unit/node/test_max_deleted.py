"""How many rows one publication may take away."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import RowCounts
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.plan import SparkPlan
from dbt.adapters.openmirroring.node.planning import beyond_limit
from tests.unit.node.test_decide import PUBLISHED, journal


def finding(
    limit: Any, publication: str, rows: RowCounts, published: int | None = 1000
) -> str | None:
    last = None
    if published is not None:
        last = journal(PUBLISHED)
        last = replace(last, batch=replace(last.batch, table_rows=published))
    node = cast(Node, SimpleNamespace(options=NodeConfig.parse({"max_deleted": limit})))
    return beyond_limit(node, SparkPlan(publication, "", PUBLISHED, rows, journal=last))


@pytest.mark.parametrize(
    ("limit", "deleted", "is_held"),
    [
        *((0, 0, False), (0, 1, True), (10, 10, False), (10, 11, True)),
        *(("10%", 100, False), ("10%", 101, True), ("0%", 1, True), ("100%", 1000, False)),
        *(("0.1%", 1, False), ("0.1 %", 2, True)),
    ],
)
def test_a_limit_is_a_number_of_rows_or_a_share(limit: Any, deleted: int, is_held: bool) -> None:
    found = finding(limit, "changes", RowCounts(deleted=deleted))

    assert bool(found) is is_held
    assert not found or f"`max_deleted` is {str(limit).replace(' ', '')}" in found


def test_a_rebuild_takes_away_what_it_has_less() -> None:
    assert not finding(99, "rebuild", RowCounts(inserted=901))
    assert not finding(0, "rebuild", RowCounts(inserted=1001))
    assert finding(99, "rebuild", RowCounts(inserted=900)) == (
        "100 of 1,000 rows would be deleted, and `max_deleted` is 99"
    )


def test_an_initial_load_takes_no_rows_away() -> None:
    assert not finding(0, "initial", RowCounts(), published=None)


def test_without_a_limit_all_rows_may_be_deleted() -> None:
    assert not finding(None, "changes", RowCounts(deleted=1000))


@pytest.mark.parametrize("value", [-1, "ten", "101%", "-1%", True, 1.5, [], "1000 rows"])
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(CompilationError, match="max_deleted"):
        NodeConfig.parse({"max_deleted": value})
