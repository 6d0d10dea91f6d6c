"""Finishing the batches that earlier runs have committed, but not completed."""

from __future__ import annotations

from collections.abc import Callable, Collection

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.operations.project_tables import Outcome, ProjectTables

logger = AdapterLogger("OpenMirroring")

# finishes a batch and returns it; returns None if another run has finished it already
Finish = Callable[[Manifest], Manifest | None]


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


def recover_schemas(tables: ProjectTables, schemas: Collection[str], finish: Finish) -> set[str]:
    """Finish the unfinished batches of some schemas, before anything is compiled.

    A failure here does not stop the command, because the table's own node reports it.

    Returns:
        the schemas that had unfinished batches
    """
    try:
        pending = tables.unfinished()
    except DbtRuntimeError as error:
        logger.debug(f"The landing zone could not be searched: {error.msg}")
        return set()
    touched = set()
    for unfinished in pending:
        schema, table = unfinished.batch.owner.schema, unfinished.table
        if schema not in schemas:
            continue
        touched.add(schema)
        try:
            finished = finish(unfinished)
        except DbtRuntimeError as error:
            logger.warning(f"{table} could not be recovered yet: {error.msg}")
            continue
        if finished:
            batch = finished.batch.id
            told = f"Finished batch {batch} of {table}, which an earlier run had left"
            fire_event(Note(msg=told))
    return touched
