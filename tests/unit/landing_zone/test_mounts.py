"""Which file system a landing zone is on, in the words of each system."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.openmirroring.landing_zone.local import mounts
from dbt.adapters.openmirroring.landing_zone.local.mounts import (
    LOCAL,
    LOCKS_STAY_HERE,
    SERVERS,
    FileSystem,
    file_system,
    mounted,
    mounts_of_linux,
    mounts_of_macos,
)

# machines and containers, each with the lines of its /proc/self/mountinfo
LINUX = {
    "server": """\
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard,errors=remount-ro
61 27 0:52 / /nfs4 rw,relatime shared:2 - nfs4 s:/ rw,vers=4.2,hard,proto=tcp,local_lock=none
62 27 0:53 / /nfs3 rw,relatime - nfs s:/ rw,vers=3,nolock,proto=tcp,local_lock=all
63 27 0:54 / /smb rw - cifs //s/share rw,vers=3.1.1,cache=strict,serverino
64 27 0:55 / /smb\\0402 rw - cifs //s/share rw,vers=3.1.1,nobrl
65 27 0:56 / /run rw,nosuid shared:3 master:1 - tmpfs tmpfs rw
66 27 0:57 / /home rw - autofs auto.home rw,fd=7
67 66 0:58 / /home/ann rw - autofs auto.home rw,fd=7
68 67 0:59 / /home/ann rw - nfs4 s:/ann rw,vers=4.2
70 27 0:61 / /ssh rw,nosuid,nodev - fuse.sshfs ann@s:/data rw,user_id=1000
71 27 0:62 / /bucket rw - fuse.s3fs s3fs rw,allow_other
72 27 0:63 / /gluster rw - fuse.glusterfs s:/v rw,default_permissions
73 27 0:64 / /ceph rw - ceph 10.0.0.1:6789:/ rw,acl
74 27 0:65 / /lustre rw - lustre 10.0.0.1@tcp:/l rw,localflock
75 27 0:66 / /vm rw - virtiofs share rw
76 27 0:67 / /box rw - vboxsf share rw,iocharset=utf8
77 27 0:68 / /noname rw - fuse  rw
78 27 0:69 / /odd\x0cname\x85 rw - fuse x\u2028y rw
79 27 8:17 / /usb rw - fuseblk /dev/sdb1 rw,user_id=0
""",
    "Btrfs": """\
28 1 0:23 /root / rw,relatime shared:1 - btrfs /dev/sda3 rw,subvol=/root
""",
    "Docker": """\
512 400 0:60 / / rw,relatime master:9 - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
520 512 254:1 /volumes/v /data rw,relatime - xfs /dev/vdb rw
""",
    "Podman": "600 500 0:70 / / rw,nodev - fuse.fuse-overlayfs fuse-overlayfs rw,user_id=0\n",
    "WSL": """\
70 50 8:48 / / rw,relatime - ext4 /dev/sdd rw,discard
90 70 0:80 / /mnt/c rw,noatime - 9p C:\\134 rw,aname=drvfs;path=C:\\134,trans=fd,rfd=5
""",
    "nothing": "",
}

MACOS = """\
/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)
/dev/disk3s5 on /System/Volumes/Data (apfs, local, journaled, nobrowse)
//ann@s/share on /Volumes/Share (1) (smbfs, nodev, nosuid, mounted by ann)
ann@s:/data on /Volumes/Data (macfuse, nodev, nosuid, synchronous, mounted by ann)
"""


def trust(found: FileSystem) -> str:
    """How far locks on a file system are trusted."""
    if found.options & LOCKS_STAY_HERE:
        return "refused"
    names = {"local": LOCAL, "server": SERVERS}
    return next((name for name, kinds in names.items() if found.kind in kinds), found.kind)


@pytest.mark.parametrize(
    ("machine", "path", "expected"),
    [
        ("server", "/srv/zone", "local"),
        ("server", "/run/zone", "local"),
        ("server", "/usb/zone", "local"),
        ("server", "/nfs4", "server"),
        ("server", "/nfs4/zone", "server"),
        ("server", "/nfs41/zone", "local"),
        ("server", "/nfs3/zone", "refused"),
        ("server", "/smb/zone", "server"),
        ("server", "/smb 2/zone", "refused"),
        ("server", "/home/ann/zone", "server"),
        ("server", "/ssh/zone", "fuse.sshfs"),
        ("server", "/bucket/zone", "fuse.s3fs"),
        ("server", "/gluster/zone", "fuse.glusterfs"),
        ("server", "/ceph/zone", "ceph"),
        ("server", "/lustre/zone", "lustre"),
        ("server", "/vm/zone", "virtiofs"),
        ("server", "/box/zone", "vboxsf"),
        ("server", "/noname/zone", "fuse"),
        ("server", "/odd\x0cname\x85/zone", "fuse"),
        ("Btrfs", "/home/ann/zone", "local"),
        ("Docker", "/app/zone", "local"),
        ("Docker", "/data/zone", "local"),
        ("Podman", "/app/zone", "local"),
        ("WSL", "/home/ann/zone", "local"),
        ("WSL", "/mnt/c/Users/ann/zone", "9p"),
        ("nothing", "/zone", "unknown"),
    ],
)
def test_linux_tells_how_far_the_locks_of_a_folder_are_trusted(
    machine: str, path: str, expected: str
) -> None:
    assert trust(mounted(path, mounts_of_linux(LINUX[machine]))) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/Users/ann/zone", "local"),
        ("/Volumes/Share (1)/zone", "server"),
        ("/Volumes/Data/zone", "macfuse"),
    ],
)
def test_macos_tells_how_far_the_locks_of_a_folder_are_trusted(path: str, expected: str) -> None:
    assert trust(mounted(path, mounts_of_macos(MACOS))) == expected


def test_the_disk_of_this_machine_is_trusted(tmp_path: Path) -> None:
    assert trust(file_system(tmp_path / "not there yet")) == "local"


@pytest.mark.skipif("sys.platform != 'linux'", reason="other systems have no /proc")
def test_a_process_without_proc_does_not_know_its_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mounts, "MOUNTS", tmp_path / "mountinfo")

    assert trust(file_system(tmp_path)) == "unknown"
