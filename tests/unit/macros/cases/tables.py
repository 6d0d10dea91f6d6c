"""Tables that are made, what they must hold, and what they are compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dbt.adapters.openmirroring.destination.replica import Replica, ReplicaColumn
from dbt.adapters.openmirroring.node.constraints import Constraint
from dbt.adapters.openmirroring.spark.casts import Cast
from tests.unit.macros.cases.shop import (
    CODE,
    ID,
    NEW_ROWS,
    NEXT,
    ODD,
    ODD_NAME,
    ORDERS,
    PLACED,
    TAGS,
    Case,
    case,
)

QUERY = "select 1 as `id`, 'a' as `status`"
UNIQUE = Constraint("unique (id, day)", unique=("id", ODD_NAME))
NOT_NULL = Constraint("not_null (id)", broken="`id` is null")
CHECK = Constraint("check (price > 0)", broken="not (price > 0)")


def replica(*files: str) -> Replica:
    columns = (ReplicaColumn("id", "bigint"), ReplicaColumn(ODD_NAME, "string"))
    return Replica(columns, ("id",), "/lake/it's [odd]/orders", files)


def create(
    properties: dict[str, Any] | None = None,
    compression: str | None = None,
    partition_by: tuple[str, ...] = (),
    **node: Any,
) -> Case:
    return case(
        "mirror_create_table", NEXT, QUERY, properties or {}, compression, partition_by, **node
    )


CASES = {
    "create_table": create(),
    "create_table_as_it_lands": create(
        {"openmirroring.batch_id": "20261121204415ef7e865d", "it's": "a 'quote' and a \\", "n": 1},
        "zstd",
    ),
    "create_table_partitions": create(partition_by=("day", ODD_NAME), file_format="orc"),
    "create_table_all_clauses": create(
        {"delta.appendOnly": "true"},
        None,
        ("day",),
        description="It's the orders,\nof all shops",
        file_format="delta",
        options={"compression": "gzip"},
        clustered_by=["id", ODD_NAME],
        buckets=8,
        persist_docs={"relation": True},
    ),
    "keep": case("mirror_keep", NEW_ROWS, QUERY),
    "keep_partitioned": case("mirror_keep_partitioned", NEW_ROWS, QUERY, ("day", ODD_NAME)),
    "keep_partitioned_in_a_format": case(
        "mirror_keep_partitioned", NEW_ROWS, QUERY, ("day",), file_format="orc"
    ),
    "seed": case(
        "mirror_seed",
        "openmirroring_seed",
        [
            ("`id`", Cast.of("string", "bigint")),
            ("`it's ``odd```", Cast.of("string", "decimal(10,2)")),
            ("`day`", Cast.of("string", "date")),
            ("`name`", Cast.of("string", "string")),
        ],
        "Correct the seed.",
    ),
    "live_rows": case("mirror_live_rows", QUERY, None),
    "live_rows_without_deletes": case("mirror_live_rows", QUERY, "gone or late"),
    "mark": case("mirror_mark", NEXT, {"openmirroring.held": "1", "it's": "a 'word'"}),
    "unmark": case("mirror_unmark", NEXT, ("openmirroring.held", "it's")),
    "table_bytes": case("mirror_table_bytes", NEXT),
    "iceberg_bytes": case("mirror_iceberg_bytes", NEXT),
    "iceberg_operations": case("mirror_iceberg_operations", NEXT),
    "count_broken": case("mirror_count_broken", NEXT, [NOT_NULL, UNIQUE, CHECK]),
    "broken_rows": case("mirror_broken_rows", NEXT, CHECK, ("id", ODD_NAME)),
    "broken_rows_repeated": case("mirror_broken_rows", NEXT, UNIQUE, UNIQUE.unique),
    "replica_view": case(
        "mirror_replica_view", "openmirroring_replica", replica("a.parquet", "day=it's/b.parquet")
    ),
    "replica_view_of_delta": case(
        "mirror_replica_view", "openmirroring_replica", replace(replica(), version=12)
    ),
    "replica_view_without_rows": case("mirror_replica_view", "openmirroring_replica", replica()),
    "difference": case(
        "mirror_difference", ORDERS, [ID, CODE, PLACED], "openmirroring_replica", ("id", "code")
    ),
    "difference_without_key": case(
        "mirror_difference", ORDERS, [ODD, TAGS], "openmirroring_replica", [ODD_NAME, "tags"]
    ),
}
