"""How a run holds a folder of a local landing zone."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

from dbt.adapters.openmirroring.landing_zone.errors import ConcurrentPublicationError
from dbt.adapters.openmirroring.landing_zone.local_folders import Folders
from dbt.adapters.openmirroring.landing_zone.storage import components


class FolderLock:
    """A lock of the folder itself: the kernel frees it with the process, and no file is left.

    Raises:
        ConcurrentPublicationError: somebody else holds it
    """

    def __init__(self, folders: Folders, folder: str) -> None:
        self._folders = folders
        self._names = components(folder)
        self._descriptor = self._take()

    def free(self) -> None:
        """Let others have it. The folder, and the one above it, go if nothing is in them."""
        for names in (self._names, self._names[:-1]):
            try:
                self._folders.remove_empty("/".join(names))
            except OSError:  # somebody's files are in it, or it is gone already
                break
        os.close(self._descriptor)

    def _take(self) -> int:
        while True:
            # between two steps, its last holder may remove it
            with suppress(FileNotFoundError):
                with self._folders.open(self._names, make=True) as folder:
                    descriptor = os.dup(folder)
                if self._is_taken(descriptor):
                    return descriptor

    def _is_taken(self, descriptor: int) -> bool:
        """Lock an open folder, and tell whether it is still the one with this name."""
        is_taken = False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with self._folders.open(self._names) as found:
                is_taken = os.path.samestat(os.fstat(descriptor), os.fstat(found))
        except BlockingIOError:
            path = self._folders.path(self._names)
            raise ConcurrentPublicationError(
                f"Another run holds {path}: it is publishing this table right now. Nothing was "
                "changed; run again when it has ended."
            ) from None
        finally:
            if not is_taken:
                os.close(descriptor)
        return is_taken
