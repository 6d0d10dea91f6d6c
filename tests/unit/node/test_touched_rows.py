"""When a snapshot is changed in place, and which of its rows are looked at then."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange, TouchedRows, can_merge
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import Layout

PARQUET = Layout("parquet", (), "")
SNAPSHOT, NEXT, NEW_ROWS, OLD = (
    OpenMirroringRelation.create(schema="shop", identifier=name)
    for name in ("orders", "next", "new_rows", "old")
)


@pytest.mark.parametrize("file_format", ["delta", "iceberg"])
def test_formats_that_can_merge_do_unless_something_is_to_be_stored_in_another_way(
    file_format: str,
) -> None:
    by_day = Layout(file_format, ("day",), "")

    assert can_merge(by_day, by_day)
    assert not can_merge(by_day, replace(by_day, format="parquet"))
    assert not can_merge(by_day, replace(by_day, partitions=()))
    assert not can_merge(by_day, replace(by_day, buckets="4"))
    assert not can_merge(replace(by_day, format="parquet"), by_day)


@pytest.mark.parametrize("file_format", ["parquet", "csv", "orc"])
def test_formats_that_cannot_merge_do_not(file_format: str) -> None:
    stored = replace(PARQUET, format=file_format)

    assert not can_merge(stored, stored)


@pytest.mark.parametrize(
    ("old", "before"),
    [
        (OLD, FileRange(OLD)),
        # new rows are only added
        (None, FileRange(SNAPSHOT, only=())),
    ],
)
def test_only_rows_that_may_change_are_compared(
    old: OpenMirroringRelation | None, before: FileRange
) -> None:
    touched = TouchedRows(NEW_ROWS, ("id",) if old else (), old)

    assert not touched.compares_all
    assert touched.before(SNAPSHOT) == before
    # the snapshot takes them: what is called its next one is a table of them
    assert touched.after(NEXT) == FileRange(NEXT)
