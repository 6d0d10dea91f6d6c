"""The values of a column that are checked, and how."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn
from dbt.adapters.openmirroring.types.columns import LandingColumn, ValueCheck, value_checks

DAYS = "not between date'0001-01-01' and date'9999-12-31'"


def checks(dtype: str, *, in_text: bool = False, spark_major: int = 4) -> tuple[ValueCheck, ...]:
    column = LandingColumn.of(OpenMirroringColumn("v", dtype))
    found = value_checks([column], in_text, spark_major)
    assert all(check.column == column for check in found)
    return found


# types, and the conditions for values of them that nobody can read
CONDITIONS: dict[tuple[str, ...], list[str]] = {
    (
        *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(9,2)"),
        *("binary", "time(6)", "variant", "geometry(4326)", "array<int>", "map<int,binary>"),
        "struct<a:variant,string:int>",
    ): [],
    ("string", "STRING", "char(3)", "varchar(3)", "string collate UTF8_LCASE"): [
        "not is_valid_utf8(`v`)"
    ],
    ("date",): [f"`v` {DAYS}"],
    ("timestamp",): [
        "`v` not between timestamp_ltz'0001-01-01 00:00:00Z' "
        "and timestamp_ltz'9999-12-31 23:59:59.999999Z'"
    ],
    ("timestamp_ntz",): [
        "`v` not between timestamp_ntz'0001-01-01 00:00:00' "
        "and timestamp_ntz'9999-12-31 23:59:59.999999'"
    ],
    ("array<string>",): ["exists(`v`, value_1 -> not is_valid_utf8(value_1))"],
    ("map<char(2),date>",): [
        "exists(map_keys(`v`), value_1 -> not is_valid_utf8(value_1))",
        f"exists(map_values(`v`), value_1 -> value_1 {DAYS})",
    ],
    ("struct<a`b:string,n:int,c d:struct<e:string>>",): [
        "not is_valid_utf8(`v`.`a``b`) or not is_valid_utf8(`v`.`c d`.`e`)"
    ],
    ("array<map<int,array<struct<d:date>>>>",): [
        "exists(`v`, value_1 -> exists(map_values(value_1), value_2 -> "
        f"exists(value_2, value_3 -> value_3.`d` {DAYS})))"
    ],
    # of a type that is not known, the whole value is taken for text
    ("array<hologram>",): ["not is_valid_utf8(cast(`v` as string))"],
}


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(dtype, found) for types, found in CONDITIONS.items() for dtype in types],
)
def test_values_that_nobody_can_read_are_found(dtype: str, expected: list[str]) -> None:
    assert [check.condition for check in checks(dtype)] == expected


def test_a_spark_without_that_function_encodes_and_decodes_the_text() -> None:
    [check] = checks("string", spark_major=3)

    assert check.condition == "decode(encode(`v`, 'UTF-16BE'), 'UTF-16BE') <> `v`"


def test_only_in_delimited_text_bytes_must_be_text() -> None:
    [check] = checks("binary", in_text=True)

    assert check.condition == "not is_valid_utf8(cast(`v` as string))"
    assert "base64(`v`)" in check.remedy
    assert checks("string", in_text=True) == checks("string")
