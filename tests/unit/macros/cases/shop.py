"""The common part of the cases: relations, columns, and how a macro is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.contracts.relation import RelationType

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.delimited import DelimitedText
from dbt.adapters.openmirroring.node.plan import SparkPlan
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn, OpenMirroringRelation
from dbt.adapters.openmirroring.types.columns import LandingColumn


@dataclass(frozen=True)
class Case:
    """A macro that Python asks for SQL, with its arguments by name.

    Args:
        macro: without the prefix of the adapter
        description: of the node
        config: of the node
    """

    macro: str
    arguments: dict[str, Any]
    description: str = ""
    config: dict[str, Any] = field(default_factory=dict)


def case(macro: str, /, **arguments: Any) -> Case:
    return Case(macro, arguments)


def relation(identifier: str) -> OpenMirroringRelation:
    found: OpenMirroringRelation = OpenMirroringRelation.create(
        schema="shop", identifier=identifier, type=RelationType.Table
    )
    return found


def landing(name: str, dtype: str) -> LandingColumn:
    return LandingColumn.of(OpenMirroringColumn(name, dtype))


ORDERS, NEXT, NEW_ROWS = relation("orders"), relation("orders__next"), relation("new_rows")
OLD_ROWS, PART, CHANGED = relation("before"), relation("part"), relation("changed")
ODD_TABLE = relation("it's `odd`")
ODD_NAME = "it's `odd`"

ID, LINE = landing("id", "bigint"), landing("line", "int")
STATUS, DAY = landing("status", "string"), landing("day", "date")
PRICE, SEEN = landing("price", "double"), landing("seen", "timestamp")
PLACED, CODE = landing("placed", "timestamp_ntz"), landing("code", "char(3)")
TAGS, ODD = landing("tags", "map<date,int>"), landing(ODD_NAME, "string")
AMOUNT, PHOTO = landing("amount", "decimal(10,2)"), landing("photo", "binary")


def plan(
    columns: tuple[LandingColumn, ...],
    keys: tuple[str, ...],
    rows: RowCounts,
    *,
    publication: str = "changes",
    in_full: bool = False,
    delimited: DelimitedText | None = None,
    default_row_marker: str = "insert",
) -> SparkPlan:
    definition = TableDefinition(
        tuple(MirroredColumn(c.name, c.dtype, c.landed_type) for c in columns),
        keys,
        "csv" if delimited else "parquet",
        delimited,
        default_row_marker=default_row_marker,
    )
    changed = None if publication == "initial" else str(CHANGED)
    return SparkPlan(publication, "", definition, rows, changed=changed, in_full=in_full)
