"""Spark's description of a table: its columns, how it is stored, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.openmirroring.spark.table import Layout, TableDescription
from tests.unit.described import RELATION, described, description


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "it's a table"
    (folder / "day=1").mkdir(parents=True)
    (folder / "a.parquet").write_text("four")
    (folder / "day=1" / "b.parquet").write_text("three")
    (folder / "_SUCCESS").write_text("not a row")
    (folder / ".a.parquet.crc").write_text("not a row")
    return folder


@pytest.mark.parametrize(
    ("statistics", "rows"),
    [("10 bytes, 3 rows", 3), ("10 bytes, 0 rows", None), ("10 bytes", None)],
)
def test_columns_have_their_comments_and_the_table_its_owner_and_statistics(
    statistics: str, rows: int | None
) -> None:
    """Rows that nobody has counted are not reported."""
    columns = [("id", "int", "the key"), ("# of items", "int", "")]
    details = {"Owner": "me", "Statistics": statistics}

    found = TableDescription.parse(RELATION, described(columns, details)).columns

    told = [column.to_column_dict() for column in found]
    assert [(column["column"], column["column_comment"]) for column in told] == [
        ("id", "the key"),
        ("# of items", ""),
    ]
    assert {column.table_owner for column in found} == {"me"}
    stats = found[0].table_stats
    assert stats
    assert stats["stats:bytes:value"] == 10
    assert stats.get("stats:rows:value") == rows


def test_a_layout_is_format_partitions_and_buckets(folder: Path) -> None:
    buckets = {"Num Buckets": "4", "Bucket Columns": "[`Id`]", "Sort Columns": "[]"}

    assert description(folder).layout == Layout("parquet", (), "")
    assert description(folder, "Day").layout == Layout("parquet", ("day",), "")
    assert description(folder, **buckets).layout == Layout("parquet", (), "4 [`id`]")
    assert description(folder, Provider="ORC").layout == Layout("orc", (), "")
    zone = {"Storage Properties": "[compression=zstd, timezone=Asia/Tokyo]"}
    assert description(folder, "Day", **zone).layout.zone == "Asia/Tokyo"
    assert description(folder, "Day", **zone, Provider="delta").layout.zone == ""
    assert description(folder, **zone).layout.zone == "", "only partitions in folders have one"


HEADLINES = (
    *("# Partitioning", "# Partition Information", "# col_name", "# Clustering Information"),
    *("# Metadata Columns", "# Column Default Values", "# Detailed Table Information", "#"),
)


@pytest.mark.parametrize("name", [*HEADLINES, "Provider", "Num Buckets", "Statistics", "Location"])
def test_columns_and_comments_may_be_called_as_a_part_of_the_description(name: str) -> None:
    columns = [("id", "int", ""), (name, "struct<a:int>", "file:/a/column"), ("day", "int", "")]
    comment = "see\nLocation: file:/a/comment"
    details = {"Comment": comment, "Provider": "parquet", "Location": "file:/a/folder"}

    found = TableDescription.parse(RELATION, described(columns, details, "day", name))

    assert [column.name for column in found.columns] == ["id", name, "day"]
    assert found.layout == Layout("parquet", ("day", name.lower()), "")
    assert found.location == "file:/a/folder"
    assert (found.statistics, found.has_defaults) == (None, False)


def test_a_layout_is_described_in_words() -> None:
    told = str(Layout("parquet", ("day", "hour"), "4 [`id`]"))

    assert told == "parquet, partitioned by day, hour, in buckets 4 [`id`]"
    assert str(Layout("delta", (), "")) == "delta"


@pytest.mark.parametrize("url", ["file:{}", "file://{}"])
def test_a_folder_on_this_machine_is_as_large_as_spark_says_or_else_as_its_files(
    folder: Path, url: str
) -> None:
    location = url.format(folder)

    table = description(folder, Location=location)

    assert (table.folder, table.bytes) == (folder, len("four") + len("three"))
    assert description(folder, Location=location, Statistics="10 bytes").bytes == 10
    guessed = description(folder, Provider="iceberg", Statistics="10 bytes")
    assert guessed.bytes is None


@pytest.mark.parametrize("url", ["", "hdfs://cluster/table", "file:/not/on/this/machine"])
def test_a_folder_elsewhere_is_not_looked_at(folder: Path, url: str) -> None:
    table = description(folder, Location=url)

    assert (table.folder, table.bytes) == (None, None)
