"""The held nodes that a command publishes at its end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.batch import new_batch_id
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations import held
from dbt.adapters.openmirroring.operations.held import HeldNodes, not_passed
from dbt.adapters.openmirroring.operations.project_tables import ProjectTables
from dbt.adapters.openmirroring.protocol.facts import Held
from tests.unit.landing_zone.publishing import OWNER, TABLE, publication
from tests.unit.operations.tables import node, publish

ORDERS, ITEMS = "model.shop.orders", "model.shop.items"


def child(name: str, kind: str, *parents: str) -> dict[str, Any]:
    # a seed has no parents, not even none
    depends_on = {"nodes": list(parents)} if kind != "seed" else {}
    return {**node(name, kind, publish="after_tests"), "depends_on": depends_on}


# items comes first by name, and last in the graph
GRAPH = {
    each["unique_id"]: each
    for each in (
        child("raw", "seed"),
        child("items", "model", ORDERS),
        child("orders", "model", "seed.shop.raw"),
        child("unique", "test", ORDERS),
        child("related", "test", ORDERS, ITEMS),
        child("logic", "unit_test", ORDERS),
    )
}
UNTESTED = {name: each for name, each in GRAPH.items() if not name.startswith("test")}
BUILT = {ORDERS: "success", ITEMS: "success"}
UNIQUE, RELATED = {"test.shop.unique": "pass"}, {"test.shop.related": "warn"}
ALL = BUILT | UNIQUE | RELATED


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


def tables_of(graph: Mapping[str, Any] = GRAPH, storage: Storage | None = None) -> ProjectTables:
    return ProjectTables(storage, "shop", "sales", graph.values())  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize(
    ("statuses", "graph", "published", "kept"),
    [
        # parents before their children
        (ALL, GRAPH, ["orders", "items"], []),
        *(
            (
                {**ALL, "test.shop.related": status},
                GRAPH,
                [],
                ["orders: because related failed", "items: because related failed"],
            )
            for status in ("fail", "error")
        ),
        (
            {**ALL, "test.shop.unique": "fail"},
            GRAPH,
            ["items"],
            ["orders: because unique failed"],
        ),
        *(
            (
                {**BUILT, **UNIQUE, **skipped},
                GRAPH,
                [],
                [f"{name}: until it has passed related" for name in ("orders", "items")],
            )
            for skipped in ({}, {"test.shop.related": "skipped"})
        ),
        # tests alone publish what was built before
        (UNIQUE | RELATED, GRAPH, ["orders", "items"], []),
        # a node that was not built stays as it is
        *(
            ({**ALL, ORDERS: status}, GRAPH, ["items"], [])
            for status in ("error", "skipped", "partial success")
        ),
        ({"seed.shop.raw": "success"}, GRAPH, [], []),
        (BUILT, UNTESTED, ["orders", "items"], []),
    ],
)
def test_nodes_are_published_if_all_their_tests_have_passed(
    statuses: dict[str, str],
    graph: dict[str, Any],
    published: list[str],
    kept: list[str],
    threads: int,
) -> None:
    found: tuple[list[str], list[str]] = ([], [])

    def publish(node: Any, wait_for_turn: Callable[[], None]) -> str:
        wait_for_turn()
        found[0].append(node.identifier)
        return "+1 ~0 -0"

    def keep(node: Any, why: str) -> None:
        found[1].append(f"{node.identifier}: {why}")

    with held_nodes(tables_of(graph), publish, keep, graph, threads) as nodes:
        nodes.publish_tested({ORDERS, ITEMS}, statuses)

    assert found[0] == published
    assert sorted(found[1]) == sorted(kept)


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

    with held_nodes(tables_of(), publish) as nodes:
        outcome = nodes.publish_tested({ORDERS, ITEMS}, ALL)

    assert published == ["tried orders", "items"]
    assert outcome.lines == ("sales.items: +1",)
    assert outcome.failed == ("sales.orders: refused",)


@pytest.mark.parametrize(("count", "more"), [(3, ""), (4, " and 1 more"), (9, " and 6 more")])
def test_only_a_few_tests_are_named(count: int, more: str) -> None:
    tests = {f"test.shop.t{n}": child(f"t{n}", "test", ORDERS) for n in range(count)}

    assert not_passed(ORDERS, tests, {}) == f"until it has passed t0, t1, t2{more}"


def hold(storage: Storage, project: str = "shop", is_killed: bool = False) -> None:
    """Publish `sales.orders`, then hold rows of it; perhaps be killed while publishing these."""
    publish(storage, project=project)
    with publication(storage, replace(OWNER, project=project)) as opened:
        opened.hold(Held(opened.batch_id, why="until its tests pass"))
    if is_killed:
        publish(storage, project=project, build=new_batch_id(), completes=False)


def asked_to_publish(storage: Storage) -> list[str]:
    """The tables that `mirror_publish` tries to publish."""
    asked: list[str] = []
    with held_nodes(
        tables_of(GRAPH, storage), lambda found, _: asked.append(found.table)
    ) as nodes:
        nodes.publish_all(None)
    return asked


@pytest.mark.parametrize(
    "damaged", ["", TABLE.file(9, "parquet"), TABLE.journal, TABLE.manifest, TABLE.held]
)
def test_held_rows_are_published_on_request(storage: Storage, damaged: str) -> None:
    """Those of a blocked table are tried, so that its error is reported."""
    hold(storage)
    if damaged:
        storage.write(damaged, b"{")

    assert asked_to_publish(storage) == ["sales.orders"]


def test_a_killed_publication_of_held_rows_is_finished_on_request(storage: Storage) -> None:
    hold(storage, is_killed=True)
    assert asked_to_publish(storage) == ["sales.orders"]

    # the manifest alone says the same
    storage.delete(TABLE.held)
    assert asked_to_publish(storage) == ["sales.orders"]


def test_rows_that_another_project_holds_or_that_are_published_are_left_alone(
    storage: Storage,
) -> None:
    hold(storage, "other")
    assert asked_to_publish(storage) == []

    storage.write(TABLE.held, b"{")
    assert asked_to_publish(storage) == []

    storage.delete(TABLE.held)
    assert asked_to_publish(storage) == []
