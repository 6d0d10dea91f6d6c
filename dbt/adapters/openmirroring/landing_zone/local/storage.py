"""A landing zone in a local folder, or in a folder of a mounted file system."""

from __future__ import annotations

import errno
import os
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dbt.adapters.openmirroring.disk.place import OddItemError
from dbt.adapters.openmirroring.landing_zone.errors import (
    LandingZoneUnavailableError,
    PathExistsError,
)
from dbt.adapters.openmirroring.landing_zone.local.folders import oddity
from dbt.adapters.openmirroring.landing_zone.local.path import file_url
from dbt.adapters.openmirroring.landing_zone.storage import (
    MAX_RECORD,
    Entry,
    components,
    not_plain,
    too_large,
)
from dbt.adapters.openmirroring.text.shown import shown

if sys.platform == "win32":
    from dbt.adapters.openmirroring.disk.place_by_path import Place
    from dbt.adapters.openmirroring.landing_zone.local.by_path import FolderLock, Folders
else:
    from dbt.adapters.openmirroring.disk.place import Place
    from dbt.adapters.openmirroring.landing_zone.local.folders import Folders
    from dbt.adapters.openmirroring.landing_zone.local.lock import FolderLock

# errors of deleting a folder in which another process writes, moves or mounts something
_IN_USE = (errno.EBUSY, errno.ENOTEMPTY)

# seconds between the attempts to delete such a folder
_PAUSES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
# Nanoseconds to add to a time. A millisecond is enough for most file systems; the coarsest ones
# store times in steps of two seconds.
_CLOCK_STEPS = (1_000_000, 2_000_000_000)


class LocalStorage:
    """A storage in a folder. Implements `Storage`.

    Args:
        root: the absolute path of the landing zone; it is created with the first file
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders = Folders(root)

    def url(self, path: str) -> str:
        return file_url(self._folders.path(components(path)))

    def collect(self, folder: str) -> Sequence[Entry]:
        return self.list(folder)

    def list(self, folder: str) -> list[Entry]:
        with self._explained("list", folder):
            try:
                return self._folders.list(folder)
            except FileNotFoundError:
                return []

    def read(self, path: str) -> bytes | None:
        with self._explained("read", path):
            try:
                with self._folders.place(path) as place:
                    content = place.read(MAX_RECORD + 1)
            except FileNotFoundError:
                return None
        if len(content) > MAX_RECORD:
            raise too_large(self._root / path)
        return content

    def at_once(self, folder: str = "") -> LocalStorage:  # noqa: ARG002 - of Storage
        return self

    def write(self, path: str, content: bytes) -> None:
        with self._explained("write", path), self._folders.place(path, make=True) as place:
            place.is_there()  # raises if it is a link, which must not be replaced
            # with a fixed suffix, the next write replaces the leftovers of a killed process
            with self._beside(place, content, "new") as whole:
                whole.replace(place)
            self._folders.flush(_folder(path))

    def create(self, path: str, content: bytes) -> None:
        with self._explained("write", path), self._folders.place(path, make=True) as place:
            with self._beside(place, content, secrets.token_hex(4)) as whole:
                self._move(whole, place)
            self._folders.flush(_folder(path))

    def rename(self, source: str, target: str) -> None:
        with (
            self._explained("rename a file to", target),
            self._folders.place(source) as staged,
            self._folders.place(target, make=True) as place,
        ):
            self._move(staged, place)

    def touch(self, path: str, after: int) -> int:
        with self._explained("touch", path), self._folders.place(path) as place:
            place.look()
            for step in _CLOCK_STEPS:
                place.set_time(max(time.time_ns(), after + step))
                if place.look().st_mtime_ns > after:
                    break
            place.flush()
            return place.look().st_mtime_ns

    def flush(self, folder: str, files: Sequence[str] = ()) -> None:
        with self._explained("flush", folder):
            for name in files:
                with self._folders.place(f"{folder}/{name}") as place:
                    place.flush()
            self._folders.flush(folder)

    def delete(self, path: str) -> None:
        with self._explained("delete", path):
            for seconds in (*_PAUSES, None):
                try:
                    with self._folders.place(path) as place:
                        place.remove()
                    return
                except FileNotFoundError:
                    return
                except OSError as error:
                    if seconds is None or error.errno not in _IN_USE:
                        raise
                    time.sleep(seconds)

    @contextmanager
    def lock(self, folder: str) -> Iterator[None]:
        with self._explained("lock", folder):
            lock = FolderLock(self._folders, folder)
        try:
            yield
        finally:
            lock.free()

    @staticmethod
    @contextmanager
    def _beside(place: Place, content: bytes, suffix: str) -> Iterator[Place]:
        """Yield a temporary file with the content, to be moved to its name in one step."""
        whole = place.beside(f"_{place.name}.{suffix}")
        try:
            whole.write(content)
            yield whole
        finally:
            whole.unlink()

    @staticmethod
    def _move(source: Place, target: Place) -> None:
        staged = source.look()
        try:
            source.move(target)
        except FileExistsError:
            # a process that died between link and unlink has left two names of the same file
            if not os.path.samestat(staged, target.look()):
                raise PathExistsError(
                    f"{target.path} already exists with other content. It was left as it is."
                ) from None
            source.unlink()

    @contextmanager
    def _explained(self, action: str, path: str) -> Iterator[None]:
        try:
            yield
        except OddItemError as odd:
            raise not_plain(odd.path, oddity(odd.mode)) from None
        except OSError as error:
            raise LandingZoneUnavailableError(
                f"Cannot {action} {shown(self._root / path)}: {error.strerror or shown(error)}. "
                "Check that `landing_zone` in the profile is a folder that this user may write to "
                "and that its disk has room, then run again."
            ) from error


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
