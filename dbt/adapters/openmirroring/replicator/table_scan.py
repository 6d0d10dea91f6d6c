"""What happens to one table in one scan."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from dbt.adapters.openmirroring.replicator.changes import (
    Changes,
    Marker,
    check_operations,
    marked,
    net_changes,
    weight,
)
from dbt.adapters.openmirroring.replicator.delimited_rows import text_rows
from dbt.adapters.openmirroring.replicator.errors import TableError, unreadable
from dbt.adapters.openmirroring.replicator.folder import DataFile, TableFolder
from dbt.adapters.openmirroring.replicator.metadata import TableMetadata
from dbt.adapters.openmirroring.replicator.mirrored_table import MirroredTable
from dbt.adapters.openmirroring.replicator.monitoring import TableReport
from dbt.adapters.openmirroring.replicator.parquet_rows import parquet_rows
from dbt.adapters.openmirroring.replicator.rows import ROW_MARKER, Rows

# Bytes of changes that are kept in memory: each merge reads the whole table, so the changes of
# several files are merged together.
_KEPT = 64 * 2**20

# Bytes of a file that are reduced and merged together. Of what is larger, each part is a commit.
_PART = 128 * 2**20


class TableScan:
    """Applies what is new in a table folder.

    Args:
        folder: opened
        path: of the Delta table
        processed: the folder in the table folder where applied files go
    """

    def __init__(self, folder: TableFolder, path: Path, processed: str) -> None:
        self._folder = folder
        self._path = path
        self._processed = processed
        self._metadata = TableMetadata()
        self._table: MirroredTable | None = None
        self._merged_next: list[tuple[DataFile, int, Changes]] = []
        self._applied: list[tuple[DataFile, int]] = []
        self._ignored: list[str] = []
        self._waits_for: str | None = None

    def run(self) -> TableReport:
        """Apply, and tell what was done. What stops the table is in the report."""
        error, status = None, "Replicating"
        try:
            status = self._run()
        except Exception as reason:
            # Arrow and delta-rs raise nearly everything for a file that is made to; whatever it
            # is, it is told, and it is the state of this table alone
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
        record = self._folder.metadata()
        if record is None:
            return "Initialized"
        self._metadata = TableMetadata.parse(record)
        self._find_table()
        files, self._ignored = data_files(self._folder, self._metadata)
        try:
            for file in self._next(files):
                self._read(file)
        finally:
            # whatever is wrong with a file, those before it are applied
            self._merge()
            self._retire(files)
        return "Replicating" if self._table else "Snapshotting"

    def _find_table(self) -> None:
        filled = self._folder.filled_table()
        table = MirroredTable.find(self._path, self._metadata.by_modification_time)
        if table and (table.is_untouched or table.id != filled):
            # its first file was bad, or the folder was dropped and recreated, perhaps both since
            # the last scan
            table.drop()
            table = None
        self._table = table
        if table:
            table.keep_keys(self._metadata.key_columns)

    def _next(self, files: list[DataFile]) -> Iterator[DataFile]:
        """The files to apply: up to the first number that is missing."""
        table = self._table
        new = [file for file in files if not (table and table.has_applied(file))]
        expected = (table.last_number if table else 0) + 1
        for file in new:
            if not self._metadata.by_modification_time:
                if file.number != expected:
                    self._waits_for = f"{expected:020d}.{self._metadata.extension}"
                    return
                expected += 1
            yield file

    def _read(self, file: DataFile) -> None:
        rows = self._open(file)
        table = self._table or self._create(rows.schema)
        table.merge_schema(file.name, rows.schema, self._metadata.key_columns)
        if rows.marked or self._metadata.upsert_by_default:
            self._read_changes(table, file, rows)
            return
        self._merge()
        count = table.append(file, rows)
        if count is None:
            count = self._apply_in_parts(table, file, rows)
        self._applied.append((file, count))

    def _read_changes(self, table: MirroredTable, file: DataFile, rows: Rows) -> None:
        """Keep the changes of a file to merge them, or merge them at once if they are many."""
        parts = self._parts(rows)
        operations = next(parts)
        if next(parts, None):
            del operations
            self._merge()
            self._applied.append((file, self._apply_in_parts(table, file, rows)))
            return
        self._check(table, operations)
        changes = net_changes(operations, self._metadata.key_columns)
        self._merged_next.append((file, len(operations), changes))
        if sum(changes.weight for _, _, changes in self._merged_next) > _KEPT:
            self._merge()

    def _apply_in_parts(self, table: MirroredTable, file: DataFile, rows: Rows) -> int:
        """Apply a file that is too large to do so at once.

        All of it is checked before any of it is applied. A replicator that is killed goes on
        after the last part.

        Returns:
            how many rows it has
        """
        keys = self._metadata.key_columns
        count = sum(self._check(table, operations) for operations in self._parts(rows))
        done = table.rows_applied(file)
        for operations in self._parts(rows, skipped=done):
            done += len(operations)
            changes = net_changes(operations, keys)
            if done < count:
                table.apply_part(changes, file, done, keys)
            else:
                table.apply(changes, [file], keys)
        return count

    def _check(self, table: MirroredTable, operations: pa.Table) -> int:
        """Make sure that operations can be applied, and count them."""
        check_operations(operations, self._metadata.key_columns)
        table.check(operations)
        return len(operations)

    def _open(self, file: DataFile) -> Rows:
        def content() -> BinaryIO:
            return self._folder.open(file.name)

        content().close()
        if file.size == 0:
            raise unreadable(file.name, "it has zero bytes")
        if self._metadata.text:
            return text_rows(file.name, file.size, content, self._metadata.text)
        return parquet_rows(file.name, file.size, content)

    def _create(self, schema: pa.Schema) -> MirroredTable:
        """Create the table; its first file decides about columns and types."""
        self._table = MirroredTable.create(
            self._path,
            str(self._folder),
            schema,
            self._metadata.key_columns,
            self._metadata.by_modification_time,
        )
        # a replicator that is killed before this creates the table once more
        self._folder.fills(self._table.id)
        return self._table

    def _parts(self, rows: Rows, skipped: int = 0) -> Iterator[pa.Table]:
        """The rows of a file, each with its row marker, in parts that fit into memory.

        Args:
            skipped: rows at its beginning that are left out
        """
        part: list[pa.Table] = []
        for batch in rows.batches():
            left_out = min(skipped, batch.num_rows)
            skipped -= left_out
            part.append(self._operations(rows, [batch.slice(left_out)]))
            if sum(map(weight, part)) > _PART:
                yield pa.concat_tables(part)
                part = []
        yield pa.concat_tables([*part, self._operations(rows, [])])

    def _operations(self, rows: Rows, batches: list[pa.RecordBatch]) -> pa.Table:
        default = Marker.UPSERT if self._metadata.upsert_by_default else Marker.INSERT
        if not rows.marked:
            return marked(pa.Table.from_batches(batches, rows.schema), default)
        schema = rows.schema.append(pa.field(ROW_MARKER, pa.int32()))
        operations = pa.Table.from_batches(batches, schema)
        markers = operations[ROW_MARKER].fill_null(int(default))
        return operations.set_column(operations.num_columns - 1, ROW_MARKER, markers)

    def _merge(self) -> None:
        """Apply the row-marked files that were read, in one commit."""
        if not self._merged_next or not self._table:
            return
        waiting, self._merged_next = self._merged_next, []
        keys = self._metadata.key_columns
        _, _, changes = waiting[0]
        for _, _, later in waiting[1:]:
            changes = changes.then(later, keys)
        self._table.apply(changes, [file for file, _, _ in waiting], keys)
        self._applied += [(file, operations) for file, operations, _ in waiting]

    def _retire(self, files: list[DataFile]) -> None:
        """Clean up; the last file stays, so that publishers know the number."""
        if self._table:
            applied = [file for file in files if self._table.has_applied(file)]
            self._folder.retire(applied[:-1], self._processed)
            if self._applied:
                self._table.clean()


def data_files(folder: TableFolder, metadata: TableMetadata) -> tuple[list[DataFile], list[str]]:
    """The files of the table's format, in the order in which they are to be applied.

    Returns:
        the files, and the names of those that are not data
    """
    by_time = metadata.by_modification_time
    found = folder.data_files()
    files = [
        file for file in found if file.extension == metadata.extension and (by_time or file.number)
    ]
    ignored = [file.name for file in found if file not in files]
    if by_time:
        # equal times have no order in the service; the one of the names would hide that
        return sorted(files, key=lambda file: (file.modified, file.name[::-1])), ignored
    return sorted(files, key=lambda file: file.number or 0), ignored
