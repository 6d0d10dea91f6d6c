"""The file system of a folder, which decides who sees the locks on its files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

# the mounts of this process (Linux only)
MOUNTS = Path("/proc/self/mountinfo")

# file systems of disks and memory, which no other machine uses: those of Linux, of containers, of
# WSL 1, of macOS and of Windows
LOCAL = frozenset(
    [
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "bcachefs", "f2fs", "jfs", "nilfs2"),
        *("reiserfs", "ntfs", "ntfs3", "fuseblk", "vfat", "msdos", "exfat", "udf", "ecryptfs"),
        *("tmpfs", "ramfs", "rootfs", "overlay", "aufs", "fuse.fuse-overlayfs"),
        *("lxfs", "wslfs", "apfs", "hfs", "hfsplus", "ufs", "fat", "fat32", "refs", "csvfs"),
    ]
)

# file systems of servers, which see the locks of all machines
SERVERS = frozenset(["nfs", "nfs4", "cifs", "smb3", "smbfs"])

# mount options that keep file locks from the server (nfs(5), mount.cifs(8)); macOS shows none
LOCKS_STAY_HERE = frozenset({"nolock", "local_lock=all", "local_lock=flock", "nobrl"})

_ESCAPED = re.compile(r"\\([0-7]{3})")
_OF_MACOS = re.compile(r".+? on (/.*) \((.+)\)")


@dataclass(frozen=True)
class FileSystem:
    """A mounted file system.

    Args:
        kind: the name of its type, in lower case; `unknown` if the system does not tell it
        options: how it is mounted
    """

    kind: str
    options: frozenset[str] = frozenset()


def file_system(path: Path) -> FileSystem:
    """Return the file system of an absolute path without links, which need not exist."""
    if sys.platform == "win32":
        import ctypes

        name = ctypes.create_unicode_buffer(64)
        # of a share, it is the one that its server has
        ctypes.windll.kernel32.GetVolumeInformationW(
            path.anchor, None, 0, None, None, None, name, len(name)
        )
        return FileSystem(name.value.lower() or "unknown")
    if sys.platform == "darwin":
        told = subprocess.run(["/sbin/mount"], capture_output=True, check=False).stdout
        # its names may be spelled in another case
        return mounted(str(path).lower(), mounts_of_macos(os.fsdecode(told).lower()))
    try:
        content = os.fsdecode(MOUNTS.read_bytes())
    except OSError:  # a process without /proc
        content = ""
    return mounted(str(path), mounts_of_linux(content))


def mounted(path: str, mounts: Iterable[tuple[str, FileSystem]]) -> FileSystem:
    """Return the file system of a path: the last one that is mounted nearest to it.

    The number of its device would not do, since Btrfs gives each subvolume one of its own.
    """
    nearest, found = 0, FileSystem("unknown")
    for point, each in mounts:
        folder = f"{point.rstrip('/')}/"
        if len(folder) >= nearest and f"{path}/".startswith(folder):
            nearest, found = len(folder), each
    return found


def mounts_of_linux(mountinfo: str) -> Iterator[tuple[str, FileSystem]]:
    """Yield mount points and file systems from the content of a mountinfo (proc(5))."""
    for line in mountinfo.split("\n")[:-1]:  # names may have other ends of lines
        # optional fields may precede the dash
        mount, _, more = line.partition(" - ")
        point, options = mount.split(" ")[4:6]
        kind, _, others = more.split(" ")[:3]
        name = _ESCAPED.sub(lambda code: chr(int(code[1], 8)), point)
        yield name, FileSystem(kind, frozenset((*options.split(","), *others.split(","))))


def mounts_of_macos(told: str) -> Iterator[tuple[str, FileSystem]]:
    """Yield mount points and file systems from the lines of mount(8) of macOS."""
    for line in told.splitlines():
        if mount := _OF_MACOS.fullmatch(line):
            kind, *options = mount[2].split(", ")
            yield mount[1], FileSystem(kind, frozenset(options))
