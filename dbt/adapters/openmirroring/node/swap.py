"""How a snapshot takes rows: it is replaced by another table, or changed in place."""

from __future__ import annotations

from dbt.adapters.openmirroring.node.build import has_partitions_in_catalog
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation


def swap(
    warehouse: Warehouse,
    target: OpenMirroringRelation,
    following: OpenMirroringRelation,
    may_have_partitions: bool,
) -> None:
    """The next snapshot becomes the snapshot. If there is none, an earlier run has swapped."""
    if warehouse.found(following):
        snapshot = warehouse.found(target)
        if snapshot:
            warehouse.drop(snapshot)
        warehouse.rename(following, target)
    if warehouse.found(target):
        _find_partitions(warehouse, target, may_have_partitions)
        warehouse.replaced(target)


def move(
    warehouse: Warehouse,
    relation: OpenMirroringRelation,
    to: OpenMirroringRelation,
    may_have_partitions: bool,
) -> None:
    """Give a table another name, which no table has."""
    warehouse.rename(relation, to)
    _find_partitions(warehouse, to, may_have_partitions)
    warehouse.replaced(to)


def _find_partitions(
    warehouse: Warehouse, table: OpenMirroringRelation, may_have_partitions: bool
) -> None:
    if may_have_partitions and has_partitions_in_catalog(warehouse.describe(table)):
        # the catalog of a session without a metastore forgets them when a table is renamed
        warehouse.execute(f"alter table {table} recover partitions")


def take_in_place(
    warehouse: Warehouse,
    target: OpenMirroringRelation,
    part: OpenMirroringRelation,
    new_rows: OpenMirroringRelation,
    keys: tuple[str, ...],
) -> None:
    """Let a snapshot take rows in the place of others.

    Args:
        part: a table of these rows
        new_rows: a table; without keys not needed
        keys: rows with the same are replaced; without any, rows are only added
    """
    names = [column.quoted for column in warehouse.columns(target)]
    if keys:
        sql = warehouse.sql("mirror_merge_part", target, part, new_rows, keys, names)
    else:
        sql = warehouse.sql("mirror_insert_part", target, part, names)
    warehouse.execute(sql)


def snapshot_version(warehouse: Warehouse, target: OpenMirroringRelation) -> str:
    """The state of a snapshot that can be changed in place: another one after each change."""
    version = warehouse.properties(target).get("current-snapshot-id")  # Iceberg's
    return version or str(warehouse.query(f"describe history {target} limit 1").rows[0][0])
