"""`_metadata.json`."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.metadata import TableMetadata, TextColumn, TextFormat
from tests.unit.replicator.item import KEYED, Item, rows

COLUMNS = {"Columns": [{"Name": "id", "DataType": "Int32"}]}
ID = TextColumn("id", "Int32", True)
TIME = {"fileDetectionStrategy": "LastUpdateTimeFileDetection"}
UPSERT = {"isUpsertDefaultRowMarker": True, **KEYED}
EXAMPLE = {
    "KeyColumns": ["id"],
    "SchemaDefinition": {
        "Columns": [
            {"Name": "id", "DataType": "Int32"},
            {"Name": "seqNum", "DataType": "Int64", "IsNullable": False},
        ]
    },
    "FileFormat": "DelimitedText",
    "FileExtension": "tsv",
    "FileFormatTypeProperties": {
        "FirstRowAsHeader": True,
        "RowSeparator": "\r\n",
        "ColumnSeparator": ",",
        "QuoteCharacter": "'",
        "EscapeCharacter": "\\",
        "NullValue": "N/A",
        "Encoding": "UTF-8",
    },
}


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, TableMetadata((), False, False, "parquet", None)),
        ({"KeyColumns": ["a", "b"]}, TableMetadata(("a", "b"))),
        (TIME, TableMetadata((), True, False)),
        (UPSERT, TableMetadata(("id",), False, True)),
        ({**TIME, **UPSERT}, TableMetadata(("id",), True, True)),
        (
            {"FileFormat": "csv", "SchemaDefinition": COLUMNS},
            TableMetadata(
                extension="csv",
                text=TextFormat((ID,), "\r\n", ",", '"', "\\", "", "UTF-8"),
            ),
        ),
        (
            EXAMPLE,
            TableMetadata(
                ("id",),
                extension="tsv",
                text=TextFormat(
                    (ID, TextColumn("seqNum", "Int64", False)),
                    *("\r\n", ",", "'", "\\", "N/A", "UTF-8"),
                ),
            ),
        ),
    ],
    ids=["nothing", "keys", "time", "upserts", "both", "defaults of text", "example"],
)
def test_properties_are_independent_of_each_other_and_have_defaults(
    properties: dict[str, Any], expected: TableMetadata
) -> None:
    assert TableMetadata.parse(properties) == expected


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
        TableMetadata.parse(properties)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'"text"', b"\xff\xfe"])
def test_metadata_that_is_no_json_object_stops_the_table(item: Item, content: bytes) -> None:
    """A byte order mark is allowed."""
    item.keyed()
    item.land_all(rows((1, "a")), rows((1, "b", 4)))
    item.land_bytes("_metadata.json", content)

    report = item.scan()

    assert report.error
    assert report.error.error_code == "InvalidMetadata"
    item.land_bytes("_metadata.json", b'\xef\xbb\xbf{"keyColumns": ["id"]}')
    assert item.scan().status == "Replicating"
    assert item.rows() == [(1, "b")]
