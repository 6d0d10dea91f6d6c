"""The held nodes that a command publishes at its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
    new_batch_id,
)
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations import held
from dbt.adapters.openmirroring.operations.held import HeldNodes, not_passed
from dbt.adapters.openmirroring.operations.project_tables import ProjectTables

ORDERS, ITEMS = "model.shop.orders", "model.shop.items"


def node(unique_id: str, *parents: str) -> dict[str, Any]:
    kind, _, name = unique_id.split(".")
    return {
        "unique_id": unique_id,
        "resource_type": kind,
        "name": name,
        "alias": name,
        "schema": "sales",
        "config": {"materialized": "table", "publish": "after_tests"},
        # a seed has no parents, not even none
        "depends_on": {"nodes": list(parents)} if kind != "seed" else {},
    }


# items comes first by name, and last in the graph
GRAPH = {
    each["unique_id"]: each
    for each in (
        node("seed.shop.raw"),
        node(ITEMS, ORDERS),
        node(ORDERS, "seed.shop.raw"),
        node("test.shop.unique", ORDERS),
        node("test.shop.related", ORDERS, ITEMS),
        node("unit_test.shop.logic", ORDERS),
    )
}
BUILT = {ORDERS: "success", ITEMS: "success"}
PASSED = {"test.shop.unique": "pass", "test.shop.related": "warn"}


@contextmanager
def held_nodes(
    tables: ProjectTables,
    publish: Callable[..., Any],
    keep: Callable[..., Any] = lambda *_: None,
    graph: Mapping[str, Any] = GRAPH,
    threads: int = 2,
) -> Iterator[HeldNodes]:
    """The nodes of a graph, all of them built by this command.

    Args:
        publish, keep: stand for the publication of a node, and for what keeps it held
    """
    builds = SimpleNamespace(builds=dict.fromkeys((ORDERS, ITEMS), "a build"))
    with (
        patch.object(held, "publish_held", lambda node, _, wait, build=None: publish(node, wait)),
        patch.object(held, "keep_held", lambda node, _, why: keep(node, why)),
    ):
        yield HeldNodes(tables, graph, builds, nullcontext, threads)  # type: ignore[arg-type]


def at_the_end(
    statuses: dict[str, str], graph: dict[str, Any] = GRAPH, threads: int = 2
) -> tuple[list[str], ...]:
    """The tables that are published, and those that stay held."""
    published: list[str] = []
    kept: list[str] = []

    def publish(found: Any, wait_for_turn: Callable[[], None]) -> str:
        wait_for_turn()
        published.append(found.identifier)
        return "+1 ~0 -0"

    def keep(found: Any, why: str) -> None:
        kept.append(f"{found.identifier}: {why}")

    tables = ProjectTables(None, "shop", "sales", graph.values())  # type: ignore[arg-type]
    with held_nodes(tables, publish, keep, graph, threads) as nodes:
        nodes.publish_tested({ORDERS, ITEMS}, statuses)
    return published, kept


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_parents_are_published_before_their_children(threads: int) -> None:
    assert at_the_end(BUILT | PASSED, threads=threads) == (["orders", "items"], [])


def test_a_table_waits_for_those_before_it_but_not_for_their_success() -> None:
    published: list[str] = []

    def publish(found: Any, wait_for_turn: Callable[[], None]) -> str:
        if found.identifier == "orders":
            time.sleep(0.05)
            published.append("tried orders")
            raise DbtRuntimeError("refused")
        wait_for_turn()
        published.append(found.identifier)
        return "+1"

    tables = ProjectTables(None, "shop", "sales", GRAPH.values())  # type: ignore[arg-type]
    with held_nodes(tables, publish) as nodes:
        outcome = nodes.publish_tested({ORDERS, ITEMS}, BUILT | PASSED)

    assert published == ["tried orders", "items"]
    assert outcome.lines == ("sales.items: +1",)
    assert outcome.failed == ("sales.orders: refused",)


@pytest.mark.parametrize("status", ["fail", "error"])
def test_a_failed_test_holds_every_node_that_it_asks(status: str) -> None:
    published, kept = at_the_end(BUILT | PASSED | {"test.shop.related": status})

    assert published == []
    assert kept == ["orders: because related failed", "items: because related failed"]


def test_a_failed_test_holds_no_other_node() -> None:
    published, kept = at_the_end(BUILT | PASSED | {"test.shop.unique": "fail"})

    assert published == ["items"]
    assert kept == ["orders: because unique failed"]


@pytest.mark.parametrize("statuses", [{}, {"test.shop.related": "skipped"}])
def test_a_test_that_was_not_run_holds(statuses: dict[str, str]) -> None:
    published, kept = at_the_end(BUILT | {"test.shop.unique": "pass"} | statuses)

    assert published == []
    assert kept[0] == "orders: until it has passed related"


def test_tests_alone_publish_what_was_built_before() -> None:
    assert at_the_end(PASSED) == (["orders", "items"], [])


@pytest.mark.parametrize("status", ["error", "skipped", "partial success"])
def test_a_node_that_was_not_built_stays_as_it_is(status: str) -> None:
    published, kept = at_the_end(BUILT | PASSED | {ORDERS: status})

    assert published == ["items"]
    assert kept == []


def test_a_node_that_took_no_part_is_left_alone() -> None:
    assert at_the_end({"seed.shop.raw": "success"}) == ([], [])


def test_a_node_without_tests_is_published_when_it_is_built() -> None:
    graph = {name: each for name, each in GRAPH.items() if not name.startswith("test")}

    assert at_the_end(BUILT, graph) == (["orders", "items"], [])


def test_only_a_few_tests_are_named() -> None:
    tests = {f"test.shop.t{n}": node(f"test.shop.t{n}", ORDERS) for n in range(9)}

    assert not_passed(ORDERS, tests, {}) == "until it has passed t0, t1, t2 and 6 more"


TABLE = TableFolder("sales", "orders")


def commit(storage: Storage, opened: Publication, held: str | None = None) -> None:
    """Commit a batch of one file."""
    storage.write(f"{TABLE.staging(opened.batch_id)}/rows/a.parquet", b"rows")
    definition = TableDefinition((MirroredColumn("id", "int", "int"),), ("id",), "parquet")
    journal = opened.journal()
    kind = "changes" if journal else "initial"
    plan = Plan(kind, "", definition, RowCounts(1), journal=journal)
    manifest = opened.commit(plan, opened.staged_files.written(plan), held)
    if held is None:
        opened.publish(manifest)
        opened.record(manifest)
        opened.complete(manifest)


def publish_and_hold(storage: Storage, project: str = "shop", is_killed: bool = False) -> None:
    """Publish `sales.orders`, then hold rows of it; perhaps be killed while publishing these."""
    owner = Owner(project, ORDERS, "sales")
    opened = Publication(storage, TABLE, owner)
    commit(storage, opened)
    opened.hold(opened.batch_id, "until its tests pass", None)
    opened.close()
    if is_killed:
        killed = Publication(storage, TABLE, owner)
        commit(storage, killed, held=new_batch_id())
        killed.close()


def asked_to_publish(storage: Storage) -> list[str]:
    """The tables that `mirror_publish` tries to publish."""
    asked: list[str] = []
    tables = ProjectTables(storage, "shop", "sales", GRAPH.values())
    with held_nodes(tables, lambda found, _: asked.append(found.table)) as nodes:
        nodes.publish_all(None)
    return asked


def test_held_rows_are_published_on_request(storage: Storage) -> None:
    publish_and_hold(storage)

    assert asked_to_publish(storage) == ["sales.orders"]


def test_a_killed_publication_of_held_rows_is_finished_on_request(
    storage: Storage,
) -> None:
    publish_and_hold(storage, is_killed=True)
    assert asked_to_publish(storage) == ["sales.orders"]

    # the manifest alone says the same
    storage.delete(TABLE.held)
    assert asked_to_publish(storage) == ["sales.orders"]


@pytest.mark.parametrize(
    "damaged", [TABLE.file(9, "parquet"), TABLE.journal, TABLE.manifest, TABLE.held]
)
def test_held_rows_of_a_blocked_table_are_tried_so_that_its_error_is_reported(
    storage: Storage, damaged: str
) -> None:
    publish_and_hold(storage)
    storage.write(damaged, b"{")

    assert asked_to_publish(storage) == ["sales.orders"]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_rows_that_another_project_holds_are_left_alone(
    storage: Storage, is_damaged: bool
) -> None:
    publish_and_hold(storage, "other")
    if is_damaged:
        storage.write(TABLE.held, b"{")

    assert asked_to_publish(storage) == []


def test_rows_that_are_published_already_are_left_alone(storage: Storage) -> None:
    publish_and_hold(storage)
    storage.delete(TABLE.held)

    assert asked_to_publish(storage) == []
