"""The folders of a landing zone, as the service sees them."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from dbt.adapters.openmirroring.disk.patience import patiently
from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.metadata import TableMetadata

# Tables without a schema folder get the `defaultSchema` of a mirrored database.
_DEFAULT_SCHEMA = "dbo"
SCHEMA_SUFFIX = ".schema"

# This file says which mirrored table was made from a table folder. The service uses ETags instead.
# A folder that was dropped and recreated does not have this file.
_FILLED_TABLE = "_mirrored_table.json"

# bytes at the end of a file that tell it from another one of the same size
_TAIL = 64 * 2**10

# seconds for which applied files are kept
_PROCESSED_SECONDS = 7 * 24 * 60 * 60

# the subfolder for applied files
_PROCESSED = "_ProcessedFiles"


@dataclass(frozen=True)
class DataFile:
    """A file in a table folder.

    Args:
        number: the number in its name; None if the order of the files is that of their times
        modified: the modification time in nanoseconds since 1970
    """

    path: Path
    number: int | None
    size: int
    modified: int

    @property
    def name(self) -> str:
        return self.path.name


@dataclass(frozen=True)
class FilledTable:
    """A table folder's record of the mirrored table that is made from it.

    Args:
        applied: the number of applied files that may be in the folder no more
        applying: the number of applied files after the last commit, which may not have happened
        last: the digest of the last applied file; empty if that is unknown
    """

    id: str
    applied: int = 0
    applying: int = 0
    last: str = ""


class OpenFolder:
    """A folder that stays the one that was opened, also if another one takes its place.

    Windows has no calls for the items of an open folder. There they are found by their paths, as
    long as the folder at its path is the same one.

    Raises:
        FileNotFoundError: if there is nothing
        TableError: if it is not a plain folder
    """

    def __init__(self, path: Path) -> None:
        self._path = checked(path, is_folder=True)
        self.descriptor: int | None = None
        if sys.platform == "win32":
            self._state = path.lstat()
        else:
            self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            self._state = os.fstat(self.descriptor)

    def is_there(self) -> bool:
        """Check whether this folder is still the one at its path."""
        try:
            return os.path.samestat(self._path.lstat(), self._state)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def at(self, name: str) -> str:
        """Return the name of an item for calls that take the descriptor as `dir_fd`."""
        if self.descriptor is not None:
            return name
        if not self.is_there():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self._path))
        return str(self._path / name)

    def flush(self) -> None:
        """Make the names in it survive a power loss, as Windows does by itself."""
        if self.descriptor is not None:
            os.fsync(self.descriptor)

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)


class TableFolder:
    """The folder of one table, in a schema folder or in the landing zone itself.

    A `with` block keeps it open. A publisher may drop and recreate the folder meanwhile. Then the
    new one is neither marked as filled, nor are its files moved away.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.table = path.name
        within = path.parent.name
        is_schema = within.endswith(SCHEMA_SUFFIX)
        self.schema = within.removesuffix(SCHEMA_SUFFIX) if is_schema else _DEFAULT_SCHEMA
        self._open: OpenFolder

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    def __enter__(self) -> TableFolder:
        """Open the folder. It raises FileNotFoundError if it does not exist any more."""
        if self.path.parent.name.endswith(SCHEMA_SUFFIX):
            checked(self.path.parent, is_folder=True)
        self._open = OpenFolder(self.path)
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def is_there(self) -> bool:
        """Check whether the opened folder is still the one at its path."""
        return self._open.is_there()

    def metadata(self) -> TableMetadata | None:
        """Return what `_metadata.json` declares; None if there is no such file."""
        record = read_record(self.path / "_metadata.json")
        return None if record is None else TableMetadata.parse(record)

    def data_files(self, metadata: TableMetadata) -> tuple[list[DataFile], list[str]]:
        """List the data files in the order in which they must be applied.

        Returns:
            the files of the table's format, and the names of the other files
        """
        by_time = metadata.by_modification_time
        files: list[DataFile] = []
        ignored: list[str] = []
        for path in _entries(self.path):
            try:
                state = path.lstat()
            except FileNotFoundError:  # deleted meanwhile
                continue
            if stat.S_ISDIR(state.st_mode):
                continue
            stem, _, extension = path.name.partition(".")
            extension = extension.removesuffix(".gz").removesuffix(".zst")
            # 20 digits (specification, "Format requirements")
            number = int(stem) if re.fullmatch("[0-9]{20}", stem) and not by_time else None
            if extension == metadata.extension and (number or by_time):
                files.append(DataFile(path, number, state.st_size, state.st_mtime_ns))
            else:
                ignored.append(path.name)
        if by_time:
            # The service has no order for files with equal times. Sorting such files by name would
            # hide a publisher's mistake, so they are sorted by the reversed name.
            return sorted(files, key=lambda file: (file.modified, file.name[::-1])), ignored
        return sorted(files, key=lambda file: file.number or 0), ignored

    def filled(self) -> FilledTable | None:
        """Return the record of the mirrored table that was made from this folder, or None."""
        path = self.path / _FILLED_TABLE
        record = read_record(path)
        try:
            return None if record is None else FilledTable(**record)
        except TypeError as error:
            raise _invalid(path, str(error)) from None

    def fills(self, table: FilledTable) -> None:
        """Remember which mirrored table is made from this folder, and how far."""
        write_record(_FILLED_TABLE, asdict(table), self._open)
        # no commit of the table may survive a power loss without this record
        self._open.flush()

    def retire(self, files: Sequence[DataFile]) -> None:
        """Move applied files to a subfolder, and delete those that are there for a week.

        This is the specification's section "Cleanup process".
        """
        here, at = self._open.descriptor, self._open.at
        if files:
            with suppress(FileExistsError):
                os.mkdir(at(_PROCESSED), dir_fd=here)
        try:
            folder = checked(self.path / _PROCESSED, is_folder=True)
        except FileNotFoundError:
            return
        for file in files:
            source, target = at(file.name), at(f"{_PROCESSED}/{file.name}")
            patiently(os.rename, source, target, src_dir_fd=here, dst_dir_fd=here)
            if here is None:
                os.utime(target)  # Windows records no time of a move
        oldest = time.time() - _PROCESSED_SECONDS
        for path in folder.iterdir():
            with suppress(FileNotFoundError):  # another process may delete it meanwhile
                state = path.lstat()
                # moving a file here has set its ctime, so ctime is the time of the move
                moved = state.st_mtime if here is None else state.st_ctime
                if stat.S_ISREG(state.st_mode) and moved < oldest:
                    path.unlink()


def find_folders(landing_zone: Path) -> tuple[list[TableFolder], dict[str, TableError]]:
    """Find the tables of a landing zone.

    Files are no tables, nor are items whose names begin with an underscore (best practices,
    "Publishing"). Opening what is in place of a table folder raises an error.

    Returns:
        the table folders by name, and the error of each schema whose folder cannot be listed
    """
    tables: list[TableFolder] = []
    unreadable: dict[str, TableError] = {}
    for path in _entries(landing_zone) if landing_zone.is_dir() else []:
        if not path.name.endswith(SCHEMA_SUFFIX):
            if path.is_symlink() or path.is_dir():
                tables.append(TableFolder(path))
        elif not _is_file(path):
            try:
                found = _entries(checked(path, is_folder=True))
                tables += [TableFolder(each) for each in found if not _is_file(each)]
            except (TableError, OSError) as error:
                if not isinstance(error, FileNotFoundError):  # otherwise it was deleted meanwhile
                    unreadable[path.name.removesuffix(SCHEMA_SUFFIX)] = TableError.of(error)
    return tables, unreadable


def _entries(folder: Path) -> list[Path]:
    """List a folder by name, without items that begin with an underscore or a dot."""
    return sorted(path for path in folder.iterdir() if not path.name.startswith(("_", ".")))


def checked(path: Path, is_folder: bool = False) -> Path:
    """Return a path if a regular file or a folder is there, and no link leads elsewhere.

    Raises:
        FileNotFoundError: if there is nothing
        TableError: if there is anything else
    """
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode):
        return path
    wanted = "a folder" if is_folder else "a regular file"
    found = " is a link, and" if stat.S_ISLNK(mode) else ""
    raise TableError(
        "UnsupportedFile",
        f"{path.name}{found} must be {wanted}. Only plain folders "
        f"and regular files are read: put {wanted} with the same content in its place. A table "
        "whose folder is removed, or becomes another one, is dropped.",
    )


def digest(file: Path) -> str:
    """Return a digest of the size and the end of a file.

    The end of a Parquet file describes all of its rows.
    """
    with checked(file).open("rb") as content:
        size = content.seek(0, os.SEEK_END)
        content.seek(max(0, size - _TAIL))
        return f"{size}:{blake2b(content.read(), digest_size=16).hexdigest()}"


def read_record(path: Path) -> dict[str, Any] | None:
    """Read a small JSON file. Return None if there is none.

    Raises:
        TableError: if it is not a regular file, or not a JSON object in UTF-8
    """
    try:
        content = checked(path).read_bytes()
    except FileNotFoundError:
        return None
    try:
        record = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _invalid(path, f"it is not JSON ({error})") from None
    if not isinstance(record, dict):
        raise _invalid(path, "it is not an object")
    return record


def write_record(name: str, record: dict[str, Any], folder: OpenFolder) -> None:
    """Write a small JSON file atomically into an open folder."""
    here, new = folder.descriptor, folder.at(f"_{name}.new")
    with suppress(FileNotFoundError):
        os.unlink(new, dir_fd=here)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=here)
    with os.fdopen(descriptor, "w") as file:
        json.dump(record, file, indent=2)
        file.flush()
        os.fsync(descriptor)
    patiently(os.replace, new, folder.at(name), src_dir_fd=here, dst_dir_fd=here)


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _invalid(path: Path, finding: str) -> TableError:
    return TableError("InvalidMetadata", f"{path.name} is not valid: {finding}.")
