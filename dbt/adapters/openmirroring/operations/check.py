"""The problems of the mirrored tables, for an operation that fails if there are any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from dbt.adapters.openmirroring.landing_zone.batch import STARTS_FOLDER
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.operations.json_output import (
    CheckDocument,
    ProblemRecord,
    ServiceRecord,
    table_records,
    to_json,
)
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
from dbt.adapters.openmirroring.service.reports import FAILED, ServiceReport, TableReport


@dataclass(frozen=True)
class Patience:
    """How long something may take before it is a problem.

    Args:
        older_than: for the service to apply a publication, and for a run to finish one
        stale_after: since the last publication of a table; None for any time
    """

    older_than: timedelta
    stale_after: timedelta | None = None


def check(
    tables: ProjectTables, report: ServiceReport, problem: str, patience: Patience, as_json: bool
) -> Outcome:
    """Look for problems of the mirrored tables that have a node here.

    Args:
        report: the report of the service
        problem: why the service could not be asked; empty if it could
        as_json: whether to print JSON instead of a line
    """
    now = datetime.now(timezone.utc)
    checked = [each for each in tables.statuses() if each.state not in (ORPHAN, ELSEWHERE)]
    problems = [
        ProblemRecord(status.table, kind, message)
        for status in checked
        for kind, message in _problems(status, report, patience, now)
    ]
    failed = [f"{each.table}: {each.problem}: {each.message}" for each in problems]
    if problem:
        failed.insert(0, f"Nobody knows which tables have failed or are behind: {problem}")
    if as_json:
        service = ServiceRecord.of(report, problem)
        records = table_records(tables, checked, report)
        line = to_json(CheckDocument(not failed, problems, service, records))
    else:
        line = "" if failed else _fine(len(checked), report)
    return Outcome((line,) if line else (), tuple(failed))


def _problems(
    status: TableStatus, report: ServiceReport, patience: Patience, now: datetime
) -> Iterator[tuple[str, str]]:
    """Yield the kind of each problem of a table, and what is wrong and what to do."""
    applied, journal = status.applied(report), status.journal
    failure = _failure(status, applied, status.loss(report))
    if failure:
        yield "failed", failure
    if status.state == BLOCKED:
        yield "blocked", f"The next run refuses to publish it: {status.note}"
    pending = status.landed.pending if status.landed else None
    if status.state == UNFINISHED and pending:
        begun = pending.batch.begun_at
        if now - begun > patience.older_than:
            yield (
                "blocked",
                f"A run that began at {utc_text(begun)} UTC has left {pending.batch.summary}. To "
                "finish it: dbt run-operation mirror_recover",
            )
    if status.state == HELD:
        yield (
            "held",
            f"{status.note.rstrip('.')}. To publish it nevertheless: dbt run-operation "
            f"mirror_publish --args '{{table: {status.table}}}'",
        )
    if journal and not failure and status.is_behind(report):
        since = _unapplied_since(journal, applied)
        if now - since > patience.older_than:
            yield (
                "behind",
                f"Published at {utc_text(since)} UTC, not applied for {_told(now - since)}"
                f"{_last_times(applied)}. The mirrored database is {report.description}; the "
                f"table is {applied.status or 'not listed'}. See its page in Fabric. For a local "
                "landing zone: dbt run-operation mirror_replicate",
            )
    if journal and patience.stale_after is not None:
        published_at = datetime.fromisoformat(journal.published_at)
        if now - published_at > patience.stale_after:
            yield (
                "stale",
                f"Published last at {utc_text(published_at)} UTC, {_told(now - published_at)} "
                "ago. Run its node, or see in dbt's log why its runs fail. Runs without changes "
                "publish nothing.",
            )


def _failure(status: TableStatus, applied: TableReport, loss: str) -> str:
    """Return why the service does not apply a table, and what to do; empty if it does."""
    rebuild = f"dbt run-operation mirror_rebuild --args '{{table: {status.table}}}'"
    if loss:
        return f"{loss} To publish a full load of the rows that Spark has: {rebuild}"
    if applied.status != FAILED and not applied.error:
        return ""
    what = "has stopped applying it" if applied.status == FAILED else "reports an error"
    return (
        f"The service {what}: {applied.error or 'no reason given'}. Fix the cause, then rebuild "
        f"the table with --full-refresh, or if its rows cannot be recomputed: {rebuild}"
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
