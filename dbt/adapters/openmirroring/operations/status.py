"""The state and the history of the mirrored tables, as lines and as JSON.

The fields of the JSON are in docs/operations.md. None stands for what a table does not have.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

from dbt_common import ui

from dbt.adapters.openmirroring.landing_zone.records import PastBatch
from dbt.adapters.openmirroring.operations.project_tables import (
    BLOCKED,
    HELD,
    ORPHAN,
    PUBLISHED,
    UNFINISHED,
    Outcome,
    ProjectTables,
    TableStatus,
    utc_text,
)
from dbt.adapters.openmirroring.service.reports import ServiceReport
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
    """List the last batches of tables, latest first.

    Args:
        table: `schema.table`, the table alone, or the name or unique id of its node; None for all
        limit: number of batches of each table; a journal has up to a hundred

    Raises:
        DbtRuntimeError: if no mirrored table, or more than one, matches `table`
    """
    wanted = None if table is None else tables.node(table).table
    found = [
        (status.table, batch)
        for status in tables.statuses()
        if status.journal and wanted in (None, status.table)
        for batch in status.journal.batches[:limit]
    ]
    if as_json:
        return Outcome((to_json(batches=[batch_record(*each) for each in found]),))
    if not found:
        return Outcome(("Nothing was published.",))
    rows = [_history_cells(*each) for each in found]
    return Outcome(tuple(text_table([_HISTORY, *rows], (4, 5, 6), terminal_width())))


def to_json(**fields: Any) -> str:
    """Return a document as one line, so that its reader can tell it from lines of dbt's log.

    It is ASCII, which every terminal and encoding can print.
    """
    return json.dumps({"version": VERSION, **fields})


def service_record(report: ServiceReport, problem: str) -> dict[str, Any]:
    """Return the state of the service.

    Args:
        problem: why it could not be asked; empty if it could
    """
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
    if state == BLOCKED:
        return ui.red(state)
    if state in (UNFINISHED, HELD, ORPHAN):
        return ui.yellow(state)
    return ui.green(state) if state == PUBLISHED else state
