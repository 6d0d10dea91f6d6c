"""The values of a column that are checked, and how."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn
from dbt.adapters.openmirroring.types.columns import LandingColumn
from dbt.adapters.openmirroring.types.value_checks import value_checks

DAYS = "not between date'0001-01-01' and date'9999-12-31'"


def conditions(dtype: str, *, is_delimited: bool = False, spark_major: int = 4) -> list[str]:
    column = LandingColumn.of(OpenMirroringColumn("v", dtype))
    checks = value_checks([column], is_delimited, spark_major)
    assert all(check.column == column for check in checks)
    return [check.condition for check in checks]


@pytest.mark.parametrize(
    "dtype",
    [
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)"),
        *("binary", "time(6)", "variant", "geometry(4326)", "array<int>", "map<int,binary>"),
        "struct<a:variant,string:int>",
    ],
)
def test_most_types_have_no_value_that_nobody_can_read(dtype: str) -> None:
    assert conditions(dtype) == []


@pytest.mark.parametrize(
    "dtype", ["string", "STRING", "char(3)", "varchar(3)", "string collate UTF8_LCASE"]
)
def test_text_of_any_kind_must_be_utf_8(dtype: str) -> None:
    assert conditions(dtype) == ["not is_valid_utf8(`v`)"]


def test_a_spark_without_that_function_encodes_and_decodes_the_text() -> None:
    assert conditions("string", spark_major=3) == [
        "decode(encode(`v`, 'UTF-16BE'), 'UTF-16BE') <> `v`"
    ]


def test_only_in_delimited_text_bytes_must_be_text() -> None:
    assert conditions("binary", is_delimited=True) == ["not is_valid_utf8(cast(`v` as string))"]
    assert conditions("string", is_delimited=True) == conditions("string")


@pytest.mark.parametrize(
    ("dtype", "condition"),
    [
        ("date", f"`v` {DAYS}"),
        (
            "timestamp",
            "`v` not between timestamp_ltz'0001-01-01 00:00:00Z' "
            "and timestamp_ltz'9999-12-31 23:59:59.999999Z'",
        ),
        (
            "timestamp_ntz",
            "`v` not between timestamp_ntz'0001-01-01 00:00:00' "
            "and timestamp_ntz'9999-12-31 23:59:59.999999'",
        ),
    ],
)
def test_dates_and_times_must_have_four_digits_of_a_year(dtype: str, condition: str) -> None:
    assert conditions(dtype) == [condition]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("array<string>", ["exists(`v`, value_1 -> not is_valid_utf8(value_1))"]),
        (
            "map<char(2),date>",
            [
                "exists(map_keys(`v`), value_1 -> not is_valid_utf8(value_1))",
                f"exists(map_values(`v`), value_1 -> value_1 {DAYS})",
            ],
        ),
        (
            "struct<a`b:string,n:int,c d:struct<e:string>>",
            ["not is_valid_utf8(`v`.`a``b`) or not is_valid_utf8(`v`.`c d`.`e`)"],
        ),
        (
            "array<map<int,array<struct<d:date>>>>",
            [
                "exists(`v`, value_1 -> exists(map_values(value_1), value_2 -> "
                f"exists(value_2, value_3 -> value_3.`d` {DAYS})))"
            ],
        ),
        # of a type that is not known, the whole value is taken for text
        ("array<hologram>", ["not is_valid_utf8(cast(`v` as string))"]),
    ],
)
def test_values_inside_of_others_are_checked(dtype: str, expected: list[str]) -> None:
    assert conditions(dtype) == expected
