"""`Files/Monitoring/`: what the service tells about itself and its tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.text_table import text_table


@dataclass(frozen=True)
class TableReport:
    """What a scan did with one table.

    Args:
        status: `Initialized` (no `_metadata.json`), `Snapshotting` (no data), `Replicating`,
            `Failed`, or `Dropped`
        files: applied in this scan
        operations: rows in these files
        bytes: size of these files
        rows: in the table; None without one
        table_id: of the Delta table; empty without one
        error: why it is `Failed`
        waits_for: name of the file that is missing, so that those after it are not applied
        ignored: files that are not data
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
        """What a user should know, in a line; empty if all is well."""
        if self.error:
            return self.error.description
        if self.waits_for:
            return f"waits for {self.waits_for}"
        if self.status == "Initialized":
            return "waits for _metadata.json"
        if self.ignored:
            return f"ignores {', '.join(self.ignored)}"
        return ""


class Monitoring:
    """The status files, with the field names that Microsoft's SDK reads.

    Args:
        folder: `Files/Monitoring` of the mirrored database
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def record(self, reports: Iterable[TableReport]) -> None:
        """Write `replicator.json`, and bring the reported tables in `tables.json` up to date."""
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
        known = {(t["sourceSchemaName"], t["sourceTableName"]): t for t in self._tables()}
        for report in reports:
            key = (report.schema, report.table)
            if report.status == "Dropped":
                known.pop(key, None)
            else:
                known[key] = _entry(report, known.get(key), now)
        self._write("tables.json", {"tables": [known[key] for key in sorted(known)]})
        replicator = {
            "status": "Running",
            "errorCode": "",
            "errorMessage": "",
            "lastHeartbeatTime": now,
        }
        self._write("replicator.json", replicator)

    def _tables(self) -> list[dict[str, Any]]:
        try:
            tables = json.loads((self.folder / "tables.json").read_text())["tables"]
            return [table for table in tables if "metrics" in table]
        except (OSError, ValueError, LookupError, TypeError):
            return []  # the figures begin anew, the tables do not depend on them

    def _write(self, name: str, content: dict[str, Any]) -> None:
        whole = self.folder / f"_{name}.new"
        whole.write_text(json.dumps(content, indent=2))
        whole.replace(self.folder / name)


def _entry(report: TableReport, former: dict[str, Any] | None, now: str) -> dict[str, Any]:
    metrics: dict[str, Any] = {
        "processedRowCount": 0,
        "processedByte": 0,
        "lastSourceCommitTimeUtc": None,
        "lastSyncTimeUtc": None,
    }
    if former and former["id"] == report.table_id:
        metrics |= former["metrics"]
    if report.files:
        metrics["processedRowCount"] += report.operations
        metrics["processedByte"] += report.bytes
        metrics["lastSyncTimeUtc"] = now
    return {
        "id": report.table_id,
        "status": report.status,
        "errorCode": report.error.code if report.error else "",
        "errorMessage": report.error.msg if report.error else "",
        "normalizedTableName": report.table,
        "sourceTableName": report.table,
        "sourceSchemaName": report.schema,
        "sourceObjectType": "Table",
        "metrics": metrics,
    }


def lines(reports: Iterable[TableReport]) -> Iterator[str]:
    """The reports as a table of text."""
    rows = [("mirrored table", "status", "files", "operations", "rows", "")]
    for report in reports:
        count = "" if report.rows is None else f"{report.rows:,}"
        rows.append(
            (
                f"{report.schema}.{report.table}",
                report.status,
                f"{report.files:,}",
                f"{report.operations:,}",
                count,
                report.note,
            )
        )
    return text_table(rows, numbers=(2, 3, 4))
