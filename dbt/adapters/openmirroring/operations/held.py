"""Publishing held nodes: those that passed their tests in a command, or all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from graphlib import TopologicalSorter
from threading import Event
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.shown import shown
from dbt.adapters.openmirroring.operations.project_tables import (
    Node,
    Outcome,
    ProjectTables,
)

# statuses of a test that let a node be published
_PASSING = ("pass", "warn")
# status of a node that was built
_BUILT = "success"
# number of tests that a message names
_TOLD = 3

# by unique id: the nodes in dbt's graph, and the statuses of nodes and tests in a command
Graph = Mapping[str, Mapping[str, Any]]
Statuses = Mapping[str, str]

# Publishes the held rows of a node. Returns the response, or None if nothing is held. It calls the
# given function before anything becomes visible, to wait for its turn.
Publish = Callable[[Node, Callable[[], None]], Any]


def publish_tested(
    tables: ProjectTables,
    gated: Collection[str],
    graph: Graph,
    statuses: Statuses,
    publish: Publish,
    keep: Callable[[Node, str], bool],
    threads: int = 1,
) -> Outcome:
    """Publish nodes that a command built or tested, if all their tests passed. Hold the others.

    Args:
        gated: the unique ids of the nodes that are published after their tests
        graph: the nodes of dbt
        statuses: the statuses in this command
        keep: records why a node stays held; returns whether any of its rows are held
        threads: number of tables that are compared at the same time
    """
    took_part = [
        node
        for node in _in_order(tables.mirrored, graph)
        if node.unique_id in gated and _took_part(node.unique_id, graph, statuses)
    ]
    reasons = {node: not_passed(node.unique_id, graph, statuses) for node in took_part}
    passed = [node for node in took_part if not reasons[node]]
    published = _in_turn(passed, publish, threads)
    kept = _in_turn(
        [node for node in took_part if reasons[node]],
        lambda node, _: f"held {reasons[node]}" if keep(node, reasons[node]) else None,
        threads,
    )
    return Outcome(published.lines + kept.lines, published.failed + kept.failed)


def publish_all(
    tables: ProjectTables, graph: Graph, table: str | None, publish: Publish, threads: int = 1
) -> Outcome:
    """Publish the held rows, regardless of their tests.

    Args:
        graph: the nodes of dbt
        table: `schema.table`, the table alone, or the name or unique id of its node; None for all
        threads: number of tables that are compared at the same time

    Raises:
        DbtRuntimeError: if no mirrored table, or more than one, matches `table`
    """
    held = held_nodes(tables) if table is None else [tables.node(table)]
    outcome = _in_turn(_in_order(held, graph), publish, threads)
    if outcome == Outcome(()):
        told = "Nothing is held." if table is None else f"{held[0].table} is not held."
        return Outcome((told,))
    return outcome


def _in_turn(nodes: Sequence[Node], publish: Publish, threads: int) -> Outcome:
    """Compare nodes at the same time, but publish them one after the other in their order."""
    turns = [Event() for _ in nodes]

    def wait(number: int) -> None:
        if number:
            turns[number - 1].wait()

    def one(number: int, node: Node) -> tuple[str, str]:
        """Publish one node. Return the line to print and the error; one of them is empty."""
        try:
            response = publish(node, lambda: wait(number))
            return (f"{node.table}: {response}" if response else ""), ""
        except DbtRuntimeError as error:
            return "", f"{node.table}: {error.msg}"
        finally:
            wait(number)
            turns[number].set()

    with ThreadPoolExecutor(threads) as pool:
        # dbt's log finds the current command in the context
        work = [
            pool.submit(copy_context().run, one, number, node) for number, node in enumerate(nodes)
        ]
        told = [each.result() for each in work]
    return Outcome(
        tuple(line for line, _ in told if line), tuple(error for _, error in told if error)
    )


def held_nodes(tables: ProjectTables) -> list[Node]:
    """Return the nodes with held rows, according to the landing zone.

    The rows of a node may be held while its table is unfinished or blocked. Publishing it then
    finishes it, or says why it is blocked.
    """
    held = {status.table for status in tables.statuses() if tables.is_held(status)}
    return [node for node in tables.mirrored if node.table in held]


def not_passed(unique_id: str, graph: Graph, statuses: Statuses) -> str:
    """Return why a node is not published; empty if all its tests passed in this command.

    Args:
        unique_id: unique id of the node
    """
    tests = {
        test_id: statuses.get(test_id)
        for test_id, test in graph.items()
        if test["resource_type"] == "test" and unique_id in _parents(test)
    }
    failed = [graph[test]["name"] for test, status in tests.items() if status in ("fail", "error")]
    if failed:
        return f"because {_names(failed)} failed"
    missing = [graph[test]["name"] for test, status in tests.items() if status not in _PASSING]
    return f"until it has passed {_names(missing)}" if missing else ""


def _took_part(unique_id: str, graph: Graph, statuses: Statuses) -> bool:
    """Check whether a command built a node, or ran one of its tests without building it."""
    if unique_id in statuses:
        return statuses[unique_id] == _BUILT
    return any(
        unique_id in _parents(graph[test])
        for test in statuses
        if test in graph and graph[test]["resource_type"] == "test"
    )


def _in_order(nodes: Sequence[Node], graph: Graph) -> list[Node]:
    """Sort nodes so that parents come before their children."""
    by_id = {node.unique_id: node for node in nodes}
    parents = {unique_id: _parents(node) for unique_id, node in graph.items()}
    order = TopologicalSorter(parents).static_order()
    return [by_id[unique_id] for unique_id in order if unique_id in by_id]


def _parents(node: Mapping[str, Any]) -> Sequence[str]:
    # seeds have no "nodes" here
    parents: Sequence[str] = node["depends_on"].get("nodes", ())
    return parents


def _names(names: Sequence[str]) -> str:
    told = ", ".join(shown(name) for name in sorted(names)[:_TOLD])
    more = len(names) - _TOLD
    return f"{told} and {more} more" if more > 0 else told
