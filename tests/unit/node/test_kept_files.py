"""Which files of a snapshot an incremental run keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agate
import pytest

from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.kept_files import (
    Rewrite,
    can_merge,
    has_stored_rows,
    plan_rewrite,
    rewritable_folder,
)
from dbt.adapters.openmirroring.spark.table import layout_of

TEXT = agate.Text(null_values=[])


def description(folder: Path, *partition_by: str, **details: str) -> agate.Table:
    """What Spark says of a table that has a column called Location."""
    partition = [("# Partition Information", ""), ("# col_name", "data_type")]
    rows = [
        ("Location", "int"),
        *(partition + [(name, "int") for name in partition_by] if partition_by else []),
        ("", ""),
        ("# Detailed Table Information", ""),
        *{"Provider": "parquet", "Location": f"file:{folder}", **details}.items(),
    ]
    return agate.Table(
        [(*row, "") for row in rows], ["col_name", "data_type", "comment"], [TEXT, TEXT, TEXT]
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "it's a table"


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def plan(
    table: agate.Table, *touched: Path, file_format: str = "parquet", **options: Any
) -> Rewrite | None:
    paths = [f"file:{str(path).replace(' ', '%20')}" for path in touched]
    folder = rewritable_folder(table, file_format, NodeConfig(**options))
    return plan_rewrite(folder, layout_of(table), paths) if folder else None


def test_files_that_no_new_row_touches_are_kept(folder: Path) -> None:
    write(folder, "a.parquet", "b.parquet", "_SUCCESS", ".a.parquet.crc")

    rewrite = plan(description(folder), folder / "a.parquet")

    assert rewrite
    assert rewrite.kept == (Path("b.parquet"),)


def test_files_of_the_same_name_in_other_partitions_are_kept(folder: Path) -> None:
    write(folder, "day=1/a.parquet", "day=2/a.parquet")

    rewrite = plan(
        description(folder, "Day"), folder / "day=1" / "a.parquet", partition_by=("day",)
    )

    assert rewrite
    assert rewrite.kept == (Path("day=2/a.parquet"),)


def test_nothing_is_kept_if_every_file_is_touched(folder: Path) -> None:
    write(folder, "a.parquet")

    assert plan(description(folder), folder / "a.parquet") is None


def test_many_small_files_are_joined(folder: Path) -> None:
    write(folder, *(f"day=1/{number}.parquet" for number in range(64)))
    write(folder, *(f"day=2/{number}.parquet" for number in range(64)))
    assert plan(description(folder, "day"), partition_by=("day",))

    write(folder, "day=1/one-more.parquet")
    assert plan(description(folder, "day"), partition_by=("day",)) is None


@pytest.mark.parametrize(
    ("details", "options"),
    [
        ({"Provider": "delta"}, {}),
        ({"Location": "hdfs://cluster/table"}, {}),
        ({"Location": "file:/not/on/this/machine"}, {}),
        ({"Num Buckets": "4"}, {}),
        ({}, {"file_format": "orc"}),
        ({}, {"partition_by": ("day",)}),
    ],
    ids=str,
)
def test_a_table_that_is_stored_in_another_way_is_written_again(
    folder: Path, details: dict[str, str], options: dict[str, Any]
) -> None:
    write(folder, "a.parquet")

    assert plan(description(folder)) is not None
    assert plan(description(folder, **details), **options) is None


def test_kept_files_are_in_both_tables_until_one_is_dropped(folder: Path, tmp_path: Path) -> None:
    write(folder, "day=1/a.parquet")
    rewrite = plan(description(folder, "day"), partition_by=("day",))
    assert rewrite

    rewrite.keep(tmp_path / "next")

    kept = tmp_path / "next" / "day=1" / "a.parquet"
    assert kept.samefile(folder / "day=1" / "a.parquet")
    (folder / "day=1" / "a.parquet").unlink()
    assert kept.read_text() == "day=1/a.parquet"


@pytest.mark.parametrize("file_format", ["delta", "iceberg"])
def test_formats_that_can_merge_do_unless_something_is_to_be_stored_in_another_way(
    folder: Path, file_format: str
) -> None:
    table = description(folder, "day", Provider=file_format)
    by_day = NodeConfig(partition_by=("Day",))

    assert can_merge(table, file_format, by_day)
    assert not can_merge(table, "parquet", by_day)
    assert not can_merge(table, file_format, NodeConfig())
    assert not can_merge(description(folder, "day"), "parquet", by_day)


@pytest.mark.parametrize("file_format", ["csv", "json", "orc", "text"])
def test_formats_that_may_change_what_is_stored_have_no_rows_beside_them(
    folder: Path, file_format: str
) -> None:
    options = NodeConfig()

    assert has_stored_rows(description(folder), "parquet", options)
    assert not has_stored_rows(description(folder, Provider=file_format), file_format, options)
    assert not has_stored_rows(description(folder), file_format, options)


def test_a_layout_is_format_partitions_and_buckets(folder: Path) -> None:
    by_day = description(folder, "Day")
    buckets = {"Num Buckets": "4", "Bucket Columns": "[`id`]", "Sort Columns": "[]"}

    assert layout_of(by_day).partitions == ("day",)
    assert layout_of(by_day) != layout_of(description(folder))
    assert layout_of(description(folder, **buckets)).buckets == "4 [`id`]"
    assert layout_of(description(folder, Provider="ORC")) == layout_of(
        description(folder, Provider="orc")
    )
