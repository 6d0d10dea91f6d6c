"""When only some rows of a snapshot are looked at, or changed in place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.openmirroring.node.reuse import FileRange
from dbt.adapters.openmirroring.node.touched_rows import TouchedRows, can_merge, has_stored_rows
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import Layout

PARQUET = Layout("parquet", (), "")
SNAPSHOT, NEXT, NEW_ROWS, OLD, REPLACEMENT = (
    OpenMirroringRelation.create(schema="shop", identifier=name)
    for name in ("orders", "next", "new_rows", "old", "replacement")
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


@pytest.mark.parametrize("file_format", ["parquet", "delta", "iceberg"])
def test_rows_beside_a_snapshot_are_as_it_stores_them(file_format: str) -> None:
    stored = replace(PARQUET, format=file_format)

    assert has_stored_rows(stored, stored)
    assert not has_stored_rows(stored, replace(stored, partitions=("day",)))


@pytest.mark.parametrize("file_format", ["csv", "json", "orc", "text"])
def test_formats_that_may_change_what_is_stored_have_no_rows_beside_them(file_format: str) -> None:
    stored = replace(PARQUET, format=file_format)

    assert not has_stored_rows(stored, stored)
    assert not has_stored_rows(PARQUET, stored)


@pytest.mark.parametrize(
    ("old", "replacement", "before", "after"),
    [
        (OLD, REPLACEMENT, FileRange(OLD), FileRange(REPLACEMENT)),
        # the snapshot takes them: what is called its next one is a table of them
        (OLD, None, FileRange(OLD), FileRange(NEXT)),
        # new rows are only added
        (None, None, FileRange(SNAPSHOT, only=()), FileRange(NEXT)),
    ],
)
def test_only_rows_that_may_change_are_compared(
    old: OpenMirroringRelation | None,
    replacement: OpenMirroringRelation | None,
    before: FileRange,
    after: FileRange,
) -> None:
    touched = TouchedRows(NEW_ROWS, ("id",) if old else (), old, replacement)

    assert not touched.compares_all
    assert touched.before(SNAPSHOT) == before
    assert touched.after(NEXT) == after
