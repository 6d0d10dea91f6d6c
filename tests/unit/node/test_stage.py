"""The files of a batch: those of a snapshot that a load publishes as they are, and their rows."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    StagedFile,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.plan import FileRows
from dbt.adapters.openmirroring.node import stage
from dbt.adapters.openmirroring.node.stage import link_files, ready_files, rows_in

MB = 2**20
ID = pa.field("id", pa.int64())
AMOUNT = pa.field("amount", pa.decimal128(9, 2))
AT = pa.field("at", pa.timestamp("us", tz="UTC"))
TYPES = {"id": "bigint", "amount": "decimal(9,2)"}


def write(path: Path, *fields: pa.Field, rows: int = 1, **options: Any) -> int:
    """Write a file as Spark does. Return its size."""
    schema = pa.schema(fields or (ID, AMOUNT), options.pop("metadata", None))
    table = pa.table([_ones(rows, each.type) for each in schema], schema=schema)
    path.parent.mkdir(exist_ok=True)
    options = {"store_decimal_as_integer": True, "compression": "zstd", **options}
    pq.write_table(table, path, **options)
    return path.stat().st_size


def _ones(rows: int, type: pa.DataType) -> pa.Array:
    value: Any = datetime.now(timezone.utc) if pa.types.is_timestamp(type) else 1
    return pa.array([value] * rows, type)


def ready(folder: Path, target: int = MB, types: dict[str, str] = TYPES, **landed: str) -> Any:
    columns = [MirroredColumn(name, type, landed.get(name, type)) for name, type in types.items()]
    definition = TableDefinition(tuple(columns), (columns[0].name,), "parquet")
    return ready_files(folder, definition, "zstd", target)


def test_files_as_they_would_land_are_ready(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet")
    size = write(tmp_path / "b.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".a.parquet.crc").touch()

    found = ready(tmp_path, target=2 * size)

    assert found == [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    assert ready(tmp_path, amount="string") is None, "it lands as another type"


def test_files_without_rows_are_left_out_but_for_the_only_one(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", rows=0)
    write(tmp_path / "b.parquet", rows=0)

    assert ready(tmp_path) == [tmp_path / "a.parquet"]

    write(tmp_path / "c.parquet")

    assert ready(tmp_path) == [tmp_path / "c.parquet"]


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ([AMOUNT, ID], {}),
        ([ID], {}),
        ([ID, pa.field("AMOUNT", AMOUNT.type)], {}),
        ([ID, pa.field("amount", pa.decimal128(9, 3))], {}),
        ([ID, AMOUNT.with_nullable(False)], {}),
        ([], {"store_decimal_as_integer": False}),
        ([], {"metadata": {"org.apache.spark.legacyDateTime": ""}}),
        ([], {"metadata": {"org.apache.spark.legacyINT96": ""}}),
        ([], {"compression": "snappy"}),
    ],
    ids=[
        *("order", "missing", "case", "type", "REQUIRED", "decimals as bytes"),
        *("Julian calendar", "Julian calendar in INT96", "compression"),
    ],
)
def test_a_file_with_other_columns_or_of_another_format_is_not_ready(
    tmp_path: Path, fields: list[pa.Field], options: dict[str, Any]
) -> None:
    write(tmp_path / "a.parquet", *fields, **options)

    assert ready(tmp_path) is None


def test_only_timestamps_of_microseconds_in_utc_are_ready(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", AT)
    assert ready(tmp_path, types={"at": "timestamp"})

    write(tmp_path / "a.parquet", AT, use_deprecated_int96_timestamps=True)
    assert ready(tmp_path, types={"at": "timestamp"}) is None


def test_a_partition_is_not_ready(tmp_path: Path) -> None:
    write(tmp_path / "id=1" / "a.parquet", AMOUNT)

    assert ready(tmp_path) is None


def test_a_large_file_is_not_ready(tmp_path: Path) -> None:
    size = write(tmp_path / "0.parquet")

    assert ready(tmp_path, target=size)
    assert ready(tmp_path, target=size // 3) is None


def test_a_few_small_files_are_ready_and_many_are_not(tmp_path: Path) -> None:
    for name in range(8):
        size = write(tmp_path / f"{name}.parquet")

    assert ready(tmp_path, target=100 * size)

    write(tmp_path / "8.parquet")

    assert ready(tmp_path, target=4 * size)
    assert ready(tmp_path, target=100 * size) is None


def test_without_a_pyarrow_that_works_no_file_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    assert ready(tmp_path) is None


def test_ready_files_are_linked_in_their_order(tmp_path: Path) -> None:
    for name in ("x", "y"):
        write(tmp_path / name)

    assert link_files([tmp_path / "x", tmp_path / "y"], tmp_path / "rows")

    x, y = sorted((tmp_path / "rows").iterdir())
    assert x.samefile(tmp_path / "x")
    assert y.samefile(tmp_path / "y")


def test_files_that_cannot_be_linked_leave_nothing_behind(tmp_path: Path) -> None:
    write(tmp_path / "x")

    assert not link_files([tmp_path / "x", tmp_path / "gone"], tmp_path / "rows")
    assert not list((tmp_path / "rows").iterdir())


# The rows of staged files, by row marker


def staged(folder: Path, name: str, markers: list[int | None] | None, rows: int = 0) -> StagedFile:
    """Write a file of rows with these markers, or of rows without any, in groups of two rows."""
    columns = {"id": pa.array(range(len(markers or []) or rows), pa.int64())}
    if markers is not None:
        columns["__rowMarker__"] = pa.array(markers, pa.int32())
    pq.write_table(pa.table(columns), folder / name, row_group_size=2)
    return StagedFile(name, (folder / name).stat().st_size)


@pytest.mark.parametrize(
    ("markers", "rows", "counts"),
    [
        # whatever row groups have them
        ([2, 2, 2, 1, 4, 4, 1], 7, {2: 3, 1: 2, 4: 2}),
        ([1, None], 2, {1: 1, None: 1}),
        # of a load
        (None, 5, {None: 5}),
        ([], 0, {}),
        (None, 0, {}),
    ],
)
def test_the_rows_of_each_file_are_counted_by_their_markers(
    tmp_path: Path, markers: list[int | None] | None, rows: int, counts: dict[int | None, int]
) -> None:
    files = [staged(tmp_path, "a.parquet", markers, rows), staged(tmp_path, "b.parquet", [2, 2])]

    found = rows_in(tmp_path, files)

    assert found is not None
    assert sorted(found, key=str) == sorted(
        [
            *(FileRows("a.parquet", marker, count) for marker, count in counts.items()),
            FileRows("b.parquet", 2, 2),
        ],
        key=str,
    )


def test_without_pyarrow_spark_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "parquet_reader", lambda: None)

    assert rows_in(tmp_path, [staged(tmp_path, "a.parquet", [1])]) is None
