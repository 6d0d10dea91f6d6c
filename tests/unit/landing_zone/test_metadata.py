"""`_metadata.json`, as it is written for a table, and as the service reads it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import (
    DelimitedText,
    MirroredColumn,
    TableDefinition,
)
from dbt.adapters.openmirroring.replicator.metadata import TableMetadata, TextColumn, TextFormat

TYPES = {
    "boolean": "Boolean",
    "tinyint": "Int16",
    "smallint": "Int16",
    "int": "Int32",
    "bigint": "Int64",
    "float": "Single",
    "double": "Double",
    "string": "String",
    "binary": "ByteArray",
    "date": "IDate",
    "timestamp": "DateTime",
    "time(6)": "ITime",
}


def definition(landing_format: str, text: DelimitedText | None = None) -> TableDefinition:
    columns = tuple(MirroredColumn(f"a {type_}", type_, type_) for type_ in TYPES)
    return TableDefinition(columns, ("a int",), landing_format, text)


@pytest.mark.parametrize(
    ("key_columns", "metadata"),
    [(("a int",), {"keyColumns": ["a int"]}), ((), {})],
    ids=["with a key", "without"],
)
def test_parquet_needs_the_key_columns_only(
    key_columns: tuple[str, ...], metadata: dict[str, Any]
) -> None:
    declared = replace(definition("parquet"), key_columns=key_columns)

    assert json.loads(declared.metadata) == metadata


BY_TIME = {"fileDetectionStrategy": "LastUpdateTimeFileDetection"}
UPSERTS = {"isUpsertDefaultRowMarker": True}


@pytest.mark.parametrize(
    ("file_detection", "default_row_marker", "properties"),
    [
        ("sequential", "insert", {}),
        ("sequential", "upsert", UPSERTS),
        ("last_update_time", "insert", BY_TIME),
        ("last_update_time", "upsert", {**BY_TIME, **UPSERTS}),
    ],
)
def test_files_by_time_and_upserts_by_default_are_declared_each_for_itself(
    file_detection: str, default_row_marker: str, properties: dict[str, Any]
) -> None:
    declared = replace(
        definition("parquet"), file_detection=file_detection, default_row_marker=default_row_marker
    )

    assert json.loads(declared.metadata) == {"keyColumns": ["a int"], **properties}


@pytest.mark.parametrize(
    ("landing_format", "file_format"),
    [("csv", "CSV"), ("tsv", "DelimitedText"), ("psv", "DelimitedText")],
)
def test_delimited_text_is_declared_as_a_whole(landing_format: str, file_format: str) -> None:
    text = DelimitedText(";", "\n", "'", '"', "", "utf-16")

    assert json.loads(definition(landing_format, text).metadata) == {
        "keyColumns": ["a int"],
        "SchemaDefinition": {
            "Columns": [
                {"Name": f"a {name}", "DataType": declared, "IsNullable": name != "int"}
                for name, declared in TYPES.items()
            ]
        },
        "FileFormat": file_format,
        "FileExtension": landing_format,
        "FileFormatTypeProperties": {
            "FirstRowAsHeader": True,
            "RowSeparator": "\n",
            "ColumnSeparator": ";",
            "QuoteCharacter": "'",
            "EscapeCharacter": '"',
            "NullValue": "",
            "Encoding": "utf-16",
        },
    }


def test_the_replicator_reads_what_is_declared() -> None:
    read = TableMetadata.parse(json.loads(definition("psv", DelimitedText("|")).metadata))

    columns = tuple(TextColumn(f"a {name}", TYPES[name], name != "int") for name in TYPES)
    assert read.key_columns == ("a int",)
    assert read.extension == "psv"
    assert read.text == TextFormat(columns, "\r\n", "|", '"', "\\", "null", "UTF-8")
