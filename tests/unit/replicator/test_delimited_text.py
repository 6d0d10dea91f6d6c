"""Delimited text, read by what `_metadata.json` says of it."""

from __future__ import annotations

import datetime as dt
import gzip
from typing import Any

import pytest

from tests.unit.replicator.item import Item

COLUMNS = [{"Name": "id", "DataType": "Int32"}, {"Name": "name", "DataType": "String"}]


def land(item: Item, number: int, text: str, encoding: str = "utf-8") -> None:
    item.land_bytes(f"{number:020d}.csv", text.encode(encoding))


def declare(item: Item, columns: list[dict[str, Any]] = COLUMNS, **options: Any) -> None:
    item.metadata(
        keyColumns=["id"],
        FileFormat="csv",
        SchemaDefinition={"Columns": columns},
        FileFormatTypeProperties=options,
    )


def test_rows_and_row_markers_are_read_also_of_compressed_files(item: Item) -> None:
    declare(item)
    land(item, 1, "id,name\r\n1,a\r\n2,b\r\n")
    changes = "id,name,__rowMarker__\r\n1,,2\r\n2,B,1\r\n3,c,4\r\n"
    item.land_bytes(f"{2:020d}.csv.gz", gzip.compress(changes.encode()))

    item.scan()

    assert item.rows() == [(2, "B"), (3, "c")]


def test_a_second_file_with_the_number_of_the_first_one_stops_nothing(item: Item) -> None:
    declare(item)
    land(item, 1, "id,name\r\n1,a\r\n")
    item.land_bytes(f"{1:020d}.csv.gz", gzip.compress(b"id,name\r\n2,b\r\n"))

    reports = [item.scan(), item.scan()]

    assert [(report.status, report.error) for report in reports] == [("Replicating", None)] * 2
    assert item.rows() == [(1, "a")]


@pytest.mark.parametrize(
    ("options", "text", "value"),
    [
        *(
            ({"ColumnSeparator": separator}, f'"a{separator}\nb"', f"a{separator}\nb")
            for separator in (",", ";", "|", "\t")
        ),
        *(({"RowSeparator": separator}, '"a\nb"', "a\nb") for separator in ("\r\n", "\n", "\r")),
        ({"QuoteCharacter": "'"}, "'a,\nb'", "a,\nb"),
        ({"EscapeCharacter": "\\"}, r'"a\"b\\c"', 'a"b\\c'),
        ({"EscapeCharacter": "/"}, '"a/"b//c"', 'a"b/c'),
        ({"EscapeCharacter": '"'}, r'"a""b\c"', 'a"b\\c'),
        ({"EscapeCharacter": ""}, r'"a\b"', r"a\b"),
        ({"EscapeCharacter": "", "QuoteCharacter": ""}, '"a"', '"a"'),
        *(({"NullValue": null}, null, None) for null in ("", "N/A", "null")),
        *(({"NullValue": null}, f'"{null}"', null) for null in ("", "N/A", "null")),
        ({"NullValue": "null"}, "NULL", "NULL"),
        *(
            ({"Encoding": encoding}, "Käse", "Käse")
            for encoding in ("utf-8", "utf-16", "windows-1252", "latin-1")
        ),
        # more than Arrow reads at once
        ({}, '"{}"'.format("x,\r\n" * 600_000), "x,\r\n" * 600_000),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_a_value_is_read_as_the_options_say(
    item: Item, options: dict[str, Any], text: str, value: str | None
) -> None:
    declare(item, **options)
    column, row = options.get("ColumnSeparator", ","), options.get("RowSeparator", "\r\n")
    lines = [f"id{column}name", f"1{column}{text}", ""]
    land(item, 1, row.join(lines), options.get("Encoding", "utf-8"))

    item.scan()

    assert item.rows() == [(1, value)]


NOON = dt.datetime(2025, 6, 17, 12, 30, 0, 123456, dt.timezone.utc)


@pytest.mark.parametrize(
    ("data_type", "text", "value"),
    [
        ("Double", "3.14159", 3.14159),
        ("Single", "0.5", 0.5),
        ("Int16", "-32768", -32768),
        ("Int32", "2147483647", 2147483647),
        ("Int64", "9223372036854775807", 9223372036854775807),
        # in UTC unless it says otherwise
        ("DateTime", "2025-06-17 12:30:00", NOON.replace(microsecond=0)),
        ("DateTime", "2025-06-17T12:30:00.123456", NOON),
        ("DateTime", "2025-06-17 12:30:00.123456Z", NOON),
        ("DateTime", "2025-06-17T14:30:00.123456+02:00", NOON),
        ("IDate", "2025-06-17", dt.date(2025, 6, 17)),
        ("ITime", "14:30:00", "14:30:00.000000"),
        ("String", "x", "x"),
        ("Boolean", "true", True),
        ("ByteArray", "abc", b"abc"),
    ],
)
def test_every_data_type_of_the_specification(
    item: Item, data_type: str, text: str, value: Any
) -> None:
    declare(item, [COLUMNS[0], {"Name": "value", "DataType": data_type}])
    land(item, 1, f"id,value\r\n1,{text}\r\n2,\r\n")

    item.scan()

    assert item.rows() == [(1, value), (2, None)]


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
    item.metadata(FileFormat="csv", SchemaDefinition={"Columns": COLUMNS})
    for number, text in enumerate(("id,name", "id,name\r\n1,a", "id,stock\r\n2,7", "stock\r\n7")):
        land(item, number + 1, f"{text}\r\n")

        assert (item.scan().status, len(item.rows())) == ("Replicating", number)

    assert item.rows() == [(1, "a"), (2, None), (None, None)]
