"""The mirrored table: a Delta table that the files of a table folder are applied to."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from dbt.adapters.openmirroring.disk.patience import patiently
from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.folder import DataFile
from dbt.adapters.openmirroring.replicator.rows import MARKER, ROW_MARKER, Marker, Rows, marked

# Properties of the Delta table. The first one marks it as a table that the replicator may drop.
_FOLDER = "openmirroring.folder"
_KEY_COLUMNS = "openmirroring.keyColumns"

# The Delta application transactions that record the number of the last applied file, and how many
# files without numbers were applied.
_LAST_NUMBER = "openmirroring.lastNumber"
_NAMED_FILES = "openmirroring.namedFiles"

# characters that delta-rs misreads in a path, even if they are percent-encoded
_IMPOSSIBLE = frozenset("%[]^")

# how long a mirrored database keeps former versions by default
_RETENTION_HOURS = 24

# A table is renamed to this before it is deleted, so that it is either complete or gone.
_DROPPED = "_dropped_"
_DROPPED_TABLE = re.compile(_DROPPED + r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class MirroredTable:
    """A Delta table, with a record of the applied files of its table folder.

    The Delta log is the only record: a file is either in both the table and the log, or in
    neither. So a replicator continues where a killed one stopped.
    """

    def __init__(self, path: Path, delta: DeltaTable) -> None:
        self.path = path
        self._delta = delta

    @classmethod
    def find(cls, path: Path) -> MirroredTable | None:
        """Open the table at a path. Return None if there is none.

        Raises:
            TableError: if something else is at the path, or if delta-rs does not support the path
        """
        impossible = sorted(_IMPOSSIBLE & set(str(path)))
        if impossible:
            raise TableError(
                "UnsupportedName",
                f"{path} has a {' '.join(impossible)}, which deltalake has no support for.",
            )
        if not path.exists() and not path.is_symlink():
            return None
        if delta := _ours(path):
            return cls(path, delta)
        raise TableError(
            "TargetExists", f"{path} is not a table of this mirrored database. Move it away."
        )

    @classmethod
    def create(
        cls, path: Path, folder: str, schema: pa.Schema, keys: tuple[str, ...]
    ) -> MirroredTable:
        """Create an empty table.

        Args:
            folder: the `schema.table` that it mirrors
            schema: the schema of the first file, whose types the table keeps from now on
        """
        configuration = {_FOLDER: folder, _KEY_COLUMNS: json.dumps(keys)}
        delta = DeltaTable.create(
            path, schema, configuration=configuration, raise_if_key_not_exists=False
        )
        return cls(path, delta)

    @property
    def id(self) -> str:
        return str(self._delta.metadata().id)

    @property
    def is_untouched(self) -> bool:
        """Whether the table has not changed since it was created."""
        return int(self._delta.version()) == 0

    @property
    def columns(self) -> dict[str, Field]:
        return {column.name: column for column in self._delta.schema().fields}

    @property
    def key_columns(self) -> tuple[str, ...]:
        return tuple(json.loads(self._delta.metadata().configuration[_KEY_COLUMNS]))

    @property
    def row_count(self) -> int:
        return int(self._delta.count())

    @property
    def last_number(self) -> int:
        """The number of the last applied file; 0 before the first."""
        return self._delta.transaction_version(_LAST_NUMBER) or 0

    @property
    def files_applied(self) -> int:
        """The number of applied files. Numbers begin at 1 and have no gaps."""
        return max(self.last_number, self._delta.transaction_version(_NAMED_FILES) or 0)

    def files_applied_after(self, files: Sequence[DataFile]) -> int:
        """Return the number of applied files after a commit that applies more of them."""
        numbers = [file.number for file in files if file.number]
        return max(self.files_applied, *numbers) if numbers else self.files_applied + len(files)

    def has_applied(self, file: DataFile) -> bool:
        if file.number is None:
            return self._delta.transaction_version(file.name) is not None
        return file.number <= self.last_number

    def rows_applied(self, file: DataFile) -> int:
        """Return the number of applied rows of a partly applied file."""
        return self._delta.transaction_version(_progress(file)) or 0

    def file_names(self) -> list[str]:
        """Return the names of the table's current Parquet files."""
        return [unquote(uri).rpartition("/")[2] for uri in self._delta.file_uris()]

    def new_load(self) -> str:
        """Return the way out of an error that only another table can solve."""
        return (
            "Publish a full load in a new table folder, which replaces the "
            f"{self.row_count:,} rows of the mirrored table."
        )

    def declare_keys(self, keys: tuple[str, ...]) -> None:
        """Store the key columns if the table has none yet (specification, "Metadata file")."""
        known = self.key_columns
        if keys == known:
            return
        if known:
            raise TableError(
                "KeyColumnsChanged",
                f"keyColumns were {list(known)} and are now {list(keys)}. Once declared they "
                f"cannot change. {self.new_load()}",
            )
        self._delta.alter.set_table_properties(
            {_KEY_COLUMNS: json.dumps(keys)}, raise_if_not_exists=False
        )

    def merge_schema(self, file: str, schema: pa.Schema, keys: tuple[str, ...]) -> None:
        """Add the columns that only a file has, as nullable columns.

        Raises:
            TableError: if the file lacks a key column or a column that is not nullable, or if a
                column differs from one of the table in its type or only in the case of its name
        """
        for key in keys:
            if key not in schema.names:
                raise _other_columns(
                    f"{file} has no column {key!r}, which keyColumns names. It has: "
                    f"{', '.join(schema.names)}."
                )
        known = self.columns
        by_case = {name.lower(): name for name in known}
        of_file = {column.name: column for column in Schema.from_arrow(schema).fields}
        for name, column in of_file.items():
            other = by_case.get(name.lower(), name)
            if other != name:
                raise _other_columns(
                    f"{file} has the column {name!r}, and the table has {other!r}: names that "
                    f"differ only in case. {self.new_load()}"
                )
            if name in known and column.type != known[name].type:
                raise _other_columns(
                    f"{file}: the column {name!r} has the type {_type(column)}, and the table has "
                    f"{_type(known[name])}. {self.new_load()}"
                )
        for name, column in known.items():
            if name not in of_file and not column.nullable:
                raise _other_columns(
                    f"{file} has no column {name!r}; a missing column must be nullable."
                )
        new = [column for name, column in of_file.items() if name not in known]
        if new:
            self._delta.alter.add_columns([Field(c.name, c.type, nullable=True) for c in new])

    def check(self, rows: pa.Table) -> None:
        """Check that no column that is not nullable has a NULL. Deletes need only their keys."""
        for name, column in self.columns.items():
            if column.nullable or name not in rows.column_names:
                continue
            missing = rows[name].is_null()
            if ROW_MARKER in rows.column_names:
                missing = pc.and_not(missing, pc.equal(rows[ROW_MARKER], int(Marker.DELETE)))
            if pc.any(missing).as_py():
                raise TableError(
                    "InputValidationError",
                    f"There is a NULL in the column {name!r}, which is not nullable.",
                )

    def append(self, file: DataFile, rows: Rows) -> int:
        """Stream the rows of a file into the table. Return their number.

        Raises:
            TableError: if the file is corrupt, or has a NULL in a column that is not nullable;
                nothing was added
        """
        schema = pa.schema(self._delta.schema().to_arrow())
        count = 0
        failure: Exception | None = None

        def batches() -> Iterator[pa.RecordBatch]:
            nonlocal count, failure
            try:
                for batch in rows.batches():
                    count += batch.num_rows
                    table = pa.Table.from_batches([batch])
                    self.check(table)
                    yield from _conforming(table, schema).to_batches()
            except Exception as error:
                failure = error
                raise

        try:
            write_deltalake(
                self._delta,
                pa.RecordBatchReader.from_batches(schema, batches()),
                mode="append",
                commit_properties=self._recorded([file]),
            )
        except Exception as error:
            # delta-rs reports only that its input failed, so raise the original error
            raise failure or error from None
        return count

    def apply(
        self,
        changes: pa.Table,
        keys: tuple[str, ...],
        files: Sequence[DataFile],
        rows: int | None = None,
    ) -> None:
        """Apply the net changes of files, and record these files as applied.

        Args:
            changes: the operations that count, with the row marker
            files: the files; one of them if only a part of it is applied
            rows: the number of this file's rows that are then applied; None for all
        """
        commit = self._recorded(files, rows)
        schema = pa.schema(self._delta.schema().to_arrow())
        marker = changes[ROW_MARKER]
        added = _conforming(changes.filter(pc.not_equal(marker, int(Marker.DELETE))), schema)
        removed = changes.filter(pc.not_equal(marker, int(Marker.INSERT))).select(keys)
        if not len(removed):
            write_deltalake(self._delta, added, mode="append", commit_properties=commit)
            return
        # removed rows have only key columns, so all columns of the source must be nullable
        columns = pa.schema([*(column.with_nullable(True) for column in schema), MARKER])
        parts = [marked(removed, Marker.DELETE), marked(added, Marker.INSERT)]
        source = pa.concat_tables([_conforming(part, columns) for part in parts])
        same_key = [f"mirrored.{_quoted(key)} = changes.{_quoted(key)}" for key in keys]
        is_delete = f"changes.{_quoted(ROW_MARKER)} = {int(Marker.DELETE)}"
        is_insert = f"changes.{_quoted(ROW_MARKER)} = {int(Marker.INSERT)}"
        self._delta.merge(
            source,
            " and ".join([*same_key, is_delete]),
            source_alias="changes",
            target_alias="mirrored",
            commit_properties=commit,
        ).when_matched_delete().when_not_matched_insert(
            {_quoted(name): f"changes.{_quoted(name)}" for name in schema.names}, is_insert
        ).execute()

    def clean(self) -> None:
        """Delete the files that only expired versions of the table need."""
        self._delta.vacuum(
            retention_hours=_RETENTION_HOURS, dry_run=False, enforce_retention_duration=False
        )

    def drop(self) -> None:
        dropped = self.path.with_name(f"{_DROPPED}{self.id}")
        patiently(self.path.rename, dropped)
        shutil.rmtree(dropped)

    def _recorded(self, files: Sequence[DataFile], rows: int | None = None) -> CommitProperties:
        numbers = [file.number for file in files if file.number]
        if rows is not None:
            transactions = [Transaction(_progress(files[0]), rows)]
        elif numbers:
            transactions = [Transaction(_LAST_NUMBER, max(numbers))]
        else:
            transactions = [Transaction(file.name, 1) for file in files]
            transactions.append(Transaction(_NAMED_FILES, self.files_applied_after(files)))
        return CommitProperties(app_transactions=transactions)


def our_tables(root: Path) -> Iterator[MirroredTable]:
    """Yield the tables that the replicator has made. Delete those whose drop was interrupted."""
    for path in sorted(root.glob("*/*")):
        if not _is_plain(path):
            continue
        try:
            if _DROPPED_TABLE.fullmatch(path.name):
                shutil.rmtree(path)
            delta = _ours(path)
        except (DeltaError, OSError, ValueError):
            # A table that cannot be opened may not be ours. Deleting is tried again next time.
            continue
        if delta:
            yield MirroredTable(path, delta)


def _ours(path: Path) -> DeltaTable | None:
    """Return the Delta table at a path if the replicator has made it."""
    if not _is_plain(path) or not DeltaTable.is_deltatable(str(path)):
        return None
    delta = DeltaTable(path)
    return delta if _FOLDER in delta.metadata().configuration else None


def _is_plain(path: Path) -> bool:
    """Check whether a path is a folder, and neither it nor its parent is a link."""
    return path.is_dir() and not path.is_symlink() and not path.parent.is_symlink()


def _progress(file: DataFile) -> str:
    """Name the transaction of a partly applied file. A file that replaces it starts anew."""
    return f"openmirroring.rows:{file.name}:{file.size}:{file.modified}"


def _conforming(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns and types of a schema. Columns that they lack are NULL."""
    lacking = pa.nulls(len(rows))
    columns = {name: rows[name] if name in rows.column_names else lacking for name in schema.names}
    return pa.table(columns).cast(schema)


def _other_columns(finding: str) -> TableError:
    return TableError("SchemaMergeFailure", finding)


def _type(column: Field) -> str:
    return str(getattr(column.type, "type", column.type))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
