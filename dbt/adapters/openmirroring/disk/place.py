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
from dataclasses import dataclass, replace
from pathlib import Path

from dbt.adapters.openmirroring.disk.calls import UNABLE, flush, flush_names, rename_to_new

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


def open_folder(path: Path | str, above: int | None = None, follow: bool = False) -> int:
    """Open a folder, and return its descriptor.

    Args:
        above: the descriptor of the folder in which a relative path starts
        follow: whether the path may be a link
    """
    flags = os.O_RDONLY | os.O_DIRECTORY
    return os.open(path, flags if follow else flags | os.O_NOFOLLOW, dir_fd=above)


def items_of(folder: int) -> list[Item]:
    """List an open folder, sorted by name. Items that disappear meanwhile are left out."""
    found = []
    with os.scandir(folder) as items:
        for item in items:
            with suppress(FileNotFoundError):
                state = item.stat(follow_symlinks=False)
                found.append(Item(item.name, state.st_mode, state.st_size, state.st_mtime_ns))
    return sorted(found, key=lambda item: item.name)


def is_odd(mode: int) -> bool:
    """Check whether an item is neither a plain file nor a folder."""
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


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

    def beside(self, name: str) -> Place:
        return replace(self, path=self.path.with_name(name))

    def look(self) -> os.stat_result:
        found = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        if is_odd(found.st_mode):
            raise OddItemError(self.path, found.st_mode)
        return found

    def is_there(self) -> bool:
        try:
            self.look()
        except FileNotFoundError:
            return False
        return True

    def open_folder(self) -> int:
        try:
            return open_folder(self.name, self.folder)
        except OSError as error:
            if error.errno in _NO_FOLDER:
                self.look()
            raise

    def open_file(self) -> int:
        # check before opening, because opening a device may have an effect
        self.look()
        return self._opened(os.O_RDONLY)

    def open_lock(self) -> int:
        """Open a lock file, or create it. Nothing is ever written to it."""
        self.is_there()
        return self._opened(os.O_RDWR | os.O_CREAT)

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

    def read(self, size: int) -> bytes:
        """Read the first bytes of a file."""
        with os.fdopen(self.open_file(), "rb") as file:
            return file.read(size)

    def write(self, content: bytes) -> None:
        """Create or replace a file. Its content survives a power loss."""
        # do not write into an existing file, because it may be a hard link
        self.unlink()
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        descriptor = os.open(self.name, new, 0o666, dir_fd=self.folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            flush(descriptor)

    def flush(self) -> None:
        """Make the content of a file and its time survive a power loss."""
        descriptor = self.open_file()
        try:
            flush(descriptor)
        finally:
            os.close(descriptor)

    def make_folder(self) -> None:
        """Create the folder if it does not exist."""
        with suppress(FileExistsError):
            os.mkdir(self.name, dir_fd=self.folder)

    def move(self, target: Place) -> None:
        """Move a file to a name that does not exist yet.

        Raises:
            FileExistsError: if the name exists
        """
        try:
            rename_to_new(self.name, self.folder, target.name, target.folder)
        except OSError as error:
            if error.errno not in UNABLE:
                raise
            self._link(target)

    def _link(self, target: Place) -> None:
        """Move a file with a hard link. Unlike rename(2), link(2) refuses to replace a file."""
        try:
            os.link(
                self.name,
                target.name,
                src_dir_fd=self.folder,
                dst_dir_fd=target.folder,
                follow_symlinks=False,
            )
        except OSError as error:
            if error.errno not in (*UNABLE, errno.EPERM):
                raise
            # without hard links, only the table's lock prevents a race after this check
            if target.is_there():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            self.replace(target)
            return
        # the new name must be durable before the old one is removed
        flush_names(target.folder)
        self.unlink()

    def replace(self, target: Place) -> None:
        os.replace(self.name, target.name, src_dir_fd=self.folder, dst_dir_fd=target.folder)

    def set_time(self, modified: int) -> None:
        """Set the modification time, in nanoseconds since 1970."""
        os.utime(self.name, ns=(modified, modified), dir_fd=self.folder, follow_symlinks=False)

    def unlink(self) -> None:
        """Remove a file, or a link without its target. Do nothing if there is none."""
        with suppress(FileNotFoundError):
            os.unlink(self.name, dir_fd=self.folder)

    def remove(self) -> None:
        """Remove a file, or a folder with all its content."""
        found = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            self.unlink()
            return
        descriptor = self.open_folder()
        try:
            with os.scandir(descriptor) as items:
                names = [item.name for item in items]
            for name in names:
                with suppress(FileNotFoundError):  # another process removed it first
                    Place(descriptor, self.path / name).remove()
        finally:
            os.close(descriptor)
        os.rmdir(self.name, dir_fd=self.folder)
