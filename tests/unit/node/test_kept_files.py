"""The files of a snapshot that an incremental run keeps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.node.snapshot.reuse import (
    FileRange,
    KeptFiles,
    can_keep_files,
    kept_files,
)
from dbt.adapters.openmirroring.spark.table import Layout, TableDescription
from tests.unit.described import RELATION, description

PARQUET = Layout("parquet", (), "")
BY_DAY = replace(PARQUET, partitions=("day",))


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


def test_files_that_no_new_row_touches_are_kept(folder: Path) -> None:
    write(folder, "a.parquet", "b.parquet", "_SUCCESS", ".a.parquet.crc")

    files = keep(description(folder), folder / "a.parquet")

    assert files
    assert files.kept == (Path("b.parquet"),)


def test_only_rows_of_files_that_are_not_kept_are_compared(folder: Path) -> None:
    write(folder, "a.parquet", "b.parquet", "c.parquet")

    files = keep(description(folder), folder / "a.parquet")

    assert files
    assert not files.compares_all
    assert files.before(RELATION) == FileRange(RELATION, only=(url(folder / "a.parquet"),))
    assert files.after(RELATION) == FileRange(RELATION, other_than=("b.parquet", "c.parquet"))


def test_files_of_the_same_name_in_other_partitions_are_kept(folder: Path) -> None:
    write(folder, "day=1/a.parquet", "day=2/a.parquet")

    files = keep(description(folder, "Day"), folder / "day=1" / "a.parquet")

    assert files
    assert files.kept == (Path("day=2/a.parquet"),)


def test_nothing_is_kept_if_every_file_is_touched(folder: Path) -> None:
    write(folder, "a.parquet")

    assert keep(description(folder), folder / "a.parquet") is None


def test_nothing_is_kept_if_less_than_half_of_the_bytes_would_be(folder: Path) -> None:
    write(folder, "a.parquet", "b.parquet", "c.parquet")

    assert keep(description(folder), folder / "a.parquet")
    assert keep(description(folder), folder / "a.parquet", folder / "b.parquet") is None


def test_nothing_is_kept_if_a_touched_file_is_not_found(folder: Path) -> None:
    write(folder, "a.parquet", "b.parquet", "c.parquet")

    assert keep(description(folder), folder / "spelled otherwise.parquet") is None


def test_many_small_files_are_joined(folder: Path) -> None:
    write(folder, *(f"day=1/{number}.parquet" for number in range(64)))
    write(folder, *(f"day=2/{number}.parquet" for number in range(64)))
    assert keep(description(folder, "day"))

    write(folder, "day=1/one-more.parquet")
    assert keep(description(folder, "day")) is None


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_files_can_be_kept_if_the_table_stays_as_it_is(folder: Path, file_format: str) -> None:
    folder.mkdir()
    table = description(folder, "Day", Provider=file_format)

    assert can_keep_files(table, replace(BY_DAY, format=file_format))


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

    assert can_keep_files(description(folder), PARQUET)
    assert not can_keep_files(description(folder, **details), planned)


def test_kept_files_are_in_both_tables_until_one_is_dropped(folder: Path, tmp_path: Path) -> None:
    write(folder, "day=1/a.parquet")
    (tmp_path / "next").mkdir()
    files = keep(description(folder, "day"))
    assert files

    files.link_into(description(tmp_path / "next", "day"))

    kept = tmp_path / "next" / "day=1" / "a.parquet"
    assert kept.samefile(folder / "day=1" / "a.parquet")
    (folder / "day=1" / "a.parquet").unlink()
    assert kept.read_text() == "day=1/a.parquet"


def test_kept_files_are_copied_where_there_are_no_links(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Path) -> None:
        raise OSError("no links here")

    monkeypatch.setattr("os.link", refuse)
    write(folder, "a.parquet")
    (tmp_path / "next").mkdir()
    files = keep(description(folder))
    assert files

    files.link_into(description(tmp_path / "next"))

    assert (tmp_path / "next" / "a.parquet").read_text() == "a.parquet"


def test_no_file_is_linked_into_a_table_that_is_stored_in_another_way(
    folder: Path, tmp_path: Path
) -> None:
    write(folder, "a.parquet")
    (tmp_path / "next").mkdir()
    files = keep(description(folder))
    assert files

    with pytest.raises(DbtRuntimeError, match="made the next snapshot as orc") as error:
        files.link_into(description(tmp_path / "next", Provider="orc"))

    assert "Nothing was changed" in str(error.value)
    assert not list((tmp_path / "next").iterdir())
