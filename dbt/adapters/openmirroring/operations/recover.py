"""Bringing tables to the state that was published last: unfinished batches, lost snapshots."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.node.advance import Table, recover
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.repair import Restored, restore
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.operations.project_tables import Outcome, ProjectTables
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.text.codes import note, with_code

logger = AdapterLogger("OpenMirroring")

# the schema and the identifier of a relation, in lower case
Place = tuple[str, str]


class Recovery:
    """Finishes the batches that earlier runs have committed, but not completed.

    A batch that may wait for Fabric is postponed until a node needs it.

    Args:
        destination: where the batches were committed
        warehouse: returns Spark's tables, without the context of a node
    """

    def __init__(self, destination: Destination, warehouse: Callable[[], Warehouse]) -> None:
        self._destination = destination
        self._warehouse = warehouse
        self._postponed: dict[Place, _Postponed] = {}

    def finish(self, unfinished: Manifest) -> Manifest | None:
        """Finish a batch. Return None if another run has finished it."""
        owner, table = unfinished.batch.owner, unfinished.table
        target = OpenMirroringRelation.create(
            schema=owner.schema, identifier=table.identifier, type=RelationType.Table
        )
        with self._destination.publication(table, owner) as publication:
            return recover(Table(self._warehouse(), target, publication))

    def finish_all(self, tables: ProjectTables) -> Outcome:
        """Finish all unfinished batches of the project."""
        lines, failed = [], []
        for unfinished in tables.unfinished():
            try:
                finished = self.finish(unfinished)
            except DbtRuntimeError as error:
                failed.append(f"{unfinished.table}: {error.msg}")
            else:
                if finished:
                    lines.append(f"{unfinished.table}: finished {finished.batch.summary}")
        if not lines and not failed:
            lines.append("Nothing was unfinished.")
        return Outcome(tuple(lines), tuple(failed))

    def finish_schemas(self, tables: ProjectTables, schemas: Collection[str]) -> set[str]:
        """Finish or postpone the batches of some schemas, before anything is compiled.

        A failure here does not stop the command, because the table's own node reports it.

        Returns:
            the schemas whose batches were finished, or failed
        """
        try:
            pending = tables.unfinished()
        except DbtRuntimeError as error:
            logger.debug(f"The landing zone could not be searched: {error.msg}")
            return set()
        touched = set()
        for unfinished in pending:
            schema = unfinished.batch.owner.schema
            if schema not in schemas:
                continue
            if self._destination.waits_for(unfinished):
                self.postpone(unfinished)
            else:
                touched.add(schema)
                self._finish_or_warn(unfinished)
        return touched

    def postpone(self, unfinished: Manifest) -> None:
        place = place_of(unfinished.batch.owner.schema, unfinished.table.identifier)
        self._postponed[place] = _Postponed(unfinished)

    @property
    def has_postponed(self) -> bool:
        return bool(self._postponed)

    def is_postponed(self, place: Place) -> bool:
        """Whether the batch of a relation waits until a node needs it."""
        return place in self._postponed

    def finish_postponed(self, place: Place, *, is_own: bool) -> None:
        """Finish the batch of a relation, if there is one, before a node that needs it compiles.

        Several nodes may need it: the first one finishes it, and the others wait. Only a failure
        of a node's own batch is an error.
        """
        postponed = self._postponed.get(place)
        if postponed is None:
            return
        with postponed.lock:
            if postponed.is_tried:
                return
            postponed.is_tried = True
            (self._finish if is_own else self._finish_or_warn)(postponed.unfinished)

    def tell_left(self) -> None:
        """Warn of the batches that no node has needed."""
        left = [each.unfinished for each in self._postponed.values() if not each.is_tried]
        self._postponed = {}
        for unfinished in left:
            told = (
                f"{unfinished.table}: an earlier run has left {unfinished.batch.summary}. This "
                "command has run no node that needs the table, so it did not wait for Fabric. The "
                "next run of its node finishes it, or: dbt run-operation mirror_recover"
            )
            logger.warning(with_code(told, "OM710"))

    def _finish_or_warn(self, unfinished: Manifest) -> None:
        try:
            self._finish(unfinished)
        except DbtRuntimeError as error:
            logger.warning(f"{unfinished.table} could not be recovered yet: {error.msg}")

    def _finish(self, unfinished: Manifest) -> None:
        finished = self.finish(unfinished)
        if finished:
            batch, table = finished.batch.id, unfinished.table
            note(f"Finished batch {batch} of {table}, which an earlier run had left")


@dataclass
class _Postponed:
    unfinished: Manifest
    is_tried: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


def place_of(schema: object, identifier: object) -> Place:
    """Return the place of a relation, in which Spark ignores case."""
    return str(schema).lower(), str(identifier).lower()


class Restores:
    """Restores the snapshots that a command needs and Spark has lost, each of them once.

    Attributes:
        for_dry_run: what was restored for a dry run

    Args:
        running: shows the progress of a node to the user
    """

    def __init__(
        self, destination: Destination, running: Callable[[Node], AbstractContextManager[None]]
    ) -> None:
        self._destination = destination
        self._running = running
        self._lock = threading.Lock()
        self._restored: dict[str, Future[None]] = {}
        self.for_dry_run: list[tuple[Node, Restored]] = []

    def restore(self, node: Node) -> None:
        """Restore the snapshot of a node. If several need it, the others wait for the first.

        Raises:
            DbtRuntimeError: if it cannot be restored
        """
        name = node.owner.node
        with self._lock:
            is_first = name not in self._restored
            result = self._restored.setdefault(name, Future())
        if is_first:
            try:
                self._restore(node)
                result.set_result(None)
            except BaseException as error:
                result.set_exception(error)
        result.result()

    def _restore(self, node: Node) -> None:
        with self._running(node):
            restored = restore(node, self._destination)
        if restored:
            if self._destination.dry_run:
                self.for_dry_run.append((node, restored))
            note(f"{node.target}: {restored}")

    def drop_those_of_dry_run(self) -> None:
        """Drop what was restored for a dry run, which leaves nothing behind."""
        while self.for_dry_run:
            node, restored = self.for_dry_run.pop()
            warehouse, target = node.warehouse, node.target
            try:
                # a run on the same Spark may have published it again
                if warehouse.fresh_marks(target).build == restored.batch.build:
                    warehouse.drop(target)
            except DbtRuntimeError as error:
                logger.debug(f"{target} was not dropped: {error.msg}")
