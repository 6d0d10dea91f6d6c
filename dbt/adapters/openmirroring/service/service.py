"""The service that applies a landing zone: what it says, and waiting for it."""

from __future__ import annotations

import json
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

# of a mirrored database; others may be added over time, and say nothing against publishing
STARTED = ("Starting", "Running")
NOT_STARTED = ("Initializing", "Initialized")
_RESUME = {
    "Paused": "Select `Resume replication` on its page in the Fabric portal, then run again.",
    "Stopping": "Run again when it has stopped, and hear what to do then.",
    "Stopped": "`dbt run-operation mirror_start` starts it. It then begins anew with those files "
    "that are still there, so publish full loads: `dbt run --full-refresh`.",
}

# of a mirrored table
FAILED = "Failed"

# seconds: between two questions, how old an answer may be before a publication, and how long a
# dropped table may take to disappear, or a new one to appear
PAUSE = 10.0
CHECK_AGE = 60.0
REBUILD_TIMEOUT = 900.0


class ServiceError(MirrorError):
    """The service cannot apply what is published, or has not done so in time."""


class Clock(Protocol):
    """What of the module `time` is needed for waiting."""

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


@dataclass(frozen=True)
class TableReport:
    """What the service says of a table; empty if it says nothing.

    Args:
        status: e.g. `Snapshotting`, `Replicating`, `Failed`
        error: in a line
        last_sync: when it last applied something, in UTC
    """

    status: str = ""
    error: str = ""
    last_sync: datetime | None = None


@dataclass(frozen=True)
class ServiceReport:
    """What the service says.

    Args:
        status: of the mirrored database, e.g. `Running`, `Paused`
        error: of the mirrored database, in a line
        tables: by `schema.table`
    """

    status: str = ""
    error: str = ""
    tables: Mapping[str, TableReport] = field(default_factory=dict)

    @property
    def description(self) -> str:
        return f"{self.status} ({self.error})" if self.error else self.status


class Service:
    """The service of a landing zone, asked seldom enough not to be throttled.

    Args:
        ask: what it says now; None if nobody can know
        clock: what time it is, and how to wait
    """

    def __init__(self, ask: Callable[[], ServiceReport | None], clock: Clock = time) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._answer: tuple[float, ServiceReport | None] | None = None
        self._warnings: set[str] = set()

    def report(self, max_age: float = 0) -> ServiceReport | None:
        """What it says; None if nobody can know.

        Args:
            max_age: seconds that the answer may be old
        """
        with self._lock:
            now = self._clock.monotonic()
            if self._answer is None or now - self._answer[0] >= max_age:
                self._answer = now, self._ask()
            return self._answer[1]

    def check(self) -> None:
        """Before a publication: the service will apply it.

        Raises:
            ServiceError: it will not
        """
        report = self.report(CHECK_AGE)
        if report is None:
            self._warn(
                "Fabric does not tell this identity how it is about the mirrored database, and "
                "there is nothing in Files/Monitoring. It is not known whether what is published "
                "is applied, and rebuilds do not wait until it is."
            )
            return
        _refuse_stopped(report)
        if report.status in NOT_STARTED:
            # best practices, "Start mirroring": the initial files come first
            self._warn(
                f"The mirrored database is {report.description}: what is published waits until "
                "it is started, by `dbt run-operation mirror_start`."
            )

    def check_table(self, table: str, rebuilds: bool) -> None:
        """Before a publication: the service will apply it to this table.

        Args:
            table: `schema.table`
            rebuilds: the table is to be rebuilt, which repairs it

        Raises:
            ServiceError: it will not
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
                f"The service has stopped applying {table}: {found.error or 'it tells no reason'}"
                ". Nothing was changed. Mend the cause; `--full-refresh`, or `dbt run-operation "
                "mirror_rebuild` for rows that cannot be had again, then rebuilds the table."
            )
        if found and found.error:
            self._warn(f"The service says of {table}: {found.error}")

    def check_all(self) -> None:
        """For `dbt debug`: as before a publication, and warn of the tables that have failed.

        Raises:
            ServiceError: nothing would be applied
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
        """Wait until a table whose folder was dropped has disappeared (best practices).

        Args:
            table: `schema.table`
            dropped: just now; otherwise the folder was not there before

        Raises:
            ServiceError: it has not in time, or will not
        """
        report = None
        # as long as there is no folder, a table that was not there does not come
        for report in self._reports(REBUILD_TIMEOUT, 0 if dropped else CHECK_AGE):
            if table not in report.tables:
                return
        if report:
            raise _gave_up(f"has not dropped {table}", report, table)

    def wait_until_back(self, table: str) -> None:
        """Wait until a table whose folder was made anew is mirrored again (best practices).

        Args:
            table: `schema.table`

        Raises:
            ServiceError: it is not in time, or will not be
        """
        report = None
        for report in self._reports(REBUILD_TIMEOUT):
            if table in report.tables:
                return
        if report:
            raise _gave_up(f"does not mirror {table} again", report, table)

    def not_applied(self, published: Mapping[str, datetime], seconds: float) -> list[str]:
        """Wait until what was published is applied.

        Args:
            published: when, by `schema.table`
            seconds: to wait

        Returns:
            a line for each table that is still behind
        """
        behind = [f"{name}: the service says nothing of it" for name in published]
        for report in self._reports(seconds):
            tables = {name: report.tables.get(name, TableReport()) for name in published}
            behind = [
                f"{name}: {found.error or found.status or 'not mirrored yet'}"
                for name, found in tables.items()
                if is_behind(found, published[name])
            ]
            waiting = [t for t in tables.values() if t.status != FAILED]
            if not behind or not waiting:
                break
        return behind

    def _reports(self, seconds: float, max_age: float = 0) -> Iterator[ServiceReport]:
        """What it says again and again; nothing where there is nothing to wait for.

        Args:
            max_age: seconds that the first answer may be old
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
    """The service has not applied anything to a table since it was published."""
    return table.last_sync is None or table.last_sync < published


def attempts(seconds: float, clock: Clock = time) -> Iterator[None]:
    """Now, and after each pause, until so many seconds have passed."""
    deadline = clock.monotonic() + seconds
    yield
    while (rest := deadline - clock.monotonic()) > 0:
        clock.sleep(min(PAUSE, rest))
        yield


def monitoring_report(read: Callable[[str], bytes | None]) -> ServiceReport | None:
    """What the service writes to `Files/Monitoring`; None if there is nothing that can be read.

    Args:
        read: the content of a file in that folder, None if there is no such file
    """
    try:
        replicator = json.loads(read("replicator.json") or b"{}")
        tables = json.loads(read("tables.json") or b"")["tables"]
        return ServiceReport(
            status=shown(replicator.get("status") or ""),
            error=shown(replicator.get("errorMessage") or ""),
            tables={
                f"{table['sourceSchemaName']}.{table['sourceTableName']}": TableReport(
                    shown(table["status"]),
                    shown(table.get("errorMessage") or ""),
                    utc_time((table.get("metrics") or {}).get("lastSyncTimeUtc")),
                )
                for table in tables
            },
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def utc_time(text: object) -> datetime | None:
    """A time as the service writes it: ISO 8601, UTC, with seven digits after the second.

    None for what is no such time.
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
            f"The mirrored database is {report.description}: it applies nothing that is "
            f"published. {_RESUME[report.status]}"
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
        f"{told or 'it tells no reason'}. Nothing is lost: the next run of the node, or "
        "`dbt run-operation mirror_recover`, waits again and goes on from here."
    )
