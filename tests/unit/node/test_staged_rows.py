"""The rows of staged files, by row marker."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from dbt.adapters.openmirroring.landing_zone.batch import StagedFile
from dbt.adapters.openmirroring.landing_zone.plan import FileRows
from dbt.adapters.openmirroring.node import stage
from dbt.adapters.openmirroring.node.stage import rows_in


def write(folder: Path, name: str, markers: list[int | None] | None, rows: int = 3) -> StagedFile:
    """Write a file of rows with these markers, or of rows without any, in groups of two rows."""
    ids = range(rows if markers is None else len(markers))
    columns = {"id": pa.array(ids, pa.int64())}
    if markers is not None:
        columns["__rowMarker__"] = pa.array(markers, pa.int32())
    parquet.write_table(pa.table(columns), folder / name, row_group_size=2)
    return StagedFile(name, (folder / name).stat().st_size)


def counted(folder: Path, *files: StagedFile) -> set[FileRows]:
    found = rows_in(folder, files)
    assert found is not None
    assert len(found) == len(set(found))
    return set(found)


def test_each_marker_is_counted_whatever_row_groups_have_it(tmp_path: Path) -> None:
    file = write(tmp_path, "a.parquet", [2, 2, 2, 1, 4, 4, 1])

    assert counted(tmp_path, file) == {
        FileRows("a.parquet", 2, 3),
        FileRows("a.parquet", 1, 2),
        FileRows("a.parquet", 4, 2),
    }


def test_files_are_counted_apart(tmp_path: Path) -> None:
    files = [write(tmp_path, "a.parquet", [2]), write(tmp_path, "b.parquet", [2, 2])]

    assert counted(tmp_path, *files) == {FileRows("a.parquet", 2, 1), FileRows("b.parquet", 2, 2)}


def test_a_row_without_its_marker_is_counted_as_such(tmp_path: Path) -> None:
    file = write(tmp_path, "a.parquet", [1, None])

    assert counted(tmp_path, file) == {
        FileRows("a.parquet", 1, 1),
        FileRows("a.parquet", None, 1),
    }


def test_files_of_a_load_have_no_markers(tmp_path: Path) -> None:
    file = write(tmp_path, "a.parquet", None, rows=5)

    assert counted(tmp_path, file) == {FileRows("a.parquet", None, 5)}


@pytest.mark.parametrize("markers", [[], None])
def test_a_file_without_rows_counts_nothing(tmp_path: Path, markers: list[int | None]) -> None:
    assert counted(tmp_path, write(tmp_path, "a.parquet", markers, rows=0)) == set()


def test_without_pyarrow_spark_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "parquet_reader", lambda: None)

    assert rows_in(tmp_path, [write(tmp_path, "a.parquet", [1])]) is None
