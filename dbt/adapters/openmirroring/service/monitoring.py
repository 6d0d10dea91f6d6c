"""The service that applies published files: what it reports, and how a publication waits for it.

It reports by Fabric's REST API, and in the files in `Files/Monitoring`.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta, timezone
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.openmirroring.landing_zone.batch import STARTS_FOLDER
from dbt.adapters.openmirroring.landing_zone.errors import LandingZoneUnavailableError, MirrorError
from dbt.adapters.openmirroring.landing_zone.inventory import MAX_TABLES, TableFiles
from dbt.adapters.openmirroring.landing_zone.layout import (
    DEFAULT_SCHEMA,
    TableFolder,
    mirrored_table,
)
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.service.reports import (
    FAILED,
    NOT_STARTED,
    Clock,
    ServiceError,
    ServiceReport,
    ServiceUnavailableError,
    TableReport,
    attempts,
    is_behind,
    logger,
    utc_time,
)
from dbt.adapters.openmirroring.text.codes import with_code
from dbt.adapters.openmirroring.text.shown import shown

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential

    from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase

# HTTP statuses if the identity may not ask, e.g. because its token is valid for OneLake only.
_NOT_ALLOWED = (401, 403)

# the way out for the statuses of a mirrored database in which it applies nothing
_RESUME = {
    "Paused": "Select `Resume replication` on its page in the Fabric portal, then run again.",
    "Stopping": "Run again when it has stopped; the next message then says what to do.",
    "Stopped": "`dbt run-operation mirror_start` starts it. It then starts from nothing with the "
    "files that are still there, so publish full loads: `dbt run --full-refresh`.",
}

# seconds: the maximum age of a report for the check before a publication, and the time for a
# dropped table to disappear or a new one to appear
CHECK_AGE = 60.0
REBUILD_TIMEOUT = 900.0

# how long after its first load a table may be missing in the reports of the service
NEW = timedelta(seconds=REBUILD_TIMEOUT)

# the ends of messages if the service is unavailable: for a publication that waits, and for others
_CONTINUES = (
    "Nothing is lost: the next run of the node, or `dbt run-operation mirror_recover`, waits "
    "again and continues from here."
)
_WITHOUT_REPORT = (
    "So dbt cannot know whether published files are applied, and does not ask again in this "
    "command. Changes and new tables are published. Rebuilds are refused, because they wait until "
    "Fabric has dropped the table."
)


class Service:
    """The service of a landing zone. It reuses reports, so that Fabric does not throttle requests.

    A table is named `schema.table`.

    Args:
        ask: gets a new report; returns None if there is none
    """

    def __init__(self, ask: Callable[[], ServiceReport | None], clock: Clock = time) -> None:
        self._ask = ask
        self._clock = clock
        self._lock = threading.Lock()
        self._answer: ServiceReport | ServiceError | None = None
        self._answered_at = -inf
        self._warnings: set[str] = set()

    def report(self, max_age: float = 0) -> ServiceReport | None:
        """Return the last report, or a new one if the last is too old; None if there is none.

        Args:
            max_age: the age in seconds from which the last report is too old

        Raises:
            ServiceError: if the service refuses to answer, or is unavailable. Then it is not asked
                again for a minute
        """
        with self._lock:
            if isinstance(self._answer, ServiceUnavailableError):
                max_age = max(max_age, CHECK_AGE)
            if self._clock.monotonic() - self._answered_at >= max_age:
                try:
                    self._answer = self._ask()
                except ServiceError as error:
                    self._answer = error
                # after the question, because its retries may take longer than an answer is valid
                self._answered_at = self._clock.monotonic()
            answer = self._answer
        if isinstance(answer, ServiceError):
            raise answer
        return answer

    def _report_before(self) -> ServiceReport | None:
        """Return a report for the check before a publication; None if there is none.

        If the service is unavailable, this warns once, and does not ask again in this command.
        """
        if isinstance(self._answer, ServiceUnavailableError):
            return None
        try:
            report = self.report(CHECK_AGE)
        except ServiceUnavailableError as error:
            self._warn(with_code(f"{error.text} {_WITHOUT_REPORT}", error.code))
            return None
        if report is None:
            self._warn(
                "This identity may not see the state of the mirrored database in Fabric, and "
                "Files/Monitoring is empty. So dbt cannot know whether published files are "
                "applied, and rebuilds do not wait for it."
            )
        return report

    def check(self) -> None:
        """Check, before a publication, that the service will apply it.

        Raises:
            ServiceError: if the mirrored database is paused, stopping or stopped
        """
        report = self._report_before()
        if report is None:
            return
        _refuse_stopped(report)
        if report.status in NOT_STARTED:
            # best practices, "Start mirroring": the initial files come first
            self._warn(
                f"The mirrored database is {report.description}: published files wait until it is "
                "started with `dbt run-operation mirror_start`."
            )

    def check_table(self, table: str, rebuilds: bool) -> ServiceReport | None:
        """Check, before a publication, that the service will apply it to this table.

        Args:
            rebuilds: whether the publication rebuilds the table, which repairs a failed one

        Raises:
            ServiceError: if the table has failed, exceeds the limit of tables, or is to be rebuilt
                while the service is unavailable
        """
        if rebuilds:
            self.check_answer(table)
        report = self._report_before()
        if report is None:
            return None
        known = report.tables.get(table)
        if known is None and len(report.tables) >= MAX_TABLES:
            raise ServiceError(
                f"The mirrored database has {len(report.tables):,} tables, and Fabric mirrors no "
                f"more than {MAX_TABLES:,}: {table} would not be one of them. Nothing was "
                "changed. Drop tables that nobody needs, or set `mirror: false`."
            )
        if known and known.status == FAILED and not rebuilds:
            raise ServiceError(
                f"The service has stopped applying {table}: {known.error or 'no reason given'}"
                ". Nothing was changed. Fix the cause, then rebuild the table with "
                "`--full-refresh`, or with `dbt run-operation mirror_rebuild` if its rows cannot "
                "be recomputed.",
                code="OM708",
            )
        if known and known.error:
            self._warn(f"The service reports an error of {table}: {known.error}")
        return report

    def check_answer(self, table: str) -> None:
        """Check, before the folder of a table is dropped, that the service can be asked about it.

        Raises:
            ServiceError: if the service is unavailable
        """
        try:
            self.report(CHECK_AGE)
        except ServiceUnavailableError as error:
            raise ServiceError(
                f"{table} cannot be rebuilt now, because a rebuild waits until Fabric has dropped "
                f"the table, and Fabric does not answer. {error.text} The table folder was left "
                "as it is. Run again when Fabric answers.",
                code="OM711",
            ) from error

    def check_all(self) -> None:
        """Check the database for `dbt debug`, and warn about tables that have failed.

        Raises:
            ServiceError: if the mirrored database is paused, stopping or stopped, or if there is
                no answer
        """
        report = self.report(CHECK_AGE) or ServiceReport()
        self.check()
        failed = [
            f"{shown(name)} ({table.error})"
            for name, table in report.tables.items()
            if table.status == FAILED
        ]
        if failed:
            told = f"The service has stopped applying {'; '.join(failed)}"
            self._warn(with_code(told, "OM708"))

    def wait_until_gone(self, table: str, dropped: bool = True) -> None:
        """Wait until a table has disappeared after its folder was dropped (best practices).

        Args:
            dropped: whether the folder was dropped just now; if not, it did not exist before

        Raises:
            ServiceError: if the table has not disappeared in time, or the service has stopped
        """
        # if the folder did not exist before, the table cannot appear, so an older report is enough
        max_age = 0 if dropped else CHECK_AGE
        what = f"dropped, the service has not dropped {table}"
        self._wait(table, what, max_age, lambda report: table not in report)

    def wait_until_back(self, table: str) -> None:
        """Wait until a table is mirrored again after its folder was recreated (best practices).

        Raises:
            ServiceError: if the table is not mirrored in time, or the service has stopped
        """
        what = f"recreated, the service does not mirror {table} again"
        self._wait(table, what, 0, lambda report: table in report)

    def _wait(
        self,
        table: str,
        what: str,
        max_age: float,
        is_done: Callable[[Mapping[str, TableReport]], bool],
    ) -> None:
        """Wait for the tables that the service reports.

        Args:
            what: how the table folder was changed, and what the service has not done if the time
                is over
        """
        report = None
        try:
            for report in self._reports(REBUILD_TIMEOUT, max_age):
                if is_done(report.tables):
                    return
        except ServiceUnavailableError as error:
            if report is None and max_age:
                return  # a table without a folder need not be there, so it is published
            raise ServiceError(f"{error.text} {_CONTINUES}", code=error.code) from error
        if report:
            raise _gave_up(what, report, table)

    def not_applied(self, published: Mapping[str, datetime], seconds: float) -> list[str]:
        """Wait until the published files are applied. Return a line for each table that is behind.

        Args:
            published: the time of each publication, by `schema.table`
            seconds: the maximum time to wait
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
        failure: ServiceUnavailableError | None = None
        has_answered = False
        for _ in attempts(seconds, self._clock):
            try:
                report = self.report(max_age)
            except ServiceUnavailableError as error:
                failure = error
                if not has_answered:
                    break
                continue
            failure, has_answered, max_age = None, True, 0
            if report is None or report.status in NOT_STARTED:
                return
            _refuse_stopped(report)
            yield report
        if failure:
            raise failure

    def _warn(self, text: str) -> None:
        with self._lock:
            is_new = text not in self._warnings
            self._warnings.add(text)
        if is_new:
            logger.warning(text)


def _refuse_stopped(report: ServiceReport) -> None:
    if report.status in _RESUME:
        raise ServiceError(
            f"The mirrored database is {report.description}: it does not apply published files. "
            f"{_RESUME[report.status]}",
            code="OM707",
        )


def _gave_up(what: str, report: ServiceReport, table: str) -> ServiceError:
    known = report.tables.get(table, TableReport())
    told = "; ".join(
        f"{who} {words}"
        for who, words in (
            ("the mirrored database is", report.description),
            ("the table is", known.status),
            ("its error is", known.error),
        )
        if words
    )
    return ServiceError(
        f"{REBUILD_TIMEOUT / 60:g} minutes after its folder was {what}: "
        f"{told or 'no reason given'}. {_CONTINUES}",
        code="OM713",
    )


def loss(table: TableFolder, journal: Journal, files: TableFiles, report: ServiceReport) -> str:
    """Return how Fabric has lost rows of a table; empty if it has not, as far as one can know.

    A table that is not listed may be new, or Fabric may not have begun with it. But if Fabric has
    applied and moved some of its files, then it had the table, and has it no more: a change set
    would be applied to nothing. If all files since the last full load are still there, Fabric
    can build the table from them.
    """
    if is_listed(table, report) or files.has_all_since_load(journal):
        return ""
    loads = (b.published_at for b in journal.batches if b.publication in STARTS_FOLDER)
    first_load = next(loads, None)  # of the present table folder
    if first_load and datetime.now(timezone.utc) - datetime.fromisoformat(first_load) < NEW:
        return ""
    return (
        f"Fabric no longer mirrors {table.mirrored_table}, and has moved away files that it needs "
        "to begin again. The mirrored database was stopped and started, or created anew, or "
        "the table was dropped there."
    )


def refuse_lost(storage: Storage, table: TableFolder, report: ServiceReport) -> None:
    """Check, before changes are published, that Fabric has the rows that they change.

    Raises:
        ServiceError: if Fabric has lost them
    """
    journal = None if is_listed(table, report) else Journal.read(storage, table.journal)
    if journal is None:
        return
    how = loss(table, journal, TableFiles.of(storage, table), report)
    if how:
        raise ServiceError(
            f"{how} Changes would be applied to nothing. Nothing was changed. To publish a full "
            f"load of the rows that Spark has ({journal.batch.table_rows:,} were published last): "
            f"dbt run-operation mirror_rebuild --args '{{table: {table}}}'",
            code="OM709",
        )


def is_listed(table: TableFolder, report: ServiceReport) -> bool:
    """Check whether the service reports a table."""
    names = {name.casefold() for name in report.tables}
    if not table.schema:  # the service may name the default schema of the mirrored database
        names |= {f"{DEFAULT_SCHEMA}.{name.rpartition('.')[2]}" for name in names}
    return table.mirrored_table.casefold() in names


def fabric_report(
    database: MirroredDatabase, place: OneLakeUrl, credential: TokenCredential
) -> ServiceReport | None:
    """Ask Fabric's REST API, or read `Files/Monitoring` if the identity may not ask it.

    Returns:
        None if the identity may not read these files either, or they are missing or not valid

    Raises:
        FabricError: if the REST API fails for another reason
        ServiceUnavailableError: if the files cannot be read for another reason
    """
    # these imports are slow, and a local landing zone does not need them
    from azure.core.exceptions import ClientAuthenticationError

    from dbt.adapters.openmirroring.landing_zone.onelake.storage import (
        OneLakeClient,
        OneLakeStorage,
    )
    from dbt.adapters.openmirroring.service.mirrored_database import FabricError

    try:
        return database.report()
    except FabricError as refused:
        if refused.status not in _NOT_ALLOWED:
            raise
        without_api = refused
        logger.debug(refused.msg)
    files = OneLakeStorage(OneLakeClient.connect(place.monitoring, credential))
    try:
        return monitoring_report(files.read)
    except LandingZoneUnavailableError as error:
        cause: Any = error.__cause__
        if isinstance(cause, ClientAuthenticationError) and cause.response is None:
            raise ServiceUnavailableError(
                without_api.text, code=without_api.code
            ) from error  # the login has failed
        # a role may grant the landing zone without the folder beside it
        if getattr(cause, "status_code", None) not in _NOT_ALLOWED:
            raise ServiceUnavailableError(error.text, code=error.code) from error
        logger.debug(error.msg)
        return None


def replicator_report(landing_zone: Path) -> ServiceReport | None:
    """Read `Monitoring` beside a local landing zone; None if it cannot be read."""
    files = LocalStorage(landing_zone.parent)

    def read(name: str) -> bytes | None:
        try:
            return files.read(f"Monitoring/{name}")
        except MirrorError:
            return None

    return monitoring_report(read)


def monitoring_report(read: Callable[[str], bytes | None]) -> ServiceReport | None:
    """Read the service's files in `Files/Monitoring`; None if they are missing or not valid.

    Args:
        read: returns the content of a file in that folder; None if there is no such file
    """
    try:
        replicator = json.loads(read("replicator.json") or b"{}")
        tables = json.loads(read("tables.json") or b"")["tables"]
        return ServiceReport(
            status=shown(replicator.get("status") or ""),
            error=shown(replicator.get("errorMessage") or ""),
            tables={
                mirrored_table(table["sourceSchemaName"], table["sourceTableName"]): TableReport(
                    shown(table["status"]),
                    shown(table.get("errorMessage") or ""),
                    _last_sync(table.get("metrics") or {}),
                )
                for table in tables
            },
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _last_sync(metrics: Mapping[str, Any]) -> datetime | None:
    """Return the time, by the name that Microsoft's SDK reads or by that of the REST API."""
    return utc_time(metrics.get("lastSyncTimeUtc") or metrics.get("lastSyncDateTime"))
