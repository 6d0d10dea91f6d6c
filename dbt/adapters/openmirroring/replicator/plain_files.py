"""Safe access to folders and regular files in places where others can write.

A landing zone contains only folders and regular files. A link could lead anywhere, a FIFO blocks
its reader, and a device is no data, so nothing here follows or reads them. Each item is opened by
its name relative to an open folder, so nobody can replace a folder on the path meanwhile.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from dbt.adapters.openmirroring.replicator.errors import TableError

# Maximum bytes of a record. The columns of the widest table and the states of a thousand tables
# need less.
_LARGEST_RECORD = 4 * 2**20

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISREG, "a file"),
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
)


@dataclass(frozen=True)
class Entry:
    """An item in a folder.

    Args:
        name: the name within the folder
        mode: the mode from `lstat`
        size: the size in bytes
        modified: the modification time in nanoseconds since 1970
    """

    name: str
    mode: int
    size: int
    modified: int

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)


def entries(folder: int) -> list[Entry]:
    """List an open folder by name, without items that begin with an underscore or a dot."""
    found = []
    with os.scandir(folder) as items:
        for item in items:
            if item.name.startswith(("_", ".")):
                continue
            with suppress(FileNotFoundError):  # deleted meanwhile
                state = item.stat(follow_symlinks=False)
                entry = Entry(item.name, state.st_mode, state.st_size, state.st_mtime_ns)
                found.append(entry)
    return sorted(found, key=lambda entry: entry.name)


def open_folder(name: str, within: int) -> int:
    """Open a folder.

    Args:
        name: the name of the folder
        within: the descriptor of its open parent folder

    Raises:
        FileNotFoundError: if there is no such folder
        TableError: if the item is not a folder
    """
    _check(name, os.stat(name, dir_fd=within, follow_symlinks=False).st_mode, stat.S_IFDIR)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=within)


def open_file(name: str, within: int) -> BinaryIO:
    """Open a file for reading.

    Args:
        name: the name of the file
        within: the descriptor of its open parent folder

    Raises:
        FileNotFoundError: if there is no such file
        TableError: if the item is not a regular file
    """
    _check(name, os.stat(name, dir_fd=within, follow_symlinks=False).st_mode, stat.S_IFREG)
    # The item may be replaced after the check: these flags follow no link and wait for no FIFO.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    file = os.fdopen(os.open(name, flags, dir_fd=within), "rb")
    try:
        _check(name, os.fstat(file.fileno()).st_mode, stat.S_IFREG)
    except TableError:
        file.close()
        raise
    return file


def read_record(name: str, within: int) -> dict[str, Any] | None:
    """Read a small JSON file.

    Args:
        name: the name of the file
        within: the descriptor of its open parent folder

    Returns:
        the object in it; None if there is no such file

    Raises:
        TableError: if it is not a regular file, too large, or not a JSON object in UTF-8
    """
    try:
        with open_file(name, within) as file:
            content = file.read(_LARGEST_RECORD + 1)
    except FileNotFoundError:
        return None
    if len(content) > _LARGEST_RECORD:
        raise _invalid(name, f"it has more than {_LARGEST_RECORD:,} bytes")
    try:
        record = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise _invalid(name, f"it is not JSON ({error})") from None
    if not isinstance(record, dict):
        raise _invalid(name, "it is not an object")
    return record


def write_record(name: str, record: dict[str, Any], within: int) -> None:
    """Write a small JSON file atomically. It replaces an existing file of that name.

    Args:
        name: the name of the file
        record: the object to write
        within: the descriptor of its open parent folder
    """
    new = f"_{name}.new"
    with suppress(FileNotFoundError):
        os.unlink(new, dir_fd=within)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(new, flags, 0o644, dir_fd=within), "w") as file:
        json.dump(record, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, name, src_dir_fd=within, dst_dir_fd=within)


def _check(name: str, mode: int, expected: int) -> None:
    if stat.S_IFMT(mode) == expected:
        return
    kind = next((kind for is_kind, kind in _KINDS if is_kind(mode)), "a device")
    wanted = "a folder" if expected == stat.S_IFDIR else "a regular file"
    raise TableError(
        "UnsupportedFile",
        f"{name} is {kind}, and must be {wanted}. Only plain folders and regular files are read: "
        f"put {wanted} with the same content in its place. A table whose folder is removed, or "
        "becomes another one, is dropped.",
    )


def _invalid(name: str, finding: str) -> TableError:
    return TableError("InvalidMetadata", f"{name} is not valid: {finding}.")
