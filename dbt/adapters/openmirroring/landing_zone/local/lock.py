"""The lock of a run on a folder of a local landing zone."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from filelock import BaseFileLock, FileLock, Timeout

from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    LandingZoneUnavailableError,
)

# errors of a server without locks
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)

# the mounts of this process (Linux only)
MOUNTS = Path("/proc/self/mountinfo")

_SHARED = ("nfs", "nfs4", "cifs", "smb3", "smbfs")

# mount options that keep file locks from the server (nfs(5), mount.cifs(8))
LOCKS_STAY_HERE = frozenset({"nolock", "local_lock=all", "local_lock=flock", "nobrl"})


def locked(file: Path, zone: Path, folder: str, shared: bool) -> BaseFileLock:
    """Lock a file that stands for a folder. The system frees the lock when the process ends.

    Args:
        zone, folder: the landing zone, and the folder in it, for messages
        shared: whether it is on a server that other machines use too

    Raises:
        ConcurrentPublicationError: if another run holds the folder
        LandingZoneUnavailableError: if the server does not support locks
    """
    # a lock of the other kind stays when its process is killed
    lock = FileLock(file, timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise ConcurrentPublicationError(
            f"Another run holds {zone / folder}: it is publishing this table now. Nothing was "
            "changed; run again when it has ended."
        ) from None
    except OSError as error:
        if not shared or error.errno not in _NO_LOCKS:
            raise
        raise LandingZoneUnavailableError(
            f"The server of {zone} does not support locks: {error.strerror}. Two runs could "
            "publish the same table at once. Nothing was changed. Turn its locks on, for NFS 3 "
            "the service lockd, or mount it by NFS 4 or SMB 3; then run again."
        ) from error
    return lock


def is_shared(root: Path, shown: Path) -> bool:
    """Return whether a landing zone is on a server that other machines use too.

    Args:
        shown: the landing zone, for messages

    Raises:
        LandingZoneUnavailableError: if the server would not see the locks of this machine
    """
    options = shared_mount(root.stat().st_dev)
    for option in sorted((options or frozenset()) & LOCKS_STAY_HERE):
        raise LandingZoneUnavailableError(
            f"{shown} is mounted with the option `{option}`: two runs on two machines could "
            "publish the same table at once. Nothing was changed. Mount it without this option, "
            "then run again."
        )
    return options is not None


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
