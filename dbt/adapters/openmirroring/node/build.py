"""1 and 3. The next snapshot, built beside the snapshot, and what its contract promises."""

from __future__ import annotations

from collections.abc import Mapping

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.openmirroring.node.constraints import (
    BrokenConstraint,
    broken_constraints,
    contract_constraints,
)
from dbt.adapters.openmirroring.node.next_rows import NextRows
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.progress import BUILDING
from dbt.adapters.openmirroring.node.scratch_tables import AFTER, NEXT, PART, ScratchTables
from dbt.adapters.openmirroring.spark.relation import BATCH_ID_PROPERTY, OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import TableDescription


def build(
    node: Node,
    rows: NextRows,
    scratch: ScratchTables,
    marks: Mapping[str, str],
    beside: OpenMirroringRelation | None = None,
) -> tuple[OpenMirroringRelation, AdapterResponse]:
    """1. Compute the rows of the next snapshot, or those that the snapshot is to take in place.

    Args:
        marks: properties by which the snapshot will be recognised; none for a node that is not
            mirrored
        beside: the table to build, in place of a next snapshot of the run

    Returns:
        the table with the rows, and what Spark says of the statement

    Raises:
        DbtRuntimeError: the node's SQL fails
    """
    warehouse = node.warehouse
    warehouse.begin(BUILDING)
    if rows.in_place:
        return scratch.keep(PART, rows.query), AdapterResponse(_message="OK")
    query = rows.query
    if rows.touched:
        replacement = scratch.keep(AFTER, query)
        query = warehouse.sql(
            "mirror_with_touched_rows",
            rows.replaced(node.target),
            replacement,
            rows.touched,
            [column.quoted for column in warehouse.columns(node.target)],
        )
    following = beside or scratch.table(NEXT)
    properties = {**(node.config.get("tblproperties") or {}), **marks}
    if BATCH_ID_PROPERTY in marks:
        following = following.carrying(marks[BATCH_ID_PROPERTY])
    if node.has_contract:
        query = node.checked_contract(query)
    statement = warehouse.sql(
        "mirror_create_table",
        following,
        query,
        properties,
        _compression(node),
        node.options.partition_by,
    )
    response = warehouse.build(statement)
    if rows.kept:
        rows.kept.link_into(warehouse.describe(following))
        find_files(node, following)
    warehouse.added(following)
    return following, response


def _compression(node: Node) -> str | None:
    """How the files of a snapshot are compressed, if the configuration does not say it.

    As they land, so that they can be published as they are.
    """
    is_ours = node.options.mirror and node.options.landing_format == "parquet"
    is_parquet = node.config.get("file_format") in (None, "parquet")
    if is_ours and is_parquet and not node.config.get("options"):
        return node.options.compression
    return None


def find_files(node: Node, table: OpenMirroringRelation) -> None:
    """Let Spark see the files that a table has by now."""
    if node.options.partition_by:
        node.warehouse.execute(f"alter table {table} recover partitions")
    else:
        node.warehouse.execute(f"refresh table {table}")


def has_partitions_in_catalog(table: TableDescription) -> bool:
    """Whether the catalog has to know of each partition; Delta and Iceberg know them."""
    return table.layout.format not in ("delta", "iceberg") and bool(table.layout.partitions)


def verify_contract(node: Node, table: OpenMirroringRelation) -> None:
    """3. Make sure that rows are as the contract promises: on Parquet, Spark does not.

    Raises:
        DbtRuntimeError: they are not
    """
    warehouse = node.warehouse
    constraints = contract_constraints(warehouse.adapter, node.model) if node.has_contract else []
    if not constraints:
        return
    counts = warehouse.query(warehouse.sql("mirror_count_broken", table, constraints)).rows[0]
    broken = []
    for constraint, count in zip(constraints, counts, strict=True):
        if not count:
            continue
        columns = constraint.unique or node.options.unique_key
        examples = None
        if columns:
            examples = warehouse.query(
                warehouse.sql("mirror_broken_rows", table, constraint, columns)
            )
        broken.append(BrokenConstraint(constraint, int(count), columns, examples))
    if broken:
        raise broken_constraints(broken)
