"""Finishing the batches that earlier runs have committed, but not completed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.operations.project_tables import Outcome, ProjectTables

logger = AdapterLogger("OpenMirroring")

# finishes a batch and returns it; returns None if another run has finished it already
Finish = Callable[[Manifest], Manifest | None]

# the schema and the identifier of a relation, in lower case
Place = tuple[str, str]


def recover_tables(tables: ProjectTables, finish: Finish) -> Outcome:
    """Finish all unfinished batches of the project."""
    lines, failed = [], []
    for unfinished in tables.unfinished():
        try:
            finished = finish(unfinished)
        except DbtRuntimeError as error:
            failed.append(f"{unfinished.table}: {error.msg}")
        else:
            if finished:
                lines.append(f"{unfinished.table}: finished {finished.batch.summary}")
    if not lines and not failed:
        lines.append("Nothing was unfinished.")
    return Outcome(tuple(lines), tuple(failed))


def recover_schemas(
    tables: ProjectTables,
    schemas: Collection[str],
    finish: Finish,
    postpone: Callable[[Manifest], bool],
) -> set[str]:
    """Finish the unfinished batches of some schemas, before anything is compiled.

    A failure here does not stop the command, because the table's own node reports it.

    Args:
        postpone: postpones a batch; returns False if it must be finished now

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
        if schema in schemas and not postpone(unfinished):
            touched.add(schema)
            _finish_or_warn(unfinished, finish)
    return touched


class Postponed:
    """Batches of earlier runs that wait for Fabric, and so are finished only if they are needed.

    Args:
        finish: finishes a batch
    """

    def __init__(self, finish: Finish) -> None:
        self._finish = finish
        self._batches: dict[Place, _Postponed] = {}

    def __bool__(self) -> bool:
        return bool(self._batches)

    def add(self, unfinished: Manifest) -> None:
        self._batches[_place(unfinished)] = _Postponed(unfinished)

    def finish(self, place: Place, *, is_own: bool) -> None:
        """Finish the batch of a relation, if there is one, before a node that needs it compiles.

        Several nodes may need it: the first one finishes it, and the others wait.

        Args:
            is_own: whether it is the relation of the node itself

        Raises:
            DbtRuntimeError: if the batch of the node itself cannot be finished
        """
        found = self._batches.get(place)
        if found is None:
            return
        with found.lock:
            if found.is_tried:
                return
            found.is_tried = True
            (_finish if is_own else _finish_or_warn)(found.unfinished, self._finish)

    def tell_left(self) -> None:
        """Warn of the batches that no node has needed."""
        left = [each.unfinished for each in self._batches.values() if not each.is_tried]
        self._batches = {}
        for unfinished in left:
            logger.warning(
                f"{unfinished.table}: an earlier run has left {unfinished.batch.summary}. This "
                "command has run no node that needs the table, so it did not wait for Fabric. The "
                "next run of its node finishes it, or: dbt run-operation mirror_recover"
            )


@dataclass
class _Postponed:
    unfinished: Manifest
    is_tried: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


def place_of(schema: object, identifier: object) -> Place:
    """Return the place of a relation, in which Spark ignores case."""
    return str(schema).lower(), str(identifier).lower()


def _place(unfinished: Manifest) -> Place:
    return place_of(unfinished.batch.owner.schema, unfinished.table.identifier)


def _finish_or_warn(unfinished: Manifest, finish: Finish) -> None:
    try:
        _finish(unfinished, finish)
    except DbtRuntimeError as error:
        logger.warning(f"{unfinished.table} could not be recovered yet: {error.msg}")


def _finish(unfinished: Manifest, finish: Finish) -> None:
    finished = finish(unfinished)
    if finished:
        batch, table = finished.batch.id, unfinished.table
        fire_event(Note(msg=f"Finished batch {batch} of {table}, which an earlier run had left"))
