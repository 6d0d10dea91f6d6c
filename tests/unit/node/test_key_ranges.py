"""The ranges of the keys of new rows, which let Spark skip files of a snapshot."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dbt.adapters.openmirroring.node.snapshot.key_ranges import (
    KeyRange,
    key_ranges,
    ranged_columns,
)
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn, OpenMirroringRelation

NEW_ROWS = OpenMirroringRelation.create(schema="shop", identifier="new_rows")


class Bounds:
    """A warehouse whose new rows have these bounds."""

    def __init__(self, *bounds: object) -> None:
        self.bounds = bounds
        self.asked: list[list[str]] = []

    def read(self, macro: str, *, new_rows: object, columns: list[OpenMirroringColumn]) -> Any:
        assert (macro, new_rows) == ("mirror_key_bounds", NEW_ROWS)
        self.asked.append([column.name for column in columns])
        return SimpleNamespace(rows=[self.bounds])


def ranges(found: Bounds, keys: list[str], **types: str) -> tuple[KeyRange, ...]:
    columns = [OpenMirroringColumn(name, dtype) for name, dtype in types.items()]
    return key_ranges(cast("Warehouse", found), NEW_ROWS, ranged_columns(columns, keys))


@pytest.mark.parametrize(
    ("dtype", "least", "greatest", "first", "last"),
    [
        ("tinyint", -128, 127, "-128Y", "127Y"),
        ("smallint", -32768, 5, "-32768S", "5S"),
        ("int", -2147483648, 0, "-2147483648", "0"),
        ("bigint", -9223372036854775808, 7, "-9223372036854775808L", "7L"),
        ("date", -141349, 2932896, "date '1583-01-01'", "date '9999-12-31'"),
        # as the tables of dbt have numbers
        ("bigint", Decimal(5), Decimal(9007199254740993), "5L", "9007199254740993L"),
        ("date", Decimal(-1), Decimal(0), "date '1969-12-31'", "date '1970-01-01'"),
    ],
)
def test_integers_and_dates_have_ranges_in_literals_of_their_type(
    dtype: str, least: object, greatest: object, first: str, last: str
) -> None:
    assert ranges(Bounds(least, greatest), ["id"], id=dtype) == (KeyRange("`id`", first, last),)


@pytest.mark.parametrize(
    "dtype",
    ["string", "char(3)", "string collate UTF8_LCASE", "double", "decimal(38,0)", "timestamp"],
)
def test_other_types_have_none_and_cost_no_query(dtype: str) -> None:
    found = Bounds()

    assert ranges(found, ["id"], id=dtype) == ()
    assert found.asked == []


def test_only_keys_have_ranges_however_they_are_written() -> None:
    found = Bounds(1, 2, 20454, 20484)

    both = ranges(
        found, ["ID", "status", "day"], id="int", amount="int", status="string", Day="date"
    )

    assert found.asked == [["id", "Day"]]
    assert both == (
        KeyRange("`id`", "1", "2"),
        KeyRange("`Day`", "date '2026-01-01'", "date '2026-01-31'"),
    )


def test_there_are_none_if_two_columns_differ_only_in_case() -> None:
    assert ranges(Bounds(1, 2), ["id"], id="int", ID="int") == ()


@pytest.mark.parametrize(
    ("least", "greatest"),
    [
        # no new rows, or only NULL
        (None, None),
        # before our era, in old calendars, after the year 9999
        (-735232, 20454),
        (-141350, 20454),
        (20454, 2932897),
    ],
)
def test_a_bound_without_a_plain_literal_gives_no_range(
    least: int | None, greatest: int | None
) -> None:
    assert ranges(Bounds(least, greatest), ["day"], day="date") == ()
