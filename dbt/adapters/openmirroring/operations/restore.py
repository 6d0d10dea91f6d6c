"""Restoring the snapshots that Spark has lost, before something needs them."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager

from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.restore import Restored, restore
from dbt.adapters.openmirroring.node.warehouse import logger
from dbt.adapters.openmirroring.operations.held import in_turn
from dbt.adapters.openmirroring.operations.project_tables import (
    MirroredNode,
    Outcome,
    ProjectTables,
)
from dbt.adapters.openmirroring.spark.relation import Marks


class Restores:
    """Restores the snapshots that a command needs, each of them once.

    Several nodes may need one: the first restores it, and the others wait.

    Attributes:
        for_dry_run: what was restored for a dry run

    Args:
        destination: where the snapshots were published to
        running: shows the progress of a node to the user
    """

    def __init__(
        self, destination: Destination, running: Callable[[Node], AbstractContextManager[None]]
    ) -> None:
        self._destination = destination
        self._running = running
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._lock = threading.Lock()
        self._errors: dict[str, DbtRuntimeError | None] = {}
        self.for_dry_run: list[tuple[Node, Restored]] = []

    def restore(self, node: Node, is_own: bool) -> None:
        """Restore the snapshot of a node, if Spark has lost it.

        Args:
            is_own: whether the node itself runs now, and no node that reads it

        Raises:
            DbtRuntimeError: if it cannot be restored
        """
        if is_own and node.is_full_refresh:
            return
        name = node.owner.node
        with self._lock:
            lock = self._locks[name]
        with lock:
            if name not in self._errors:
                self._errors[name] = None
                try:
                    self._restore(node)
                except DbtRuntimeError as error:
                    self._errors[name] = error
            failure = self._errors[name]
        if failure:
            raise failure

    def _restore(self, node: Node) -> None:
        with self._running(node):
            restored = restore(node, self._destination)
        if restored:
            if self._destination.dry_run:
                self.for_dry_run.append((node, restored))
            fire_event(Note(msg=f"{node.target}: {restored}"))

    def drop_those_of_dry_run(self) -> None:
        """Drop what was restored for a dry run, which leaves nothing behind."""
        while self.for_dry_run:
            node, restored = self.for_dry_run.pop()
            warehouse, target = node.warehouse, node.target
            try:
                # a run on the same Spark may have published it again
                if Marks.of(warehouse.properties(target)).batch_id == restored.batch_id:
                    warehouse.drop(target)
            except DbtRuntimeError as error:
                logger.debug(f"{target} was not dropped: {error.msg}")


def restore_tables(
    tables: ProjectTables,
    destination: Destination,
    connected: Callable[[MirroredNode], AbstractContextManager[Node]],
    threads: int,
    table: str | None,
) -> Outcome:
    """Bring back rows that were published last.

    Args:
        tables: the tables of the project
        connected: takes a connection for a node
        threads: how many tables are restored at the same time
        table: the table whose rows take the place of others that Spark has; None restores all
            tables that Spark has lost, and replaces nothing
    """

    def restore_one(found: MirroredNode, _: Callable[[], None]) -> Restored | None:
        with connected(found) as node:
            return restore(node, destination, replaces=table is not None)

    found = tables.mirrored if table is None else [tables.node(table)]
    outcome = in_turn(found, restore_one, threads)
    if outcome == Outcome(()):
        return Outcome(("Spark has the rows that were published last. Nothing was restored.",))
    return outcome
