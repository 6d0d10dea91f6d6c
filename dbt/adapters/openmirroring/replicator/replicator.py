"""Scans of a landing zone and of its tables."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from filelock import FileLock

from dbt.adapters.openmirroring.replicator.errors import ReplicatorError, TableError
from dbt.adapters.openmirroring.replicator.folder import (
    SCHEMA_SUFFIX,
    DataFile,
    FilledTable,
    OpenFolder,
    TableFolder,
    digest,
    find_folders,
)
from dbt.adapters.openmirroring.replicator.metadata import TableMetadata
from dbt.adapters.openmirroring.replicator.mirrored_table import MirroredTable, our_tables
from dbt.adapters.openmirroring.replicator.monitoring import TableReport, record_states
from dbt.adapters.openmirroring.replicator.rows import (
    ROW_MARKER,
    Marker,
    Rows,
    check_operations,
    marked,
    net_changes,
    open_rows,
    weight,
)

# Bytes of changes that wait in memory. Each merge reads the whole table, so the scan merges
# the changes of several files together.
_MERGED = 64 * 2**20

# Bytes of a file that are reduced and merged together. A larger file is split into parts of this
# size, each with a commit of its own.
_PART = 128 * 2**20

# The maximum average bytes of rows that are streamed. delta-rs collects 8,192 rows in memory
# before it writes them. Larger rows are added in parts.
_STREAMED = 8 * 2**10


class Replicator:
    """A mirrored database on this machine, which applies a landing zone to Delta tables.

    Args:
        landing_zone: the folder `<item>/Files/LandingZone`; tables go to
            `<item>/Tables/<schema>/<table>`, status to `<item>/Files/Monitoring`

    Raises:
        ReplicatorError: if the path of the landing zone does not end in `Files/LandingZone`
    """

    def __init__(self, landing_zone: Path) -> None:
        if landing_zone.parts[-2:] != ("Files", "LandingZone"):
            raise ReplicatorError(
                f"{landing_zone} is not the landing zone of a mirrored database: its path must "
                "end in Files/LandingZone, so that Tables and Files/Monitoring have their places "
                "beside it, as in OneLake."
            )
        self.landing_zone = landing_zone
        self.tables = landing_zone.parent.parent / "Tables"
        self.monitoring = landing_zone.parent / "Monitoring"

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
                _check_same_history(filled, found, files)
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
                report = _TableScan(folder, self._path(folder)).run()
                return report if folder.is_there() else None
        except FileNotFoundError:
            return None
        except (TableError, OSError) as error:
            return _failed(folder.schema, folder.table, error)

    def _drop_others(
        self, present: Container[Path], unreadable: Container[str]
    ) -> Iterator[TableReport]:
        """Drop the tables whose folders are gone. Keep those whose schemas cannot be read."""
        for table in our_tables(self.tables):
            schema, name = table.path.parent.name, table.path.name
            if table.path in present or schema in unreadable:
                continue
            try:
                table.drop()
                yield TableReport(schema, name, "Dropped")
            except OSError as error:
                yield _failed(schema, name, error)

    @contextmanager
    def _alone(self) -> Iterator[OpenFolder]:
        """Open the folder `Files/Monitoring`, with a lock that allows one scan at a time."""
        if self.tables.is_symlink():
            raise ReplicatorError(
                f"{self.tables} is a link. Put the folder that it leads to in its place: without "
                "the mirrored tables, only the files that are still in the landing zone are "
                "applied."
            )
        try:
            self.monitoring.mkdir(parents=True, exist_ok=True)
            folder = OpenFolder(self.monitoring)
        except (FileExistsError, NotADirectoryError, TableError):
            raise ReplicatorError(
                f"{self.monitoring} is not a folder. Replace it with a folder."
            ) from None
        with closing(folder), FileLock(self.monitoring / "_lock", fallback_to_soft=False):
            yield folder


class _TableScan:
    """A scan that applies the new files of an opened table folder to the Delta table at a path."""

    def __init__(self, folder: TableFolder, path: Path) -> None:
        self._folder = folder
        self._path = path
        self._metadata = TableMetadata()
        self._table: MirroredTable | None = None
        self._filled = FilledTable("")
        # files with the number of their rows, and the net changes of those that are not applied
        self._waiting: list[tuple[DataFile, int, pa.Table]] = []
        self._applied: list[tuple[DataFile, int]] = []
        self._ignored: list[str] = []
        self._waits_for: str | None = None

    def run(self) -> TableReport:
        """Apply the new files. Return a report, which has the error if one stops the table.

        Raises:
            FileNotFoundError: if a file of the folder is gone before it was read. A publisher
                deletes a folder file by file, so the next scan finds what it left.
        """
        error, status = None, "Replicating"
        try:
            status = self._run()
        except Exception as reason:
            missing = reason.filename if isinstance(reason, FileNotFoundError) else None
            if missing and (self._folder.path / missing).is_relative_to(self._folder.path):
                raise
            # A damaged file can make Arrow and delta-rs raise nearly any error. Report it as the
            # state of this table alone.
            error, status = TableError.of(reason), "Failed"
        return TableReport(
            self._folder.schema,
            self._folder.table,
            status,
            files=len(self._applied),
            operations=sum(operations for _, operations in self._applied),
            bytes=sum(file.size for file, _ in self._applied),
            rows=self._table.row_count if self._table else None,
            table_id=self._table.id if self._table else "",
            error=error,
            waits_for=self._waits_for,
            ignored=tuple(self._ignored),
        )

    def _run(self) -> str:
        metadata = self._folder.metadata()
        if metadata is None:
            return "Initialized"
        self._metadata = metadata
        self._find_table()
        files, self._ignored = self._folder.data_files(metadata)
        if self._table:
            _check_same_history(self._filled, self._table, files)
        try:
            for file in self._next(files):
                self._read(file)
        finally:
            # if a file has an error, the files before it are still applied
            self._merge()
            self._settle(files)
        return "Replicating" if self._table else "Snapshotting"

    def _find_table(self) -> None:
        filled = self._folder.filled()
        table = MirroredTable.find(self._path)
        if table and (table.is_untouched or not filled or table.id != filled.id):
            # Either the first file of the table had an error, or the folder was dropped and
            # recreated since the last scan.
            table.drop()
        elif table and filled:
            self._table, self._filled = table, filled
            table.declare_keys(self._metadata.key_columns)

    def _next(self, files: list[DataFile]) -> Iterator[DataFile]:
        """Yield the files to apply, up to the first missing number."""
        table = self._table
        expected = (table.last_number if table else 0) + 1
        for file in [file for file in files if not (table and table.has_applied(file))]:
            if file.number is not None:
                if file.number != expected:
                    self._waits_for = f"{expected:020d}.{self._metadata.extension}"
                    return
                expected += 1
            yield file

    def _read(self, file: DataFile) -> None:
        rows = open_rows(file.path, self._metadata.text)
        table = self._table or self._create(rows.schema)
        table.merge_schema(file.name, rows.schema, self._metadata.key_columns)
        is_added = not (rows.marked or self._metadata.upsert_by_default)
        if is_added and rows.row_size <= _STREAMED:
            self._merge()
            self._begin(table, [file])
            self._applied.append((file, table.append(file, rows)))
        else:
            self._read_changes(table, file, rows)

    def _create(self, schema: pa.Schema) -> MirroredTable:
        """Create the table with the columns and types of its first file."""
        keys = self._metadata.key_columns
        self._table = MirroredTable.create(self._path, str(self._folder), schema, keys)
        # if the replicator is killed before this line, the next scan creates the table again
        self._record(FilledTable(self._table.id))
        return self._table

    def _read_changes(self, table: MirroredTable, file: DataFile, rows: Rows) -> None:
        """Keep the changes of a file for the next merge. Apply all but the last part of many.

        The whole file is checked before its first part is applied. If the replicator is killed,
        the next scan continues after the last applied part.
        """
        keys = self._metadata.key_columns
        count = 0
        for operations in self._parts(rows):
            check_operations(operations, keys)
            table.check(operations)
            count += len(operations)
        done = table.rows_applied(file)
        for operations in self._parts(rows, skipped=done):
            done += len(operations)
            changes = net_changes(operations, keys)
            if done < count:
                self._merge()
                table.apply(changes, keys, [file], done)
            else:
                self._waiting.append((file, count, changes))
        if sum(weight(changes) for _, _, changes in self._waiting) > _MERGED:
            self._merge()

    def _parts(self, rows: Rows, skipped: int = 0) -> Iterator[pa.Table]:
        """Yield the rows of a file with row markers, in parts that fit into memory."""
        part: list[pa.RecordBatch] = []
        for batch in rows.batches():
            left_out = min(skipped, batch.num_rows)
            skipped -= left_out
            if left_out == batch.num_rows:
                continue
            if sum(map(weight, part)) > _PART:
                yield self._operations(rows, part)
                part = []
            part.append(batch.slice(left_out))
        yield self._operations(rows, part)

    def _operations(self, rows: Rows, batches: list[pa.RecordBatch]) -> pa.Table:
        default = Marker.UPSERT if self._metadata.upsert_by_default else Marker.INSERT
        operations = pa.Table.from_batches(batches, rows.columns)
        if not rows.marked:
            return marked(operations, default)
        markers = operations[ROW_MARKER].fill_null(int(default))
        return operations.set_column(operations.num_columns - 1, ROW_MARKER, markers)

    def _merge(self) -> None:
        """Apply the changes that wait, of all files that were read, and record these together."""
        if not self._waiting or not self._table:
            return
        waiting, self._waiting = self._waiting, []
        keys = self._metadata.key_columns
        files = [file for file, _, _ in waiting]
        changes = waiting[0][2]
        if len(waiting) > 1:
            operations = [changes for _, _, changes in waiting]
            changes = net_changes(pa.concat_tables(operations, promote_options="default"), keys)
        self._begin(self._table, files)
        self._table.apply(changes, keys, files)
        self._applied += [(file, count) for file, count, _ in waiting]

    def _begin(self, table: MirroredTable, files: Sequence[DataFile]) -> None:
        """Record in the folder that a commit applies some files, before it does."""
        applying = table.files_applied_after(files)
        self._record(replace(self._filled, applying=applying, last=""))

    def _settle(self, files: Sequence[DataFile]) -> None:
        """Move applied files away, except the last one, which tells publishers the last number.

        Then record in the folder what was applied, and that only the last file stays there.
        """
        table = self._table
        if not table:
            return
        self._folder.retire([f for f in files if table.has_applied(f)][:-1])
        if self._applied:
            table.clean()
        # of several files with one number, only the last one stays there
        last = [file.path for file in files if file.number == table.last_number]
        applied = table.files_applied
        settled = FilledTable(table.id, applied, applied, digest(last[-1]) if last else "")
        if settled != self._filled:
            self._record(settled)

    def _record(self, filled: FilledTable) -> None:
        self._filled = filled
        self._folder.fills(filled)


def _check_same_history(
    filled: FilledTable, table: MirroredTable, files: Sequence[DataFile]
) -> None:
    """Check that every file with an applied number is the one that was applied.

    A folder that was put back from a backup lacks files that the table has. The numbers of new
    files then begin again where the backup ends, and such files would be skipped.
    """
    applied = table.files_applied
    finding, code = "", "OM425"
    if not filled.applied <= applied <= filled.applying:
        age = "older" if applied > filled.applying else "newer"
        finding = (
            f"The table folder is {age} than the mirrored table: {filled.applying:,} of its files "
            f"were applied, and the table has {applied:,}. One of them was put back from a backup "
            "or copied from elsewhere, so a new file may have a number that was applied before."
        )
        code = "OM424"
    for file in files if not finding else []:
        is_last = file.number == table.last_number
        if (file.number is not None and file.number < filled.applied) or (
            is_last and filled.last not in ("", digest(file.path))
        ):
            finding = f"{file.name} has a number that was applied before, with another file."
    if finding:
        raise TableError(
            "FileNumberReused",
            f"{finding} No file is applied. Put folder and table back from one backup. Or: "
            f"{table.new_load()} With dbt, `dbt run-operation mirror_rebuild` publishes the rows "
            "that Spark has, and a run of the node with `--full-refresh` those that it computes "
            "anew.",
            code=code,
        )


def _failed(schema: str, table: str, error: Exception) -> TableReport:
    return TableReport(schema, table, "Failed", error=TableError.of(error))
