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
