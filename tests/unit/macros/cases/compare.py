"""Rows that differ, and keys that can be published."""

from __future__ import annotations

from dataclasses import replace

from dbt.adapters.openmirroring.node.compare import Side
from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange
from dbt.adapters.openmirroring.types.columns import LandingColumn
from dbt.adapters.openmirroring.types.value_checks import value_checks
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
        after=side(AFTER, KEY, STATUS, DAY),
        before=side(BEFORE, KEY, STATUS, DAY),
        is_small=True,
        insert_marker="upsert",
    ),
    "compare_keyed_small_insert": case(
        "mirror_compare_keyed",
        after=side(AFTER, KEYS, STATUS),
        before=side(BEFORE, KEYS, STATUS),
        is_small=True,
        insert_marker="insert",
    ),
    "compare_keyed_large": case(
        "mirror_compare_keyed",
        after=side(AFTER, KEY, STATUS, DAY),
        before=side(BEFORE, KEY, STATUS, DAY),
        is_small=False,
        insert_marker="upsert",
    ),
    "compare_keyed_large_two_keys_column_added": case(
        "mirror_compare_keyed",
        after=side(AFTER, KEYS, PLACED, TAGS, STATUS),
        # rows of the snapshot land by its own types
        before=side(BEFORE, (ID, landing("code", "string")), PLACED, TAGS, None),
        is_small=False,
        insert_marker="insert",
    ),
    "compare_keyed_floats": case(
        "mirror_compare_keyed",
        after=side(AFTER, FLOAT_KEYS, STATUS, PRICE),
        before=side(BEFORE, FLOAT_KEYS, STATUS, PRICE),
        is_small=False,
        insert_marker="upsert",
    ),
    "compare_keyed_only_keys": case(
        "mirror_compare_keyed",
        after=side(AFTER, KEY),
        before=side(BEFORE, KEY),
        is_small=False,
        insert_marker="upsert",
    ),
    "compare_keyed_other_files": case(
        "mirror_compare_keyed",
        after=side(FileRange(NEXT, other_than=("a.parquet", "it's.parquet")), KEY, STATUS),
        before=side(FileRange(ORDERS, only=("file:/a/it's/b.parquet",)), KEY, STATUS),
        is_small=False,
        insert_marker="upsert",
    ),
    "compare_keyed_touched_rows": case(
        "mirror_compare_keyed",
        after=side(FileRange(NEXT), KEY, ODD),
        before=side(FileRange(OLD_ROWS), KEY, ODD),
        is_small=True,
        insert_marker="upsert",
    ),
    "compare_keyed_checks": case(
        "mirror_compare_keyed",
        after=replace(
            side(AFTER, KEYS, STATUS, DAY), checks=value_checks((STATUS, DAY), False, 4)
        ),
        before=side(BEFORE, KEYS, STATUS, DAY),
        is_small=False,
        insert_marker="upsert",
    ),
    "compare_keyless_checks": case(
        "mirror_compare_keyless",
        after=replace(side(AFTER, (), STATUS, DAY), checks=value_checks((STATUS, DAY), False, 4)),
        before=side(BEFORE, (), STATUS, DAY),
        is_small=False,
        insert_marker="upsert",
    ),
    "compare_keyless_small": case(
        "mirror_compare_keyless",
        after=side(AFTER, (), STATUS, PRICE),
        before=side(BEFORE, (), STATUS, PRICE),
        is_small=True,
        insert_marker="upsert",
    ),
    "compare_keyless_large_column_added": case(
        "mirror_compare_keyless",
        after=side(AFTER, (), ODD, TAGS, LINE),
        before=side(BEFORE, (), ODD, TAGS, None),
        is_small=False,
        insert_marker="upsert",
    ),
    "compare_keyless_rows_added": case(
        "mirror_compare_keyless",
        after=side(AFTER, (), STATUS),
        before=side(FileRange(ORDERS, only=()), (), STATUS),
        is_small=False,
        insert_marker="upsert",
    ),
    "compare_keyless_many_columns": case(
        "mirror_compare_keyless",
        after=side(AFTER, (), *MANY),
        before=side(BEFORE, (), *MANY[:60], None),
        is_small=False,
        insert_marker="upsert",
    ),
    "count_keyed": case("mirror_count_keyed", changed=CHANGED, snapshot=ORDERS),
    "count_keyed_all_keys": case("mirror_count_keyed", changed="(select 1)", snapshot=None),
    "count_keyless": case("mirror_count_keyless", changed=CHANGED, snapshot=ORDERS),
    "count_load_keyless": case("mirror_count_load", table=NEXT, keys=(), is_small=True),
    "count_load_small": case("mirror_count_load", table=NEXT, keys=KEY, is_small=True),
    "count_load_large_two_keys": case(
        "mirror_count_load", table=NEXT, keys=(ODD, CODE), is_small=False
    ),
    "count_load_checks": case(
        "mirror_count_load", table=NEXT, keys=KEYS, is_small=True, checks=CHECKS
    ),
    "count_load_keyless_checks": case(
        "mirror_count_load", table=NEXT, keys=(), is_small=True, checks=CHECKS
    ),
    "bad_values": case("mirror_bad_values", table=NEXT, keys=KEYS, checks=CHECKS),
    "bad_values_keyless": case("mirror_bad_values", table=NEXT, keys=(), checks=CHECKS),
    "new_keys_elsewhere": case("mirror_new_keys_elsewhere", table=NEXT, changed=CHANGED, keys=KEY),
    "new_keys_elsewhere_two_keys": case(
        "mirror_new_keys_elsewhere", table=NEXT, changed=CHANGED, keys=KEYS
    ),
    "repeated_versions": case(
        "mirror_repeated_versions", table=NEXT, version=ODD, keys=("id", "upper(name) || '-'")
    ),
    "bad_keys": case("mirror_bad_keys", table=NEXT, keys=KEY),
    "bad_keys_two_keys": case("mirror_bad_keys", table=ODD_TABLE, keys=(ODD, CODE)),
    "left_rows": case(
        "mirror_left_rows",
        table=NEXT,
        snapshot=ORDERS,
        keys=KEY,
        published_keys=KEY,
        partition_by=(),
    ),
    "left_rows_of_other_partitions": case(
        "mirror_left_rows",
        table=ODD_TABLE,
        snapshot=ORDERS,
        keys=(ODD, CODE),
        published_keys=(ODD, CODE),
        partition_by=("day", ODD.name),
    ),
}
