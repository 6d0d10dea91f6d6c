"""The service that applies published files: its reports, and how a publication waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Protocol

from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.limits import MAX_TABLES
from dbt.adapters.openmirroring.landing_zone.shown import shown

logger = AdapterLogger("OpenMirroring")

# Statuses of a mirrored database. Fabric may add others, which do not prevent publications.
NOT_STARTED = ("Initializing", "Initialized")
_RESUME = {
    "Paused": "Select `Resume replication` on its page in the Fabric portal, then run again.",
    "Stopping": "Run again when it has stopped; the next message then says what to do.",
    "Stopped": "`dbt run-operation mirror_start` starts it. It then starts from nothing with the "
    "files that are still there, so publish full loads: `dbt run --full-refresh`.",
}

# a status of a mirrored table
FAILED = "Failed"

# seconds: the pause between two requests, the maximum age of a report for the check before a
# publication, and the time for a dropped table to disappear or a new one to appear
PAUSE = 10.0
CHECK_AGE = 60.0
REBUILD_TIMEOUT = 900.0


class ServiceError(MirrorError):
    """The service cannot apply published files, or has not applied them in time."""


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
        status: the status of the mirrored database, e.g. `Running`, `Paused`
        error: the error of the mirrored database in one line
        tables: the states of the tables, by `schema.table`
    """

    status: str = ""
    error: str = ""
    tables: Mapping[str, TableReport] = field(default_factory=dict)

    @property
    def description(self) -> str:
        return f"{self.status} ({self.error})" if self.error else self.status


class Service:
    """The service of a landing zone. It reuses reports, so that Fabric does not throttle requests.

    Args:
        ask: gets a new report; returns None if there is none
        clock: the clock to measure time and wait with
    """

    def __init__(self, ask: Callable[[], ServiceReport | None], clock: Clock = time) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._answer: tuple[float, ServiceReport | None] | None = None
        self._warnings: set[str] = set()

    def report(self, max_age: float = 0) -> ServiceReport | None:
        """Return the last report, or a new one if the last is too old; None if there is none.

        Args:
            max_age: the age in seconds from which the last report is too old
        """
        with self._lock:
            now = self._clock.monotonic()
            if self._answer is None or now - self._answer[0] >= max_age:
                self._answer = now, self._ask()
            return self._answer[1]

    def check(self) -> None:
        """Check, before a publication, that the service will apply it.

        Raises:
            ServiceError: if the mirrored database is paused, stopping or stopped
        """
        report = self.report(CHECK_AGE)
        if report is None:
            self._warn(
                "This identity may not see the state of the mirrored database in Fabric, and "
                "Files/Monitoring is empty. So dbt cannot know whether published files are "
                "applied, and rebuilds do not wait for it."
            )
            return
        _refuse_stopped(report)
        if report.status in NOT_STARTED:
            # best practices, "Start mirroring": the initial files come first
            self._warn(
                f"The mirrored database is {report.description}: published files wait until it is "
                "started with `dbt run-operation mirror_start`."
            )

    def check_table(self, table: str, rebuilds: bool) -> None:
        """Check, before a publication, that the service will apply it to this table.

        Args:
            table: `schema.table`
            rebuilds: whether the publication rebuilds the table, which repairs a failed one

        Raises:
            ServiceError: if the table has failed, or exceeds the limit of tables
        """
        report = self.report(CHECK_AGE)
        if report is None:
            return
        found = report.tables.get(table)
        if found is None and len(report.tables) >= MAX_TABLES:
            raise ServiceError(
                f"The mirrored database has {len(report.tables):,} tables, and Fabric mirrors no "
                f"more than {MAX_TABLES:,}: {table} would not be one of them. Nothing was "
                "changed. Drop tables that nobody needs, or set `mirror: false`."
            )
        if found and found.status == FAILED and not rebuilds:
            raise ServiceError(
                f"The service has stopped applying {table}: {found.error or 'no reason given'}"
                ". Nothing was changed. Fix the cause, then rebuild the table with "
                "`--full-refresh`, or with `dbt run-operation mirror_rebuild` if its rows cannot "
                "be recomputed."
            )
        if found and found.error:
            self._warn(f"The service reports an error of {table}: {found.error}")

    def check_all(self) -> None:
        """Check the database for `dbt debug`, and warn about tables that have failed.

        Raises:
            ServiceError: if the mirrored database is paused, stopping or stopped
        """
        self.check()
        report = self.report(CHECK_AGE) or ServiceReport()
        failed = [
            f"{shown(name)} ({table.error})"
            for name, table in report.tables.items()
            if table.status == FAILED
        ]
        if failed:
            self._warn(f"The service has stopped applying {'; '.join(failed)}")

    def wait_until_gone(self, table: str, dropped: bool = True) -> None:
        """Wait until a table has disappeared after its folder was dropped (best practices).

        Args:
            table: `schema.table`
            dropped: whether the folder was dropped just now; if not, it did not exist before

        Raises:
            ServiceError: if the table has not disappeared in time, or the service has stopped
        """
        report = None
        # if the folder did not exist before, the table cannot appear, so an older report is enough
        for report in self._reports(REBUILD_TIMEOUT, 0 if dropped else CHECK_AGE):
            if table not in report.tables:
                return
        if report:
            raise _gave_up(f"has not dropped {table}", report, table)

    def wait_until_back(self, table: str) -> None:
        """Wait until a table is mirrored again after its folder was recreated (best practices).

        Args:
            table: `schema.table`

        Raises:
            ServiceError: if the table is not mirrored in time, or the service has stopped
        """
        report = None
        for report in self._reports(REBUILD_TIMEOUT):
            if table in report.tables:
                return
        if report:
            raise _gave_up(f"does not mirror {table} again", report, table)

    def not_applied(self, published: Mapping[str, datetime], seconds: float) -> list[str]:
        """Wait until the published files are applied.

        Args:
            published: the time of each publication, by `schema.table`
            seconds: the maximum time to wait

        Returns:
            a line for each table that is still behind
        """
        behind = [f"{name}: the service does not report it" for name in published]
        for report in self._reports(seconds):
            late = {
                name: found
                for name, time in published.items()
                if is_behind(found := report.tables.get(name, TableReport()), time)
            }
            behind = [
                f"{name}: {found.error or found.status or 'not mirrored yet'}"
                for name, found in late.items()
            ]
            if all(found.status == FAILED for found in late.values()):
                break
        return behind

    def _reports(self, seconds: float, max_age: float = 0) -> Iterator[ServiceReport]:
        """Yield a report now and after each pause, as long as waiting is useful.

        Args:
            max_age: the maximum age of the first report in seconds
        """
        for _ in attempts(seconds, self._clock):
            report = self.report(max_age)
            max_age = 0
            if report is None or report.status in NOT_STARTED:
                return
            _refuse_stopped(report)
            yield report

    def _warn(self, text: str) -> None:
        with self._lock:
            is_new = text not in self._warnings
            self._warnings.add(text)
        if is_new:
            logger.warning(text)


def is_behind(table: TableReport, published: datetime) -> bool:
    """Check whether the service has yet to apply a publication.

    A table that has failed may have applied some files of it, and applies no more.
    """
    return table.status == FAILED or table.last_sync is None or table.last_sync < published


def attempts(seconds: float, clock: Clock = time) -> Iterator[None]:
    """Yield now and after each pause, until the given seconds have passed."""
    deadline = clock.monotonic() + seconds
    yield
    while (rest := deadline - clock.monotonic()) > 0:
        clock.sleep(min(PAUSE, rest))
        yield


def utc_time(text: object) -> datetime | None:
    """Read a time as the service writes it: ISO 8601, UTC, seven digits after the second.

    Returns:
        the time; None if the text is not such a time
    """
    second, _, fraction = str(text or "").rstrip("Z").partition(".")
    try:
        time_ = datetime.fromisoformat(f"{second}.{fraction[:6]:0<6}")
    except ValueError:
        return None
    return time_.replace(tzinfo=timezone.utc)


def _refuse_stopped(report: ServiceReport) -> None:
    if report.status in _RESUME:
        raise ServiceError(
            f"The mirrored database is {report.description}: it does not apply published files. "
            f"{_RESUME[report.status]}"
        )


def _gave_up(what: str, report: ServiceReport, table: str) -> ServiceError:
    found = report.tables.get(table, TableReport())
    told = "; ".join(
        f"{who} {words}"
        for who, words in (
            ("the mirrored database is", report.description),
            ("the table is", found.status),
            ("its error is", found.error),
        )
        if words
    )
    return ServiceError(
        f"The service {what} {REBUILD_TIMEOUT / 60:g} minutes after its folder was: "
        f"{told or 'no reason given'}. Nothing is lost: the next run of the node, or "
        "`dbt run-operation mirror_recover`, waits again and continues from here."
    )
