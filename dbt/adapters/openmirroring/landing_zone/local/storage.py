"""A landing zone in a local folder, or in a folder of a mounted file system."""

from __future__ import annotations

import errno
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dbt.adapters.openmirroring.landing_zone.errors import (
    LandingZoneUnavailableError,
    PathExistsError,
)
from dbt.adapters.openmirroring.landing_zone.local.calls import (
    flush_file,
    move,
    patiently,
    unlink,
    write_new,
)
from dbt.adapters.openmirroring.landing_zone.local.folders import Folders, remove
from dbt.adapters.openmirroring.landing_zone.local.lock import FolderLock
from dbt.adapters.openmirroring.landing_zone.local.path import file_url
from dbt.adapters.openmirroring.landing_zone.storage import (
    MAX_RECORD,
    Entry,
    components,
    too_large,
)
from dbt.adapters.openmirroring.text.shown import shown

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
                place = self._folders.place(path)
                with patiently(lambda: place.open("rb")) as file:
                    content = file.read(MAX_RECORD + 1)
            except FileNotFoundError:
                return None
        if len(content) > MAX_RECORD:
            raise too_large(self._root / path)
        return content

    def at_once(self, folder: str = "") -> LocalStorage:  # noqa: ARG002 - of Storage
        return self

    def write(self, path: str, content: bytes) -> None:
        with self._explained("write", path):
            place = self._folders.place(path, make=True)
            # with a fixed suffix, the next write replaces the leftovers of a killed process
            with _beside(place, content, "new") as whole:
                patiently(lambda: whole.replace(place))
            self._folders.flush(_folder(path))

    def create(self, path: str, content: bytes) -> None:
        with self._explained("write", path):
            place = self._folders.place(path, make=True)
            with _beside(place, content, secrets.token_hex(4)) as whole:
                self._move(whole, place, path)
            self._folders.flush(_folder(path))

    def rename(self, source: str, target: str) -> None:
        with self._explained("rename a file to", target):
            staged = self._folders.place(source)
            self._move(staged, self._folders.place(target, make=True), target)

    def touch(self, path: str, after: int) -> int:
        with self._explained("touch", path):
            place = self._folders.place(path)
            for step in _CLOCK_STEPS:
                modified = max(time.time_ns(), after + step)
                patiently(lambda: os.utime(place, ns=(modified, modified)))  # noqa: B023
                if place.stat().st_mtime_ns > after:
                    break
            flush_file(place)
            return place.stat().st_mtime_ns

    def flush(self, folder: str, files: Sequence[str] = ()) -> None:
        with self._explained("flush", folder):
            for name in files:
                flush_file(self._folders.place(f"{folder}/{name}"))
            self._folders.flush(folder)

    def delete(self, path: str) -> None:
        with self._explained("delete", path):
            for seconds in (*_PAUSES, None):
                try:
                    remove(self._folders.place(path, plain=False))
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

    def _move(self, source: Path, target: Path, path: str) -> None:
        staged = source.lstat()
        try:
            move(source, target)
        except FileExistsError:
            # a process that died between link and unlink has left two names of the same file
            if not os.path.samestat(staged, target.lstat()):
                raise PathExistsError(
                    f"{self._root / path} already exists with other content. It was left as it is."
                ) from None
            unlink(source)

    @contextmanager
    def _explained(self, action: str, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise LandingZoneUnavailableError(
                f"Cannot {action} {shown(self._root / path)}: {error.strerror or shown(error)}. "
                "Check that `landing_zone` in the profile is a folder that this user may write to "
                "and that its disk has room, then run again."
            ) from error


@contextmanager
def _beside(place: Path, content: bytes, suffix: str) -> Iterator[Path]:
    """Yield a temporary file with the content, to be moved to its name in one step."""
    whole = place.with_name(f"_{place.name}.{suffix}")
    try:
        write_new(whole, content)
        yield whole
    finally:
        unlink(whole)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
