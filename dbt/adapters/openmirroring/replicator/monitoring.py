"""`Files/Monitoring/`: the status of the service and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dbt.adapters.openmirroring.replicator.errors import ReplicatorError, TableError
from dbt.adapters.openmirroring.replicator.folder import OpenFolder, read_record, write_record
from dbt.adapters.openmirroring.text.shown import escaped
from dbt.adapters.openmirroring.text.table import text_table


@dataclass(frozen=True)
class TableReport:
    """The result of a scan for one table.

    Args:
        status: `Initialized` (no `_metadata.json`), `Snapshotting` (no data), `Replicating`,
            `Failed`, or `Dropped`
        files, operations, bytes: the files that this scan applied, their rows and their size
        rows: the number of rows in the table; None without a table
        table_id: the id of the Delta table; empty without a table
        error: why the status is `Failed`
        waits_for: the name of the missing file that later files wait for
        ignored: the names of files that are not data
    """

    schema: str
    table: str
    status: str
    files: int = 0
    operations: int = 0
    bytes: int = 0
    rows: int | None = None
    table_id: str = ""
    error: TableError | None = None
    waits_for: str | None = None
    ignored: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """One line that tells the user about a problem; empty if there is none."""
        if self.error:
            return f"{self.error.error_code}: {self.error.msg}"
        if self.waits_for:
            return escaped(f"waits for {self.waits_for}")
        if self.status == "Initialized":
            return "waits for _metadata.json"
        if self.ignored:
            return escaped(f"ignores {', '.join(self.ignored)}")
        return ""

    @property
    def name(self) -> str:
        """Schema and table in a printable form."""
        return escaped(f"{self.schema}.{self.table}")


def record_states(
    folder: Path, opened: OpenFolder, reports: Iterable[TableReport], of_all_tables: bool = False
) -> None:
    """Write `replicator.json` and `tables.json`, with the field names that Microsoft's SDK reads.

    Args:
        folder: the folder `Files/Monitoring`
        opened: this folder
        of_all_tables: whether to remove the tables that have no report

    Raises:
        ReplicatorError: if a file cannot be written
    """
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
    former = _recorded(folder)
    known = {} if of_all_tables else dict(former)
    for report in reports:
        key = escaped(report.schema), escaped(report.table)
        if report.status == "Dropped":
            known.pop(key, None)
        else:
            known[key] = _entry(report, former.get(key), now)
    states: dict[str, dict[str, Any]] = {
        "tables.json": {"tables": [known[key] for key in sorted(known)]},
        "replicator.json": {
            "status": "Running",
            "errorCode": "",
            "errorMessage": "",
            "lastHeartbeatTime": now,
        },
    }
    try:
        for name, state in states.items():
            write_record(name, state, opened)
    except OSError as error:
        raise ReplicatorError(
            f"The state of the tables cannot be written to Files/Monitoring: {error}"
        ) from None


def _recorded(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the entries of the last scan by schema and table."""
    try:
        tables = (read_record(folder / "tables.json") or {"tables": []})["tables"]
        return {(table["sourceSchemaName"], table["sourceTableName"]): table for table in tables}
    except (TableError, OSError, LookupError, TypeError):
        return {}  # the counts restart at zero, which does not affect the tables


def _entry(report: TableReport, former: dict[str, Any] | None, now: str) -> dict[str, Any]:
    known = former["metrics"] if former and former["id"] == report.table_id else {}
    return {
        "id": report.table_id,
        "status": report.status,
        "errorCode": report.error.error_code if report.error else "",
        "errorMessage": report.error.text if report.error else "",
        "normalizedTableName": escaped(report.table),
        "sourceTableName": escaped(report.table),
        "sourceSchemaName": escaped(report.schema),
        "sourceObjectType": "Table",
        "metrics": {
            "processedRowCount": known.get("processedRowCount", 0) + report.operations,
            "processedByte": known.get("processedByte", 0) + report.bytes,
            "lastSourceCommitTimeUtc": None,
            "lastSyncTimeUtc": now if report.files else known.get("lastSyncTimeUtc"),
        },
    }


def lines(reports: Iterable[TableReport], width: int | None = None) -> Iterator[str]:
    """Format reports as a text table. Without a width, its lines may be long."""
    rows = [("mirrored table", "status", "rows", "files applied", "rows applied", "")]
    for report in reports:
        count = "" if report.rows is None else f"{report.rows:,}"
        applied = (f"{report.files:,}", f"{report.operations:,}") if report.files else ("", "")
        rows.append((report.name, report.status, count, *applied, report.note))
    return text_table(rows, (2, 3, 4), width)
