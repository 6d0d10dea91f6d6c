"""The state, the problems and the history of the mirrored tables, as lines and as JSON.

The fields of the JSON are in docs/operations.md. None stands for what a table does not have.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from dbt_common import ui

from dbt.adapters.openmirroring.landing_zone.batch import STARTS_FOLDER
from dbt.adapters.openmirroring.landing_zone.records import Journal, PastBatch
from dbt.adapters.openmirroring.operations.project_tables import (
    Outcome,
    ProjectTables,
    TableStatus,
    utc_text,
)
from dbt.adapters.openmirroring.service.reports import FAILED, ServiceReport, TableReport
from dbt.adapters.openmirroring.text.codes import with_code
from dbt.adapters.openmirroring.text.shown import shown
from dbt.adapters.openmirroring.text.table import terminal_width, text_table

# A new field leaves the version as it is. One that goes, or gets another meaning, does not.
VERSION = 1

_STATUS = (
    *("mirrored table", "state", "last", "rows", "publication", "published (UTC)"),
    *("changes", "pending", "service", "applied (UTC)", "visible (UTC)", ""),
)
_HISTORY = (
    *("mirrored table", "published (UTC)", "publication", "changes", "rows", "files", "KB"),
    *("dbt's invocation", "reason"),
)


def status_lines(
    tables: ProjectTables, report: ServiceReport, width: int | None = None
) -> list[str]:
    """Return the states as a table of text. Without a width, its lines are whole and plain."""
    rows = [_status_cells(status) for status in tables.statuses(report)]
    return list(text_table([_STATUS, *rows], (2, 3), width, {1: _painted} if width else {}))


def history(tables: ProjectTables, table: str | None, limit: int, as_json: bool) -> Outcome:
    """List the last batches of a table, or of all, latest first: up to a limit of each table."""
    wanted = None if table is None else tables.node(table).table
    batches = [
        (status.table, batch)
        for status in tables.statuses()
        if status.journal and wanted in (None, status.table)
        for batch in status.journal.batches[:limit]
    ]
    if as_json:
        return Outcome((to_json(batches=[batch_record(*each) for each in batches]),))
    if not batches:
        return Outcome(("Nothing was published.",))
    rows = [_history_cells(*each) for each in batches]
    return Outcome(tuple(text_table([_HISTORY, *rows], (4, 5, 6), terminal_width())))


def to_json(**fields: Any) -> str:
    """Return a document as one line, so that its reader can tell it from lines of dbt's log.

    It is ASCII, which every terminal and encoding can print.
    """
    return json.dumps({"version": VERSION, **fields})


def service_record(report: ServiceReport, problem: str) -> dict[str, Any]:
    """Return the state of the service, or the problem why it could not be asked."""
    return {"status": report.status or None, "error": report.error or problem or None}


def table_record(status: TableStatus) -> dict[str, Any]:
    journal, pending, applied = status.journal, status.pending, status.applied
    batch = journal.batch if journal else None
    return {
        "table": status.table,
        "mirrored_table": status.mirrored_table,
        "node": status.node,
        "state": status.state,
        "note": status.note or None,
        "publication": batch.publication if batch else None,
        "published_at": _utc(status.published_at),
        "rows_inserted": batch.rows.inserted if batch else None,
        "rows_updated": batch.rows.updated if batch else None,
        "rows_deleted": batch.rows.deleted if batch else None,
        "table_rows": batch.table_rows if batch else None,
        "last_file": batch.last_file if batch else None,
        "pending": pending.batch.summary if pending else None,
        "service_status": applied.status or None,
        "service_error": applied.error or None,
        "behind": status.is_behind,
        "lost": status.loss or None,
        "applied_at": _utc(applied.last_sync),
        "visible_at": _utc(applied.visible),
    }


def batch_record(table: str, batch: PastBatch) -> dict[str, Any]:
    return {
        "table": table,
        "published_at": _utc(datetime.fromisoformat(batch.published_at)),
        "publication": batch.publication,
        "reason": batch.reason or None,
        "rows_inserted": batch.rows.inserted,
        "rows_updated": batch.rows.updated,
        "rows_deleted": batch.rows.deleted,
        "table_rows": batch.table_rows,
        "files_written": batch.files_written,
        "bytes_written": batch.bytes_written,
        "invocation_id": batch.invocation_id,
    }


def _status_cells(status: TableStatus) -> tuple[str, ...]:
    applied, journal, pending = status.applied, status.journal, status.pending
    told: tuple[str, ...] = ("", "", "", "", "")
    if journal:
        batch = journal.batch
        told = (
            f"#{batch.last_file}",
            f"{batch.table_rows:,}",
            batch.publication,
            utc_text(status.published_at),
            str(batch.rows),
        )
    behind = "behind" if status.is_behind else ""
    return (
        status.table,
        status.state,
        *told,
        pending.batch.summary if pending else "",
        applied.status,
        utc_text(applied.last_sync),
        utc_text(applied.visible),
        "; ".join(filter(None, (status.note, behind, applied.error, status.loss))),
    )


def _history_cells(table: str, batch: PastBatch) -> tuple[str, ...]:
    return (
        table,
        utc_text(datetime.fromisoformat(batch.published_at)),
        batch.publication,
        str(batch.rows),
        f"{batch.table_rows:,}",
        f"{batch.files_written:,}",
        f"{batch.bytes_written / 1000:,.1f}",
        shown(batch.invocation_id),
        shown(batch.reason),
    )


def _utc(time: datetime | None) -> str | None:
    """Return a time in the form of ISO 8601 that jq reads: UTC, whole seconds, `Z`."""
    return f"{time.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}" if time else None


def _painted(state: str) -> str:
    if state in ("blocked", "missing"):
        return ui.red(state)
    if state in ("unfinished", "held", "orphan"):
        return ui.yellow(state)
    return ui.green(state) if state == "published" else state


@dataclass(frozen=True)
class Problem:
    """A problem of a mirrored table, as the JSON has it.

    Args:
        problem: `failed`, `blocked`, `missing`, `held`, `behind` or `stale`
        message: what is wrong, and what to do
    """

    table: str
    problem: str
    message: str


def check(
    tables: ProjectTables,
    report: ServiceReport,
    without_report: str,
    place: str,
    older_than: timedelta,
    stale_after: timedelta | None,
    as_json: bool,
) -> Outcome:
    """Look for problems of the mirrored tables that have a node here.

    Args:
        without_report: why the service could not be asked; empty if it could
        place: the landing zone, as messages name it
        older_than: how long the service may need to apply a publication, and a run to finish one
        stale_after: how long nothing may be published of a table; None for any time
    """
    own = [each for each in tables.statuses(report) if each.state not in ("orphan", "elsewhere")]
    checked = [each for each in own if each.state != "not published"]
    problems = [
        problem for status in checked for problem in _problems(status, older_than, stale_after)
    ]
    failed = [f"{each.table}: {each.problem}: {each.message}" for each in problems]
    if not checked:
        failed.append(_nothing_checked(len(own), place))
    if without_report:
        told = f"Could not read table status from Fabric: {without_report}"
        failed.insert(0, with_code(told, "OM103"))
    if as_json:
        line = to_json(
            ok=not failed,
            checked=len(checked),
            problems=[asdict(problem) for problem in problems],
            service=service_record(report, without_report),
            tables=[table_record(each) for each in own],
        )
    else:
        line = "" if failed else _fine(len(checked), len(own) - len(checked), report)
    return Outcome((line,) if line else (), tuple(failed))


def _problems(
    status: TableStatus, older_than: timedelta, stale_after: timedelta | None
) -> Iterator[Problem]:
    now = datetime.now(timezone.utc)
    table, journal, pending = status.table, status.journal, status.pending
    applied = status.applied
    failure = _failure(status)
    if failure:
        yield Problem(table, "failed", failure)
    if status.state == "blocked":
        message = f"The next run refuses to publish it: {status.note}"
        yield Problem(table, "blocked", message)
    if status.state == "missing":
        yield Problem(
            table,
            "missing",
            f"{status.note[0].upper()}{status.note[1:]}, so there is no mirrored table. To "
            "publish a full load of the rows that Spark has: dbt run-operation mirror_rebuild "
            f"--args '{{table: {table}}}'",
        )
    if status.state == "unfinished" and pending and now - pending.batch.begun_at > older_than:
        yield Problem(
            table,
            "blocked",
            f"A run that began at {utc_text(pending.batch.begun_at)} UTC has left "
            f"{pending.batch.summary}. To finish it: dbt run-operation mirror_recover",
        )
    if status.state == "held":
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
    if journal and stale_after is not None and now - journal.files_at > stale_after:
        files_at = journal.files_at
        yield Problem(
            table,
            "stale",
            f"Published last at {utc_text(files_at)} UTC, {_told(now - files_at)} ago. "
            "Run its node, or see in dbt's log why its runs fail. Runs without changes publish "
            "nothing.",
        )


def _failure(status: TableStatus) -> str:
    """Return why the service does not apply a table, and what to do; empty if it does."""
    applied = status.applied
    rebuild = f"dbt run-operation mirror_rebuild --args '{{table: {status.table}}}'"
    if status.loss:
        told = f"{status.loss} To publish a full load of the rows that Spark has: {rebuild}"
        return with_code(told, "OM709")
    if applied.status != FAILED and not applied.error:
        return ""
    what = "has stopped applying it" if applied.status == FAILED else "reports an error"
    why = (applied.error or "no reason given").rstrip(".")
    return with_code(
        f"The service {what}: {why}. Fix the cause, then rebuild the table with --full-refresh, "
        f"or if its rows cannot be recomputed: {rebuild}",
        "OM708" if applied.status == FAILED else "",
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


def _nothing_checked(count: int, place: str) -> str:
    if not count:
        return "Nothing was checked: this project has no mirrored node, with this target."
    return (
        f"Nothing was checked: {place} has no table of the {count:,} mirrored "
        f"node{'' if count == 1 else 's'} of this project. A run publishes them there. If one has "
        "done so, somebody has emptied the landing zone, or this is another one."
    )


def _fine(checked: int, others: int, report: ServiceReport) -> str:
    tables = f"{checked:,} mirrored table{'' if checked == 1 else 's'} checked"
    never = f" {others:,} {'was' if others == 1 else 'were'} never published." if others else ""
    if not report.status:
        return f"{tables} in the landing zone alone: no service has reported on them.{never}"
    return f"{tables}, all fine.{never} The mirrored database is {report.description}."


def _last_times(applied: TableReport) -> str:
    """Return when earlier rows were applied and became visible, as far as that is known."""
    times = (("applied last", applied.last_sync), ("visible", applied.visible))
    told = "; ".join(f"{what} at {utc_text(time)} UTC" for what, time in times if time)
    return told and f" ({told})"


def _told(span: timedelta) -> str:
    """Return a span of time in hours and minutes."""
    hours, minutes = divmod(int(span.total_seconds() // 60), 60)
    return f"{hours:,} h {minutes} min"
