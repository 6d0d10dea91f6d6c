"""A landing zone in a folder of this machine, or of a file system mounted on it."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    LandingZoneUnavailableError,
    PathExistsError,
)
from dbt.adapters.openmirroring.landing_zone.shown import shown
from dbt.adapters.openmirroring.landing_zone.storage import Entry

# somebody else writes, moves or mounts something in a folder that is to go
_IN_USE = (errno.EBUSY, errno.ENOTEMPTY, errno.ENOENT)

# seconds between the attempts to delete it
_PATIENCE = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
# nanoseconds that file systems count times in: most of them single ones, the coarsest two seconds
_CLOCK_STEPS = (1_000_000, 2_000_000_000)


class LocalStorage:
    """Implements Storage.

    Args:
        root: the landing zone, absolute; it appears with the first file
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def url(self, path: str) -> str:
        return f"file://{self._root / path}"

    def collect(self, folder: str) -> Sequence[Entry]:
        return self.list(folder)

    def list(self, folder: str) -> list[Entry]:
        with self._explained("list", folder):
            try:
                found = sorted(os.scandir(self._root / folder), key=lambda item: item.name)
            except FileNotFoundError:
                return []
            return [
                Entry(
                    item.name,
                    0 if item.is_dir() else item.stat().st_size,
                    item.is_dir(),
                    item.stat().st_mtime_ns,
                )
                for item in found
            ]

    def read(self, path: str) -> bytes | None:
        with self._explained("read", path):
            try:
                return (self._root / path).read_bytes()
            except FileNotFoundError:
                return None

    def write(self, path: str, content: bytes) -> None:
        # what a killed process has left under this name is replaced by the next
        with self._explained("write", path), self._beside(path, content, "new") as whole:
            whole.replace(self._root / path)

    def create(self, path: str, content: bytes) -> None:
        unique = secrets.token_hex(4)
        with self._explained("write", path), self._beside(path, content, unique) as whole:
            self._move(whole, self._root / path)

    def rename(self, source: str, target: str) -> None:
        with self._explained("rename a file to", target):
            (self._root / target).parent.mkdir(parents=True, exist_ok=True)
            self._move(self._root / source, self._root / target)

    def touch(self, path: str, after: int) -> int:
        file = self._root / path
        with self._explained("touch", path):
            for step in _CLOCK_STEPS:
                modified = max(time.time_ns(), after + step)
                os.utime(file, ns=(modified, modified))
                if file.stat().st_mtime_ns > after:
                    break
            return file.stat().st_mtime_ns

    def delete(self, path: str) -> None:
        with self._explained("delete", path):
            doomed = self._root / path
            for seconds in (*_PATIENCE, None):
                try:
                    if doomed.is_dir() and not doomed.is_symlink():
                        shutil.rmtree(doomed)
                    else:
                        doomed.unlink(missing_ok=True)
                    return
                except OSError as error:
                    if not os.path.lexists(doomed):
                        return
                    if seconds is None or error.errno not in _IN_USE:
                        raise
                    time.sleep(seconds)

    @contextmanager
    def lock(self, folder: str) -> Iterator[None]:
        path = self._root / folder
        with self._explained("lock", folder):
            descriptor = self._locked(path)
        try:
            yield
        finally:
            for empty in (path, path.parent):
                try:
                    empty.rmdir()
                except OSError:  # somebody's files are in it, or it is gone already
                    break
            os.close(descriptor)

    def _locked(self, path: Path) -> int:
        """Lock the folder itself: the kernel frees it with the process, and no file is left."""
        while True:
            try:
                path.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(path, os.O_RDONLY)
            except (FileExistsError, FileNotFoundError):
                # one question only: between two, its last holder may remove it
                if path.is_file() or path.is_symlink():
                    raise
                continue  # its last holder has just removed it
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
            except BlockingIOError:
                os.close(descriptor)
                raise ConcurrentPublicationError(
                    f"Another run holds {path}: it is publishing this table right now. "
                    "Nothing was changed; run again when it has ended."
                ) from None
            except FileNotFoundError:
                pass
            os.close(descriptor)

    @contextmanager
    def _beside(self, path: str, content: bytes, suffix: str) -> Iterator[Path]:
        """The content in a file that nobody looks at, to be moved to its name in one step."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        whole = target.with_name(f"_{target.name}.{suffix}")
        try:
            whole.write_bytes(content)
            yield whole
        finally:
            whole.unlink(missing_ok=True)

    @staticmethod
    def _move(source: Path, target: Path) -> None:
        try:
            # rename(2) would replace an existing file; link(2) refuses
            os.link(source, target)
        except FileExistsError:
            # a process that died between the two steps left both names of the one file
            if not source.samefile(target):
                raise PathExistsError(
                    f"{target} already exists with other content. It was left as it is."
                ) from None
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS):
                raise
            # no hard links here: the table's lock is what keeps others away
            if target.exists():
                raise PathExistsError(f"{target} already exists. It was left as it is.") from None
            source.rename(target)
            return
        source.unlink()

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
