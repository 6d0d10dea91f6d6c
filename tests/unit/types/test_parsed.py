"""Types of Spark, as `describe` tells them, in SQL."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.types.parsed import parsed, sql_of


@pytest.mark.parametrize(
    ("dtype", "sql"),
    [
        ("int", "int"),
        ("decimal(10,2)", "decimal(10,2)"),
        ("string collate UTF8_LCASE", "string collate UTF8_LCASE"),
        ("array<timestamp_ntz>", "array<timestamp_ntz>"),
        ("struct<>", "struct<>"),
        ("struct<a:int>", "struct<`a`:int>"),
        (
            "struct<a b:int,c`d:array<struct<e:f:date>>>",
            "struct<`a b`:int,`c``d`:array<struct<`e:f`:date>>>",
        ),
        ("map<struct<a-b:int>,map<string,void>>", "map<struct<`a-b`:int>,map<string,void>>"),
        ("something<new here>", "something<new here>"),
    ],
)
def test_names_of_fields_are_quoted(dtype: str, sql: str) -> None:
    assert sql_of(parsed(dtype)) == sql


@pytest.mark.parametrize(
    ("dtype", "sql"),
    [
        ("timestamp", "timestamp_ltz"),
        ("TIMESTAMP", "timestamp_ltz"),
        ("timestamp_ltz", "timestamp_ltz"),
        ("timestamp_ntz", "timestamp_ntz"),
        (
            "map<timestamp,struct<timestamp:timestamp>>",
            "map<timestamp_ltz,struct<`timestamp`:timestamp_ltz>>",
        ),
    ],
)
def test_a_timestamp_is_an_instant_whatever_a_setting_makes_of_its_name(
    dtype: str, sql: str
) -> None:
    assert sql_of(parsed(dtype)) == sql
