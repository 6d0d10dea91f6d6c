"""One scan of a landing zone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dbt.adapters.openmirroring.replicator.errors import ReplicatorError, TableError
from dbt.adapters.openmirroring.replicator.folder import (
    DEFAULT_SCHEMA,
    METADATA,
    SCHEMA_SUFFIX,
    TableFolder,
    table_folders,
)
from dbt.adapters.openmirroring.replicator.metadata import TableMetadata
from dbt.adapters.openmirroring.replicator.mirrored_table import MirroredTable, drop_others
from dbt.adapters.openmirroring.replicator.monitoring import Monitoring, TableReport
from dbt.adapters.openmirroring.replicator.table_scan import TableScan, data_files


class Replicator:
    """A mirrored database on this machine: landing zone in, Delta tables out.

    It knows nothing but the specification and the files; what it has done is in the Delta logs.

    Args:
        landing_zone: the folder `<item>/Files/LandingZone`; tables go to
            `<item>/Tables/<schema>/<table>`, status to `<item>/Files/Monitoring`
        processed: where applied files go in their table folder, `_ProcessedFiles` or
            `_FilesReadyToDelete`

    Raises:
        ReplicatorError: the path does not end like that
    """

    def __init__(self, landing_zone: Path, processed: str = "_ProcessedFiles") -> None:
        if landing_zone.parts[-2:] != ("Files", "LandingZone"):
            raise ReplicatorError(
                f"{landing_zone} is not the landing zone of a mirrored database: its path must "
                "end in Files/LandingZone, so that Tables and Files/Monitoring have their places "
                "beside it, as in OneLake."
            )
        self.landing_zone = landing_zone
        self.tables = landing_zone.parent.parent / "Tables"
        self.monitoring = Monitoring(landing_zone.parent / "Monitoring")
        self._processed = processed

    def scan(self) -> list[TableReport]:
        """Apply all that is there, drop the tables whose folders are gone.

        What is wrong with a table stops that table only, and is in its report.
        """
        with self._alone():
            folders: dict[Path, TableFolder] = {}
            reports = []
            for folder in table_folders(self.landing_zone):
                first = folders.setdefault(self._path(folder), folder)
                report = self._replicate(folder) if first is folder else _refused(folder, first)
                reports += [report] if report else []
            for path in drop_others(self.tables, folders):
                reports.append(TableReport(path.parent.name, path.name, "Dropped"))
            self.monitoring.record(reports)
        return reports

    def replicate(self, schema: str, table: str) -> TableReport | None:
        """Apply what is there of one table; None if it has no folder.

        Args:
            schema: empty for a table without a schema folder
        """
        with self._alone():
            report = self._replicate(self._folder(schema, table))
            self.monitoring.record([report] if report else [])
        return report

    def mirrored(self, schema: str, table: str) -> MirroredTable | None:
        """A table, or None until all files of its folder are applied.

        Args:
            schema: empty for a table without a schema folder

        Raises:
            TableError: `_metadata.json` is not valid
        """
        folder = self._folder(schema, table)
        try:
            with folder:
                metadata = TableMetadata.parse(folder.read(METADATA) or b"{}")
                found = MirroredTable.find(self._path(folder), metadata.by_modification_time)
                if not found or found.id != folder.filled_table():
                    return None
                files, _ = data_files(folder, metadata)
                return found if all(found.has_applied(file) for file in files) else None
        except FileNotFoundError:
            return None

    def _folder(self, schema: str, table: str) -> TableFolder:
        if not schema:
            return TableFolder(DEFAULT_SCHEMA, self.landing_zone / table)
        return TableFolder(schema, self.landing_zone / f"{schema}{SCHEMA_SUFFIX}" / table)

    def _path(self, folder: TableFolder) -> Path:
        return self.tables / folder.schema / folder.table

    def _replicate(self, folder: TableFolder) -> TableReport | None:
        """Apply what is new in a table folder; None if it is dropped meanwhile."""
        try:
            with folder:
                report = TableScan(folder, self._path(folder), self._processed).run()
                return report if folder.is_there() else None
        except FileNotFoundError:
            return None

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One scan at a time, also of several processes."""
        self.monitoring.folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.monitoring.folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _refused(folder: TableFolder, first: TableFolder) -> TableReport:
    error = TableError(
        "DuplicateTable", f"{folder.path} and {first.path} are both the table {folder}."
    )
    return TableReport(folder.schema, folder.table, "Failed", error=error)
