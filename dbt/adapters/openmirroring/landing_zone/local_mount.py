"""Whether a folder is on this machine, or on a server that others use too."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# the mounts of this process, on Linux
MOUNTS = Path("/proc/self/mountinfo")

_SHARED = ("nfs", "nfs4", "cifs", "smb3", "smbfs")

# by which a server never hears of a lock of a file (nfs(5), mount.cifs(8))
_LOCKS_STAY_HERE = {"nolock", "local_lock=all", "local_lock=flock", "nobrl"}


@dataclass(frozen=True)
class Mount:
    """A mounted file system.

    Args:
        device: its numbers, as stat(2) has them
        options: all of them, of the mount and of the file system
    """

    device: int
    type: str
    options: frozenset[str]

    @property
    def is_shared(self) -> bool:
        return self.type in _SHARED

    @property
    def local_locks(self) -> str:
        """The option by which locks do not reach the server; empty if they do."""
        return min(self.options & _LOCKS_STAY_HERE, default="")


def mount_of(device: int, mounts: Path = MOUNTS) -> Mount | None:
    """The mount of a file, if it is known.

    Args:
        device: as stat(2) has it
    """
    try:
        content = mounts.read_text(errors="replace")
    except FileNotFoundError:  # not Linux
        return None
    found = (mount for mount in _mounts(content) if mount.device == device)
    return next(found, None)


def _mounts(content: str) -> Iterator[Mount]:
    for line in content.splitlines():
        # proc(5); before the dash there may be optional fields
        mount, _, file_system = line.partition(" - ")
        major, minor = mount.split()[2].split(":")
        kind, _, options = file_system.split()[:3]
        names = (*mount.split()[5].split(","), *options.split(","))
        yield Mount(os.makedev(int(major), int(minor)), kind, frozenset(names))
