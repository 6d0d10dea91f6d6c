"""`Files/Monitoring/`: the status of the service and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from dbt.adapters.openmirroring.replicator.errors import ReplicatorError, TableError
from dbt.adapters.openmirroring.replicator.folder import read_record, write_record
from dbt.adapters.openmirroring.text.shown import escaped
from dbt.adapters.openmirroring.text.table import text_table

# the fields of an entry in `tables.json`
_TEXTS = {
    *("id", "status", "errorCode", "errorMessage"),
    *("normalizedTableName", "sourceTableName", "sourceSchemaName", "sourceObjectType"),
}
_COUNTS = {"processedRowCount", "processedByte"}
_TIMES = {"lastSourceCommitTimeUtc", "lastSyncTimeUtc"}


@dataclass(frozen=True)
class TableReport:
    """The result of a scan for one table.

    Args:
        schema, table: the name of the table
        status: `Initialized` (no `_metadata.json`), `Snapshotting` (no data), `Replicating`,
            `Failed`, or `Dropped`
        files: the number of files that this scan applied
        operations: the number of rows in these files
        bytes: the size of these files
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
            return self.error.description
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


class Monitoring:
    """The status files, with the field names that Microsoft's SDK reads.

    Args:
        folder: the folder `Files/Monitoring`
        descriptor: its descriptor
    """

    def __init__(self, folder: Path, descriptor: int) -> None:
        self._folder = folder
        self._descriptor = descriptor

    def record(self, reports: Iterable[TableReport], of_all_tables: bool = False) -> None:
        """Write `replicator.json`, and update the reported tables in `tables.json`.

        Args:
            reports: the reports of a scan
            of_all_tables: whether to remove the tables that have no report

        Raises:
            ReplicatorError: if a file cannot be written
        """
        now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f0Z")
        former = {(t["sourceSchemaName"], t["sourceTableName"]): t for t in self._tables()}
        known = {} if of_all_tables else dict(former)
        for report in reports:
            key = escaped(report.schema), escaped(report.table)
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
            write_record("tables.json", tables, self._descriptor)
            write_record("replicator.json", replicator, self._descriptor)
        except OSError as error:
            raise ReplicatorError(
                f"The state of the tables cannot be written to Files/Monitoring: {error}"
            ) from None

    def _tables(self) -> list[dict[str, Any]]:
        try:
            tables = (read_record(self._folder / "tables.json") or {}).get("tables")
        except (TableError, OSError):
            return []  # the counts restart at zero, which does not affect the tables
        return [table for table in tables if _is_entry(table)] if isinstance(tables, list) else []


def _is_entry(table: Any) -> bool:
    """Check whether an object has the form that `_entry` returns."""
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
        "normalizedTableName": escaped(report.table),
        "sourceTableName": escaped(report.table),
        "sourceSchemaName": escaped(report.schema),
        "sourceObjectType": "Table",
        "metrics": metrics,
    }


def lines(reports: Iterable[TableReport], width: int | None = None) -> Iterator[str]:
    """Format reports as a text table.

    Args:
        reports: the reports of a scan
        width: the maximum characters of a line; None for no limit
    """
    rows = [("mirrored table", "status", "rows", "files applied", "rows applied", "")]
    for report in reports:
        count = "" if report.rows is None else f"{report.rows:,}"
        applied = (f"{report.files:,}", f"{report.operations:,}") if report.files else ("", "")
        rows.append((report.name, report.status, count, *applied, report.note))
    return text_table(rows, (2, 3, 4), width)
