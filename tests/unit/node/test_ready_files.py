"""The files of a snapshot that a load publishes as they are."""

from __future__ import annotations

import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.openmirroring.landing_zone.batch import MirroredColumn, TableDefinition
from dbt.adapters.openmirroring.node.stage import link_files, ready_files

MB = 2**20
ID = pa.field("id", pa.int64())
AMOUNT = pa.field("amount", pa.decimal128(9, 2))
DEFINITION = {"id": "bigint", "amount": "decimal(9,2)"}


def definition(types: dict[str, str], **landed: str) -> TableDefinition:
    columns = [MirroredColumn(name, type, landed.get(name, type)) for name, type in types.items()]
    return TableDefinition(tuple(columns), (columns[0].name,), "parquet")


def write(
    path: Path, *fields: pa.Field, rows: int = 1, codec: str = "zstd", **options: Any
) -> None:
    metadata = options.pop("metadata", None)
    schema = pa.schema(fields, metadata)
    table = pa.table([_ones(rows, f.type) for f in fields], schema=schema)
    # as Spark stores them
    options = {"store_decimal_as_integer": True, **options}
    pq.write_table(table, path, compression=codec, **options)


def _ones(rows: int, type: pa.DataType) -> pa.Array:
    value: Any = datetime.now(timezone.utc) if pa.types.is_timestamp(type) else 1
    return pa.array([value] * rows, type)


def ready(folder: Path, target: int = MB, **landed: str) -> list[Path] | None:
    return ready_files(folder, definition(DEFINITION, **landed), "zstd", target)


def test_files_as_they_would_land_are_ready(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ID, AMOUNT)
    write(tmp_path / "b.parquet", ID, AMOUNT)
    size = (tmp_path / "b.parquet").stat().st_size
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".a.parquet.crc").touch()

    found = ready(tmp_path, target=2 * size)

    assert found == [tmp_path / "a.parquet", tmp_path / "b.parquet"]


def test_files_without_rows_are_left_out_but_for_the_only_one(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ID, AMOUNT, rows=0)
    write(tmp_path / "b.parquet", ID, AMOUNT, rows=0)

    assert ready(tmp_path) == [tmp_path / "a.parquet"]

    write(tmp_path / "c.parquet", ID, AMOUNT)

    assert ready(tmp_path) == [tmp_path / "c.parquet"]


@pytest.mark.parametrize(
    "fields",
    [
        [AMOUNT, ID],
        [ID],
        [ID, pa.field("AMOUNT", AMOUNT.type)],
        [ID, pa.field("amount", pa.decimal128(9, 3))],
        [ID, AMOUNT.with_nullable(False)],
    ],
    ids=["order", "missing", "case", "type", "REQUIRED"],
)
def test_a_file_with_other_columns_is_not_ready(tmp_path: Path, fields: list[pa.Field]) -> None:
    write(tmp_path / "a.parquet", *fields)

    assert ready(tmp_path) is None


@pytest.mark.parametrize(
    "options",
    [
        {"store_decimal_as_integer": False},
        {"metadata": {"org.apache.spark.legacyDateTime": ""}},
        {"metadata": {"org.apache.spark.legacyINT96": ""}},
    ],
    ids=["decimals as bytes", "Julian calendar", "Julian calendar in INT96"],
)
def test_a_file_in_a_legacy_format_of_spark_is_not_ready(tmp_path: Path, options: Any) -> None:
    write(tmp_path / "a.parquet", ID, AMOUNT, **options)

    assert ready(tmp_path) is None


@pytest.mark.parametrize("options", [{}, {"use_deprecated_int96_timestamps": True}])
def test_only_timestamps_of_microseconds_in_utc_are_ready(tmp_path: Path, options: Any) -> None:
    stamp = pa.field("at", pa.timestamp("us", tz="UTC"))
    write(tmp_path / "a.parquet", stamp, **options)

    found = ready_files(tmp_path, definition({"at": "timestamp"}), "zstd", MB)

    assert bool(found) is not bool(options)


def test_a_file_of_another_compression_is_not_ready(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ID, AMOUNT, codec="snappy")

    assert ready(tmp_path) is None


def test_a_column_that_lands_as_another_type_is_not_ready(tmp_path: Path) -> None:
    write(tmp_path / "a.parquet", ID, AMOUNT)

    assert ready(tmp_path, amount="string") is None


def test_a_partition_is_not_ready(tmp_path: Path) -> None:
    (tmp_path / "id=1").mkdir()
    write(tmp_path / "id=1" / "a.parquet", AMOUNT)

    assert ready(tmp_path) is None


def test_a_large_file_is_not_ready(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", ID, AMOUNT)
    size = (tmp_path / "0.parquet").stat().st_size

    assert ready(tmp_path, target=size)
    assert ready(tmp_path, target=size // 3) is None


def test_a_few_small_files_are_ready_and_many_are_not(tmp_path: Path) -> None:
    for name in range(8):
        write(tmp_path / f"{name}.parquet", ID, AMOUNT)
    size = (tmp_path / "0.parquet").stat().st_size

    assert ready(tmp_path, target=100 * size)

    write(tmp_path / "8.parquet", ID, AMOUNT)

    assert ready(tmp_path, target=4 * size)
    assert ready(tmp_path, target=100 * size) is None


def test_without_a_pyarrow_that_works_no_file_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a.parquet", ID, AMOUNT)
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    assert ready(tmp_path) is None


def test_ready_files_are_linked_in_their_order(tmp_path: Path) -> None:
    for name in ("x", "y"):
        write(tmp_path / name, ID, AMOUNT)

    assert link_files([tmp_path / "x", tmp_path / "y"], tmp_path / "rows")

    x, y = sorted((tmp_path / "rows").iterdir())
    assert x.samefile(tmp_path / "x")
    assert y.samefile(tmp_path / "y")


def test_files_that_cannot_be_linked_leave_nothing_behind(tmp_path: Path) -> None:
    write(tmp_path / "x", ID, AMOUNT)

    assert not link_files([tmp_path / "x", tmp_path / "gone"], tmp_path / "rows")
    assert not list((tmp_path / "rows").iterdir())
