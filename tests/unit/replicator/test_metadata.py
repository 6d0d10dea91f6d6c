"""`_metadata.json`."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.metadata import TableMetadata, TextColumn
from tests.unit.replicator.item import Item, rows

COLUMNS = {"Columns": [{"Name": "id", "DataType": "Int32"}]}


def parse(**properties: Any) -> TableMetadata:
    return TableMetadata.parse(properties)


def test_without_properties_files_are_parquet_in_order_of_their_numbers() -> None:
    assert parse() == TableMetadata((), False, False, "parquet", None)


def test_the_case_of_property_names_does_not_matter() -> None:
    assert parse(KeyColumns=["a", "b"]).key_columns == ("a", "b")


def test_a_byte_order_mark_is_no_part_of_the_metadata(item: Item) -> None:
    item.keyed()
    item.land_bytes("_metadata.json", b'\xef\xbb\xbf{"keyColumns": ["id"]}')
    item.land(1, rows((1, "a", 4), (1, "b", 4)))

    item.scan()

    assert item.rows() == [(1, "b")]


def test_the_two_switches_are_independent_of_each_other() -> None:
    time = {"fileDetectionStrategy": "LastUpdateTimeFileDetection"}
    upsert = {"isUpsertDefaultRowMarker": True, "keyColumns": ["id"]}

    found = [parse(**options) for options in ({}, time, upsert, {**time, **upsert})]

    assert [(m.by_modification_time, m.upsert_by_default) for m in found] == [
        (False, False),
        (True, False),
        (False, True),
        (True, True),
    ]


def test_the_delimited_example_of_the_specification_is_understood() -> None:
    found = parse(
        KeyColumns=["id"],
        SchemaDefinition={
            "Columns": [
                {"Name": "id", "DataType": "Int32"},
                {"Name": "seqNum", "DataType": "Int64", "IsNullable": False},
            ]
        },
        FileFormat="DelimitedText",
        FileExtension="tsv",
        FileFormatTypeProperties={
            "FirstRowAsHeader": True,
            "RowSeparator": "\r\n",
            "ColumnSeparator": ",",
            "QuoteCharacter": "'",
            "EscapeCharacter": "\\",
            "NullValue": "N/A",
            "Encoding": "UTF-8",
        },
    )

    assert found.extension == "tsv"
    assert found.text
    assert found.text.columns == (
        TextColumn("id", "Int32", True),
        TextColumn("seqNum", "Int64", False),
    )
    assert (found.text.quote, found.text.null) == ("'", "N/A")


def test_delimited_text_has_the_defaults_of_the_specification() -> None:
    found = parse(FileFormat="csv", SchemaDefinition=COLUMNS)

    assert found.extension == "csv"
    assert found.text
    assert (
        found.text.row_separator,
        found.text.column_separator,
        found.text.quote,
        found.text.escape,
        found.text.encoding,
    ) == ("\r\n", ",", '"', "\\", "UTF-8")


@pytest.mark.parametrize(
    ("properties", "finding"),
    [
        ({"keyColumns": "id"}, "keyColumns must be a list"),
        ({"keyColumns": [""]}, "keyColumns must be a list"),
        ({"fileDetectionStrategy": "newest"}, "fileDetectionStrategy must be"),
        ({"isUpsertDefaultRowMarker": "perhaps"}, "must be true or false"),
        ({"isUpsertDefaultRowMarker": True}, "needs keyColumns"),
        ({"FileFormat": "json"}, "FileFormat must be"),
        ({"FileFormat": "DelimitedText", "SchemaDefinition": COLUMNS}, "needs FileExtension"),
        ({"FileFormat": "csv"}, "needs a SchemaDefinition"),
        ({"FileFormat": "csv", "SchemaDefinition": []}, "needs a SchemaDefinition"),
        ({"FileFormat": "csv", "SchemaDefinition": ["id"]}, "is not an object"),
        (
            {"SchemaDefinition": {"Columns": [{"Name": "id", "DataType": "Decimal"}]}},
            "one of the types",
        ),
        *(
            ({"SchemaDefinition": COLUMNS, "FileFormatTypeProperties": {name: value}}, name)
            for name, value in (
                ("FirstRowAsHeader", False),
                ("RowSeparator", "\t"),
                ("ColumnSeparator", ":"),
                ("QuoteCharacter", "`"),
                ("EscapeCharacter", "^"),
                ("Encoding", "klingon"),
            )
        ),
    ],
)
def test_properties_that_the_specification_does_not_allow_are_an_error(
    properties: dict[str, Any], finding: str
) -> None:
    with pytest.raises(TableError, match=finding):
        parse(**properties)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"text"', b"\xff\xfe"])
def test_metadata_that_is_no_json_object_stops_the_table(item: Item, content: bytes) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.scan()
    item.land(2, rows((2, "b")))
    item.land_bytes("_metadata.json", content)

    report = item.scan()

    assert report.error
    assert report.error.code == "InvalidMetadata"
    item.keyed()
    assert item.scan().status == "Replicating"
    assert item.rows() == [(1, "a"), (2, "b")]
