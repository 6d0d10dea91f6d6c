"""Values on their way through Livy."""

from __future__ import annotations

import datetime as dt
import json
import math
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql import types as t

from dbt.adapters.openmirroring.spark.livy.answer import Answer, CutOffError, decoded
from dbt.adapters.openmirroring.spark.livy.driver import encoded


def sent(value: Any, type_: t.DataType) -> Any:
    """Return a value as it arrives, after it was JSON."""
    return decoded(json.loads(json.dumps(encoded(value, type_))))


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (None, t.StringType()),
        (True, t.BooleanType()),
        (2**63 - 1, t.LongType()),
        (-0.0, t.DoubleType()),
        (float("inf"), t.DoubleType()),
        ("é\x00\u2028😀", t.StringType()),
        (Decimal("1.20"), t.DecimalType(10, 2)),
        (Decimal("-99999999999999999999999999999999999999"), t.DecimalType(38, 0)),
        (Decimal("0E-18"), t.DecimalType(38, 18)),
        (dt.date(1, 1, 1), t.DateType()),
        (dt.datetime(2026, 1, 2, 3, 4, 5, 678901), t.TimestampType()),
        (dt.datetime(1900, 1, 1), t.TimestampType()),
        (dt.datetime(1, 1, 1), t.TimestampNTZType()),
        (dt.timedelta(-1, 2, 3), t.DayTimeIntervalType()),
        (dt.time(23, 59, 59, 999999), t.StringType()),
        (b"\x00\xff", t.BinaryType()),
        ([1, None], t.ArrayType(t.IntegerType())),
        ([], t.ArrayType(t.IntegerType())),
        ([[Decimal("1.5")]], t.ArrayType(t.ArrayType(t.DecimalType(2, 1)))),
        ({dt.date(2026, 1, 1): None}, t.MapType(t.DateType(), t.StringType())),
        ({1: {"a": b"x"}}, t.MapType(t.IntegerType(), t.MapType(t.StringType(), t.BinaryType()))),
    ],
    ids=str,
)
def test_a_value_arrives_as_pyspark_has_it(value: Any, type_: t.DataType) -> None:
    found = sent(value, type_)

    assert (found, repr(found), type(found)) == (value, repr(value), type(value))


def test_nan_arrives_as_nan() -> None:
    assert math.isnan(sent(float("nan"), t.DoubleType()))


def test_structs_arrive_as_rows_whatever_the_names_of_their_fields() -> None:
    type_ = t.StructType(
        [
            t.StructField("a b", t.DecimalType(2, 1)),
            t.StructField("A", t.ArrayType(t.StructType([t.StructField("x", t.DateType())]))),
        ]
    )
    value = Row("a b", "A")(Decimal("1.5"), [Row(x=dt.date(2026, 1, 1)), None])

    found = sent(value, type_)

    assert found == value
    assert found.asDict(recursive=True) == value.asDict(recursive=True)


def test_a_value_of_an_unknown_type_arrives_as_text() -> None:
    class Variant:
        def __str__(self) -> str:
            return '{"a":1}'

    assert sent(Variant(), t.StringType()) == '{"a":1}'


@pytest.fixture
def zones(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch
    monkeypatch.undo()
    time.tzset()


def test_an_instant_is_the_same_in_another_time_zone(zones: pytest.MonkeyPatch) -> None:
    zones.setenv("TZ", "America/New_York")
    time.tzset()
    there = json.dumps(encoded(dt.datetime(2026, 1, 1, 19), t.TimestampType()))
    local = json.dumps(encoded(dt.datetime(2026, 1, 1, 19), t.TimestampNTZType()))
    zones.setenv("TZ", "Europe/Paris")
    time.tzset()

    assert decoded(json.loads(there)) == dt.datetime(2026, 1, 2, 1)
    assert decoded(json.loads(local)) == dt.datetime(2026, 1, 1, 19)


@pytest.mark.parametrize("pieces", [[], ["eJw"], ["AAAA"], ["!"]])
def test_an_answer_that_is_damaged_is_an_error(pieces: list[str]) -> None:
    with pytest.raises(CutOffError):
        Answer.parse(pieces)


@pytest.mark.parametrize("value", [["exec", "1"], ["date", "x"], ["date"], [], ["decimal", None]])
def test_a_value_that_is_none_of_ours_is_an_error(value: Any) -> None:
    with pytest.raises((KeyError, ValueError, TypeError)):
        decoded(value)
