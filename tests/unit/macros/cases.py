"""Calls of each macro that writes SQL, with names and texts that a mistake would show in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from dbt.adapters.contracts.relation import RelationType

from dbt.adapters.openmirroring.destination.replica import Replica
from dbt.adapters.openmirroring.landing_zone.batch import (
    DelimitedText,
    MirroredColumn,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.node.build import Constraint
from dbt.adapters.openmirroring.node.compare import Side
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.history import SourceValue
from dbt.adapters.openmirroring.node.next_rows import IncrementalColumn
from dbt.adapters.openmirroring.node.plan import SparkPlan, TextFiles
from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange, TouchedRows
from dbt.adapters.openmirroring.node.snapshot.snapshot import KeyRange
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn, OpenMirroringRelation
from dbt.adapters.openmirroring.types.casts import Cast
from dbt.adapters.openmirroring.types.columns import LandingColumn, TypedColumn, value_checks
from tests.unit.macros.rendered import warehouse

ODD = "it's `odd`"
REMEDY = "It's up to you."


@dataclass(frozen=True)
class Case:
    """A macro that Python asks for SQL, with its arguments by name.

    Args:
        macro: without the prefix of the adapter
        config: of the node
    """

    macro: str
    arguments: dict[str, Any]
    config: dict[str, Any] = field(default_factory=dict)

    def sql(self) -> str:
        found: str = warehouse(**self.config).sql(self.macro, **self.arguments)
        return found.strip()


def case(macro: str, /, **arguments: Any) -> Case:
    return Case(macro, arguments)


def relation(identifier: str) -> OpenMirroringRelation:
    found: OpenMirroringRelation = OpenMirroringRelation.create(
        schema="shop", identifier=identifier, type=RelationType.Table
    )
    return found


def landing(name: str, dtype: str) -> LandingColumn:
    return LandingColumn.of(OpenMirroringColumn(name, dtype))


ORDERS, NEXT, NEW_ROWS = relation("orders"), relation("orders__next"), relation(ODD)
QUERY = "select 1 as `id`, 'a' as `status`"
URL = "file:/lake/it's [odd]/rows"
KEYS = (landing("id", "bigint"), landing(ODD, "char(3)"))
VALUES = (
    *(landing("price", "double"), landing("placed", "timestamp_ntz"), landing("day", "date")),
    *(landing("tags", "map<date,int>"), landing("photo", "binary")),
)
COLUMNS = (*VALUES, *KEYS)
CHECKS = value_checks(COLUMNS, is_delimited=False, spark_major=4)
NAMES = ["`id`", "`it's ``odd```"]
RANGES = [
    KeyRange("`id`", "-5", "7"),
    KeyRange(NAMES[1], "date '2026-01-01'", "date '2026-01-31'"),
]


def plan(
    rows: RowCounts, publication: str = "changes", text: DelimitedText | None = None, **more: Any
) -> SparkPlan:
    columns = tuple(MirroredColumn(c.name, c.dtype, c.landed_type) for c in COLUMNS)
    keys = tuple(key.name for key in KEYS)
    definition = TableDefinition(columns, keys, "csv" if text else "parquet", text)
    return SparkPlan(publication, "", definition, rows, changed="`changed`", **more)


CHANGED, LOADED = plan(RowCounts(3, 2, 1)), plan(RowCounts(3), "initial")
MANY = plan(RowCounts(1_000_001))


def compared(keys: Any, checks: Any = (), is_small: bool = False) -> Case:
    after = FileRange(NEXT, other_than=("a.parquet", "it's.parquet"))
    before = FileRange(ORDERS, only=("file:/a/it's/b.parquet",))
    return case(
        "mirror_compare_keyed" if keys else "mirror_compare_keyless",
        after=Side(after, keys, VALUES, checks),
        before=Side(before, keys, (*VALUES[:-1], None)),
        is_small=is_small,
        insert_marker="upsert" if is_small else "insert",
    )


def changed(plan: SparkPlan) -> Case:
    arguments = {"rows": FileRange(NEXT), "columns": COLUMNS, "files": 2 - plan.in_full}
    return case("mirror_changes_keyed", plan=plan, **arguments)


def column(name: str, dtype: str, **others: Any) -> IncrementalColumn:
    types = {"snapshot_type": dtype, "new_type": dtype, "is_updated": True}
    return IncrementalColumn(name, dtype, **{**types, **others})


NEXT_COLUMNS = (
    column("id", "bigint"),
    column(ODD, "bigint", snapshot_type="int"),
    column("nested", "array<bigint>", snapshot_type="array<int>"),
    column("added", "double", snapshot_type=None),
    column("missing", "int", new_type=None, is_updated=False),
)


def strategies() -> Iterator[Case]:
    """Each strategy, with and without what it may have."""
    predicates = ["DBT_INTERNAL_DEST.`day` is null or true", "DBT_INTERNAL_SOURCE.`ok`"]
    for name in ("append", "merge", "delete+insert", "insert_overwrite", "microbatch"):
        more: dict[str, Any] = {"unique_key": ("id", ODD)}
        if name in ("append", "insert_overwrite"):
            more = {"unique_key": ()}
        plain = NodeConfig(**more, incremental_strategy=name)
        if name in ("merge", "delete+insert"):
            more["delete_when"] = "gone or late"
        if name in ("insert_overwrite", "microbatch"):
            more["partition_by"] = ("day", ODD)
        rich = NodeConfig(**more, incremental_strategy=name)
        for options in (plain, rich):
            yield case(
                options.strategy_macro,
                snapshot=str(ORDERS),
                new_rows=NEW_ROWS,
                columns=NEXT_COLUMNS,
                options=options,
                predicates=predicates if options is rich else [],
            )


TEXT = DelimitedText()
TEXTS = [
    TEXT,
    DelimitedText("\t", "\n", "'", "/", "NULL's"),
    DelimitedText(";", "\r", '"', '"', "", "utf-16"),
    DelimitedText("|", quote_character="", encoding="ascii"),
    DelimitedText(escape_character="", encoding="windows-1252"),
]


def delimited(text: DelimitedText) -> Iterator[Case]:
    for rows, rows_per_file in ((RowCounts(3, 2, 1), 5000), (RowCounts(), 0)):
        planned = plan(rows, "changes" if rows.deleted else "initial", text)
        arguments = {"rows": QUERY, "columns": COLUMNS, "rows_per_file": rows_per_file}
        yield case("mirror_lines", plan=planned, **arguments)
        yield case("mirror_staged_lines", url=URL, plan=planned)
        yield case("mirror_count_lines", plan=planned)


UNIQUE = Constraint("unique (id, day)", unique=("id", ODD))
CHECK = Constraint("check (price > 0)", broken="not (price > 0)")
REPLICA = Replica(
    (TypedColumn("id", "bigint"), TypedColumn(ODD, "string")),
    ("id",),
    "/lake/it's [odd]/orders",
    ("a.parquet", "day=it's/b.parquet"),
)
PROPERTIES = {"openmirroring.batch_id": "20261121204415ef7e865d", "it's": "a 'quote' and a \\"}
CASTS = [
    ("double", "int"),
    ("bigint", "double"),
    ("double", "float"),
    ("string", "decimal(5,2)"),
    ("varchar(9)", "date"),
    ("string", "char(5)"),
    ("map<int,string>", "map<string,date>"),
    ("struct<b:int,A b:int>", "struct<a b:int,c:date>"),
    ("array<double>", "array<int>"),
]

CASES = [
    compared(KEYS, is_small=True),
    compared(KEYS, CHECKS),
    compared((), is_small=True),
    compared((), CHECKS),
    case("mirror_count_keyed", changed="`changed`", snapshot=ORDERS),
    case("mirror_count_keyless", changed="`changed`", snapshot=ORDERS),
    case("mirror_count_load", table=NEXT, keys=KEYS, is_small=False, checks=CHECKS),
    case("mirror_count_load", table=NEXT, keys=(), is_small=True, checks=CHECKS),
    case("mirror_bad_values", table=NEXT, keys=KEYS, checks=CHECKS),
    case("mirror_new_keys_elsewhere", table=NEXT, changed="`changed`", keys=KEYS),
    case(
        "mirror_repeated_versions",
        table=NEXT,
        version=landing("dbt_scd_id", "string"),
        keys=("id", "upper(name) || '-'"),
    ),
    case("mirror_bad_keys", table=NEXT, keys=KEYS),
    case(
        "mirror_left_rows",
        table=NEXT,
        snapshot=ORDERS,
        keys=KEYS,
        published_keys=KEYS,
        partition_by=("day", ODD),
    ),
    case("mirror_load", table=NEXT, columns=COLUMNS, files=3),
    *(changed(planned) for planned in (CHANGED, MANY, replace(CHANGED, in_full=True))),
    case(
        "mirror_changes_keyless",
        rows=FileRange(NEXT, only=()),
        columns=COLUMNS,
        plan=MANY,
        files=9,
    ),
    *(
        case(
            "mirror_write_files",
            url=URL,
            rows=QUERY,
            text=text,
            compression="gzip",
            rows_per_file=5000,
        )
        for text in (None, TextFiles(encoding="utf-16le"))
    ),
    case("mirror_count_files", url=URL, plan=CHANGED),
    case("mirror_count_files", url=URL, plan=LOADED),
    *(each for text in TEXTS for each in delimited(text)),
    case(
        "mirror_typed_rows",
        rows=NEW_ROWS,
        columns=[
            ("`id`", None, "`id`"),
            *((f"`{n}'s`", Cast.of(*types), f"`{n}`") for n, types in enumerate(CASTS)),
        ],
        remedy=REMEDY,
    ),
    case("mirror_typed_snapshot", rows=FileRange(ORDERS), columns=NEXT_COLUMNS[:1], remedy=REMEDY),
    case("mirror_typed_snapshot", rows=FileRange(ORDERS), columns=NEXT_COLUMNS, remedy=REMEDY),
    case("mirror_ambiguous_rows", new_rows=NEW_ROWS, keys=("id", ODD)),
    *strategies(),
    *(
        case("mirror_in_batch", event_time="`at`", start="2024-01-01", end="2024-01-02", keys=keys)
        for keys in ((), ("id", ODD))
    ),
    case("mirror_source_rows", query=QUERY, keys=NAMES),
    case(
        "mirror_source_values",
        query=QUERY,
        values=[SourceValue("unique_key", NAMES[1], is_column) for is_column in (True, False)],
    ),
    *(
        case(
            "mirror_history",
            snapshot=ORDERS,
            changes=NEW_ROWS,
            columns=NEXT_COLUMNS,
            names={"dbt_scd_id": "dbt_scd_id", "dbt_valid_to": "dbt_valid_to"},
            valid_to_current=end,
        )
        for end in (None, "to_date('9999-12-31')")
    ),
    case(
        "mirror_touched_files",
        snapshot=ORDERS,
        new_rows=NEW_ROWS,
        touched_by=[(("day",), ()), (("id", ODD), RANGES)],
    ),
    case(
        "mirror_key_bounds",
        new_rows=NEW_ROWS,
        columns=[OpenMirroringColumn("id", "int"), OpenMirroringColumn(ODD, "date")],
    ),
    case(
        "mirror_touched_rows", snapshot=ORDERS, new_rows=NEW_ROWS, keys=("id", ODD), ranges=RANGES
    ),
    *(
        case(
            "mirror_with_touched_rows",
            snapshot=ORDERS,
            replacement=NEXT,
            touched=TouchedRows(NEW_ROWS, keys, ORDERS if keys else None),
            names=NAMES,
        )
        for keys in ((), ("id", ODD))
    ),
    case(
        "mirror_merge_part",
        snapshot=ORDERS,
        part=NEXT,
        new_rows=NEW_ROWS,
        keys=("id", ODD),
        names=[*NAMES, "`status`"],
        ranges=RANGES,
    ),
    case("mirror_insert_part", snapshot=ORDERS, part=NEXT, names=NAMES),
    case(
        "mirror_create_table", table=NEXT, query=QUERY, properties={}, options={}, partition_by=()
    ),
    Case(
        "mirror_create_table",
        {
            "table": NEXT,
            "query": QUERY,
            "properties": {**PROPERTIES, "n": 1},
            "options": {"timeZone": "UTC", "it's": "a 'quote'"},
            "partition_by": ("day", ODD),
        },
        {
            "description": "It's the orders,\nof all shops",
            "file_format": "orc",
            "clustered_by": ["id", ODD],
            "buckets": 8,
            "persist_docs": {"relation": True},
        },
    ),
    case(
        "mirror_documented_rows",
        view="`documented`",
        query=QUERY,
        comments={"id": "It's\nthe key", ODD: "", "day": "a \\ day"},
    ),
    case("mirror_documented_rows", view="`documented`", query=QUERY, comments={}),
    case("mirror_keep", table=NEXT, query=QUERY, properties=PROPERTIES),
    case("mirror_keep_partitioned", table=NEXT, query=QUERY, partition_by=("day", ODD)),
    case(
        "mirror_seed", view="seed", columns=[("`id`", Cast.of("string", "bigint"))], remedy=REMEDY
    ),
    case("mirror_live_rows", query=QUERY, delete_when=None),
    case("mirror_live_rows", query=QUERY, delete_when="gone or late"),
    case("mirror_mark", table=NEXT, properties=PROPERTIES),
    case("mirror_unmark", table=NEXT, names=tuple(PROPERTIES)),
    *(
        case(f"mirror_{name}", table=NEXT)
        for name in (
            *("table_bytes", "count_rows", "find_partitions", "find_files", "last_file"),
            *("last_commit", "iceberg_bytes", "iceberg_operations"),
        )
    ),
    case("mirror_delta_operations", table=NEXT, limit=1),
    case("mirror_count_broken", table=NEXT, constraints=[UNIQUE, CHECK]),
    case("mirror_broken_rows", table=NEXT, constraint=CHECK, columns=("id", ODD)),
    case("mirror_broken_rows", table=NEXT, constraint=UNIQUE, columns=UNIQUE.unique),
    *(
        case("mirror_replica_view", view="replica", replica=replica)
        for replica in (REPLICA, replace(REPLICA, version=12), replace(REPLICA, files=()))
    ),
    case("mirror_restored_rows", view="mirrored", columns=COLUMNS),
    case("mirror_restored_rows", view=None, columns=COLUMNS),
    case("mirror_landed_rows", view="mirrored", columns=COLUMNS),
    case("mirror_count_without_key", table=NEXT, keys=("id", ODD)),
    *(
        case("mirror_difference", model=ORDERS, columns=COLUMNS, mirror="replica", keys=keys)
        for keys in (["id", ODD], [c.name for c in COLUMNS])
    ),
]
