"""Rows that differ, and keys that can be published."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.openmirroring.node.columns import LandingColumn
from dbt.adapters.openmirroring.node.compare import Side
from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange
from dbt.adapters.openmirroring.node.value_checks import value_checks
from tests.unit.macros.cases.shop import (
    AMOUNT,
    CHANGED,
    CODE,
    DAY,
    ID,
    LINE,
    NEXT,
    ODD,
    ODD_TABLE,
    OLD_ROWS,
    ORDERS,
    PHOTO,
    PLACED,
    PRICE,
    SEEN,
    STATUS,
    TAGS,
    case,
    landing,
)

KEY, KEYS, FLOAT_KEYS = (ID,), (ID, CODE), (ID, PRICE)
MANY = tuple(LandingColumn(f"c{number}", "int", "int") for number in range(61))

CHECKS = value_checks(
    (
        *(STATUS, DAY, SEEN, PLACED, CODE, ODD, TAGS),
        landing("visits", "array<struct<a b:string,at:timestamp,photo:binary>>"),
        *(ID, PRICE, AMOUNT, PHOTO),
    ),
    is_delimited=False,
    spark_major=4,
)


def side(rows: FileRange, keys: tuple[LandingColumn, ...], *values: LandingColumn | None) -> Side:
    return Side(rows, keys, values)


AFTER, BEFORE = FileRange(NEXT), FileRange(ORDERS)

CASES = {
    "compare_keyed_small": case(
        "mirror_compare_keyed",
        side(AFTER, KEY, STATUS, DAY),
        side(BEFORE, KEY, STATUS, DAY),
        True,
        "upsert",
    ),
    "compare_keyed_small_insert": case(
        "mirror_compare_keyed",
        side(AFTER, KEYS, STATUS),
        side(BEFORE, KEYS, STATUS),
        True,
        "insert",
    ),
    "compare_keyed_large": case(
        "mirror_compare_keyed",
        side(AFTER, KEY, STATUS, DAY),
        side(BEFORE, KEY, STATUS, DAY),
        False,
        "upsert",
    ),
    "compare_keyed_large_two_keys_column_added": case(
        "mirror_compare_keyed",
        side(AFTER, KEYS, PLACED, TAGS, STATUS),
        # rows of the snapshot land by its own types
        side(BEFORE, (ID, landing("code", "string")), PLACED, TAGS, None),
        False,
        "insert",
    ),
    "compare_keyed_floats": case(
        "mirror_compare_keyed",
        side(AFTER, FLOAT_KEYS, STATUS, PRICE),
        side(BEFORE, FLOAT_KEYS, STATUS, PRICE),
        False,
        "upsert",
    ),
    "compare_keyed_only_keys": case(
        "mirror_compare_keyed", side(AFTER, KEY), side(BEFORE, KEY), False, "upsert"
    ),
    "compare_keyed_other_files": case(
        "mirror_compare_keyed",
        side(FileRange(NEXT, other_than=("a.parquet", "it's.parquet")), KEY, STATUS),
        side(FileRange(ORDERS, only=("file:/a/it's/b.parquet",)), KEY, STATUS),
        False,
        "upsert",
    ),
    "compare_keyed_touched_rows": case(
        "mirror_compare_keyed",
        side(FileRange(NEXT), KEY, ODD),
        side(FileRange(OLD_ROWS), KEY, ODD),
        True,
        "upsert",
    ),
    "compare_keyed_checks": case(
        "mirror_compare_keyed",
        replace(side(AFTER, KEYS, STATUS, DAY), checks=value_checks((STATUS, DAY), False, 4)),
        side(BEFORE, KEYS, STATUS, DAY),
        False,
        "upsert",
    ),
    "compare_keyless_checks": case(
        "mirror_compare_keyless",
        replace(side(AFTER, (), STATUS, DAY), checks=value_checks((STATUS, DAY), False, 4)),
        side(BEFORE, (), STATUS, DAY),
        False,
        "upsert",
    ),
    "compare_keyless_small": case(
        "mirror_compare_keyless",
        side(AFTER, (), STATUS, PRICE),
        side(BEFORE, (), STATUS, PRICE),
        True,
        "upsert",
    ),
    "compare_keyless_large_column_added": case(
        "mirror_compare_keyless",
        side(AFTER, (), ODD, TAGS, LINE),
        side(BEFORE, (), ODD, TAGS, None),
        False,
        "upsert",
    ),
    "compare_keyless_rows_added": case(
        "mirror_compare_keyless",
        side(AFTER, (), STATUS),
        side(FileRange(ORDERS, only=()), (), STATUS),
        False,
        "upsert",
    ),
    "compare_keyless_many_columns": case(
        "mirror_compare_keyless",
        side(AFTER, (), *MANY),
        side(BEFORE, (), *MANY[:60], None),
        False,
        "upsert",
    ),
    "count_keyed": case("mirror_count_keyed", CHANGED, ORDERS),
    "count_keyed_all_keys": case("mirror_count_keyed", "(select 1)", None),
    "count_keyless": case("mirror_count_keyless", CHANGED, ORDERS),
    "count_load_keyless": case("mirror_count_load", NEXT, (), True),
    "count_load_small": case("mirror_count_load", NEXT, KEY, True),
    "count_load_large_two_keys": case("mirror_count_load", NEXT, (ODD, CODE), False),
    "count_load_checks": case("mirror_count_load", NEXT, KEYS, True, CHECKS),
    "count_load_keyless_checks": case("mirror_count_load", NEXT, (), True, CHECKS),
    "bad_values": case("mirror_bad_values", NEXT, KEYS, CHECKS),
    "bad_values_keyless": case("mirror_bad_values", NEXT, (), CHECKS),
    "new_keys_elsewhere": case("mirror_new_keys_elsewhere", NEXT, CHANGED, KEY),
    "new_keys_elsewhere_two_keys": case("mirror_new_keys_elsewhere", NEXT, CHANGED, KEYS),
    "repeated_versions": case("mirror_repeated_versions", NEXT, ODD, ("id", "upper(name) || '-'")),
    "bad_keys": case("mirror_bad_keys", NEXT, KEY),
    "bad_keys_two_keys": case("mirror_bad_keys", ODD_TABLE, (ODD, CODE)),
    "left_rows": case("mirror_left_rows", NEXT, ORDERS, KEY, KEY, ()),
    "left_rows_of_other_partitions": case(
        "mirror_left_rows", ODD_TABLE, ORDERS, (ODD, CODE), (ODD, CODE), ("day", ODD.name)
    ),
}
