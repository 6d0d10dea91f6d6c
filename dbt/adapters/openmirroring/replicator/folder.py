"""The landing zone's folders, as the service sees them."""

from __future__ import annotations

import os
import re
import stat
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

from dbt.adapters.openmirroring.disk.place import Item
from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.plain_files import (
    entries,
    open_file,
    open_folder,
    read_record,
    write_record,
)

METADATA = "_metadata.json"

# Tables without a schema folder get this schema, the `defaultSchema` of a mirrored database.
DEFAULT_SCHEMA = "dbo"
SCHEMA_SUFFIX = ".schema"

# This file says which mirrored table was made from a table folder. The service uses ETags instead.
# A folder that was dropped and recreated does not have this file.
FILLED_TABLE = "_mirrored_table.json"

# bytes at the end of a file that tell it from another one of the same size
_TAIL = 64 * 2**10

PROCESSED_DAYS = 7

_SEQUENTIAL = re.compile(r"[0-9]{20}")
_COMPRESSED = (".gz", ".zst")


@dataclass(frozen=True)
class DataFile:
    """A file in a table folder.

    Args:
        name: the name within the folder
        size: the size in bytes
        modified: the modification time in nanoseconds since 1970
    """

    name: str
    size: int
    modified: int

    @property
    def extension(self) -> str:
        """The extension without its leading dot and without the extension of a compression."""
        stem = self.name
        for compressed in _COMPRESSED:
            stem = stem.removesuffix(compressed)
        return stem.partition(".")[2]

    @property
    def number(self) -> int | None:
        """The number in the name: 20 digits (specification, "Format requirements")."""
        stem = self.name.partition(".")[0]
        return int(stem) if _SEQUENTIAL.fullmatch(stem) else None


@dataclass(frozen=True)
class FilledTable:
    """A table folder's record of the mirrored table that is made from it.

    Args:
        id: the id of the mirrored table
        applied: the number of applied files that may be in the folder no more
        applying: the number of applied files after the last commit, which may not have happened;
            None in a record of an earlier version
        last: the digest of the last applied file; empty if that is unknown
    """

    id: str
    applied: int = 0
    applying: int | None = None
    last: str = ""

    @classmethod
    def of(cls, record: dict[str, Any]) -> FilledTable:
        """Read a record, which others can write too."""
        applied, applying = record.get("applied"), record.get("applying")
        if type(applied) is not int or type(applying) is not int:
            return cls(str(record.get("id")))
        return cls(str(record.get("id")), applied, applying, str(record.get("last") or ""))


class TableFolder:
    """The folder of one table. A `with` block keeps it open.

    All operations are relative to the open folder. If the publisher meanwhile drops and recreates
    the folder, the files of the old and the new one are not mixed up.

    Args:
        landing_zone: the root folder
        schema: the schema of the table
        names: the folder names on the path from the root; the last is the table folder
    """

    def __init__(self, landing_zone: Path, schema: str, *names: str) -> None:
        self.schema = schema
        self.table = names[-1]
        self.path = landing_zone.joinpath(*names)
        self._landing_zone = landing_zone
        self._names = names
        self._descriptor = -1

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    def __enter__(self) -> TableFolder:
        """Open the folder.

        Raises:
            FileNotFoundError: if it does not exist any more
            TableError: if it is no folder, or if its name is not UTF-8
        """
        try:
            str(self).encode()
        except UnicodeEncodeError:
            raise TableError(
                "UnsupportedName", f"The name of {self.path} is not UTF-8. Rename the folder."
            ) from None
        self._descriptor = _opened(self._landing_zone, self._names)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def is_there(self) -> bool:
        """Check whether the opened folder is still the one at its path."""
        try:
            return os.path.samestat(self.path.lstat(), os.fstat(self._descriptor))
        except (FileNotFoundError, NotADirectoryError):
            return False

    def open(self, name: str) -> pa.NativeFile:
        """Open a file for Arrow.

        Arrow opens it itself. It also reads in threads that Python does not know, and these abort
        a process that ends while they read or close a file of Python's.

        Raises:
            FileNotFoundError: if there is no such file
            TableError: if the item is not a regular file
        """
        with open_file(name, self._descriptor) as checked:
            return pa.OSFile(f"/dev/fd/{checked.fileno()}")

    def metadata(self) -> dict[str, Any] | None:
        """Return the content of `_metadata.json`, or None if there is no such file."""
        return read_record(METADATA, self._descriptor)

    def data_files(self) -> list[DataFile]:
        """Return all items that could be data.

        These are all but folders and items whose names begin with an underscore or a dot. Links
        and FIFOs are included, because one may stand where a data file is expected. Opening one
        raises an error.
        """
        return [
            DataFile(entry.name, entry.size, entry.modified)
            for entry in entries(self._descriptor)
            if not entry.is_folder
        ]

    def digest(self, file: DataFile) -> str:
        """Return a digest of the size and the end of a file.

        The end of a Parquet file describes all of its rows.
        """
        with open_file(file.name, self._descriptor) as content:
            size = content.seek(0, os.SEEK_END)
            content.seek(max(0, size - _TAIL))
            return f"{size}:{blake2b(content.read(), digest_size=16).hexdigest()}"

    def filled(self) -> FilledTable | None:
        """Return the record of the mirrored table that was made from this folder, or None."""
        record = read_record(FILLED_TABLE, self._descriptor)
        return None if record is None else FilledTable.of(record)

    def fills(self, table: FilledTable) -> None:
        """Remember which mirrored table is made from this folder, and how far."""
        write_record(FILLED_TABLE, asdict(table), self._descriptor)
        # no commit of the table may survive a power loss without this record
        os.fsync(self._descriptor)

    def retire(self, files: list[DataFile], processed: str) -> None:
        """Move applied files out of the way (specification, "Cleanup process").

        Args:
            files: the applied files
            processed: the subfolder that they are moved to; it keeps them for a week

        Raises:
            TableError: if `processed` exists and is not a folder
        """
        if files:
            with suppress(FileExistsError):
                os.mkdir(processed, dir_fd=self._descriptor)
        try:
            folder = open_folder(processed, self._descriptor)
        except FileNotFoundError:
            return
        try:
            for file in files:
                os.rename(file.name, file.name, src_dir_fd=self._descriptor, dst_dir_fd=folder)
            _purge(folder)
        finally:
            os.close(folder)


@dataclass(frozen=True)
class LandingZoneFolders:
    """The folders of a landing zone.

    Args:
        tables: the table folders, sorted by folder name
        unreadable: for each schema whose folder cannot be listed, the error
    """

    tables: list[TableFolder] = field(default_factory=list)
    unreadable: dict[str, TableError] = field(default_factory=dict)


def find_folders(landing_zone: Path) -> LandingZoneFolders:
    """Find the tables of a landing zone.

    Items whose names begin with an underscore are not tables (best practices, "Publishing"). Files
    and hidden items are not tables either. A link or a FIFO in place of a table folder counts as
    that table, and opening it raises an error.
    """
    found = LandingZoneFolders()
    if not landing_zone.is_dir():
        return found
    root = os.open(landing_zone, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for entry in entries(root):
            if not entry.name.endswith(SCHEMA_SUFFIX):
                if entry.is_folder or entry.is_link:
                    found.tables.append(TableFolder(landing_zone, DEFAULT_SCHEMA, entry.name))
            elif not entry.is_file:
                _find_tables(found, landing_zone, root, entry)
    finally:
        os.close(root)
    return found


def _find_tables(found: LandingZoneFolders, landing_zone: Path, root: int, entry: Item) -> None:
    """Add the tables of a schema."""
    schema = entry.name.removesuffix(SCHEMA_SUFFIX)
    try:
        folder = open_folder(entry.name, root)
        try:
            tables = [table for table in entries(folder) if not table.is_file]
        finally:
            os.close(folder)
    except FileNotFoundError:  # deleted meanwhile
        return
    except (TableError, OSError) as error:
        found.unreadable[schema] = TableError.of(error)
        return
    found.tables.extend(
        TableFolder(landing_zone, schema, entry.name, table.name) for table in tables
    )


def _opened(landing_zone: Path, names: tuple[str, ...]) -> int:
    """Open a folder within the landing zone without following links on the path."""
    descriptor = os.open(landing_zone, os.O_RDONLY | os.O_DIRECTORY)
    for name in names:
        try:
            inner = open_folder(name, descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _purge(processed: int) -> None:
    oldest = time.time() - PROCESSED_DAYS * 24 * 60 * 60
    for name in os.listdir(processed):
        with suppress(FileNotFoundError):  # another process may delete it meanwhile
            state = os.stat(name, dir_fd=processed, follow_symlinks=False)
            # moving a file here has set its ctime, so ctime is the time of the move
            if stat.S_ISREG(state.st_mode) and state.st_ctime < oldest:
                os.unlink(name, dir_fd=processed)
