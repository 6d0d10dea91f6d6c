"""The reports of the service that applies published files, and its errors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Protocol

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.openmirroring.landing_zone.errors import MirrorError

logger = AdapterLogger("OpenMirroring")

# Statuses of a mirrored database. Fabric may add others, which do not prevent publications.
NOT_STARTED = ("Initializing", "Initialized")

# a status of a mirrored table
FAILED = "Failed"

# seconds between two requests while something is waited for
PAUSE = 10.0


class ServiceError(MirrorError):
    """The service cannot apply published files, or has not applied them in time."""


class ServiceUnavailableError(ServiceError):
    """The service gives no answer now. It may give one later."""


class Clock(Protocol):
    """The functions of the module `time` that waiting needs."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


@dataclass(frozen=True)
class TableReport:
    """The state of a table in the service; empty if the service does not report it.

    Args:
        status: e.g. `Snapshotting`, `Replicating`, `Failed`
        error: the error in one line
        last_sync: when the service last applied something to the table, in UTC
        visible: when the SQL analytics endpoint was last synchronized with the table, in UTC;
            None if that is unknown
    """

    status: str = ""
    error: str = ""
    last_sync: datetime | None = None
    visible: datetime | None = None


@dataclass(frozen=True)
class ServiceReport:
    """The state of a mirrored database and of its tables.

    Args:
        status: e.g. `Running`, `Paused`
        error: its error in one line
        tables: the states of the tables, by `schema.table`
    """

    status: str = ""
    error: str = ""
    tables: Mapping[str, TableReport] = field(default_factory=dict)

    @property
    def description(self) -> str:
        return f"{self.status} ({self.error})" if self.error else self.status


def is_behind(table: TableReport, published: datetime) -> bool:
    """Check whether the service has yet to apply a publication.

    A table that has failed may have applied some files of it, and applies no more.
    """
    return table.status == FAILED or table.last_sync is None or table.last_sync < published


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


def attempts(seconds: float, clock: Clock = time) -> Iterator[None]:
    """Yield now and after each pause, until the given seconds have passed."""
    deadline = clock.monotonic() + seconds
    yield
    while (rest := deadline - clock.monotonic()) > 0:
        clock.sleep(min(PAUSE, rest))
        yield


def utc_time(text: object) -> datetime | None:
    """Read a time as the service writes it: ISO 8601, UTC, seven digits after the second.

    It is None if the text is not such a time.
    """
    second, _, fraction = str(text or "").rstrip("Z").partition(".")
    try:
        time_ = datetime.fromisoformat(f"{second}.{fraction[:6]:0<6}")
    except ValueError:
        return None
    return time_.replace(tzinfo=timezone.utc)
