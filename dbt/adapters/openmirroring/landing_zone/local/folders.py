"""The folders below the root of a landing zone, opened without following links."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dbt.adapters.openmirroring.disk.calls import flush_names
from dbt.adapters.openmirroring.disk.place import Item, Place, is_odd, items_of, open_folder
from dbt.adapters.openmirroring.landing_zone.storage import Entry, components, folder_and_name

_ODDITIES = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


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
            OddItemError: if the folder, or one above it, is a link or the like
        """
        if make:
            self._make_root()
        descriptor, path = open_folder(self._root, follow=True), self._root
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
        with self.open(components(path)) as folder:
            return [entry_of(item) for item in items_of(folder)]

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
            folder = open_folder(made.parent, follow=True)
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


def entry_of(item: Item) -> Entry:
    size = item.size if item.is_file else 0
    return Entry(item.name, size, item.is_folder, item.modified, oddity(item.mode))


def oddity(mode: int) -> str:
    """Return what an item is other than a plain file or folder; empty if it is one of them."""
    known = _ODDITIES.get(stat.S_IFMT(mode), "neither a file nor a folder")
    return known if is_odd(mode) else ""
