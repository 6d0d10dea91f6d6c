"""Folders and files below a root, which are reached without following a link.

Every folder is opened from the one above it. So nobody can lead a path out of the root, not even
by putting a link in its way while it is being walked.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from dbt.adapters.openmirroring.landing_zone.local_disk import (
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
# not blocking: a pipe that somebody has put there would be waited for
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOCK_FILE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# of a folder that is a link, or no folder
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
    """A name in an open folder, whether there is something of that name or not.

    Every method raises OSError, and NotPlainError for what is neither a plain file nor a folder.

    Args:
        folder: its descriptor
        path: for messages
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
        # before it is opened, since to open a device may do something
        self.look()
        return self._opened(_FILE)

    def open_lock(self) -> int:
        """A file, which may be new, in which nothing is ever written."""
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
        """The first bytes of a file."""
        with os.fdopen(self.open_file(), "rb") as file:
            return file.read(size)

    def write(self, content: bytes) -> None:
        """Make a file whose content survives a loss of power, in place of one that is there."""
        # what is there may be another name of somebody's file
        self.unlink()
        descriptor = os.open(self.name, _NEW_FILE, 0o666, dir_fd=self.folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            flush(descriptor)

    def flush(self) -> None:
        """Let the content of a file, and its time, survive a loss of power."""
        descriptor = self.open_file()
        try:
            flush(descriptor)
        finally:
            os.close(descriptor)

    def make_folder(self) -> None:
        """Make a folder, if there is none."""
        with suppress(FileExistsError):
            os.mkdir(self.name, dir_fd=self.folder)

    def move(self, target: Place) -> None:
        """Give a file another name, which nothing may have.

        Raises:
            FileExistsError: something has it
        """
        try:
            rename_to_new(self.name, self.folder, target.name, target.folder)
        except OSError as error:
            if error.errno not in UNABLE:
                raise
            self._link(target)

    def _link(self, target: Place) -> None:
        """Move by a link, which refuses to replace a file, as rename(2) does not."""
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
            # no hard links here: the table's lock is what keeps others away
            if target.is_there():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
            self.replace(target)
            return
        # the old name must not go before the new one is there to stay
        flush_names(target.folder)
        self.unlink()

    def replace(self, target: Place) -> None:
        os.replace(self.name, target.name, src_dir_fd=self.folder, dst_dir_fd=target.folder)

    def set_time(self, modified: int) -> None:
        """Nanoseconds since 1970."""
        os.utime(self.name, ns=(modified, modified), dir_fd=self.folder, follow_symlinks=False)

    def unlink(self) -> None:
        """Remove a file, or a link but not its target, if there is one."""
        with suppress(FileNotFoundError):
            os.unlink(self.name, dir_fd=self.folder)

    def remove(self) -> None:
        """Remove what is there, a folder with all that is in it."""
        found = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            self.unlink()
            return
        descriptor = self.open_folder()
        try:
            with os.scandir(descriptor) as items:
                names = [item.name for item in items]
            for name in names:
                with suppress(FileNotFoundError):  # somebody else removes it too
                    Place(descriptor, self.path / name).remove()
        finally:
            os.close(descriptor)
        os.rmdir(self.name, dir_fd=self.folder)


class Folders:
    """The folders below a root.

    Args:
        root: absolute; it may be a link, since the user has chosen it
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextmanager
    def open(self, names: Sequence[str], make: bool = False) -> Iterator[int]:
        """The descriptor of a folder.

        Args:
            make: it, and those above it, if they are not there

        Raises:
            FileNotFoundError: it is not there, or was removed while it was being made
            NotPlainError: it is a link or the like, or is behind one
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
        """A path, with its folder open.

        Args:
            make: its folder, and those above it, if they are not there
        """
        names, name = folder_and_name(path)
        with self.open(names, make) as folder:
            yield Place(folder, self.path((*names, name)))

    def path(self, names: Sequence[str]) -> Path:
        """For messages: on the way there could be a link."""
        return self._root.joinpath(*names)

    def list(self, path: str) -> list[Entry]:
        """What is directly in a folder, by name. What is gone by the end is left out."""
        with self.open(components(path)) as folder, os.scandir(folder) as items:
            return sorted(filter(None, map(_entry, items)), key=lambda entry: entry.name)

    def flush(self, path: str) -> None:
        """Let the names in a folder survive a loss of power, and the folder itself.

        Those above it are flushed every time: who has made them may have died before it could.
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
    except FileNotFoundError:  # the service moves files meanwhile
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
    """What something is that is neither a plain file nor a folder; empty if it is one."""
    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
        return ""
    return _ODDITIES.get(stat.S_IFMT(found.st_mode), "neither a file nor a folder")
