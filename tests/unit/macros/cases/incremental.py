"""New rows in a snapshot: the incremental strategies, and dbt's snapshots."""

from __future__ import annotations

from typing import Any

from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.incremental import IncrementalColumn
from dbt.adapters.openmirroring.node.snapshot.key_ranges import KeyRange
from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange, TouchedRows
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn
from dbt.adapters.openmirroring.types.casts import Cast
from tests.unit.macros.cases.shop import (
    NEW_ROWS,
    NEXT,
    ODD_NAME,
    OLD_ROWS,
    ORDERS,
    PART,
    Case,
    case,
)


def column(name: str, dtype: str, **others: Any) -> IncrementalColumn:
    types = {"snapshot_type": dtype, "new_type": dtype, "is_updated": True}
    return IncrementalColumn(name, dtype, **{**types, **others})


ID, STATUS = column("id", "bigint"), column("status", "string")
DAY, ODD = column("day", "date"), column(ODD_NAME, "string")
ADDED = column("added", "double", snapshot_type=None)
MISSING = column("missing", "int", new_type=None, is_updated=False)
KEPT = column("kept", "string", is_updated=False)
WIDER = column("wider", "bigint", snapshot_type="int")
NESTED = column("nested", "array<bigint>", snapshot_type="array<int>")

REMEDY = "It's up to you."

COLUMNS = (ID, STATUS)
DIFFERENT = (ID, STATUS, ADDED, MISSING, KEPT, ODD)
PREDICATES = [
    "DBT_INTERNAL_DEST.`day` is null or DBT_INTERNAL_DEST.`day` > date'2026-01-01'",
    "DBT_INTERNAL_SOURCE.`ok`",
]

SCD_COLUMNS = (
    column("id", "bigint", is_updated=False),
    column("dbt_scd_id", "string", is_updated=False),
    column("dbt_valid_to", "timestamp"),
    column("added", "double", snapshot_type=None, is_updated=False),
)
SCD_NAMES = {"dbt_scd_id": "dbt_scd_id", "dbt_valid_to": "dbt_valid_to"}

ADDED_ROWS = TouchedRows(NEW_ROWS, (), None)
TOUCHED_ROWS = TouchedRows(NEW_ROWS, ("id", ODD_NAME), OLD_ROWS)
NAMES = ["`id`", "`it's ``odd```"]
RANGES = [
    KeyRange("`id`", "-5", "7"),
    KeyRange("`it's ``odd```", "date '2026-01-01'", "date '2026-01-31'"),
]


def strategy(
    options: NodeConfig,
    columns: tuple[IncrementalColumn, ...] = COLUMNS,
    snapshot: str = str(ORDERS),
    predicates: tuple[str, ...] = (),
) -> Case:
    return case(
        options.strategy_macro,
        snapshot=snapshot,
        new_rows=NEW_ROWS,
        columns=columns,
        options=options,
        predicates=list(predicates),
    )


def config(name: str, *unique_key: str, **others: Any) -> NodeConfig:
    return NodeConfig(unique_key, incremental_strategy=name, **others)


CASES = {
    "typed_rows_padded": case(
        "mirror_typed_rows",
        rows=NEW_ROWS,
        columns=[("`id`", None, "`id`"), ("`code`", Cast.of("string", "char(5)"), "`code`")],
        remedy=REMEDY,
    ),
    "typed_rows": case(
        "mirror_typed_rows",
        rows=NEW_ROWS,
        columns=[
            ("`ID`", Cast.of("double", "bigint"), "`id`"),
            ("`it's ``odd```", None, "`it's ``odd```"),
            ("`nested`", Cast.of("array<int>", "array<bigint>"), "`nested`"),
            ("`map`", Cast.of("map<int,string>", "map<string,date>"), "`map`"),
            ("`struct`", Cast.of("struct<b:int,A b:int>", "struct<a b:int,c:date>"), "`struct`"),
        ],
        remedy=REMEDY,
    ),
    "typed_rows_that_lose": case(
        "mirror_typed_rows",
        rows=NEW_ROWS,
        columns=[
            (f"`{source}`", Cast.of(source, target), f"`{target}`")
            for source, target in (
                ("decimal(10,4)", "decimal(5,2)"),
                ("timestamp", "date"),
                ("bigint", "double"),
                ("decimal(20,0)", "float"),
                ("double", "float"),
                ("string", "decimal(5,2)"),
                ("varchar(9)", "date"),
            )
        ],
        remedy=REMEDY,
    ),
    "typed_rows_that_may_lose": case(
        "mirror_typed_rows",
        rows=NEW_ROWS,
        columns=[("`at`", Cast.of("timestamp", "date", is_exact=False), "`at`")],
        remedy=REMEDY,
    ),
    "typed_snapshot_as_it_is": case(
        "mirror_typed_snapshot", rows=FileRange(ORDERS), columns=DIFFERENT, remedy=REMEDY
    ),
    "typed_snapshot_some_files": case(
        "mirror_typed_snapshot",
        rows=FileRange(ORDERS, only=("file:/a.parquet",)),
        columns=COLUMNS,
        remedy=REMEDY,
    ),
    "typed_snapshot_cast": case(
        "mirror_typed_snapshot",
        rows=FileRange(ORDERS),
        columns=(ID, WIDER, NESTED, ADDED, MISSING),
        remedy=REMEDY,
    ),
    "ambiguous_rows": case("mirror_ambiguous_rows", new_rows=NEW_ROWS, keys=("id", ODD_NAME)),
    "append": strategy(config("append")),
    "append_columns_differ": strategy(config("append"), DIFFERENT),
    "merge": strategy(config("merge", "id")),
    "merge_two_keys_columns_differ": strategy(config("merge", "id", ODD_NAME), DIFFERENT),
    "merge_deletes": strategy(config("merge", "id", delete_when="gone or late")),
    "merge_predicates_deletes": strategy(
        config("merge", "id", delete_when="gone"), predicates=tuple(PREDICATES)
    ),
    "merge_some_rows": strategy(
        config("merge", "id"), snapshot=f"(select * from {ORDERS} where false)"
    ),
    "merge_without_key": strategy(config("merge")),
    "delete_insert": strategy(config("delete+insert", "id")),
    "delete_insert_two_keys_columns_differ": strategy(
        config("delete+insert", "id", ODD_NAME, delete_when="gone"), DIFFERENT
    ),
    "delete_insert_predicates": strategy(
        config("delete+insert", "id"), predicates=tuple(PREDICATES)
    ),
    "insert_overwrite": strategy(config("insert_overwrite")),
    "insert_overwrite_partitions": strategy(
        config("insert_overwrite", partition_by=("day", ODD_NAME)), (ID, DAY, ODD, ADDED)
    ),
    "microbatch": strategy(
        config("microbatch", partition_by=("day",)), (ID, DAY), predicates=("IN_BATCH",)
    ),
    "in_batch": case(
        "mirror_in_batch",
        event_time="`at`",
        start="2024-01-01 00:00:00+00:00",
        end="2024-01-02 00:00:00+00:00",
        keys=(),
    ),
    "in_batch_with_keys": case(
        "mirror_in_batch", event_time="`at`", start="2024-01-01", end="2024-01-02", keys=("a", "b")
    ),
    "history": case(
        "mirror_history",
        snapshot=ORDERS,
        changes=NEW_ROWS,
        columns=SCD_COLUMNS,
        names=SCD_NAMES,
        valid_to_current=None,
    ),
    "history_valid_to_current": case(
        "mirror_history",
        snapshot=f"(select * from {ORDERS} where false)",
        changes=NEW_ROWS,
        columns=SCD_COLUMNS[:3],
        names=SCD_NAMES,
        valid_to_current="to_date('9999-12-31')",
    ),
    "touched_files": case(
        "mirror_touched_files",
        snapshot=ORDERS,
        new_rows=NEW_ROWS,
        touched_by=[(("id", ODD_NAME), RANGES)],
    ),
    "touched_files_by_partition_or_key": case(
        "mirror_touched_files",
        snapshot=ORDERS,
        new_rows=NEW_ROWS,
        touched_by=[(("day",), ()), (("id",), RANGES[:1])],
    ),
    "key_bounds": case(
        "mirror_key_bounds",
        new_rows=NEW_ROWS,
        columns=[OpenMirroringColumn("id", "int"), OpenMirroringColumn(ODD_NAME, "date")],
    ),
    "touched_rows": case(
        "mirror_touched_rows", snapshot=ORDERS, new_rows=NEW_ROWS, keys=("id",), ranges=RANGES[:1]
    ),
    "touched_rows_two_keys": case(
        "mirror_touched_rows",
        snapshot=ORDERS,
        new_rows=NEW_ROWS,
        keys=("id", ODD_NAME),
        ranges=RANGES,
    ),
    "touched_rows_without_ranges": case(
        "mirror_touched_rows", snapshot=ORDERS, new_rows=NEW_ROWS, keys=("id",), ranges=()
    ),
    "with_touched_rows": case(
        "mirror_with_touched_rows",
        snapshot=ORDERS,
        replacement=PART,
        touched=TOUCHED_ROWS,
        names=NAMES,
    ),
    "with_touched_rows_added": case(
        "mirror_with_touched_rows",
        snapshot=ORDERS,
        replacement=NEXT,
        touched=ADDED_ROWS,
        names=NAMES,
    ),
    "merge_part": case(
        "mirror_merge_part",
        snapshot=ORDERS,
        part=NEXT,
        new_rows=NEW_ROWS,
        keys=("id",),
        names=["`id`", "`status`"],
        ranges=(),
    ),
    "merge_part_two_keys": case(
        "mirror_merge_part",
        snapshot=ORDERS,
        part=NEXT,
        new_rows=NEW_ROWS,
        keys=("id", ODD_NAME),
        names=[*NAMES, "`status`"],
        ranges=RANGES,
    ),
    "insert_part": case("mirror_insert_part", snapshot=ORDERS, part=NEXT, names=NAMES),
}
