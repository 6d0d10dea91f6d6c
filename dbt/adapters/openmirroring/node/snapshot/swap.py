"""Updating a snapshot: replacing it by another table, or changing it in place."""

from __future__ import annotations

from dbt.adapters.openmirroring.node.snapshot.key_ranges import key_ranges, ranged_columns
from dbt.adapters.openmirroring.node.snapshot.table_folders import make_way
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import RECORDING_FORMATS


def swap(
    warehouse: Warehouse,
    target: OpenMirroringRelation,
    following: OpenMirroringRelation,
) -> None:
    """Make the next snapshot the snapshot. If it is gone, an earlier run has swapped already."""
    if warehouse.found(following):
        snapshot = warehouse.found(target)
        if snapshot:
            warehouse.drop(snapshot)
        make_way(warehouse, target)
        warehouse.adapter.rename_relation(following, target)
    if warehouse.found(target):
        _find_partitions(warehouse, target)
        warehouse.replaced(target)


def move(warehouse: Warehouse, relation: OpenMirroringRelation, to: OpenMirroringRelation) -> None:
    """Rename a table. No table may have the new name yet."""
    make_way(warehouse, to)
    warehouse.adapter.rename_relation(relation, to)
    _find_partitions(warehouse, to)
    warehouse.replaced(to)


def _find_partitions(warehouse: Warehouse, table: OpenMirroringRelation) -> None:
    # without a metastore, the catalog of a session forgets partitions when a table is renamed
    if warehouse.adapter.connections.has_metastore():
        return
    layout = warehouse.describe(table).layout
    # Delta and Iceberg list their own
    if layout.partitions and layout.format not in RECORDING_FORMATS:
        warehouse.run("mirror_find_partitions", table=table)


def take_in_place(
    warehouse: Warehouse,
    target: OpenMirroringRelation,
    part: OpenMirroringRelation,
    new_rows: OpenMirroringRelation,
    keys: tuple[str, ...],
) -> None:
    """Replace rows of a snapshot by other rows, in one commit.

    Args:
        part: a table of the replacing rows
        new_rows: a table of the new rows of the model; not used without keys
        keys: rows with the same key as a new row are replaced or deleted. Without keys, rows are
            only added
    """
    columns = warehouse.columns(target)
    names = [column.quoted for column in columns]
    if keys:
        warehouse.run(
            "mirror_merge_part",
            snapshot=target,
            part=part,
            new_rows=new_rows,
            keys=keys,
            names=names,
            ranges=key_ranges(warehouse, new_rows, ranged_columns(columns, keys)),
        )
    else:
        warehouse.run("mirror_insert_part", snapshot=target, part=part, names=names)


def snapshot_version(warehouse: Warehouse, target: OpenMirroringRelation) -> str:
    """Return the version of a snapshot that can be changed in place. Each change alters it."""
    version = warehouse.properties(target).get("current-snapshot-id")  # Iceberg's
    if version:
        return version
    [last] = warehouse.read("mirror_delta_operations", table=target, limit=1).rows
    return str(last["version"])
