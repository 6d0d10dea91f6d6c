"""The state of each table in the SQL analytics endpoint of a mirrored database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeVar

from dbt.adapters.openmirroring.service.reports import TableReport, is_behind

_Entry = TypeVar("_Entry")

_NEVER = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class TableSync:
    """The endpoint's answer about one table after a refresh.

    Args:
        table: `schema.table`, or the table alone: the documentation does not say which
        status: `Success`, `Failure` or `NotRun`; Fabric may add others
        error: the error in one line
        visible: when the endpoint was last synchronized with the table, in UTC; None if it never
            was
    """

    table: str
    status: str
    error: str = ""
    visible: datetime | None = None

    def problem(self, applied: TableReport, published: datetime) -> str:
        """Return why reports do not see the last publication; empty if they do.

        The time decides, not the status, because `NotRun` may mean that there was nothing to do.

        Args:
            applied: the state of the table in the service before the refresh
            published: the time of the publication
        """
        if self.visible and self.visible >= (applied.last_sync or published):
            return ""
        last = f"{self.visible:%Y-%m-%d %H:%M:%S} UTC" if self.visible else "never"
        status = self.status or "no status"
        return f"{self.error or f'the endpoint reports {status}'} (last refreshed: {last})"


def by_table(syncs: Iterable[TableSync]) -> dict[str, TableSync]:
    """Return the answers by table name; of several with the same name, the oldest one."""
    latest_first = sorted(syncs, key=lambda sync: sync.visible or _NEVER, reverse=True)
    return {sync.table: sync for sync in latest_first}


def entry_of(table: str, named: Mapping[str, _Entry]) -> _Entry | None:
    """Return the entry of a table, which the endpoint names with or without its schema.

    Args:
        table: `schema.table`
        named: the entries, by the names that the endpoint uses
    """
    return named.get(table, named.get(table.rpartition(".")[2]))


def not_visible(
    syncs: Mapping[str, TableSync],
    applied: Mapping[str, TableReport] | None,
    published: Mapping[str, datetime],
) -> list[str]:
    """Return a line for each table whose last publication is not visible to reports.

    Args:
        syncs: the endpoint's answers to the refresh, by the names of the tables
        applied: the state of each table in the service before the refresh; None if it is unknown
        published: the time of each publication, by `schema.table`
    """
    lines = []
    for table, time in published.items():
        sync = entry_of(table, syncs)
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
