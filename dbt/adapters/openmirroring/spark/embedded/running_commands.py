"""The dbt commands that use an embedded Spark on this machine.

The process that makes an image of Spark's classes gives way to them.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

# seconds between two looks, and seconds after which nobody waits any longer
_PAUSE = 1.0
_LONGEST_WAIT = 3600.0


class StillRunningError(Exception):
    """Some dbt command has been running all the time."""


class RunningCommands:
    """A file that every command locks while it runs. The lock ends with the process, if killed.

    Args:
        folder: the folder of the file, which may be missing
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def enter(self) -> None:
        """Record that a command of this process runs. Without the folder, nobody gives way."""
        if self._descriptor is None:
            with suppress(OSError):
                self._descriptor = self._locked(is_shared=True)

    def leave(self) -> None:
        """Record that no command of this process runs any longer."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def wait(self, seconds: float = _LONGEST_WAIT) -> None:
        """Wait until no command runs.

        Args:
            seconds: the longest time to wait

        Raises:
            StillRunningError: if commands run all the time
        """
        deadline = time.monotonic() + seconds
        while True:
            with suppress(BlockingIOError):
                os.close(self._locked(is_shared=False))
                return
            if time.monotonic() > deadline:
                raise StillRunningError
            time.sleep(_PAUSE)

    def _locked(self, is_shared: bool) -> int:
        import fcntl  # only on POSIX

        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / "running.lock"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor
