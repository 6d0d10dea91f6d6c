"""A table of a landing zone is held by one run, also where the landing zone is on a server.

What the server does is up to the system. Here a folder of this machine stands for one of a server.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    LandingZoneUnavailableError,
    NotPlainError,
)
from dbt.adapters.openmirroring.landing_zone.inventory import table_folders
from dbt.adapters.openmirroring.landing_zone.local import storage as local
from dbt.adapters.openmirroring.landing_zone.local.storage import (
    LOCKS_STAY_HERE,
    LocalStorage,
    shared_mount,
)

FOLDER = "_scratchPad/sales.orders"
LOCK = "_scratchPad/_locks/sales.orders"

# as Linux writes them
MOUNTS = """\
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard,errors=remount-ro
61 27 0:52 / /mnt/nfs4 rw,relatime shared:2 - nfs4 s:/ rw,vers=4.2,hard,proto=tcp,local_lock=none
62 27 0:53 / /mnt/nfs3 rw,relatime - nfs s:/ rw,vers=3,nolock,proto=tcp,local_lock=all
63 27 0:54 / /mnt/smb rw - cifs //s/share rw,vers=3.1.1,cache=strict,serverino
64 27 0:55 / /mnt/smb\\0402 rw - cifs //s/share rw,vers=3.1.1,nobrl
65 27 0:56 / /run rw,nosuid shared:3 master:1 - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("device", "locks_stay_here"),
    [
        pytest.param((0, 52), set(), id="NFS 4"),
        pytest.param((0, 53), {"nolock", "local_lock=all"}, id="NFS 3 without locks"),
        pytest.param((0, 54), set(), id="SMB"),
        pytest.param((0, 55), {"nobrl"}, id="SMB without locks"),
        pytest.param((254, 0), None, id="disk"),
        pytest.param((0, 56), None, id="tmpfs"),
        pytest.param((9, 9), None, id="unknown"),
    ],
)
def test_a_mount_tells_whether_others_use_it_and_whether_they_see_locks(
    tmp_path: Path, device: tuple[int, int], locks_stay_here: set[str] | None
) -> None:
    (tmp_path / "mounts").write_text(MOUNTS)

    options = shared_mount(os.makedev(*device), tmp_path / "mounts")

    assert (options if options is None else options & LOCKS_STAY_HERE) == locks_stay_here
    assert shared_mount(os.makedev(*device), tmp_path / "not Linux") is None


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStorage:
    """Given a landing zone on a server."""
    options = frozenset(["rw", "local_lock=none"])
    monkeypatch.setattr(local, "shared_mount", lambda device: options)
    return LocalStorage(tmp_path / "LandingZone")


def test_on_a_server_a_folder_is_held_by_one_until_its_process_ends(shared: LocalStorage) -> None:
    held, tell = os.pipe()
    child = os.fork()
    if child == 0:
        lock = shared.lock(FOLDER)
        lock.__enter__()
        os.write(tell, b"held")
        signal.pause()
    assert os.read(held, 4) == b"held"
    with pytest.raises(ConcurrentPublicationError), shared.lock(FOLDER):
        pass
    with shared.lock("_scratchPad/sales.items"):
        pass

    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)

    for _ in range(2):
        with shared.lock(FOLDER):
            assert shared.list(FOLDER) == []


def test_on_a_server_only_a_file_stays_which_is_no_table(shared: LocalStorage) -> None:
    with shared.lock(FOLDER):
        pass

    assert [entry.name for entry in shared.list("_scratchPad")] == ["_locks"]
    assert shared.read(LOCK) == b""
    assert table_folders(shared) == set()


@pytest.mark.parametrize("option", ["nolock", "local_lock=flock", "local_lock=all", "nobrl"])
def test_a_mount_whose_locks_do_not_reach_the_server_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    monkeypatch.setattr(local, "shared_mount", lambda device: frozenset([option]))

    with (
        pytest.raises(LandingZoneUnavailableError, match=f"`{option}`.*Mount it without"),
        LocalStorage(tmp_path).lock(FOLDER),
    ):
        pass


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_server_without_locks_is_refused(
    shared: LocalStorage, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)

    with (
        pytest.raises(LandingZoneUnavailableError, match=r"does not support locks.*NFS 4"),
        shared.lock(FOLDER),
    ):
        pass


def test_a_lock_that_is_a_link_is_refused(shared: LocalStorage, tmp_path: Path) -> None:
    path = tmp_path / "LandingZone" / LOCK
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "outside")

    with pytest.raises(NotPlainError), shared.lock(FOLDER):
        pass

    assert not (tmp_path / "outside").exists()
