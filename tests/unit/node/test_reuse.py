"""The files and rows of a snapshot that the next snapshot has too, and that are not compared."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.node.snapshot.reuse import (
    FileRange,
    KeptFiles,
    SameFiles,
    can_keep_files,
    can_merge,
    kept_files,
    same_files,
)
from dbt.adapters.openmirroring.spark.table import Layout, TableDescription
from tests.unit.described import RELATION, description

PARQUET = Layout("parquet", (), "")
BY_DAY = replace(PARQUET, partitions=("day",))

# Snapshots that take new rows in place


@pytest.mark.parametrize("file_format", ["delta", "iceberg"])
def test_formats_that_can_merge_do_unless_something_is_to_be_stored_in_another_way(
    file_format: str,
) -> None:
    by_day = replace(BY_DAY, format=file_format)

    assert can_merge(by_day, by_day)
    assert not can_merge(by_day, replace(by_day, format="parquet"))
    assert not can_merge(by_day, replace(by_day, partitions=()))
    assert not can_merge(by_day, replace(by_day, buckets="4"))
    assert not can_merge(replace(by_day, format="parquet"), by_day)
    assert not can_merge(BY_DAY, BY_DAY)


# Files that an incremental run keeps


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "it's a table"


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def url(path: Path) -> str:
    """A file, as Spark has it in `_metadata.file_path`."""
    return f"file:{str(path).replace(' ', '%20')}"


def keep(table: TableDescription, *touched: Path) -> KeptFiles | None:
    return kept_files(table, [url(path) for path in touched])


def test_files_that_no_new_row_touches_are_kept_and_not_compared(folder: Path) -> None:
    write(folder, "a.parquet", "b.parquet", "c.parquet", "_SUCCESS", ".a.parquet.crc")

    files = keep(description(folder), folder / "a.parquet")

    assert files
    assert sorted(files.kept) == [Path("b.parquet"), Path("c.parquet")]
    assert not files.compares_all
    assert files.before(RELATION) == FileRange(RELATION, only=(url(folder / "a.parquet"),))
    assert files.after(RELATION) == FileRange(RELATION, other_than=("b.parquet", "c.parquet"))


@pytest.mark.parametrize(
    "touched",
    [
        ("a.parquet", "b.parquet", "c.parquet"),
        # more than half of the bytes
        ("a.parquet", "b.parquet"),
        # not found, so it would be kept
        ("spelled otherwise.parquet",),
    ],
)
def test_nothing_is_kept_if_most_is_touched_or_a_touched_file_is_not_found(
    folder: Path, touched: tuple[str, ...]
) -> None:
    write(folder, "a.parquet", "b.parquet", "c.parquet")

    assert keep(description(folder), *(folder / name for name in touched)) is None


def test_many_small_files_are_joined(folder: Path) -> None:
    write(folder, *(f"day={day}/{number}.parquet" for day in (1, 2) for number in range(64)))
    assert keep(description(folder, "day"))

    write(folder, "day=1/one-more.parquet")
    assert keep(description(folder, "day")) is None

    os.truncate(folder / "day=1" / "one-more.parquet", 16 * 2**20)
    assert keep(description(folder, "day")), "one of them is not small"


@pytest.mark.parametrize(
    ("details", "planned"),
    [
        ({"Provider": "delta"}, replace(PARQUET, format="delta")),
        ({"Location": "hdfs://cluster/table"}, PARQUET),
        ({"Location": "file:/not/on/this/machine"}, PARQUET),
        ({"Num Buckets": "4"}, PARQUET),
        ({"Num Buckets": "4"}, replace(PARQUET, buckets="4")),
        ({}, replace(PARQUET, format="orc")),
        ({}, BY_DAY),
    ],
    ids=str,
)
def test_a_table_that_is_stored_in_another_way_is_written_again(
    folder: Path, details: dict[str, str], planned: Layout
) -> None:
    folder.mkdir()

    assert can_keep_files(description(folder, "Day"), BY_DAY)
    assert can_keep_files(description(folder, Provider="orc"), replace(PARQUET, format="orc"))
    assert not can_keep_files(description(folder, **details), planned)


def refuse_links(*_: Path) -> None:
    raise OSError("no links here")


@pytest.mark.parametrize("has_links", [True, False])
def test_kept_files_are_in_both_tables_until_one_is_dropped(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool
) -> None:
    if not has_links:
        monkeypatch.setattr("os.link", refuse_links)
    write(folder, "day=1/a.parquet")
    (tmp_path / "next").mkdir()
    files = keep(description(folder, "day"))
    assert files

    files.link_into(description(tmp_path / "next", "day"))

    before, kept = (home / "day=1" / "a.parquet" for home in (folder, tmp_path / "next"))
    assert kept.samefile(before) is has_links
    before.unlink()
    assert kept.read_text() == "day=1/a.parquet"


def test_no_file_is_linked_into_a_table_that_is_stored_in_another_way(
    folder: Path, tmp_path: Path
) -> None:
    write(folder, "a.parquet")
    (tmp_path / "next").mkdir()
    files = keep(description(folder))
    assert files

    with pytest.raises(DbtRuntimeError, match="made the new table as orc") as error:
        files.link_into(description(tmp_path / "next", Provider="orc"))

    assert "Nothing was changed" in str(error.value)
    assert not list((tmp_path / "next").iterdir())


# Files that are the same in two snapshots


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return tmp_path / "orders"


@pytest.fixture
def after(tmp_path: Path) -> Path:
    return tmp_path / "orders__next_1"


def write_rows(folder: Path, files: str) -> None:
    """Files with a row each: `name:text`."""
    for name, text in (file.split(":") for file in files.split()):
        path = folder / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"text": [text]}), path)


def named(files: str) -> tuple[str, ...]:
    return tuple(f"{name}.parquet" for name in files.split())


def same(before: Path, after: Path) -> SameFiles | None:
    return same_files(description(before), description(after))


@pytest.mark.parametrize(
    ("files", "next_files", "same_before", "same_after", "equal_rows"),
    [
        ("a:one", "b:one", "a", "b", 1),
        ("a1:one a2:two a3:two", "b1:two b2:two b3:one", "a1 a2 a3", "b1 b2 b3", 3),
        ("a1:one a2:two", "b1:one b2:too b3:another", "a1", "b1", None),
        # a file is the same as one other only
        ("a:one", "b1:one b2:one", "a", "b1", None),
        ("a1:one a2:one", "b:one", "a1", "b", None),
        ("day=1/a:one day=2/a:two", "day=1/b:one day=2/b:two", "a a", "b b", 2),
    ],
)
def test_the_same_bytes_are_the_same_rows_whatever_the_files_are_called(
    before: Path,
    after: Path,
    files: str,
    next_files: str,
    same_before: str,
    same_after: str,
    equal_rows: int | None,
) -> None:
    write_rows(before, files)
    write_rows(after, next_files)
    (after / "_SUCCESS").touch()

    found = same(before, after)

    assert found == SameFiles(named(same_before), named(same_after), equal_rows)


# a task writes files of the same name to several partitions
@pytest.mark.parametrize(
    ("files", "next_files"),
    [
        ("day=1/a:one day=2/a:two", "day=1/b:one day=2/b:too"),
        ("day=1/a:one", "day=2/b:one"),
        ("", "b:one"),
    ],
)
def test_in_partitions_all_files_are_the_same_or_none_counts(
    before: Path, after: Path, files: str, next_files: str
) -> None:
    write_rows(before, files)
    write_rows(after, next_files)

    assert same(before, after) is None


@pytest.fixture
def twins(before: Path, after: Path) -> tuple[Path, Path]:
    """Folders with the same rows in a file each."""
    write_rows(before, "a:one")
    write_rows(after, "b:one")
    assert same(before, after)
    return before, after


def test_without_a_pyarrow_that_works_no_file_is_known(
    twins: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    assert same(*twins) is None


def test_a_byte_makes_a_difference_whatever_the_footer_says(twins: tuple[Path, Path]) -> None:
    file = twins[1] / "b.parquet"
    content = bytearray(file.read_bytes())
    content[4] ^= 1
    file.write_bytes(content)

    assert same(*twins) is None


@pytest.mark.parametrize("columns", [{"TEXT": ["one"]}, {"text": [b"one"]}], ids=str)
def test_the_same_values_of_another_column_are_others(
    twins: tuple[Path, Path], columns: dict[str, list[str | bytes]]
) -> None:
    pq.write_table(pa.table(columns), twins[1] / "b.parquet")

    assert same(*twins) is None


@pytest.mark.parametrize(
    "details", [{"Provider": "delta"}, {"Provider": "orc"}, {"Location": "abfss://lake/orders"}]
)
def test_only_local_folders_that_have_nothing_but_rows_are_compared(
    twins: tuple[Path, Path], details: dict[str, str]
) -> None:
    before, after = twins

    assert same_files(description(before, **details), description(after)) is None
    assert same_files(description(before), description(after, **details)) is None
