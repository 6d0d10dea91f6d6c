"""The lock of a run on a folder of a local landing zone."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from dbt.adapters.openmirroring.disk.place import OddItemError
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    LandingZoneUnavailableError,
)
from dbt.adapters.openmirroring.landing_zone.local.folders import Folders
from dbt.adapters.openmirroring.landing_zone.local.mount import Mount, mount_of
from dbt.adapters.openmirroring.landing_zone.storage import components, folder_and_name

# the folder of the lock files, beside the locked folders; no table has such a name
LOCKS = "_locks"

# errors of a server without locks
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


class FolderLock:
    """The lock of one run on a folder. The kernel or the server frees it when the process ends.

    On a local file system the folder itself is locked, so no lock file is left behind. A server
    only learns of locks on files that are open for writing (flock(2), "NFS details" and "CIFS
    details"). So on a shared mount a file beside the folder is locked. That file is never
    removed, because another process may have just opened it.

    Raises:
        ConcurrentPublicationError: if another run holds the folder
        LandingZoneUnavailableError: if the mount or the server does not support locks
    """

    def __init__(self, folders: Folders, folder: str) -> None:
        self._folders = folders
        self._names = components(folder)
        mount = self._mount()
        if mount and mount.is_shared:
            self._check(mount)
            self._descriptor = self._take_file(folder)
        else:
            self._descriptor = self._take_folder()

    def free(self) -> None:
        """Free the lock. Remove the folder, and then the one above it, if they are empty."""
        for names in (self._names, self._names[:-1]):
            try:
                self._folders.remove_empty("/".join(names))
            except (OSError, OddItemError):  # not empty, or gone already
                break
        os.close(self._descriptor)

    def _mount(self) -> Mount | None:
        with self._folders.open((), make=True) as root:
            return mount_of(os.fstat(root).st_dev)

    def _check(self, mount: Mount) -> None:
        if mount.local_locks:
            raise LandingZoneUnavailableError(
                f"{self._folders.path(())} is mounted with the option `{mount.local_locks}`: two "
                "runs on two machines could publish the same table at once. Nothing was changed. "
                "Mount it without this option, then run again."
            )

    def _take_file(self, folder: str) -> int:
        above, name = folder_and_name(folder)
        with self._folders.place("/".join((*above, LOCKS, name)), make=True) as place:
            descriptor = place.open_lock()
        is_taken = False
        try:
            self._lock(descriptor)
            with self._folders.open(self._names, make=True):
                is_taken = True
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            raise LandingZoneUnavailableError(
                f"The server of {self._folders.path(())} does not support locks: "
                f"{error.strerror}. Two runs could publish the same table at once. Nothing was "
                "changed. Turn its locks on, for NFS 3 the service lockd, or mount it by NFS "
                "4 or SMB 3; then run again."
            ) from error
        finally:
            if not is_taken:
                os.close(descriptor)
        return descriptor

    def _take_folder(self) -> int:
        while True:
            # the last holder may remove the folder between two of these steps
            with suppress(FileNotFoundError):
                with self._folders.open(self._names, make=True) as folder:
                    descriptor = os.dup(folder)
                if self._is_taken(descriptor):
                    return descriptor

    def _is_taken(self, descriptor: int) -> bool:
        """Lock an open folder. Return False if its name refers to another folder by now."""
        is_taken = False
        try:
            self._lock(descriptor)
            with self._folders.open(self._names) as found:
                is_taken = os.path.samestat(os.fstat(descriptor), os.fstat(found))
        finally:
            if not is_taken:
                os.close(descriptor)
        return is_taken

    def _lock(self, descriptor: int) -> None:
        import fcntl  # only on POSIX

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # SMB raises the latter
            raise held_by_another(self._folders.path(self._names)) from None


def held_by_another(folder: Path) -> ConcurrentPublicationError:
    return ConcurrentPublicationError(
        f"Another run holds {folder}: it is publishing this table now. Nothing was changed; run "
        "again when it has ended."
    )
