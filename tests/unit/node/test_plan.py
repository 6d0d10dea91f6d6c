"""How many files Spark writes, and how many rows one publication may take away."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import RowCounts
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.decide import beyond_limit
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.plan import SparkPlan, TextFiles
from tests.unit.node.test_decide import PUBLISHED, journal


@pytest.mark.parametrize(
    ("rows", "table_bytes", "table_rows", "files"),
    [
        (100, 1000, 100, (1, 0)),
        (100, 100_000, 100, (10, 13)),
        (10, 100_000, 100, (1, 0)),
        (20, 100_000, 100, (2, 13)),
        (0, 0, 0, (1, 0)),
    ],
)
def test_a_batch_is_cut_to_files_of_the_target_size(
    rows: int, table_bytes: int, table_rows: int, files: tuple[int, int]
) -> None:
    plan = SparkPlan("changes", "", PUBLISHED, RowCounts(inserted=rows))

    assert plan.files(table_bytes, table_rows, target_bytes=10_000) == files


def test_characters_of_an_encoding_that_spark_lacks_are_translated() -> None:
    translation = TextFiles(encoding="windows-1252").translation

    assert translation
    assert translation[0].startswith("\\u20ac")
    assert translation[1].startswith("\\u0080")
    assert TextFiles(encoding="iso-8859-1").translation is None


@pytest.mark.parametrize(
    ("limit", "publication", "rows", "told"),
    [
        (0, "changes", RowCounts(), None),
        (0, "changes", RowCounts(deleted=1), "1 of 1,000 rows would be deleted"),
        (10, "changes", RowCounts(deleted=10), None),
        (10, "changes", RowCounts(deleted=11), "`max_deleted` is 10"),
        ("10%", "changes", RowCounts(deleted=100), None),
        ("10%", "changes", RowCounts(deleted=101), "`max_deleted` is 10%"),
        ("100%", "changes", RowCounts(deleted=1000), None),
        ("0.1 %", "changes", RowCounts(deleted=1), None),
        ("0.1 %", "changes", RowCounts(deleted=2), "`max_deleted` is 0.1%"),
        (None, "changes", RowCounts(deleted=1000), None),
        # a rebuild takes away what it has less
        (99, "rebuild", RowCounts(inserted=901), None),
        (0, "rebuild", RowCounts(inserted=1001), None),
        (99, "rebuild", RowCounts(inserted=900), "100 of 1,000 rows would be deleted"),
        (0, "initial", RowCounts(), None),
    ],
)
def test_a_limit_is_a_number_of_rows_or_a_share_of_the_published_ones(
    limit: Any, publication: str, rows: RowCounts, told: str | None
) -> None:
    last = journal(PUBLISHED)
    last = replace(last, batch=replace(last.batch, table_rows=1000))
    node = cast(Node, SimpleNamespace(options=NodeConfig.parse({"max_deleted": limit})))
    before = None if publication == "initial" else last

    found = beyond_limit(node, SparkPlan(publication, "", PUBLISHED, rows, journal=before))

    assert bool(found) is bool(told)
    assert not told or told in str(found)
