"""How a value of Spark is sent to Python, and which value it is there."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from dbt_common.clients.agate_helper import table_from_data_flat

from dbt.adapters.openmirroring.types.columns import json_text
from dbt.adapters.openmirroring.types.crossing import (
    offsets,
    received,
    selection,
    with_exact_numbers,
)

PLAIN = ("string", "char(3)", "boolean", "tinyint", "bigint", "double", "decimal(38,18)", "void")
TIME = dt.datetime(2024, 10, 27, 2, 30)


def sent(dtype: str) -> str:
    """Return the SQL of a value of a type."""
    return selection([dtype])["c0"]


def arrived(dtype: str, *values: Any) -> list[Any]:
    return [row[0] for row in received([dtype], [(value,) for value in values])]


def instant(text: str, micros: int, *, is_first: bool = True) -> str:
    return f"{text}|{micros}|{str(is_first).lower()}"


def test_a_query_whose_values_python_has_as_they_are_stays_as_it_is() -> None:
    assert selection(PLAIN) == {}
    assert selection([]) == {}


def test_columns_get_new_names_beside_one_that_spark_converts() -> None:
    assert selection(["int", "date", "int"]) == {
        "c0": "c0",
        "c1": "cast(c1 as string)",
        "c2": "c2",
    }


@pytest.mark.parametrize(
    ("dtype", "sql"),
    [
        ("float", "cast(c0 as double)"),
        ("timestamp_ntz", "cast(c0 as string)"),
        ("timestamp_ntz(9)", "cast(c0 as string)"),
        ("time(6)", "cast(c0 as string)"),
        ("interval", "cast(c0 as string)"),
        (
            "interval hour",
            "split(cast(cast(c0 as interval day to second) as string), chr(39L))[1]",
        ),
        (
            "interval year to month",
            "split(cast(cast(c0 as interval year to month) as string), chr(39L))[1]",
        ),
        ("binary", "hex(c0)"),
        ("geometry(0)", "hex(st_asbinary(c0))"),
        ("map<date,int>", json_text("map<date,int>", "c0")),
        ("variant", json_text("variant", "c0")),
        ("map<unheard of,int>", "cast(c0 as string)"),
        ("unheard of", "cast(c0 as string)"),
    ],
)
def test_spark_writes_the_text_of_a_value_that_python_would_change(dtype: str, sql: str) -> None:
    assert sent(dtype) == sql


def test_a_text_becomes_the_value_of_python_if_there_is_one() -> None:
    assert arrived("date", "2024-02-29", "+10000-01-01", "-0044-03-15", None) == [
        *(dt.date(2024, 2, 29), "+10000-01-01", "-0044-03-15", None)
    ]
    assert arrived("timestamp_ntz", "1582-10-10 01:02:03.5", "0000-01-01 00:00:00", None) == [
        *(dt.datetime(1582, 10, 10, 1, 2, 3, 500000), "0000-01-01 00:00:00", None)
    ]
    assert arrived("time(6)", "14:30:00.5") == ["14:30:00.5"]
    assert arrived("bigint", 0, None) == [0, None]


def test_an_instant_has_no_offset_where_its_local_time_says_it() -> None:
    winter, late = instant("2024-01-01 00:00:00", 0), instant("+10000-01-01 00:30:00", 0)

    assert arrived("timestamp", winter, None) == [dt.datetime(2024, 1, 1), None]
    assert arrived("timestamp", late) == ["+10000-01-01 00:30:00"]


def test_all_instants_of_a_column_have_an_offset_beside_one_that_needs_it() -> None:
    first = instant(str(TIME), 1729989000000000)
    second = instant(str(TIME), 1729992600000000, is_first=False)

    found = arrived("timestamp", second, None, first)

    assert [str(each) for each in found] == [
        *("2024-10-27 02:30:00+01:00", "None", "2024-10-27 02:30:00+02:00")
    ]
    assert max(found[0], found[2]) == found[0]
    assert received(["timestamp"] * 2, [(first, second)])[0][0] == TIME


def test_all_instants_have_an_offset_where_they_are_asked_for() -> None:
    value = instant(str(TIME), 1729989000000000)

    with offsets():
        [found] = arrived("timestamp", value)

    assert str(found) == "2024-10-27 02:30:00+02:00"
    assert arrived("timestamp", value) == [TIME]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        *((1.5, "1.5"), (-0.0, "-0.0"), (1e300, "1e+300"), (Decimal("1.50"), "1.5")),
        *((float("nan"), '"NaN"'), (float("-inf"), '"-Infinity"'), (None, "null")),
        (Decimal("12345678901234567890.125"), '"12345678901234567890.125"'),
    ],
)
def test_a_number_is_exact_in_json(value: Any, written: str) -> None:
    output = StringIO()

    with_exact_numbers(table_from_data_flat([{"n": value}, {"n": 0.5}], ["n"])).to_json(output)

    assert output.getvalue() == f'[{{"n": {written}}}, {{"n": 0.5}}]'


def test_no_rows_stay_no_rows() -> None:
    assert received(["timestamp", "int"], []) == []
