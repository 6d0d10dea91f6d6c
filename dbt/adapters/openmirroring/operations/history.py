"""The history of each mirrored table, batch by batch."""

from __future__ import annotations

from datetime import datetime

from dbt.adapters.openmirroring.landing_zone.records import PastBatch
from dbt.adapters.openmirroring.operations.json_output import (
    BatchRecord,
    HistoryDocument,
    to_json,
)
from dbt.adapters.openmirroring.operations.project_tables import (
    Outcome,
    ProjectTables,
    utc_text,
)
from dbt.adapters.openmirroring.text.shown import shown
from dbt.adapters.openmirroring.text.table import terminal_width, text_table

_HEADLINE = (
    *("mirrored table", "published (UTC)", "publication", "changes", "rows", "files", "KB"),
    *("dbt's invocation", "reason"),
)


def history(
    tables: ProjectTables, table: str | None, limit: int, as_json: bool = False
) -> Outcome:
    """List the last batches of tables, latest first.

    Args:
        table: `schema.table`, the table alone, or the name or unique id of its node; None for all
        limit: number of batches of each table; a journal has up to a hundred
        as_json: whether to print JSON instead of lines

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
        records = [BatchRecord.of(*each) for each in found]
        return Outcome((to_json(HistoryDocument(records)),))
    if not found:
        return Outcome(("Nothing was published.",))
    rows = [_cells(*each) for each in found]
    return Outcome(tuple(text_table([_HEADLINE, *rows], (4, 5, 6), terminal_width())))


def _cells(table: str, batch: PastBatch) -> tuple[str, ...]:
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
