"""Scans of a landing zone."""

from __future__ import annotations

import os
import sys
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path

from dbt.adapters.openmirroring.replicator.errors import ReplicatorError, TableError
from dbt.adapters.openmirroring.replicator.folder import SCHEMA_SUFFIX, TableFolder, find_folders
from dbt.adapters.openmirroring.replicator.metadata import TableMetadata
from dbt.adapters.openmirroring.replicator.mirrored_table import MirroredTable, our_tables
from dbt.adapters.openmirroring.replicator.monitoring import TableReport, record_states
from dbt.adapters.openmirroring.replicator.table_scan import TableScan, check_same_history


class Replicator:
    """A mirrored database on this machine, which applies a landing zone to Delta tables.

    Args:
        landing_zone: the folder `<item>/Files/LandingZone`; tables go to
            `<item>/Tables/<schema>/<table>`, status to `<item>/Files/Monitoring`
        processed: the subfolder of a table folder for applied files, `_ProcessedFiles` or
            `_FilesReadyToDelete`

    Raises:
        ReplicatorError: if the path of the landing zone does not end in `Files/LandingZone`, or
            this is Windows
    """

    def __init__(self, landing_zone: Path, processed: str = "_ProcessedFiles") -> None:
        if sys.platform == "win32":
            raise ReplicatorError(
                "The replicator does not run on Windows: run it in WSL. A mirrored database in "
                "Fabric needs none."
            )
        if landing_zone.parts[-2:] != ("Files", "LandingZone"):
            raise ReplicatorError(
                f"{landing_zone} is not the landing zone of a mirrored database: its path must "
                "end in Files/LandingZone, so that Tables and Files/Monitoring have their places "
                "beside it, as in OneLake."
            )
        self.landing_zone = landing_zone
        self.tables = landing_zone.parent.parent / "Tables"
        self.monitoring = landing_zone.parent / "Monitoring"
        self._processed = processed

    def scan(self) -> list[TableReport]:
        """Apply all new files, and drop the tables whose folders are gone.

        An error in a table stops only that table, and is in its report.
        """
        with self._alone() as monitoring:
            folders, unreadable = find_folders(self.landing_zone)
            reports = [_failed(schema, "*", error) for schema, error in unreadable.items()]
            firsts: dict[Path, TableFolder] = {}
            for folder in folders:
                first = firsts.setdefault(self._path(folder), folder)
                report = self._replicate(folder, first)
                reports += [report] if report else []
            reports += self._drop_others(firsts, unreadable)
            record_states(self.monitoring, monitoring, reports, of_all_tables=True)
        return reports

    def replicate(self, schema: str, table: str) -> TableReport | None:
        """Apply the new files of one table. Return None if the table has no folder.

        Args:
            schema: empty for a table without a schema folder
        """
        with self._alone() as monitoring:
            folder = self._folder(schema, table)
            report = self._replicate(folder, folder)
            record_states(self.monitoring, monitoring, [report] if report else [])
        return report

    def mirrored(self, schema: str, table: str) -> MirroredTable | None:
        """Return a table if all files of its table folder are applied, else None.

        Args:
            schema: empty for a table without a schema folder

        Raises:
            TableError: if the table folder or a record in it is not valid, or is older or newer
                than the table
        """
        try:
            with self._folder(schema, table) as folder:
                metadata = folder.metadata() or TableMetadata()
                found = MirroredTable.find(self._path(folder))
                filled = folder.filled()
                if not found or not filled or found.id != filled.id:
                    return None
                files, _ = folder.data_files(metadata)
                check_same_history(filled, found, files)
                return found if all(found.has_applied(file) for file in files) else None
        except FileNotFoundError:
            return None

    def _folder(self, schema: str, table: str) -> TableFolder:
        within = self.landing_zone / f"{schema}{SCHEMA_SUFFIX}" if schema else self.landing_zone
        return TableFolder(within / table)

    def _path(self, folder: TableFolder) -> Path:
        return self.tables / folder.schema / folder.table

    def _replicate(self, folder: TableFolder, first: TableFolder) -> TableReport | None:
        """Apply the new files of a table folder. Return None if it is dropped meanwhile."""
        try:
            if folder is not first:
                raise TableError(
                    "DuplicateTable",
                    f"{folder.path} and {first.path} are both the table {folder}.",
                )
            with folder:
                report = TableScan(folder, self._path(folder), self._processed).run()
                return report if folder.is_there() else None
        except FileNotFoundError:
            return None
        except (TableError, OSError) as error:
            return _failed(folder.schema, folder.table, error)

    def _drop_others(
        self, kept: Container[Path], unreadable: Container[str]
    ) -> Iterator[TableReport]:
        """Drop the tables whose folders are gone. Keep those whose schemas cannot be read."""
        for table in our_tables(self.tables):
            schema, name = table.path.parent.name, table.path.name
            if table.path in kept or schema in unreadable:
                continue
            try:
                table.drop()
                yield TableReport(schema, name, "Dropped")
            except OSError as error:
                yield _failed(schema, name, error)

    @contextmanager
    def _alone(self) -> Iterator[int]:
        """Hold the lock that allows one scan at a time: the open folder `Files/Monitoring`.

        Raises:
            ReplicatorError: if `Tables` is a link, or `Files/Monitoring` is no folder
        """
        import fcntl  # only on POSIX

        if self.tables.is_symlink():
            raise ReplicatorError(
                f"{self.tables} is a link. Put the folder that it leads to in its place: without "
                "the mirrored tables, only the files that are still in the landing zone are "
                "applied."
            )
        try:
            self.monitoring.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.monitoring, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except (FileExistsError, NotADirectoryError):
            raise ReplicatorError(
                f"{self.monitoring} is not a folder. Replace it with a folder."
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)


def _failed(schema: str, table: str, error: Exception) -> TableReport:
    return TableReport(schema, table, "Failed", error=TableError.of(error))
