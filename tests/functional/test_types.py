"""Every type of Spark lands as docs/changes.md says, or is refused with the cast that helps."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
import pytest

from tests.functional.project import Project

PAGE = Path(__file__).parents[2] / "docs" / "changes.md"


class Type(NamedTuple):
    """A row of the table "What lands".

    Args:
        sql: a value
        parquet: physical and logical type, or what the error says
        delimited: type in `SchemaDefinition`, or what the error says
    """

    sql: str
    parquet: tuple[str, str] | str
    delimited: str


STRING = ("BYTE_ARRAY", "String")
INSTANT = ("INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds")
WKB = "x'0101000000000000000000F03F0000000000000040'"
AS_STRING = "as string)"

TYPES = {
    "boolean": Type("true", ("BOOLEAN", "None"), "Boolean"),
    "tinyint": Type("1Y", ("INT32", "Int(bitWidth=8, isSigned=true)"), "Int16"),
    "smallint": Type("1S", ("INT32", "Int(bitWidth=16, isSigned=true)"), "Int16"),
    "int": Type("1", ("INT32", "None"), "Int32"),
    "bigint": Type("1L", ("INT64", "None"), "Int64"),
    "float": Type("1.5F", ("FLOAT", "None"), "Single"),
    "double": Type("1.5D", ("DOUBLE", "None"), "Double"),
    "decimal": Type("1.50BD", ("INT32", "Decimal(precision=3, scale=2)"), "as double)"),
    "string": Type("'x'", STRING, "String"),
    "char": Type("cast('x' as char(3))", STRING, "String"),
    "varchar": Type("cast('x' as varchar(3))", STRING, "String"),
    "string with a collation": Type("'x' collate UTF8_LCASE", STRING, "String"),
    "binary": Type("cast('x' as binary)", ("BYTE_ARRAY", "None"), "ByteArray"),
    "date": Type("date'2024-01-01'", ("INT32", "Date"), "IDate"),
    "timestamp": Type("timestamp'2024-01-01 00:00:00'", INSTANT, "DateTime"),
    "timestamp_ntz": Type("timestamp_ntz'2024-01-01 00:00:00'", INSTANT, "DateTime"),
    "time": Type("time'14:30:00.5'", AS_STRING, "ITime"),
    "interval day to second": Type("interval '1 02:03:04' day to second", AS_STRING, AS_STRING),
    "interval year to month": Type("interval '1-2' year to month", AS_STRING, AS_STRING),
    "array": Type("array(1, null)", STRING, "String"),
    "map": Type("map('a', 1)", STRING, "String"),
    "struct": Type("named_struct('a', 1)", STRING, "String"),
    "variant": Type("parse_json('[1]')", STRING, "String"),
    "geometry": Type(
        f"st_geomfromwkb({WKB})", ("BYTE_ARRAY", "None"), "base64(st_asbinary(`geometry`))"
    ),
    "geography": Type(
        f"st_geogfromwkb({WKB})", ("BYTE_ARRAY", "None"), "base64(st_asbinary(`geography`))"
    ),
    "void": Type("null", AS_STRING, AS_STRING),
}


@pytest.mark.core
def test_the_table_in_the_docs_has_these_types() -> None:
    section = PAGE.read_text().partition("## What lands")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    told = {
        name.split("(")[0]: (parquet, delimited)
        for names, parquet, delimited in rows[1:]
        for name in names.split(", ")
    }

    assert told.keys() == TYPES.keys()
    for name, (_, parquet, delimited) in TYPES.items():
        in_parquet, in_text = told[name]
        assert ("error" in in_parquet) == isinstance(parquet, str), name
        assert ("error: " in in_text) == (")" in delimited), name
        assert ")" in delimited or delimited in in_text, name


@pytest.mark.parquet("other formats do not have all of Spark's types")
@pytest.mark.core
def test_every_type_lands_as_the_table_says_or_is_refused_with_a_cast(project: Project) -> None:
    refused = {}
    for landing_format in ("parquet", "csv"):
        landed = []
        for name, type_ in TYPES.items():
            outcome = type_.parquet if landing_format == "parquet" else type_.delimited
            column = f"{type_.sql} as `{name}`"
            if isinstance(outcome, str) and ")" in outcome:
                model = f"{landing_format}_{name.replace(' ', '_')}"
                refused[model] = (name, outcome)
                project.model(f"select 1 as id, {column}", model, landing_format=landing_format)
            else:
                landed.append(column)
        sql = f"select 1 as id, {', '.join(landed)}"
        project.model(sql, f"all_{landing_format}", landing_format=landing_format)

    assert not project.dbt("run")

    for model, (name, cast) in refused.items():
        message = project.results()[model]["message"]
        assert f"`{name}`" in message
        assert cast in message
        assert not project.folder(model).exists()
    parquet = pq.ParquetFile(project.files("all_parquet")[0]).schema
    for column in map(parquet.column, range(1, len(parquet))):
        physical, logical = column.physical_type, str(column.logical_type)
        expected = TYPES[column.name].parquet
        assert (physical, logical[: len(expected[1])]) == expected, column.name
    metadata = json.loads((project.folder("all_csv") / "_metadata.json").read_text())
    declared = {c["Name"]: c["DataType"] for c in metadata["SchemaDefinition"]["Columns"]}
    assert declared == {
        "id": "Int32",
        **{name: t.delimited for name, t in TYPES.items() if ")" not in t.delimited},
    }
    project.assert_mirrored("all_parquet")
    project.assert_mirrored("all_csv")
