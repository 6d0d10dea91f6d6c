"""Refreshing the SQL analytics endpoint, so that reports see the published rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, TypeVar

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.service.monitoring import Service
from dbt.adapters.openmirroring.service.reports import (
    ServiceReport,
    TableReport,
    TableSync,
    is_behind,
    logger,
)
from dbt.adapters.openmirroring.text.codes import note, with_code
from dbt.adapters.openmirroring.text.table import LOG_PREFIX, terminal_width, text_table

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase

# This file is at the root of the landing zone, where Fabric ignores it. The endpoint returns these
# times only in its answer to a refresh, so they are kept here.
RECORD = "_sqlEndpoint.json"

# times when the endpoint last took over each table, by its name there; None if it never did
_TIMES: TypeAdapter[dict[str, AwareDatetime | None]] = TypeAdapter(dict[str, AwareDatetime | None])

_Entry = TypeVar("_Entry")

_TIME = "%Y-%m-%d %H:%M:%S"

_NEVER = datetime.min.replace(tzinfo=timezone.utc)


def refresh_sql_endpoint(
    database: MirroredDatabase,
    service: Service,
    storage: Storage,
    published: Mapping[str, datetime],
) -> None:
    """Refresh the endpoint, and print its answer for each table. A failure is only a warning.

    Args:
        published: the time of each publication, by `schema.table`
    """
    note("Refreshing the SQL analytics endpoint")
    try:
        # asked before the refresh, which takes over only files that are applied by then
        report = service.report()
        syncs = _by_table(database.refresh_sql_endpoint())
    except MirrorError as error:
        tables = ", ".join(sorted(published))
        told = f"{error.text} Reports may not see the new rows yet: {tables}"
        logger.warning(with_code(told, error.code))
        return
    for line in _lines(syncs, published):
        note(line)
    if missing := _not_visible(syncs, report.tables if report else None, published):
        told = f"Published, but not visible to reports: {'; '.join(missing)}"
        logger.warning(with_code(told, "OM715"))
    try:
        storage.write(RECORD, _TIMES.dump_json({s.table: s.visible for s in syncs.values()}))
    except MirrorError as error:
        told = f"{error.text} `mirror_status` will not show when tables became visible."
        logger.warning(with_code(told, error.code))


def with_visible_times(report: ServiceReport, storage: Storage) -> ServiceReport:
    """Add to a report the times when tables last became visible, as of the last refresh."""
    content = storage.read(RECORD)
    try:
        times = _TIMES.validate_json(content or b"{}")
    except ValidationError:  # anybody with access to the landing zone can write this file
        times = {}
    tables = {
        name: replace(table, visible=_entry_of(name, times))
        for name, table in report.tables.items()
    }
    return replace(report, tables=tables)


def _lines(syncs: Mapping[str, TableSync], published: Mapping[str, datetime]) -> list[str]:
    """Return the endpoint's answers about the published tables, as a table of text."""
    found = [(table, sync) for table in sorted(published) if (sync := _entry_of(table, syncs))]
    rows = [
        (table, sync.status, f"{sync.visible:{_TIME}}" if sync.visible else "", sync.error)
        for table, sync in found
    ]
    headline = ("mirrored table", "SQL endpoint", "visible (UTC)", "")
    width = terminal_width(LOG_PREFIX)
    return list(text_table([headline, *rows], (), width)) if rows else []


def _by_table(syncs: Iterable[TableSync]) -> dict[str, TableSync]:
    """Return the answers by table name; of several with the same name, the oldest one."""
    latest_first = sorted(syncs, key=lambda sync: sync.visible or _NEVER, reverse=True)
    return {sync.table: sync for sync in latest_first}


def _entry_of(table: str, named: Mapping[str, _Entry]) -> _Entry | None:
    """Return the entry of a `schema.table`, which the endpoint may name without its schema."""
    return named.get(table, named.get(table.rpartition(".")[2]))


def _not_visible(
    syncs: Mapping[str, TableSync],
    applied: Mapping[str, TableReport] | None,
    published: Mapping[str, datetime],
) -> list[str]:
    """Return a line for each table whose last publication is not visible to reports.

    Args:
        syncs: the endpoint's answers to the refresh, by table
        applied: the state of each table in the service before the refresh; None if it is unknown
    """
    lines = []
    for table, time in published.items():
        sync = _entry_of(table, syncs)
        report = (applied or {}).get(table, TableReport())
        if applied is not None and is_behind(report, time):
            problem = "Fabric has not applied it yet"
        elif sync is None:
            problem = "the endpoint does not list it"
        else:
            problem = sync.problem(report, time)
        if problem:
            lines.append(f"{table}: {problem}")
    return lines
