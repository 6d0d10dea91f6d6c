"""The folders of a landing zone and their locks, by their paths: on Windows."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from dbt.adapters.openmirroring.disk.place import OddItemError
from dbt.adapters.openmirroring.disk.place_by_path import Place, long_path
from dbt.adapters.openmirroring.landing_zone.errors import NotPlainError
from dbt.adapters.openmirroring.landing_zone.local.folders import entry_of
from dbt.adapters.openmirroring.landing_zone.local.lock import LOCKS, held_by_another
from dbt.adapters.openmirroring.landing_zone.storage import Entry, components, folder_and_name

# names of devices, whatever follows after a dot ("Naming Files" of Windows' documentation)
_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE
)


class Folders:
    """The folders below a root. Like `folders.Folders`, but without open folders.

    Args:
        root: the absolute path of the root; it may be a link, since the user has chosen it
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    @contextmanager
    def place(self, path: str, make: bool = False) -> Iterator[Place]:
        """Check the folder of a path, and yield the path's place in it.

        Args:
            make: whether to create missing folders

        Raises:
            FileNotFoundError: if the folder does not exist, or was removed during its creation
            OddItemError: if the folder, or one above it, is a link or the like
            NotPlainError: if Windows would take a name for another one
        """
        names, name = folder_and_name(path)
        self._refuse_devices((*names, name))
        place = Place(self.folder(names, make) / name)
        _refuse_other_case(place.path, 1)
        yield place

    def folder(self, names: Sequence[str], make: bool = False) -> Path:
        """Check a folder and those above it, and return its path. Errors are those of `place`.

        Args:
            names: the names of the folders on the way to it; none for the root
            make: whether to create missing folders
        """
        self._refuse_devices(names)
        path, root = self._root, long_path(self._root)
        if make:
            root.mkdir(parents=True, exist_ok=True)
        if not stat.S_ISDIR(root.stat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        for name in names:
            path = path / name
            place = Place(path)
            if make:
                place.make_folder()
            place.check_folder()
        if names:
            _refuse_other_case(path, len(names))
        return path

    def path(self, names: Sequence[str]) -> Path:
        """Return the full path for messages and URLs. It is not checked for links."""
        return self._root.joinpath(*names)

    def list(self, path: str) -> list[Entry]:
        """List a folder, sorted by name. Entries that disappear meanwhile are left out."""
        return [entry_of(item) for item in Place(self.folder(components(path))).items()]

    def flush(self, path: str) -> None:
        """Do nothing: Windows flushes no folder. NTFS keeps a log of all changes of names."""

    def remove_empty(self, path: str) -> None:
        with self.place(path) as place:
            place.remove_folder()

    def _refuse_devices(self, names: Sequence[str]) -> None:
        for name in filter(_DEVICE.fullmatch, names):
            raise NotPlainError(
                f"{self.path(names)}: Windows takes {name!r} for a device, so it cannot be a "
                "folder or file of the landing zone. Nothing was changed. Set another `alias` or "
                "`schema`."
            )


def _refuse_other_case(path: Path, depth: int) -> None:
    """Check that the last names of a path, so many, are spelled as on the disk."""
    if sys.platform != "win32":
        return
    try:
        found = long_path(path).resolve(strict=True)
    except OSError:  # it does not exist
        return
    for own, its in zip(path.parts[-depth:], found.parts[-depth:], strict=True):
        if own != its and own.casefold() == its.casefold():
            raise NotPlainError(
                f"{path}: {own!r} is there as {its!r}, and Windows takes both for one. Nothing "
                f"was changed. Set `alias` or `schema` to the name {its!r}, or move that folder "
                "out of the landing zone; then run again."
            )


class FolderLock:
    """The lock of one run on a folder. The system frees it when the process ends.

    A file beside the folder is locked, because Windows locks no folders. On a share, its server
    does so for all machines.

    Raises:
        ConcurrentPublicationError: if another run holds the folder
    """

    def __init__(self, folders: Folders, folder: str) -> None:
        self._folders = folders
        self._names = components(folder)
        above, name = folder_and_name(folder)
        self._locks = (*above, LOCKS)
        while True:
            # the last holder may remove the folders between two of these steps
            with suppress(FileNotFoundError):
                self._lock = self._taken("/".join((*self._locks, name)))
                break
        try:
            folders.folder(self._names, make=True)
        except BaseException:
            self._lock.release()
            raise

    def free(self) -> None:
        """Free the lock. Remove the folder, and those of the lock and above it, if empty."""
        self._remove_empty(self._names)
        self._lock.release()
        self._remove_empty(self._locks)
        self._remove_empty(self._names[:-1])

    def _taken(self, path: str) -> BaseFileLock:
        with self._folders.place(path, make=True) as place:
            place.is_there()  # raises if it is a link
            lock = FileLock(place.system_path, timeout=0, thread_local=False)
            try:
                lock.acquire()
            except Timeout:
                raise held_by_another(self._folders.path(self._names)) from None
            return lock

    def _remove_empty(self, names: Sequence[str]) -> None:
        if names:
            with suppress(OSError, OddItemError):  # not empty, or gone already
                self._folders.remove_empty("/".join(names))
