"""Tables that are made, what they must hold, and what they are compared with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dbt.adapters.openmirroring.destination.replica import Replica, ReplicaColumn
from dbt.adapters.openmirroring.node.build import Constraint
from dbt.adapters.openmirroring.types.casts import Cast
from tests.unit.macros.cases.shop import (
    CODE,
    ID,
    NEW_ROWS,
    NEXT,
    ODD,
    ODD_NAME,
    ODD_TABLE,
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
    stored: dict[str, str] | None = None,
    partition_by: tuple[str, ...] = (),
    description: str = "",
    **node: Any,
) -> Case:
    created = case(
        "mirror_create_table",
        table=NEXT,
        query=QUERY,
        properties=properties or {},
        options=stored or {},
        partition_by=partition_by,
    )
    return replace(created, description=description, config=node)


CASES = {
    "create_table": create(),
    "create_table_as_it_lands": create(
        {"openmirroring.batch_id": "20261121204415ef7e865d", "it's": "a 'quote' and a \\", "n": 1},
        {"compression": "zstd"},
    ),
    "create_table_partitions": create(
        stored={"timeZone": "UTC", "it's": "a 'quote'"},
        partition_by=("day", ODD_NAME),
        file_format="orc",
    ),
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
    "documented_rows": case(
        "mirror_documented_rows",
        view="`openmirroring_documented`",
        query=QUERY,
        comments={"id": "It's\nthe key", ODD_NAME: "", "day": "a \\ day"},
    ),
    "documented_rows_before_their_columns_are_known": case(
        "mirror_documented_rows", view="`openmirroring_documented`", query=QUERY, comments={}
    ),
    "keep": case("mirror_keep", table=NEW_ROWS, query=QUERY),
    "keep_partitioned": case(
        "mirror_keep_partitioned", table=NEW_ROWS, query=QUERY, partition_by=("day", ODD_NAME)
    ),
    "keep_partitioned_in_a_format": replace(
        case(
            "mirror_keep_partitioned",
            table=NEW_ROWS,
            query=QUERY,
            partition_by=("day",),
            options={"timeZone": "UTC"},
        ),
        config={"file_format": "orc"},
    ),
    "seed": case(
        "mirror_seed",
        view="openmirroring_seed",
        columns=[
            ("`id`", Cast.of("string", "bigint")),
            ("`it's ``odd```", Cast.of("string", "decimal(10,2)")),
            ("`day`", Cast.of("string", "date")),
            ("`name`", Cast.of("string", "string")),
        ],
        remedy="Correct the seed.",
    ),
    "live_rows": case("mirror_live_rows", query=QUERY, delete_when=None),
    "live_rows_without_deletes": case("mirror_live_rows", query=QUERY, delete_when="gone or late"),
    "mark": case(
        "mirror_mark", table=NEXT, properties={"openmirroring.held": "1", "it's": "a 'word'"}
    ),
    "unmark": case("mirror_unmark", table=NEXT, names=("openmirroring.held", "it's")),
    "table_bytes": case("mirror_table_bytes", table=NEXT),
    "count_rows": case("mirror_count_rows", table=ODD_TABLE),
    "find_partitions": case("mirror_find_partitions", table=ODD_TABLE),
    "find_files": case("mirror_find_files", table=ODD_TABLE),
    "delta_operations": case("mirror_delta_operations", table=NEXT),
    "delta_operations_last": case("mirror_delta_operations", table=NEXT, limit=1),
    "last_file": case("mirror_last_file", table=NEXT),
    "last_commit": case("mirror_last_commit", table=NEXT),
    "iceberg_bytes": case("mirror_iceberg_bytes", table=NEXT),
    "iceberg_operations": case("mirror_iceberg_operations", table=NEXT),
    "count_broken": case("mirror_count_broken", table=NEXT, constraints=[NOT_NULL, UNIQUE, CHECK]),
    "broken_rows": case(
        "mirror_broken_rows", table=NEXT, constraint=CHECK, columns=("id", ODD_NAME)
    ),
    "broken_rows_repeated": case(
        "mirror_broken_rows", table=NEXT, constraint=UNIQUE, columns=UNIQUE.unique
    ),
    "replica_view": case(
        "mirror_replica_view",
        view="openmirroring_replica",
        replica=replica("a.parquet", "day=it's/b.parquet"),
    ),
    "replica_view_of_delta": case(
        "mirror_replica_view", view="openmirroring_replica", replica=replace(replica(), version=12)
    ),
    "replica_view_without_rows": case(
        "mirror_replica_view", view="openmirroring_replica", replica=replica()
    ),
    "restored_rows": case(
        "mirror_restored_rows",
        view="openmirroring_mirrored",
        columns=[ID, CODE, PLACED, TAGS, ODD],
    ),
    "restored_rows_of_none": case(
        "mirror_restored_rows", view=None, columns=[ID, CODE, PLACED, TAGS, ODD]
    ),
    "landed_rows": case(
        "mirror_landed_rows", view="openmirroring_mirrored", columns=[ID, PLACED, TAGS, ODD]
    ),
    "count_without_key": case("mirror_count_without_key", table=ODD_TABLE, keys=("id", ODD_NAME)),
    "difference": case(
        "mirror_difference",
        model=ORDERS,
        columns=[ID, CODE, PLACED],
        mirror="openmirroring_replica",
        keys=("id", "code"),
    ),
    "difference_without_key": case(
        "mirror_difference",
        model=ORDERS,
        columns=[ODD, TAGS],
        mirror="openmirroring_replica",
        keys=[ODD_NAME, "tags"],
    ),
}
