"""Access to folders and plain files without following links.

Others can write where the files are. A link could lead anywhere, a pipe blocks its reader, and a
device is no data. Every item is opened by its name in an open folder. So no path can lead out of
the root, even if another process replaces a folder by a link at the same time.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# errors of opening a link, or something that is not a folder, as a folder
_NO_FOLDER = (errno.ENOTDIR, errno.ELOOP)


class OddItemError(Exception):
    """An item is neither a plain file nor a folder.

    Args:
        path: its path, or its name
        mode: its mode, from `lstat`
    """

    def __init__(self, path: Path, mode: int) -> None:
        super().__init__(path, mode)
        self.path = path
        self.mode = mode


@dataclass(frozen=True)
class Item:
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


def items_of(folder: int) -> list[Item]:
    """List an open folder, sorted by name. Items that disappear meanwhile are left out."""
    found = []
    with os.scandir(folder) as items:
        for item in items:
            with suppress(FileNotFoundError):
                state = item.stat(follow_symlinks=False)
                found.append(Item(item.name, state.st_mode, state.st_size, state.st_mtime_ns))
    return sorted(found, key=lambda item: item.name)


@dataclass(frozen=True)
class Place:
    """A name in an open folder. It need not exist.

    The methods raise OSError. Those that open or inspect the name raise OddItemError if it is
    neither a plain file nor a folder.

    Args:
        folder: the descriptor of the folder
        path: the path with this name; all but the name is for messages only
    """

    folder: int
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def look(self) -> os.stat_result:
        found = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise OddItemError(self.path, found.st_mode)
        return found

    def open_folder(self) -> int:
        try:
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
            return os.open(self.name, flags, dir_fd=self.folder)
        except OSError as error:
            if error.errno in _NO_FOLDER:
                self.look()
            raise

    def open_file(self) -> int:
        # check before opening, because opening a device may have an effect
        self.look()
        return self._opened(os.O_RDONLY)

    def _opened(self, flags: int) -> int:
        # O_NONBLOCK, because opening a pipe would wait for a writer
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(self.name, flags, 0o666, dir_fd=self.folder)
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            if stat.S_ISDIR(mode):
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            raise OddItemError(self.path, mode)
        return descriptor

    def write(self, content: bytes) -> None:
        """Create or replace a file. Its content survives a power loss."""
        # do not write into an existing file, because it may be a hard link
        self.unlink()
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(self.name, new, 0o666, dir_fd=self.folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)

    def replace(self, target: Place) -> None:
        os.replace(self.name, target.name, src_dir_fd=self.folder, dst_dir_fd=target.folder)

    def unlink(self) -> None:
        """Remove a file, or a link without its target. Do nothing if there is none."""
        with suppress(FileNotFoundError):
            os.unlink(self.name, dir_fd=self.folder)
