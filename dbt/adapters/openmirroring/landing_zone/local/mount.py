"""The mount of a folder: local, or on a server that other machines use too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# the mounts of this process (Linux only)
MOUNTS = Path("/proc/self/mountinfo")

_SHARED = ("nfs", "nfs4", "cifs", "smb3", "smbfs")

# mount options that keep file locks from the server (nfs(5), mount.cifs(8))
_LOCKS_STAY_HERE = {"nolock", "local_lock=all", "local_lock=flock", "nobrl"}


@dataclass(frozen=True)
class Mount:
    """A mounted file system.

    Args:
        device: the device number, as stat(2) returns it
        type: the type of the file system, e.g. `nfs4`
        options: all options of the mount and of the file system
    """

    device: int
    type: str
    options: frozenset[str]

    @property
    def is_shared(self) -> bool:
        return self.type in _SHARED

    @property
    def local_locks(self) -> str:
        """The mount option that keeps locks from the server; empty if there is none."""
        return min(self.options & _LOCKS_STAY_HERE, default="")


def mount_of(device: int, mounts: Path = MOUNTS) -> Mount | None:
    """Return the mount of a device; None if it is unknown.

    Args:
        device: the device number, as stat(2) returns it
    """
    try:
        content = mounts.read_text(errors="replace")
    except FileNotFoundError:  # not Linux
        return None
    found = (mount for mount in _mounts(content) if mount.device == device)
    return next(found, None)


def _mounts(content: str) -> Iterator[Mount]:
    for line in content.splitlines():
        # optional fields may precede the dash (proc(5))
        mount, _, file_system = line.partition(" - ")
        major, minor = mount.split()[2].split(":")
        kind, _, options = file_system.split()[:3]
        names = (*mount.split()[5].split(","), *options.split(","))
        yield Mount(os.makedev(int(major), int(minor)), kind, frozenset(names))
