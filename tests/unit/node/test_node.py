"""A node, read from a dbt context."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import agate
import pytest

from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import Layout


def node(**config: Any) -> Node:
    """A node of a Spark whose tables are Parquet without `using`."""
    default = agate.Table([("spark.sql.sources.default", "Parquet")], ["key", "value"])
    context = {
        "model": {
            "unique_id": "model.shop.orders",
            "config": {"materialized": "incremental", **config},
        },
        "this": OpenMirroringRelation.create(schema="sales", identifier="orders"),
        "project_name": "shop",
    }
    return Node(context, cast(Warehouse, SimpleNamespace(query=lambda _: default)))


@pytest.mark.parametrize(
    ("config", "layout"),
    [
        ({}, Layout("parquet", (), "")),
        ({"file_format": "ORC"}, Layout("orc", (), "")),
        ({"partition_by": "Day"}, Layout("parquet", ("day",), "", "UTC")),
        (
            {"partition_by": "Day", "options": {"TIMEZONE": "Asia/Tokyo"}},
            Layout("parquet", ("day",), "", "Asia/Tokyo"),
        ),
        (
            {"file_format": "delta", "partition_by": ["Day", "hour"]},
            Layout("delta", ("day", "hour"), ""),
        ),
    ],
)
def test_the_next_snapshot_is_planned_as_spark_will_describe_it(
    config: dict[str, Any], layout: Layout
) -> None:
    assert node(**config).planned_layout == layout


@pytest.mark.parametrize(
    ("names", "key"), [(None, "dbt_scd_id"), ({"dbt_scd_id": "version"}, "version")]
)
def test_a_dbt_snapshot_has_its_versions_as_its_key(
    names: dict[str, str] | None, key: str
) -> None:
    names_of_config = {"snapshot_meta_column_names": names} if names else {}
    history = node(materialized="snapshot", unique_key="id", **names_of_config)

    assert history.options.unique_key == (key,)


@pytest.mark.parametrize(
    ("unique_key", "keys"), [("id", ("id",)), (["a", "b + 1"], ("a", "b + 1"))]
)
def test_a_dbt_snapshot_keeps_the_key_of_its_source(
    unique_key: object, keys: tuple[str, ...]
) -> None:
    assert node(materialized="snapshot", unique_key=unique_key).history.key == keys


@pytest.mark.parametrize(("schema_folder", "path"), [(True, "sales"), (False, "")])
def test_a_table_folder_may_be_at_the_root(schema_folder: bool, path: str) -> None:
    assert node(schema_folder=schema_folder).table_folder.schema == path
