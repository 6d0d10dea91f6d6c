"""Delimited text, read by what `_metadata.json` says of it."""

from __future__ import annotations

import datetime as dt
import gzip
from typing import Any

import pytest

from tests.unit.replicator.item import Item

COLUMNS = [{"Name": "id", "DataType": "Int32"}, {"Name": "name", "DataType": "String"}]


def land(
    item: Item, number: int, text: str, compressed: bool = False, encoding: str = "utf-8"
) -> None:
    content = text.encode(encoding)
    name = f"{number:020d}.csv"
    if compressed:
        name, content = f"{name}.gz", gzip.compress(content)
    item.land_bytes(name, content)


def declare(item: Item, columns: list[dict[str, Any]] | None = None, **options: Any) -> None:
    item.metadata(
        keyColumns=["id"],
        FileFormat="csv",
        SchemaDefinition={"Columns": columns or COLUMNS},
        FileFormatTypeProperties=options,
    )


def test_rows_and_row_markers_are_read(item: Item) -> None:
    declare(item)
    land(item, 1, "id,name\r\n1,a\r\n2,b\r\n")
    land(item, 2, "id,name,__rowMarker__\r\n1,,2\r\n2,B,1\r\n3,c,4\r\n")

    item.scan()

    assert item.rows() == [(2, "B"), (3, "c")]


@pytest.mark.parametrize("separator", [",", ";", "|", "\t"])
@pytest.mark.parametrize("row_separator", ["\r\n", "\n", "\r"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_every_separator_and_quote_of_the_specification(
    item: Item, separator: str, row_separator: str, quote: str
) -> None:
    declare(item, ColumnSeparator=separator, RowSeparator=row_separator, QuoteCharacter=quote)
    lines = [f"id{separator}name", f"1{separator}{quote}a{separator}\nb{quote}"]
    land(item, 1, row_separator.join(lines) + row_separator)

    item.scan()

    assert item.rows() == [(1, f"a{separator}\nb")]


@pytest.mark.parametrize(
    ("escape", "text", "value"),
    [
        ("\\", r'"a\"b\\c"', 'a"b\\c'),
        ("/", '"a/"b//c"', 'a"b/c'),
        ('"', r'"a""b\c"', 'a"b\\c'),
        ("", r'"a\b"', r"a\b"),
    ],
)
def test_every_escape_of_the_specification(item: Item, escape: str, text: str, value: str) -> None:
    declare(item, EscapeCharacter=escape)
    land(item, 1, f"id,name\r\n1,{text}\r\n")

    item.scan()

    assert item.rows() == [(1, value)]


def test_without_a_quote_character_quotes_are_text(item: Item) -> None:
    declare(item, QuoteCharacter="", EscapeCharacter="")
    land(item, 1, 'id,name\r\n1,"a"\r\n')

    item.scan()

    assert item.rows() == [(1, '"a"')]


@pytest.mark.parametrize("null", ["", "N/A", "null"])
def test_null_is_what_it_was_declared_to_be_and_not_when_it_is_quoted(
    item: Item, null: str
) -> None:
    declare(item, NullValue=null)
    land(item, 1, f'id,name\r\n1,{null}\r\n2,"{null}"\r\n3,NULL\r\n')

    item.scan()

    assert item.rows() == [(1, None), (2, null), (3, "NULL")]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "windows-1252", "latin-1"])
def test_encodings(item: Item, encoding: str) -> None:
    declare(item, Encoding=encoding)
    land(item, 1, "id,name\r\n1,Käse\r\n", encoding=encoding)

    item.scan()

    assert item.rows() == [(1, "Käse")]


def test_a_row_may_be_larger_than_what_arrow_reads_at_once(item: Item) -> None:
    declare(item)
    value = "x,\r\n" * 600_000
    land(item, 1, f'id,name\r\n1,"{value}"\r\n')

    item.scan()

    assert item.rows() == [(1, value)]


def test_files_may_be_compressed(item: Item) -> None:
    declare(item)
    land(item, 1, "id,name\r\n1,a\r\n", compressed=True)
    land(item, 2, "id,name\r\n2,b\r\n")

    item.scan()

    assert item.rows() == [(1, "a"), (2, "b")]


VALUES: dict[str, tuple[str, Any]] = {
    "Double": ("3.14159", 3.14159),
    "Single": ("0.5", 0.5),
    "Int16": ("-32768", -32768),
    "Int32": ("2147483647", 2147483647),
    "Int64": ("9223372036854775807", 9223372036854775807),
    "DateTime": (
        "2025-06-17 14:30:00",
        dt.datetime(2025, 6, 17, 14, 30, tzinfo=dt.timezone.utc),
    ),
    "IDate": ("2025-06-17", dt.date(2025, 6, 17)),
    "ITime": ("14:30:00", "14:30:00.000000"),
    "String": ("x", "x"),
    "Boolean": ("true", True),
    "ByteArray": ("abc", b"abc"),
}


@pytest.mark.parametrize("data_type", VALUES)
def test_every_data_type_of_the_specification(item: Item, data_type: str) -> None:
    text, value = VALUES[data_type]
    declare(item, [COLUMNS[0], {"Name": "value", "DataType": data_type}])
    land(item, 1, f"id,value\r\n1,{text}\r\n2,\r\n")

    item.scan()

    assert item.rows() == [(1, value), (2, None)]


@pytest.mark.parametrize(
    "text",
    [
        "2025-06-17T14:30:00.123456",
        "2025-06-17 14:30:00.123456Z",
        "2025-06-17T16:30:00.123456+02:00",
    ],
)
def test_a_datetime_is_in_utc_unless_it_says_otherwise(item: Item, text: str) -> None:
    declare(item, [COLUMNS[0], {"Name": "at", "DataType": "DateTime"}])
    land(item, 1, f"id,at\r\n1,{text}\r\n")

    item.scan()

    assert item.rows() == [(1, dt.datetime(2025, 6, 17, 14, 30, 0, 123456, dt.timezone.utc))]


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("", "zero bytes"),
        ("id,name\r\nx,a\r\n", "conversion error"),
        ("id,name\r\n1,a,b\r\n", "Expected 2 columns"),
        ("id,__rowMarker__,name\r\n1,0,a\r\n", "must be the last column"),
        ("id,name,ID\r\n1,a,2\r\n", "one table cannot have both"),
    ],
)
def test_a_file_that_is_not_as_declared_stops_the_table(
    item: Item, text: str, finding: str
) -> None:
    declare(item)
    land(item, 1, text)

    report = item.scan()

    assert report.status == "Failed"
    assert finding in report.note
    land(item, 1, "id,name\r\n1,a\r\n")
    assert item.scan().status == "Replicating"


def test_the_schema_does_not_evolve(item: Item) -> None:
    """A column that is not declared is not read, one that is declared and missing is NULL."""
    declare(item)
    land(item, 1, "id,name\r\n1,a\r\n")
    land(item, 2, "id,stock\r\n2,7\r\n")

    item.scan()

    assert item.rows() == [(1, "a"), (2, None)]


def test_a_file_without_any_declared_column_has_rows_of_nulls(item: Item) -> None:
    item.metadata(FileFormat="csv", SchemaDefinition={"Columns": COLUMNS})
    land(item, 1, "stock\r\n7\r\n")

    item.scan()

    assert item.rows() == [(None, None)]


def test_a_header_alone_is_a_table_without_rows(item: Item) -> None:
    declare(item)
    land(item, 1, "id,name\r\n")

    assert (item.scan().status, item.rows()) == ("Replicating", [])
