"""The mount of a folder on a server that other machines use too."""

from __future__ import annotations

import os
from pathlib import Path

# the mounts of this process (Linux only)
MOUNTS = Path("/proc/self/mountinfo")

_SHARED = ("nfs", "nfs4", "cifs", "smb3", "smbfs")

# mount options that keep file locks from the server (nfs(5), mount.cifs(8))
LOCKS_STAY_HERE = frozenset({"nolock", "local_lock=all", "local_lock=flock", "nobrl"})


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
