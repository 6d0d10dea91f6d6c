"""The lock of a run on a folder of a local landing zone."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    LandingZoneUnavailableError,
)
from dbt.adapters.openmirroring.landing_zone.local.folders import Folders
from dbt.adapters.openmirroring.landing_zone.storage import components, folder_and_name

# the folder of the lock files, beside the locked folders; no table has such a name
LOCKS = "_locks"

# errors of a server without locks
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)

# the mounts of this process (Linux only)
MOUNTS = Path("/proc/self/mountinfo")

_SHARED = ("nfs", "nfs4", "cifs", "smb3", "smbfs")

# mount options that keep file locks from the server (nfs(5), mount.cifs(8))
LOCKS_STAY_HERE = frozenset({"nolock", "local_lock=all", "local_lock=flock", "nobrl"})


class FolderLock:
    """The lock of one run on a folder. The system or the server frees it when the process ends.

    A file beside the folder is locked. It is removed with the lock, except on a shared mount: a
    process on another machine might not notice that the file it has just opened is gone.

    Raises:
        ConcurrentPublicationError: if another run holds the folder
        LandingZoneUnavailableError: if the mount or the server does not support locks
    """

    def __init__(self, folders: Folders, folder: str) -> None:
        self._folders = folders
        self._names = components(folder)
        above, name = folder_and_name(folder)
        self._locks = (*above, LOCKS)
        self._is_shared = self._check_mount()
        while True:
            # another holder may remove the folders between two of these steps; the library then
            # raises one of these
            with suppress(FileNotFoundError, FileExistsError):
                self._lock = self._taken("/".join((*self._locks, name)))
                break
        try:
            folders.folder(self._names, make=True)
        except BaseException:
            self.free()
            raise

    def free(self) -> None:
        """Free the lock. Remove the folder, and those of the lock and above it, if empty."""
        self._folders.remove_empty(self._names)
        if not self._is_shared:
            # the library takes no lock of a file that is gone, and removes it itself on Windows
            with suppress(OSError):
                Path(self._lock.lock_file).unlink()
        self._lock.release()
        self._folders.remove_empty(self._locks)
        self._folders.remove_empty(self._names[:-1])

    def _check_mount(self) -> bool:
        """Return whether the landing zone is on a server that other machines use too."""
        options = shared_mount(self._folders.folder((), make=True).stat().st_dev)
        for option in sorted((options or frozenset()) & LOCKS_STAY_HERE):
            raise LandingZoneUnavailableError(
                f"{self._folders.path(())} is mounted with the option `{option}`: two "
                "runs on two machines could publish the same table at once. Nothing was changed. "
                "Mount it without this option, then run again."
            )
        return options is not None

    def _taken(self, path: str) -> BaseFileLock:
        file = self._folders.place(path, make=True)
        # a lock of the other kind stays when its process is killed
        lock = FileLock(file, timeout=0, thread_local=False, fallback_to_soft=False)
        try:
            lock.acquire()
        except Timeout:
            raise ConcurrentPublicationError(
                f"Another run holds {self._folders.path(self._names)}: it is publishing this "
                "table now. Nothing was changed; run again when it has ended."
            ) from None
        except OSError as error:
            if not self._is_shared or error.errno not in _NO_LOCKS:
                raise
            raise LandingZoneUnavailableError(
                f"The server of {self._folders.path(())} does not support locks: "
                f"{error.strerror}. Two runs could publish the same table at once. Nothing was "
                "changed. Turn its locks on, for NFS 3 the service lockd, or mount it by NFS "
                "4 or SMB 3; then run again."
            ) from error
        return lock


def shared_mount(device: int, mounts: Path = MOUNTS) -> frozenset[str] | None:
    """Return the options of a mount from a server; None for a disk of this machine or if unknown.

    Args:
        device: the device number, as stat(2) returns it
    """
    try:
        content = mounts.read_text(errors="replace")
    except FileNotFoundError:  # not Linux
        return None
    for line in content.splitlines():
        # optional fields may precede the dash (proc(5))
        mount, _, file_system = line.partition(" - ")
        fields = mount.split()
        major, minor = fields[2].split(":")
        if os.makedev(int(major), int(minor)) == device:
            kind, _, options = file_system.split()[:3]
            names = (*fields[5].split(","), *options.split(","))
            return frozenset(names) if kind in _SHARED else None
    return None
