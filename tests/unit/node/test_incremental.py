"""The columns of an incremental model's next snapshot, and the ranges of its new keys."""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.next_rows import (
    IncrementalColumn,
    history_columns,
    incremental_columns,
)
from dbt.adapters.openmirroring.node.snapshot.snapshot import (
    KeyRange,
    key_ranges,
    ranged_columns,
)
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn, OpenMirroringRelation

SNAPSHOT = {"id": "int", "Name": "string", "old": "date"}
NEW = {"name": "string", "id": "bigint", "fresh": "double"}
ORDERS = OpenMirroringRelation.create(schema="shop", identifier="orders")


def columns(types: dict[str, str]) -> list[OpenMirroringColumn]:
    return [OpenMirroringColumn(*column) for column in types.items()]


def combine(on_schema_change: str, **config: Any) -> list[IncrementalColumn]:
    options = {"materialized": "incremental", "on_schema_change": on_schema_change, **config}
    return incremental_columns(columns(SNAPSHOT), columns(NEW), NodeConfig.parse(options))


def test_appended_columns_come_last_and_the_others_keep_their_types() -> None:
    assert combine("append_new_columns") == [
        IncrementalColumn("id", "int", "int", "bigint", True),
        IncrementalColumn("Name", "string", "string", "string", True),
        IncrementalColumn("old", "date", "date", None, False),
        IncrementalColumn("fresh", "double", None, "double", True),
    ]


@pytest.mark.parametrize(
    "config", [{"merge_update_columns": ["NAME"]}, {"merge_exclude_columns": ["ID", "fresh"]}]
)
def test_a_merge_updates_the_configured_columns(config: dict[str, Any]) -> None:
    found = combine("append_new_columns", **config)

    assert [column.name for column in found if column.is_updated] == ["Name"]


@pytest.mark.parametrize(
    ("on_schema_change", "message"),
    [
        ("ignore", "do not have the columns old"),
        ("fail", "added: fresh; gone: old; of another type: id"),
    ],
)
def test_a_difference_that_nobody_has_decided_about_is_an_error(
    on_schema_change: str, message: str
) -> None:
    with pytest.raises(CompilationError, match=message):
        combine(on_schema_change)


def test_only_the_end_of_a_version_changes_in_a_dbt_snapshot() -> None:
    snapshot = {"id": "int", "dbt_scd_id": "string", "Valid_To": "date"}
    changes = {
        "id": "bigint",
        "dbt_scd_id": "string",
        "valid_to": "timestamp",
        "dbt_change_type": "string",
        "dbt_unique_key": "int",
        "DBT_UNIQUE_KEY_1": "int",
        "fresh": "double",
    }
    names = {"dbt_valid_to": "valid_to", "dbt_scd_id": "dbt_scd_id"}

    assert history_columns(columns(snapshot), columns(changes), names) == [
        IncrementalColumn("id", "bigint", "int", "bigint", False),
        IncrementalColumn("dbt_scd_id", "string", "string", "string", False, is_exact=False),
        IncrementalColumn("Valid_To", "date", "date", "timestamp", True, is_exact=False),
        IncrementalColumn("fresh", "double", None, "double", False),
    ]


# Ranges of keys, which let Spark skip files


def ranges(keys: list[str], types: dict[str, str], *bounds: object) -> tuple[KeyRange, ...]:
    """The ranges of new rows with these bounds, for which Spark is asked only if there are any."""

    def read(_: str, **asked: Any) -> Any:
        assert bounds
        assert 2 * len(asked["columns"]) == len(bounds)
        return SimpleNamespace(rows=[bounds])

    warehouse = cast(Warehouse, SimpleNamespace(read=read))
    return key_ranges(warehouse, ORDERS, ranged_columns(columns(types), keys))


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
    assert ranges(["id"], {"id": dtype}, least, greatest) == (KeyRange("`id`", first, last),)


@pytest.mark.parametrize(
    "dtype",
    ["string", "char(3)", "string collate UTF8_LCASE", "double", "decimal(38,0)", "timestamp"],
)
def test_other_types_have_no_ranges_and_cost_no_query(dtype: str) -> None:
    assert ranges(["id"], {"id": dtype}) == ()


def test_only_keys_have_ranges_however_they_are_written() -> None:
    types = {"id": "int", "amount": "int", "status": "string", "Day": "date"}

    assert ranges(["ID", "status", "day"], types, 1, 2, 20454, 20484) == (
        KeyRange("`id`", "1", "2"),
        KeyRange("`Day`", "date '2026-01-01'", "date '2026-01-31'"),
    )
    # a session that is case sensitive may have two columns of one name
    assert ranges(["id"], {"id": "int", "ID": "int"}) == ()


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
    assert ranges(["day"], {"day": "date"}, least, greatest) == ()
