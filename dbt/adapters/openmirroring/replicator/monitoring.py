"""`Files/Monitoring/`: what the service tells about itself and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from dbt.adapters.openmirroring.replicator.errors import (
    ReplicatorError,
    TableError,
    printable,
)
from dbt.adapters.openmirroring.replicator.plain_files import read_record, write_record
from dbt.adapters.openmirroring.replicator.text_table import text_table

# of an entry in `tables.json`
_TEXTS = {
    *("id", "status", "errorCode", "errorMessage"),
    *("normalizedTableName", "sourceTableName", "sourceSchemaName", "sourceObjectType"),
}
_COUNTS = {"processedRowCount", "processedByte"}
_TIMES = {"lastSourceCommitTimeUtc", "lastSyncTimeUtc"}


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
            return printable(f"waits for {self.waits_for}")
        if self.status == "Initialized":
            return "waits for _metadata.json"
        if self.ignored:
            return printable(f"ignores {', '.join(self.ignored)}")
        return ""

    @property
    def name(self) -> str:
        """Schema and table, as they can be printed."""
        return printable(f"{self.schema}.{self.table}")


class Monitoring:
    """The status files, with the field names that Microsoft's SDK reads.

    Args:
        folder: descriptor of `Files/Monitoring` of the mirrored database, open
    """

    def __init__(self, folder: int) -> None:
        self._folder = folder

    def record(self, reports: Iterable[TableReport], of_all_tables: bool = False) -> None:
        """Write `replicator.json`, and bring the reported tables in `tables.json` up to date.

        Args:
            of_all_tables: a table without a report is gone

        Raises:
            ReplicatorError: a file cannot be written
        """
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
        former = {(t["sourceSchemaName"], t["sourceTableName"]): t for t in self._tables()}
        known = {} if of_all_tables else dict(former)
        for report in reports:
            key = printable(report.schema), printable(report.table)
            if report.status == "Dropped":
                known.pop(key, None)
            else:
                known[key] = _entry(report, former.get(key), now)
        replicator = {
            "status": "Running",
            "errorCode": "",
            "errorMessage": "",
            "lastHeartbeatTime": now,
        }
        try:
            tables = {"tables": [known[key] for key in sorted(known)]}
            write_record("tables.json", tables, self._folder)
            write_record("replicator.json", replicator, self._folder)
        except OSError as error:
            raise ReplicatorError(
                f"The state of the tables cannot be written to Files/Monitoring: {error}"
            ) from None

    def _tables(self) -> list[dict[str, Any]]:
        try:
            tables = (read_record("tables.json", self._folder) or {}).get("tables")
        except (TableError, OSError):
            return []  # the figures begin anew, the tables do not depend on them
        return [table for table in tables if _is_entry(table)] if isinstance(tables, list) else []


def _is_entry(table: Any) -> bool:
    """Whether this is what `_entry` has written."""
    if not isinstance(table, dict) or table.keys() != _TEXTS | {"metrics"}:
        return False
    metrics = table["metrics"]
    if not isinstance(metrics, dict) or metrics.keys() != _COUNTS | _TIMES:
        return False
    return (
        all(isinstance(table[name], str) for name in _TEXTS)
        and all(isinstance(metrics[name], int) and 0 <= metrics[name] < 2**63 for name in _COUNTS)
        and all(isinstance(metrics[name], str | None) for name in _TIMES)
    )


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
        "normalizedTableName": printable(report.table),
        "sourceTableName": printable(report.table),
        "sourceSchemaName": printable(report.schema),
        "sourceObjectType": "Table",
        "metrics": metrics,
    }


def lines(reports: Iterable[TableReport], width: int | None = None) -> Iterator[str]:
    """The reports as a table of text.

    Args:
        width: characters that fit on a line; None prints whole lines
    """
    rows = [("mirrored table", "status", "rows", "files applied", "rows applied", "")]
    for report in reports:
        count = "" if report.rows is None else f"{report.rows:,}"
        applied = (f"{report.files:,}", f"{report.operations:,}") if report.files else ("", "")
        rows.append((report.name, report.status, count, *applied, report.note))
    return text_table(rows, (2, 3, 4), width)
