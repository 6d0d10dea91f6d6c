"""The files that are the same in two snapshots."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange, SameFiles, same_files
from tests.unit.described import RELATION, description


@pytest.fixture
def before(tmp_path: Path) -> Path:
    return tmp_path / "orders"


@pytest.fixture
def after(tmp_path: Path) -> Path:
    return tmp_path / "orders__next_1"


def write(folder: Path, **files: str) -> None:
    """Files with a row each."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"text": [text]}), path)


def same(before: Path, after: Path) -> SameFiles | None:
    return same_files(description(before), description(after))


def test_without_a_pyarrow_that_works_no_file_is_known(
    before: Path, after: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(before, a="one")
    write(after, b="one")
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    assert same(before, after) is None


def test_the_same_bytes_are_the_same_rows_whatever_the_files_are_called(
    before: Path, after: Path
) -> None:
    write(before, a1="one", a2="two", a3="two")
    write(after, b1="two", b2="two", b3="one")
    (after / "_SUCCESS").touch()

    found = same(before, after)

    assert found
    assert found.equal_rows == 3
    assert sorted(found.names_after) == ["b1.parquet", "b2.parquet", "b3.parquet"]


def test_files_that_differ_are_left(before: Path, after: Path) -> None:
    write(before, a1="one", a2="two")
    write(after, b1="one", b2="too", b3="another")

    assert same(before, after) == SameFiles(("a1.parquet",), ("b1.parquet",), equal_rows=None)


@pytest.mark.parametrize("gone_from", ["before", "after"])
def test_a_file_is_the_same_as_one_other_only(before: Path, after: Path, gone_from: str) -> None:
    write(before, a1="one")
    write(after, b1="one")
    write(after if gone_from == "before" else before, more="one")

    found = same(before, after)

    assert found
    assert found.equal_rows is None
    assert (len(found.names_before), len(found.names_after)) == (1, 1)


def test_a_byte_makes_a_difference_whatever_the_footer_says(before: Path, after: Path) -> None:
    write(before, a="one")
    write(after, b="one")
    content = bytearray((after / "b.parquet").read_bytes())
    content[4] ^= 1
    (after / "b.parquet").write_bytes(content)

    assert same(before, after) is None


@pytest.mark.parametrize("column", [pa.array(["one"]), pa.array([b"one"])])
def test_the_same_values_of_another_column_are_others(
    before: Path, after: Path, column: pa.Array
) -> None:
    write(before, a="one")
    after.mkdir()
    name = "text" if pa.types.is_binary(column.type) else "TEXT"
    pq.write_table(pa.table({name: column}), after / "b.parquet")

    assert same(before, after) is None


def test_in_partitions_all_files_are_the_same_or_none_counts(before: Path, after: Path) -> None:
    write(before, day_1__a="one", day_2__a="two")
    write(after, day_1__b="one", day_2__b="two")
    found = same(before, after)
    assert found
    assert found.equal_rows == 2

    # a task has written one to each partition, of the same name
    write(after, day_2__b="too")

    assert same(before, after) is None


def test_a_file_in_another_partition_is_another(before: Path, after: Path) -> None:
    write(before, day_1__a="one")
    write(after, day_2__b="one")

    assert same(before, after) is None


@pytest.mark.parametrize("provider", ["delta", "orc"])
def test_only_folders_that_have_nothing_but_rows_are_compared(
    before: Path, after: Path, provider: str
) -> None:
    write(before, a="one")
    write(after, b="one")

    assert same_files(description(before, Provider=provider), description(after)) is None
    assert same_files(description(before), description(after, Provider=provider)) is None


def test_a_table_elsewhere_is_not_looked_at(before: Path, after: Path) -> None:
    write(after, b="one")
    elsewhere = description(before, Location="abfss://lake/orders")

    assert same_files(elsewhere, description(after)) is None
    assert same_files(description(after), elsewhere) is None
    assert same(before, after) is None


def test_only_rows_of_other_files_are_compared(before: Path, after: Path) -> None:
    write(before, a1="one", a2="two")
    write(after, b1="one", b2="too")

    found = same(before, after)

    assert found
    assert not found.compares_all
    assert found.equal_rows is None
    assert found.may_repeat_keys
    assert found.before(RELATION) == FileRange(RELATION, other_than=("a1.parquet",))
    assert found.after(RELATION) == FileRange(RELATION, other_than=("b1.parquet",))


def test_rows_of_the_same_files_are_not_compared(before: Path, after: Path) -> None:
    write(before, a="one")
    write(after, b="one")

    found = same(before, after)

    assert found
    assert found.equal_rows == 1
