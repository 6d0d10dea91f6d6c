"""The folders below the root of a landing zone.

Others can write there. A link could lead anywhere, a pipe blocks its reader, and a device is no
data. So every path is looked at before it is used, with all folders above it.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dbt.adapters.openmirroring.landing_zone.errors import NotPlainError
from dbt.adapters.openmirroring.landing_zone.local.calls import flush_folder, patiently, unlink
from dbt.adapters.openmirroring.landing_zone.storage import (
    Entry,
    components,
    folder_and_name,
    not_plain,
)

# The bit of reparse tags that stand for another place: links and junctions. Placeholders of
# OneDrive are reparse points without it ("Reparse Point Tags" of Windows' documentation).
_NAME_SURROGATE = 0x20000000

# names of devices, whatever follows after a dot ("Naming Files" of Windows' documentation)
_DEVICE = re.compile(
    r"(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\..*)?", re.IGNORECASE
)

_ODDITIES = {
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


class Folders:
    """The folders below a root.

    Methods that take or return a path have looked at it. They raise:
        FileNotFoundError: if a folder does not exist, or was removed during its creation
        NotPlainError: if an item on the way is a link or the like, or if Windows would take a name
            for another one

    Args:
        root: the absolute path of the root; it may be a link, since the user has chosen it
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._system_root = _long(root)

    def path(self, names: Sequence[str]) -> Path:
        """Return the full path for messages and URLs. It is not looked at."""
        return self._root.joinpath(*names)

    def place(self, path: str, make: bool = False, plain: bool = True) -> Path:
        """Return the full path of a file or folder, which need not exist.

        Args:
            make: whether to create missing folders above it
            plain: whether it must be a plain file or folder if it exists
        """
        names, name = folder_and_name(path)
        self._refuse_devices((*names, name))
        place = self.folder(names, make) / name
        self._refuse_other_case(place, 1)
        if plain:
            with suppress(FileNotFoundError):
                self._refuse_odd(place)
        return place

    def folder(self, names: Sequence[str], make: bool = False) -> Path:
        """Return the full path of a folder.

        Args:
            names: the names of the folders on the way to it; none for the root
            make: whether to create missing folders
        """
        self._refuse_devices(names)
        path = self._system_root
        if make:
            self._make_root()
        for name in names:
            path = path / name
            if make and not os.path.lexists(path):
                with suppress(FileExistsError):
                    patiently(path.mkdir)
            self._refuse_odd(path)
        self._refuse_other_case(path, len(names))
        return path

    def list(self, path: str) -> list[Entry]:
        """List a folder, sorted by name. Entries that disappear meanwhile are left out."""
        found = []
        for item in self.folder(components(path)).iterdir():
            with suppress(FileNotFoundError):
                found.append(_entry(item))
        return sorted(found, key=lambda entry: entry.name)

    def flush(self, path: str) -> None:
        """Make the names in a folder, and the folder itself, survive a power loss.

        The folders above it are flushed every time, because the process that created them may
        have died before it flushed them.
        """
        folder = self.folder(components(path))
        while folder != self._system_root:
            flush_folder(folder)
            folder = folder.parent
        flush_folder(folder)

    def remove_empty(self, names: Sequence[str]) -> None:
        """Remove a folder if it is empty, but never the root."""
        if names:
            with suppress(OSError, NotPlainError):  # not empty, or gone already
                self.folder(names).rmdir()

    def _make_root(self) -> None:
        root = self._system_root
        missing = [path for path in (root, *root.parents) if not path.exists()]
        root.mkdir(parents=True, exist_ok=True)
        for made in missing:
            flush_folder(made.parent)

    def _shown(self, path: Path) -> Path:
        return self._root / path.relative_to(self._system_root)

    def _refuse_odd(self, path: Path) -> None:
        oddity = _oddity(mode_of(path.lstat()))
        if oddity:
            raise not_plain(self._shown(path), oddity)

    def _refuse_devices(self, names: Sequence[str]) -> None:
        if sys.platform != "win32":
            return
        for name in filter(_DEVICE.fullmatch, names):
            raise NotPlainError(
                f"{self.path(names)}: Windows takes {name!r} for a device, so it cannot be a "
                "folder or file of the landing zone. Nothing was changed. Set another `alias` or "
                "`schema`."
            )

    def _refuse_other_case(self, path: Path, depth: int) -> None:
        """Check that the last names of a path, so many, are spelled as on the disk."""
        if sys.platform != "win32" or not depth:
            return
        try:
            found = path.resolve(strict=True)
        except OSError:  # it does not exist
            return
        for own, its in zip(path.parts[-depth:], found.parts[-depth:], strict=True):
            if own != its and own.casefold() == its.casefold():
                raise NotPlainError(
                    f"{self._shown(path)}: {own!r} is there as {its!r}, and Windows takes both "
                    f"for one. Nothing was changed. Set `alias` or `schema` to the name {its!r}, "
                    "or move that folder out of the landing zone; then run again."
                )


def remove(path: Path) -> None:
    """Remove a file, a link without its target, or a folder with all its content."""
    if not stat.S_ISDIR(mode_of(path.lstat())):
        unlink(path)
        return
    for item in path.iterdir():
        with suppress(FileNotFoundError):  # another process removed it first
            remove(item)
    patiently(path.rmdir)


def mode_of(state: os.stat_result) -> int:
    """Return the mode from `lstat`. A junction is a link too, which Python does not say."""
    if getattr(state, "st_reparse_tag", 0) & _NAME_SURROGATE:
        return stat.S_IFLNK | stat.S_IMODE(state.st_mode)
    return state.st_mode


def _entry(path: Path) -> Entry:
    state = path.lstat()
    mode = mode_of(state)
    size = state.st_size if stat.S_ISREG(mode) else 0
    return Entry(path.name, size, stat.S_ISDIR(mode), state.st_mtime_ns, _oddity(mode))


def _oddity(mode: int) -> str:
    """Return what an item is other than a plain file or folder; empty if it is one of them."""
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return ""
    return _ODDITIES.get(stat.S_IFMT(mode), "neither a file nor a folder")


def _long(path: Path) -> Path:
    """Return a path in the form that Windows does not limit to 260 characters."""
    text = str(path)
    if sys.platform != "win32" or text.startswith("\\\\?\\"):
        return path
    share = text.removeprefix("\\\\")
    return Path(f"\\\\?\\{text}" if share == text else f"\\\\?\\UNC\\{share}")
