"""What the SQL analytics endpoint of a mirrored database says of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TypeVar

from dbt.adapters.openmirroring.service.monitoring import TableReport, is_behind

_Told = TypeVar("_Told")

_NEVER = datetime.min.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class TableSync:
    """What the endpoint says of a table when it was refreshed.

    Args:
        table: `schema.table`, or the table alone: the documentation does not say which
        status: `Success`, `Failure` or `NotRun`; Fabric may add others
        error: in a line
        visible: when the endpoint last took over what was applied to the table, in UTC; None if
            it never has
    """

    table: str
    status: str
    error: str = ""
    visible: datetime | None = None

    def problem(self, applied: TableReport, published: datetime) -> str:
        """Why a report does not see the last publication; empty if it does.

        `NotRun` may mean that there was nothing to do, so it is the time that counts.

        Args:
            applied: what the service said of the table before the refresh
            published: the time of the publication
        """
        if self.visible and self.visible >= (applied.last_sync or published):
            return ""
        last = f"{self.visible:%Y-%m-%d %H:%M:%S}" if self.visible else "never"
        return f"{self.error or self.status or 'it gives no reason'} (last refreshed: {last})"


def by_table(syncs: Iterable[TableSync]) -> dict[str, TableSync]:
    """By the names of the tables; of several that are called the same, the one that is oldest."""
    latest_first = sorted(syncs, key=lambda sync: sync.visible or _NEVER, reverse=True)
    return {sync.table: sync for sync in latest_first}


def told_of(table: str, named: Mapping[str, _Told]) -> _Told | None:
    """What the endpoint says of a table, by its name with or without its schema.

    Args:
        table: `schema.table`
    """
    return named.get(table, named.get(table.rpartition(".")[2]))


def not_visible(
    syncs: Mapping[str, TableSync],
    applied: Mapping[str, TableReport] | None,
    published: Mapping[str, datetime],
) -> list[str]:
    """A line for each table whose last publication a report does not see.

    Args:
        syncs: of the refresh, by the names of the tables
        applied: what the service said of each table before the refresh; None if it says nothing
        published: the time of each publication, by `schema.table`
    """
    lines = []
    for table, time in published.items():
        sync = told_of(table, syncs)
        report = (applied or {}).get(table, TableReport())
        if applied is not None and is_behind(report, time):
            problem = "the service has not applied it yet"
        elif sync is None:
            problem = "the endpoint does not have it"
        else:
            problem = sync.problem(report, time)
        if problem:
            lines.append(f"{table}: {problem}")
    return lines
