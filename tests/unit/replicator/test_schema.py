"""Columns, types and keys over a table's life."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.unit.replicator.item import Item, rows, schema

ID = schema(id=pa.int64())
NAME_IS_REQUIRED = pa.schema([("id", pa.int64()), pa.field("name", pa.string(), nullable=False)])
STOCK = schema(id=pa.int64(), name=pa.string(), stock=pa.int32())
STOCK_IS_REQUIRED = STOCK.set(2, pa.field("stock", pa.int32(), nullable=False))


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        (
            rows((2, "b", 7, 1), (3, "c", 8, 4), schema=STOCK_IS_REQUIRED),
            [(1, "a", None), (2, "b", 7), (3, "c", 8)],
        ),
        (rows(schema=STOCK), [(1, "a", None), (2, "b", None)]),
        (rows(("B", 2, 4), schema=schema(name=pa.string(), id=pa.int64())), [(1, "a"), (2, "B")]),
        (rows((2, 1), (3, 4), schema=ID), [(1, "a"), (2, None), (3, None)]),
        (rows((3,), schema=ID), [(1, "a"), (2, "b"), (3, None)]),
    ],
    ids=["new", "new, without rows", "another order", "gone, in a change", "gone"],
)
def test_columns_are_known_by_name_and_may_come_and_go(
    item: Item, second: pa.Table, expected: list[tuple[Any, ...]]
) -> None:
    """A column that is gone stays in the rows that are there, and is NULL in new ones."""
    item.keyed()
    item.land_all(rows((1, "a"), (2, "b")), second)

    item.scan()

    assert item.rows() == expected
    assert all(column.nullable for column in item.delta().schema().fields)


@pytest.mark.parametrize(
    ("second", "code", "finding"),
    [
        (rows((2, 4), schema=ID), "SchemaMergeFailure", "missing column must be nullable"),
        (rows((2, None)), "InputValidationError", "NULL in the column 'name'"),
        (rows((2, None, 4)), "InputValidationError", "NULL in the column 'name'"),
        (
            rows((2, "b", 4), schema=schema(id=pa.int64(), NAME=pa.string())),
            *("SchemaMergeFailure", "differ only in case"),
        ),
    ],
    ids=["a missing column", "a NULL", "a NULL in a change", "another case"],
)
def test_a_file_whose_columns_do_not_fit_stops_the_table(
    item: Item, second: pa.Table, code: str, finding: str
) -> None:
    item.keyed()
    item.land_all(rows((1, "a"), schema=NAME_IS_REQUIRED), second)

    report = item.scan()

    assert report.error
    assert report.error.error_code == code
    assert finding in report.note
    assert item.rows() == [(1, "a")]


@pytest.mark.parametrize("other", [pa.int32(), pa.string(), pa.float64(), pa.decimal128(19, 0)])
@pytest.mark.parametrize("marked", [False, True])
def test_the_first_file_fixes_the_types(item: Item, other: pa.DataType, marked: bool) -> None:
    item.keyed()
    content = rows((2, "b", 4) if marked else (2, "b"))
    others = content.set_column(0, "id", content["id"].cast(other))
    item.land_all(rows((1, "a")), others, rows((3, "c", 4)))

    report = item.scan()

    assert report.error
    assert report.error.error_code == "SchemaMergeFailure"
    assert "'id' has the type" in report.note
    assert item.rows() == [(1, "a")]
    # the folder is dropped and loaded anew: the way out that the specification gives
    item.drop()
    item.keyed()
    item.land(1, others)
    assert item.scan().status == "Replicating"


def test_key_columns_can_be_declared_later_but_not_change(item: Item) -> None:
    item.metadata()
    item.land(1, rows((1, "a")))
    item.scan()
    item.keyed()
    item.land(2, rows((1, "b", 4)))
    item.scan()
    assert item.rows() == [(1, "b")]

    changes: list[dict[str, Any]] = [{}, {"keyColumns": ["name"]}]
    for changed in changes:
        item.metadata(**changed)
        item.land(3, rows((1, "c", 4)))
        report = item.scan()
        assert report.error
        assert report.error.error_code == "KeyColumnsChanged"
        assert item.rows() == [(1, "b")]

    item.keyed()
    assert item.scan().status == "Replicating"
    assert item.rows() == [(1, "c")]


def test_key_columns_are_spelled_as_in_the_files(item: Item) -> None:
    item.metadata(keyColumns=["ID"])
    item.land(1, rows((1, "a")))

    assert "no column 'ID'" in item.scan().note


INSTANT = dt.datetime(2024, 2, 29, 23, 59, 59, 999999, dt.timezone.utc)
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
    "timestamp": (pa.timestamp("us", "UTC"), INSTANT, "timestamp"),
    "milliseconds": (pa.timestamp("ms", "UTC"), INSTANT.replace(microsecond=0), "timestamp"),
    "timestamp_ntz": (pa.timestamp("us"), INSTANT.replace(tzinfo=None), "timestamp_ntz"),
    "string": (pa.string(), "ä\x00\n", "string"),
    "large string": (pa.large_string(), "x", "string"),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), "x", "string"),
    "binary": (pa.binary(), b"\x00\xff", "binary"),
    "fixed binary": (pa.binary(2), b"ab", "binary"),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_arrive_as_they_are(item: Item, name: str) -> None:
    """In a file without row markers, and in one with them."""
    kind, value, mirrored = VALUES[name]
    item.keyed()
    columns = schema(id=pa.int64(), value=kind)
    files = [(1, None), (2, value), (3, value, 4)]
    item.land_all(*(rows(content, schema=columns) for content in files))

    item.scan()

    assert item.rows() == [(1, None), (2, value), (3, value)]
    assert item.delta().schema().fields[1].type.type == mirrored


def test_int96_is_an_instant(item: Item) -> None:
    item.metadata()
    content = pa.table({"at": [INSTANT.replace(tzinfo=None)]})
    path = item.land(1, content)
    pq.write_table(content, path, use_deprecated_int96_timestamps=True)

    item.scan()

    assert item.rows() == [(INSTANT,)]


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
    assert report.error.error_code == "UnsupportedType"
    assert "'value'" in report.note
