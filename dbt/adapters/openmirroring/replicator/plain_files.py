"""Plain files of a landing zone, and what stands in their place."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from dbt.adapters.openmirroring.disk.place import Item, OddItemError, Place, items_of
from dbt.adapters.openmirroring.replicator.errors import TableError

# Maximum bytes of a record. The columns of the widest table and the states of a thousand tables
# need less.
_LARGEST_RECORD = 4 * 2**20

_KINDS = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket"}


def entries(folder: int) -> list[Item]:
    """List an open folder by name, without items that begin with an underscore or a dot."""
    return [item for item in items_of(folder) if not item.name.startswith(("_", "."))]


def open_folder(name: str, within: int) -> int:
    """Open a folder.

    Args:
        name: the name of the folder
        within: the descriptor of its open parent folder

    Raises:
        FileNotFoundError: if there is no such folder
        TableError: if the item is not a folder
    """
    with _checked(name, "a folder"):
        return Place(within, Path(name)).open_folder()


def open_file(name: str, within: int) -> BinaryIO:
    """Open a file for reading.

    Args:
        name: the name of the file
        within: the descriptor of its open parent folder

    Raises:
        FileNotFoundError: if there is no such file
        TableError: if the item is not a regular file
    """
    with _checked(name, "a regular file"):
        return os.fdopen(Place(within, Path(name)).open_file(), "rb")


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
    new = Place(within, Path(f"_{name}.new"))
    new.write(json.dumps(record, indent=2).encode())
    new.replace(Place(within, Path(name)))


@contextmanager
def _checked(name: str, wanted: str) -> Iterator[None]:
    """Raise a TableError if an item is not what it must be."""
    try:
        yield
    except OddItemError as odd:
        kind = _KINDS.get(stat.S_IFMT(odd.mode), "a device")
    except NotADirectoryError:
        kind = "a file"
    except IsADirectoryError:
        kind = "a folder"
    else:
        return
    raise TableError(
        "UnsupportedFile",
        f"{name} is {kind}, and must be {wanted}. Only plain folders and regular files are read: "
        f"put {wanted} with the same content in its place. A table whose folder is removed, or "
        "becomes another one, is dropped.",
    )


def _invalid(name: str, finding: str) -> TableError:
    return TableError("InvalidMetadata", f"{name} is not valid: {finding}.")
