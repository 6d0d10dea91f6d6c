"""Publishing held nodes: those that passed their tests in a command, or all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from dataclasses import dataclass
from graphlib import TopologicalSorter
from threading import Event
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.publish import keep_held, publish_held
from dbt.adapters.openmirroring.node.response import MirrorResponse
from dbt.adapters.openmirroring.operations.project_tables import (
    MirroredNode,
    Outcome,
    ProjectTables,
)
from dbt.adapters.openmirroring.text.shown import shown

# statuses of a test that let a node be published
_PASSING = ("pass", "warn")
# status of a node that was built
_BUILT = "success"
# number of tests that a message names
_TOLD = 3

# by unique id: the nodes in dbt's graph, and the statuses of nodes and tests in a command
Graph = Mapping[str, Mapping[str, Any]]
Statuses = Mapping[str, str]

# the work of `in_turn` on a node; the function that it gets waits for the nodes before it
Work = Callable[[MirroredNode, Callable[[], None]], object]


@dataclass(frozen=True)
class HeldNodes:
    """The nodes of a project whose rows are held.

    Args:
        opened: opens a node in a connection of its own
        threads: number of tables that are compared at the same time
    """

    tables: ProjectTables
    graph: Graph
    destination: Destination
    opened: Callable[[MirroredNode], AbstractContextManager[Node]]
    threads: int

    def publish_all(self, table: str | None) -> Outcome:
        """Publish the held rows of one table or of all, regardless of their tests.

        The rows of a node may be held while its table is unfinished or blocked. Publishing it then
        finishes it, or says why it is blocked.
        """
        if table is None:
            names = {each.table for each in self.tables.statuses() if self.tables.is_held(each)}
            held = [node for node in self.tables.mirrored if node.table in names]
        else:
            held = [self.tables.node(table)]
        outcome = in_turn(_in_order(held, self.graph), self._publish, self.threads)
        if outcome == Outcome(()):
            told = "Nothing is held." if table is None else f"{held[0].table} is not held."
            return Outcome((told,))
        return outcome

    def publish_tested(self, gated: Collection[str], statuses: Statuses) -> Outcome:
        """Publish nodes that a command built or tested, if all their tests passed.

        The others stay held.

        Args:
            gated: the unique ids of the nodes that are published after their tests
        """
        builds = self.destination.builds
        reasons = {
            node: not_passed(node.unique_id, self.graph, statuses)
            for node in _in_order(self.tables.mirrored, self.graph)
            if node.unique_id in gated
            and node.unique_id in builds
            and _took_part(node.unique_id, self.graph, statuses)
        }
        published = in_turn(
            [node for node, why in reasons.items() if not why],
            lambda node, wait: self._publish(node, wait, builds[node.unique_id]),
            self.threads,
        )
        held = in_turn(
            [node for node, why in reasons.items() if why],
            lambda node, _: self._keep(node, reasons[node]),
            self.threads,
        )
        return Outcome(published.lines + held.lines, published.failed + held.failed)

    def _publish(
        self, mirrored: MirroredNode, wait_for_turn: Callable[[], None], build: str | None = None
    ) -> MirrorResponse | None:
        with self.opened(mirrored) as node:
            return publish_held(node, self.destination, wait_for_turn, build)

    def _keep(self, mirrored: MirroredNode, why: str) -> str:
        with self.opened(mirrored) as node:
            keep_held(node, self.destination, why)
        return f"held {why}"


def in_turn(nodes: Sequence[MirroredNode], work: Work, threads: int) -> Outcome:
    """Work on nodes at the same time. They become visible one after the other, in their order."""
    turns = [Event() for _ in nodes]

    def wait(number: int) -> None:
        if number:
            turns[number - 1].wait()

    def one(number: int, node: MirroredNode) -> tuple[str, str]:
        """Work on one node. Return the line to print and the error; one of them is empty."""
        try:
            response = work(node, lambda: wait(number))
            return (f"{node.table}: {response}" if response else ""), ""
        except DbtRuntimeError as error:
            return "", f"{node.table}: {error.msg}"
        finally:
            wait(number)
            turns[number].set()

    with ThreadPoolExecutor(threads) as pool:
        # dbt's log finds the current command in the context
        running = [
            pool.submit(copy_context().run, one, number, node) for number, node in enumerate(nodes)
        ]
        told = [each.result() for each in running]
    return Outcome(
        tuple(line for line, _ in told if line), tuple(error for _, error in told if error)
    )


def not_passed(unique_id: str, graph: Graph, statuses: Statuses) -> str:
    """Return why a node is not published; empty if all its tests passed in this command."""
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


def _in_order(nodes: Sequence[MirroredNode], graph: Graph) -> list[MirroredNode]:
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
