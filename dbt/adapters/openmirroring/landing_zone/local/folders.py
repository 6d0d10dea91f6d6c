"""Folders and files below a root, opened without following links.

Every folder is opened relative to the one above it. So no path can lead out of the root, even if
another process replaces a folder by a link at the same time.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dbt.adapters.openmirroring.landing_zone.local.disk import (
    UNABLE,
    flush,
    flush_names,
    rename_to_new,
)
from dbt.adapters.openmirroring.landing_zone.storage import (
    Entry,
    components,
    folder_and_name,
    not_plain,
)

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK, because opening a pipe would wait for a writer
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# errors of opening a link, or something that is not a folder, as a folder
_NO_FOLDER = (errno.ENOTDIR, errno.ELOOP)

_ODDITIES = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


@dataclass(frozen=True)
class Place:
    """A name in an open folder. It need not exist.

    The methods raise OSError. Those that open or inspect the name raise NotPlainError if it is
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
        oddity = _oddity(found)
        if oddity:
            raise not_plain(self.path, oddity)
        return found

    def is_there(self) -> bool:
        try:
            self.look()
        except FileNotFoundError:
            return False
        return True

    def open_folder(self) -> int:
        try:
            return os.open(self.name, _FOLDER, dir_fd=self.folder)
        except OSError as error:
            if error.errno in _NO_FOLDER:
                self.look()
            raise

    def open_file(self) -> int:
        # check before opening, because opening a device may have an effect
        self.look()
        return self._opened(_FILE)

    def open_lock(self) -> int:
        """Open a lock file, or create it. Nothing is ever written to it."""
        self.is_there()
        return self._opened(_LOCK_FILE)

    def _opened(self, flags: int) -> int:
        descriptor = os.open(self.name, flags, 0o666, dir_fd=self.folder)
        oddity = _oddity(os.fstat(descriptor))
        if oddity:
            os.close(descriptor)
            raise not_plain(self.path, oddity)
        return descriptor

    def read(self, size: int) -> bytes:
        """Read the first bytes of a file."""
        with os.fdopen(self.open_file(), "rb") as file:
            return file.read(size)

    def write(self, content: bytes) -> None:
        """Create or replace a file. Its content survives a power loss."""
        # do not write into an existing file, because it may be a hard link
        self.unlink()
        descriptor = os.open(self.name, _NEW_FILE, 0o666, dir_fd=self.folder)
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


class Folders:
    """The folders below a root.

    Args:
        root: the absolute path of the root; it may be a link, since the user has chosen it
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextmanager
    def open(self, names: Sequence[str], make: bool = False) -> Iterator[int]:
        """Open a folder, and yield its descriptor.

        Args:
            names: the names of the folders on the way to it; none for the root
            make: whether to create missing folders

        Raises:
            FileNotFoundError: if the folder does not exist, or was removed during its creation
            NotPlainError: if the folder, or one above it, is a link or the like
        """
        if make:
            self._make_root()
        descriptor, path = os.open(self._root, _FOLDER & ~os.O_NOFOLLOW), self._root
        try:
            for name in names:
                path = path / name
                above = descriptor
                descriptor = self._below(Place(above, path), make)
                os.close(above)
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def place(self, path: str, make: bool = False) -> Iterator[Place]:
        """Open the folder of a path, and yield the path's place in it.

        Args:
            make: whether to create missing folders
        """
        names, name = folder_and_name(path)
        with self.open(names, make) as folder:
            yield Place(folder, self.path((*names, name)))

    def path(self, names: Sequence[str]) -> Path:
        """Return the full path for messages and URLs. It is not checked for links."""
        return self._root.joinpath(*names)

    def list(self, path: str) -> list[Entry]:
        """List a folder, sorted by name. Entries that disappear meanwhile are left out."""
        with self.open(components(path)) as folder, os.scandir(folder) as items:
            return sorted(filter(None, map(_entry, items)), key=lambda entry: entry.name)

    def flush(self, path: str) -> None:
        """Make the names in a folder, and the folder itself, survive a power loss.

        The folders above it are flushed every time, because the process that created them may
        have died before it flushed them.
        """
        names = components(path)
        for depth in range(len(names), -1, -1):
            with self.open(names[:depth]) as folder:
                flush_names(folder)

    def remove_empty(self, path: str) -> None:
        with self.place(path) as place:
            os.rmdir(place.name, dir_fd=place.folder)

    def _make_root(self) -> None:
        missing = [path for path in (self._root, *self._root.parents) if not path.exists()]
        self._root.mkdir(parents=True, exist_ok=True)
        for made in missing:
            folder = os.open(made.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                flush_names(folder)
            finally:
                os.close(folder)

    @staticmethod
    def _below(place: Place, make: bool) -> int:
        try:
            return place.open_folder()
        except FileNotFoundError:
            if not make:
                raise
            place.make_folder()
            return place.open_folder()


def _entry(item: os.DirEntry[str]) -> Entry | None:
    try:
        found = item.stat(follow_symlinks=False)
    except FileNotFoundError:  # the service may move a file during the listing
        return None
    is_file = stat.S_ISREG(found.st_mode)
    return Entry(
        item.name,
        size=found.st_size if is_file else 0,
        is_folder=stat.S_ISDIR(found.st_mode),
        modified=found.st_mtime_ns,
        oddity=_oddity(found),
    )


def _oddity(found: os.stat_result) -> str:
    """Return what something is other than a plain file or folder; empty if it is one of them."""
    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
        return ""
    return _ODDITIES.get(stat.S_IFMT(found.st_mode), "neither a file nor a folder")
