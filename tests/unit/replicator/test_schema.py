"""Columns, types and keys over a table's life."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.replicator.item import Item, rows


def schema(**types: pa.DataType) -> pa.Schema:
    return pa.schema(list(types.items()))


def test_a_new_column_is_added_and_null_in_the_rows_that_are_there(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a"), (2, "b")))
    wider = pa.schema(
        [pa.field("id", pa.int64()), ("name", pa.string()), pa.field("stock", pa.int32(), False)]
    )
    item.land(2, rows((2, "b", 7, 1), (3, "c", 8, 4), schema=wider))

    item.scan()

    assert item.rows() == [(1, "a", None), (2, "b", 7), (3, "c", 8)]
    assert item.delta().schema().to_arrow().field("stock").nullable


def test_a_new_column_may_come_without_rows(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    wider = schema(id=pa.int64(), name=pa.string(), stock=pa.int32(), __rowMarker__=pa.int32())
    item.land(2, wider.empty_table())

    item.scan()

    assert item.rows() == [(1, "a", None)]


def test_columns_are_known_by_name_not_by_position(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.land(2, rows(("b", 2, 4), schema=schema(name=pa.string(), id=pa.int64())))

    item.scan()

    assert item.rows() == [(1, "a"), (2, "b")]


def test_a_column_that_is_gone_is_null_in_new_rows_and_stays_in_old_ones(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a"), (2, "b")))
    item.land(2, rows((2, 1), (3, 4), schema=schema(id=pa.int64())))
    item.land(3, rows((4,), schema=schema(id=pa.int64())))

    item.scan()

    assert item.rows() == [(1, "a"), (2, None), (3, None), (4, None)]


def test_a_missing_column_must_be_nullable(item: Item) -> None:
    item.keyed()
    required = pa.schema([("id", pa.int64()), pa.field("name", pa.string(), nullable=False)])
    item.land(1, rows((1, "a"), schema=required))
    item.land(2, rows((2, 4), schema=schema(id=pa.int64())))

    report = item.scan()

    assert report.error
    assert report.error.code == "SchemaMergeFailure"
    assert "missing column must be nullable" in report.note
    assert item.rows() == [(1, "a")]


@pytest.mark.parametrize("marker", [None, 4])
def test_a_null_in_a_column_that_is_not_nullable_stops_the_table(
    item: Item, marker: int | None
) -> None:
    item.keyed()
    required = pa.schema([("id", pa.int64()), pa.field("name", pa.string(), nullable=False)])
    item.land(1, rows((1, "a"), schema=required))
    item.land(2, rows((2, None) if marker is None else (2, None, marker)))

    report = item.scan()

    assert "NULL in the column 'name'" in report.note
    assert item.rows() == [(1, "a")]


@pytest.mark.parametrize("other", [pa.int32(), pa.string(), pa.float64(), pa.decimal128(19, 0)])
@pytest.mark.parametrize("marked", [False, True])
def test_the_first_file_fixes_the_types(item: Item, other: pa.DataType, marked: bool) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    content = rows((2, "b", 4) if marked else (2, "b"))
    item.land(2, content.set_column(0, "id", content["id"].cast(other)))
    item.land(3, rows((3, "c", 4)))

    report = item.scan()

    assert report.error
    assert report.error.code == "SchemaMergeFailure"
    assert "'id' has the type" in report.note
    assert item.rows() == [(1, "a")]
    # the folder is dropped and loaded anew: the way out that the specification gives
    item.drop()
    item.keyed()
    item.land(1, content.set_column(0, "id", content["id"].cast(other)))
    assert item.scan().status == "Replicating"


def test_columns_that_differ_in_case_only_cannot_be_in_one_table(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.land(2, rows((2, "b", 4), schema=schema(id=pa.int64(), NAME=pa.string())))

    assert "differ only in case" in item.scan().note


def test_key_columns_cannot_change(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.scan()
    item.metadata(keyColumns=["name"])
    item.land(2, rows((1, "b", 4)))

    report = item.scan()

    assert report.error
    assert report.error.code == "KeyColumnsChanged"
    assert item.rows() == [(1, "a")]
    item.keyed()
    assert item.scan().status == "Replicating"
    assert item.rows() == [(1, "b")]


def test_key_columns_can_be_declared_later(item: Item) -> None:
    item.metadata()
    item.land(1, rows((1, "a")))
    item.scan()
    item.keyed()
    item.land(2, rows((1, "b", 4)))

    item.scan()

    assert item.rows() == [(1, "b")]
    item.metadata()
    assert item.scan().status == "Failed"


def test_key_columns_are_spelled_as_in_the_files(item: Item) -> None:
    item.metadata(keyColumns=["ID"])
    item.land(1, rows((1, "a")))

    assert "no column 'ID'" in item.scan().note


VALUES: dict[str, tuple[pa.DataType, Any, str]] = {
    "boolean": (pa.bool_(), True, "boolean"),
    "tinyint": (pa.int8(), -128, "byte"),
    "smallint": (pa.int16(), 1, "short"),
    "int": (pa.int32(), 1, "integer"),
    "bigint": (pa.int64(), 2**63 - 1, "long"),
    "uint8": (pa.uint8(), 255, "short"),
    "uint32": (pa.uint32(), 2**32 - 1, "long"),
    "uint64": (pa.uint64(), 2**64 - 1, "decimal(20,0)"),
    "float": (pa.float32(), 0.5, "float"),
    "double": (pa.float64(), 0.1, "double"),
    "decimal": (pa.decimal128(38, 18), Decimal("1.000000000000000001"), "decimal(38,18)"),
    "date": (pa.date32(), dt.date(1, 1, 1), "date"),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        dt.datetime(2024, 2, 29, 23, 59, 59, 999999, dt.timezone.utc),
        "timestamp",
    ),
    "milliseconds": (
        pa.timestamp("ms", "UTC"),
        dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc),
        "timestamp",
    ),
    "timestamp_ntz": (pa.timestamp("us"), dt.datetime(2024, 1, 1, 12), "timestamp_ntz"),
    "string": (pa.string(), "ä\x00\n", "string"),
    "large string": (pa.large_string(), "x", "string"),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), "x", "string"),
    "binary": (pa.binary(), b"\x00\xff", "binary"),
    "fixed binary": (pa.binary(2), b"ab", "binary"),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("marker", [None, 4])
def test_values_arrive_as_they_are(item: Item, name: str, marker: int | None) -> None:
    kind, value, mirrored = VALUES[name]
    item.keyed()
    columns = schema(id=pa.int64(), value=kind)
    item.land(1, rows((1, None), schema=columns))
    item.land(2, rows((2, value) if marker is None else (2, value, marker), schema=columns))

    item.scan()

    assert item.rows() == [(1, None), (2, value)]
    assert item.delta().schema().fields[1].type.type == mirrored


def test_int96_is_an_instant(item: Item) -> None:
    item.metadata()
    content = pa.table({"at": [dt.datetime(2024, 1, 1, 12, 0, 0, 1)]})
    path = item.land(1, content)
    pq.write_table(content, path, use_deprecated_int96_timestamps=True)

    item.scan()

    assert item.rows() == [(dt.datetime(2024, 1, 1, 12, 0, 0, 1, dt.timezone.utc),)]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.int32()),
        pa.struct([("a", pa.int32())]),
        pa.map_(pa.string(), pa.int32()),
        pa.null(),
        pa.time64("us"),
        pa.decimal256(50, 0),
    ],
    ids=str,
)
def test_a_type_that_cannot_be_mirrored_stops_the_table(item: Item, kind: pa.DataType) -> None:
    item.keyed()
    item.land(1, rows((1, None), schema=schema(id=pa.int64(), value=kind)))

    report = item.scan()

    assert report.error
    assert report.error.code == "UnsupportedType"
    assert "'value'" in report.note
