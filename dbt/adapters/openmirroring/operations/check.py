"""The problems of the mirrored tables, for an operation that fails if there are any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone

from dbt.adapters.openmirroring.landing_zone.batch import STARTS_FOLDER
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.operations.project_tables import (
    BLOCKED,
    ELSEWHERE,
    HELD,
    ORPHAN,
    UNFINISHED,
    Outcome,
    ProjectTables,
    TableStatus,
    utc_text,
)
from dbt.adapters.openmirroring.operations.status import service_record, table_record, to_json
from dbt.adapters.openmirroring.service.reports import FAILED, ServiceReport, TableReport


@dataclass(frozen=True)
class Problem:
    """A problem of a mirrored table, as the JSON has it.

    Args:
        problem: `failed`, `blocked`, `held`, `behind` or `stale`
        message: what is wrong, and what to do
    """

    table: str
    problem: str
    message: str


def check(
    tables: ProjectTables,
    report: ServiceReport,
    without_report: str,
    older_than: timedelta,
    stale_after: timedelta | None,
    as_json: bool,
) -> Outcome:
    """Look for problems of the mirrored tables that have a node here.

    Args:
        without_report: why the service could not be asked; empty if it could
        older_than: how long the service may need to apply a publication, and a run to finish one
        stale_after: how long nothing may be published of a table; None for any time
    """
    checked = [each for each in tables.statuses(report) if each.state not in (ORPHAN, ELSEWHERE)]
    problems = [
        problem for status in checked for problem in _problems(status, older_than, stale_after)
    ]
    failed = [f"{each.table}: {each.problem}: {each.message}" for each in problems]
    if without_report:
        failed.insert(0, f"Nobody knows which tables have failed or are behind: {without_report}")
    if as_json:
        line = to_json(
            ok=not failed,
            problems=[asdict(problem) for problem in problems],
            service=service_record(report, without_report),
            tables=[table_record(each) for each in checked],
        )
    else:
        line = "" if failed else _fine(len(checked), report)
    return Outcome((line,) if line else (), tuple(failed))


def _problems(
    status: TableStatus, older_than: timedelta, stale_after: timedelta | None
) -> Iterator[Problem]:
    now = datetime.now(timezone.utc)
    table, journal, pending = status.table, status.journal, status.pending
    applied, published_at = status.applied, status.published_at
    failure = _failure(status)
    if failure:
        yield Problem(table, "failed", failure)
    if status.state == BLOCKED:
        message = f"The next run refuses to publish it: {status.note}"
        yield Problem(table, "blocked", message)
    if status.state == UNFINISHED and pending and now - pending.batch.begun_at > older_than:
        yield Problem(
            table,
            "blocked",
            f"A run that began at {utc_text(pending.batch.begun_at)} UTC has left "
            f"{pending.batch.summary}. To finish it: dbt run-operation mirror_recover",
        )
    if status.state == HELD:
        yield Problem(
            table,
            "held",
            f"{status.note.rstrip('.')}. To publish it nevertheless: dbt run-operation "
            f"mirror_publish --args '{{table: {table}}}'",
        )
    if journal and not failure and status.is_behind:
        since = _unapplied_since(journal, applied)
        if now - since > older_than:
            yield Problem(
                table,
                "behind",
                f"Published at {utc_text(since)} UTC, not applied for {_told(now - since)}"
                f"{_last_times(applied)}. The mirrored database is {status.report.description}; "
                f"the table is {applied.status or 'not listed'}. See its page in Fabric. For a "
                "local landing zone: dbt run-operation mirror_replicate",
            )
    if published_at and stale_after is not None and now - published_at > stale_after:
        yield Problem(
            table,
            "stale",
            f"Published last at {utc_text(published_at)} UTC, {_told(now - published_at)} ago. "
            "Run its node, or see in dbt's log why its runs fail. Runs without changes publish "
            "nothing.",
        )


def _failure(status: TableStatus) -> str:
    """Return why the service does not apply a table, and what to do; empty if it does."""
    applied = status.applied
    rebuild = f"dbt run-operation mirror_rebuild --args '{{table: {status.table}}}'"
    if status.loss:
        return f"{status.loss} To publish a full load of the rows that Spark has: {rebuild}"
    if applied.status != FAILED and not applied.error:
        return ""
    what = "has stopped applying it" if applied.status == FAILED else "reports an error"
    why = (applied.error or "no reason given").rstrip(".")
    return (
        f"The service {what}: {why}. Fix the cause, then rebuild the table with --full-refresh, "
        f"or if its rows cannot be recomputed: {rebuild}"
    )


def _unapplied_since(journal: Journal, applied: TableReport) -> datetime:
    """Return when the oldest files were published that the service has yet to apply.

    The last publication may be young although the service has applied nothing for long.
    """
    since = datetime.fromisoformat(journal.published_at)
    for batch in journal.batches:
        published_at = datetime.fromisoformat(batch.published_at)
        if applied.last_sync and published_at <= applied.last_sync:
            break
        if batch.files_written:
            since = published_at
        if batch.publication in STARTS_FOLDER:
            break
    return since


def _fine(count: int, report: ServiceReport) -> str:
    tables = f"{count:,} mirrored table{'' if count == 1 else 's'} checked, all fine."
    if not report.status:
        return f"{tables} No service has reported on them."
    return f"{tables} The mirrored database is {report.description}."


def _last_times(applied: TableReport) -> str:
    """Return when earlier rows were applied and became visible, as far as that is known."""
    times = (("applied last", applied.last_sync), ("visible", applied.visible))
    told = "; ".join(f"{what} at {utc_text(time)} UTC" for what, time in times if time)
    return told and f" ({told})"


def _told(span: timedelta) -> str:
    """Return a span of time in hours and minutes."""
    hours, minutes = divmod(int(span.total_seconds() // 60), 60)
    return f"{hours:,} h {minutes} min"
