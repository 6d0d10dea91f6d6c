"""Access to folders and plain files by their paths, for Windows: it has no open folders.

A link is not followed, unless another process puts it there between the check and the use. The
same access on Linux and macOS (`place`) has no such gap.

Windows refuses to change or to open a file while a virus scanner or OneDrive holds it. It says so
with the error of a missing permission. So such calls are repeated for some seconds.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from dbt.adapters.openmirroring.disk.place import Item, OddItemError, is_odd

T = TypeVar("T")

# seconds between the attempts
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)

# The bit of reparse tags that stand for another place: links and junctions. Placeholders of
# OneDrive are reparse points without it ("Reparse Point Tags" of Windows' documentation).
_NAME_SURROGATE = 0x20000000


def mode_of(state: os.stat_result) -> int:
    """Return the mode from `lstat`. A junction is a link too, which Python does not say."""
    if getattr(state, "st_reparse_tag", 0) & _NAME_SURROGATE:
        return stat.S_IFLNK | stat.S_IMODE(state.st_mode)
    return state.st_mode


def long_path(path: Path) -> Path:
    """Return a path in the form that Windows does not limit to 260 characters."""
    text = str(path)
    if sys.platform != "win32" or text.startswith("\\\\?\\"):
        return path
    share = text.removeprefix("\\\\")
    return Path(f"\\\\?\\{text}" if share == text else f"\\\\?\\UNC\\{share}")


def patiently(call: Callable[[], T]) -> T:
    """Call a function again while another process holds the file.

    Raises:
        PermissionError: if the file was held all the time, or the permission is missing
    """
    for seconds in _PAUSES:
        try:
            return call()
        except PermissionError:
            time.sleep(seconds)
    return call()


@dataclass(frozen=True)
class Place:
    """A path whose folder was checked for links. It need not exist.

    The methods raise OSError. Those that open or inspect the path raise OddItemError if it is
    neither a plain file nor a folder.

    Args:
        path: the absolute path
    """

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def system_path(self) -> Path:
        """The path for calls of the system. Windows limits others to 260 characters."""
        return long_path(self.path)

    def beside(self, name: str) -> Place:
        return replace(self, path=self.path.with_name(name))

    def look(self) -> os.stat_result:
        found = self.system_path.lstat()
        mode = mode_of(found)
        if is_odd(mode):
            raise OddItemError(self.path, mode)
        return found

    def is_there(self) -> bool:
        try:
            self.look()
        except FileNotFoundError:
            return False
        return True

    def items(self) -> list[Item]:
        """List a folder, sorted by name. Items that disappear meanwhile are left out."""
        found = []
        for path in self.system_path.iterdir():
            with suppress(FileNotFoundError):
                state = path.lstat()
                found.append(Item(path.name, mode_of(state), state.st_size, state.st_mtime_ns))
        return sorted(found, key=lambda item: item.name)

    def check_folder(self) -> None:
        if not stat.S_ISDIR(self.look().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def read(self, size: int) -> bytes:
        """Read the first bytes of a file."""
        self._check_file()
        with patiently(lambda: self.system_path.open("rb")) as file:
            return file.read(size)

    def write(self, content: bytes) -> None:
        """Create or replace a file. Its content survives a power loss."""
        # do not write into an existing file, because it may be a hard link
        self.unlink()
        with patiently(lambda: self.system_path.open("xb")) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def flush(self) -> None:
        """Make the content of a file and its time survive a power loss."""
        self._check_file()
        # Windows flushes only what is open for writing
        with patiently(lambda: self.system_path.open("r+b")) as file:
            os.fsync(file.fileno())

    def make_folder(self) -> None:
        """Create the folder if it does not exist."""
        with suppress(FileExistsError):
            patiently(self.system_path.mkdir)

    def move(self, target: Place) -> None:
        """Move a file to a name that does not exist yet.

        Raises:
            FileExistsError: if the name exists
        """
        # Windows never replaces a file by this call, other systems do
        patiently(lambda: self.system_path.rename(target.system_path))

    def replace(self, target: Place) -> None:
        patiently(lambda: self.system_path.replace(target.system_path))

    def set_time(self, modified: int) -> None:
        """Set the modification time, in nanoseconds since 1970."""
        self.look()
        patiently(lambda: os.utime(self.system_path, ns=(modified, modified)))

    def unlink(self) -> None:
        """Remove a file, or a link without its target. Do nothing if there is none."""
        with suppress(FileNotFoundError):
            patiently(self.system_path.unlink)

    def remove_folder(self) -> None:
        """Remove an empty folder."""
        self.check_folder()
        patiently(self.system_path.rmdir)

    def remove(self) -> None:
        """Remove a file, or a folder with all its content."""
        if not stat.S_ISDIR(mode_of(self.system_path.lstat())):
            self.unlink()
            return
        for item in self.items():
            with suppress(FileNotFoundError):  # another process removed it first
                Place(self.path / item.name).remove()
        self.remove_folder()

    def _check_file(self) -> None:
        if stat.S_ISDIR(self.look().st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
