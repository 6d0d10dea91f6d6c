"""The columns and the size of a table, read from what Spark describes."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import described_columns

RELATION = OpenMirroringRelation.create(schema="shop", identifier="orders")


def described(statistics: str) -> list[dict[str, str]]:
    rows = [
        ("id", "int", "the key"),
        ("# of items", "int", ""),
        ("", "", ""),
        ("# Detailed Table Information", "", ""),
        ("Owner", "me", ""),
        ("Statistics", statistics, ""),
    ]
    return [dict(zip(("col_name", "data_type", "comment"), row, strict=True)) for row in rows]


def test_columns_have_their_comments_and_the_table_its_owner() -> None:
    columns = described_columns(RELATION, described("10 bytes"))

    told = [column.to_column_dict() for column in columns]
    assert [(column["column"], column["column_comment"]) for column in told] == [
        ("id", "the key"),
        ("# of items", ""),
    ]
    assert {column.table_owner for column in columns} == {"me"}


@pytest.mark.parametrize(
    ("statistics", "rows"),
    [("10 bytes, 3 rows", 3), ("10 bytes, 0 rows", None), ("10 bytes", None)],
)
def test_rows_that_nobody_has_counted_are_not_told(statistics: str, rows: int | None) -> None:
    stats = described_columns(RELATION, described(statistics))[0].table_stats

    assert stats
    assert stats["stats:bytes:value"] == 10
    assert stats.get("stats:rows:value") == rows
