"""A run names the mirrored tables that no node publishes any more, however they lost it."""

from __future__ import annotations

from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone.inventory import LandedTable
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations.project_tables import MIRRORED, ProjectTables
from tests.onelake_server import OneLakeServer
from tests.unit.operations.tables import node, publish

POINTER = node("orders.v2__latest_version_pointer", alias="orders", materialized="view")


def tables(
    storage: Storage, *nodes: dict[str, Any], kinds: tuple[str, ...] = (), **given: Any
) -> ProjectTables:
    return ProjectTables(
        storage, "shop", "sales", nodes, "prod", kinds={*MIRRORED, *kinds}, **given
    )


def nothing_in_spark(_: LandedTable) -> bool:
    return False


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ([node("orders", materialized="view")], "model.shop.orders is a view now"),
        ([node("orders", materialized="ephemeral")], "model.shop.orders is ephemeral now"),
        ([node("orders", mirror=False)], "model.shop.orders is not mirrored any more"),
        ([node("orders", materialized="custom")], "model.shop.orders is not mirrored any more"),
        ([node("orders", alias="lines")], "model.shop.orders is sales.lines now"),
        ([node("orders", alias="Orders")], "model.shop.orders is sales.Orders now"),
        ([node("orders", schema_folder=False)], "model.shop.orders is orders now"),
        (
            [node("orders", schema="archive"), node("lines")],
            "model.shop.orders is archive.orders now",
        ),
        (
            [node("orders.v2", alias="orders_v2"), POINTER],
            "model.shop.orders is gone, and model.shop.orders.v2__latest_version_pointer, which "
            "has its name now, is a view",
        ),
        (
            [node("lines", alias="orders", schema_folder=False)],
            "model.shop.orders is gone, and model.shop.lines, which has its name now, is orders",
        ),
        (
            [node("lines", alias="ORDERS", mirror=False)],
            "model.shop.orders is gone, and model.shop.lines, which has its name now, is not "
            "mirrored",
        ),
    ],
)
def test_a_table_whose_node_or_name_is_something_else_now_is_told(
    storage: Storage, nodes: list[dict[str, Any]], why: str
) -> None:
    """Nothing else shows that the table is of this project, so it is no orphan."""
    publish(storage, target="prod")

    [left] = tables(storage, *nodes).left(nothing_in_spark)

    assert (left.path, left.state) == ("sales.schema/orders", "elsewhere")
    assert left.note == (
        "no command published it together with a table that is here, so it may be of another "
        f"project 'shop'; here, {why}"
    )
    statuses = {status.table: status.note for status in tables(storage, *nodes).statuses()}
    assert statuses["sales.orders"] == left.note


def test_a_table_of_a_disabled_node_is_told(storage: Storage) -> None:
    publish(storage, target="prod")

    [left] = tables(storage, disabled=["model.shop.orders"]).left(nothing_in_spark)

    assert left.note.endswith("; here, model.shop.orders is disabled")


def test_a_table_whose_node_is_gone_is_told_if_spark_or_a_command_shows_whose_it_was(
    storage: Storage,
) -> None:
    """The model was removed, or moved to a package that gives it another name."""
    publish(storage, target="prod", invocation_id="first")
    ours = tables(storage, node("lines"), node("other.orders", alias="orders_of_other"))

    assert ours.left(nothing_in_spark) == []
    [left] = ours.left(lambda _: True)
    assert (left.state, left.note.endswith("model.shop.orders is gone")) == ("elsewhere", True)
    publish(storage, "lines", target="prod", invocation_id="first")
    [left] = ours.left(nothing_in_spark)
    assert (left.state, left.note) == ("orphan", "model.shop.orders is gone")


@pytest.mark.parametrize(
    ("published", "nodes"),
    [
        ({"target": "dev"}, [node("orders", materialized="view")]),
        ({"project": "another"}, [node("orders", materialized="view")]),
        ({"schema": "dev_bob"}, [node("orders", materialized="view")]),
        # it was moved to a package, and kept its name
        ({}, [node("other.orders", alias="orders")]),
        ({}, [node("orders")]),
    ],
)
def test_tables_of_others_and_those_that_are_published_are_not_told(
    storage: Storage, published: dict[str, Any], nodes: list[dict[str, Any]]
) -> None:
    publish(storage, **{"target": "prod", **published})

    assert tables(storage, *nodes).left(lambda _: True) == []


def test_a_table_that_a_materialization_of_the_project_publishes_has_its_node(
    storage: Storage,
) -> None:
    """`mirror_drop_orphans` would drop it otherwise."""
    for name in ("orders", "lines"):
        publish(storage, name, target="prod", invocation_id="first")
    nodes = [node("orders", materialized="audited"), node("lines")]

    ours = tables(storage, *nodes, kinds=("audited",))

    assert ours.left(lambda _: True) == []
    assert [status.state for status in ours.statuses()] == ["published", "published"]


def test_a_damaged_journal_hides_no_other_table(storage: Storage) -> None:
    publish(storage, target="prod")
    storage.write("sales.schema/damaged/_journal.json", b"{}")

    [left] = tables(storage, node("orders", mirror=False)).left(nothing_in_spark)

    assert left.table == "sales.orders"


def test_a_run_whose_tables_all_have_a_node_lists_its_schemas_and_reads_nothing(
    server: OneLakeServer,
) -> None:
    storage = server.storage()
    for schema in ("sales", "dev_bob"):
        publish(storage, schema=schema, target="prod")
    server.requests.clear()

    assert tables(storage, node("orders")).left(nothing_in_spark) == []

    assert server.counts() == {"list": 2}
