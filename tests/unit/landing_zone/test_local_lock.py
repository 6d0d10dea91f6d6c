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
from dbt.adapters.openmirroring.landing_zone.local.mounts import FileSystem
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage

FOLDER = "_scratchPad/sales.orders"
LOCK = "_scratchPad/_locks/sales.orders"


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LocalStorage:
    """Given a landing zone on a server."""
    found = FileSystem("nfs4", frozenset(["rw", "local_lock=none"]))
    monkeypatch.setattr(local, "file_system", lambda path: found)
    return LocalStorage(tmp_path / "LandingZone", pytest.fail)


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
    found = FileSystem("nfs", frozenset([option]))
    monkeypatch.setattr(local, "file_system", lambda path: found)

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


def test_a_file_system_that_is_not_known_is_used_by_one_run_with_one_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "file_system", lambda path: FileSystem("fuse.sshfs"))
    told: list[str] = []
    storage = LocalStorage(tmp_path, told.append)

    for _ in range(2):
        with storage.lock(FOLDER):
            other = LocalStorage(tmp_path)
            with pytest.raises(ConcurrentPublicationError), other.lock(FOLDER):
                pass

    (warning,) = told
    assert warning.startswith(f"{tmp_path} is on a file system of the type 'fuse.sshfs'.")
    assert "Publish to it from one machine only" in warning
    assert storage.read(LOCK) == b"", "another machine may not notice that it is gone"


def test_a_lock_that_is_a_link_is_refused(shared: LocalStorage, tmp_path: Path) -> None:
    path = tmp_path / "LandingZone" / LOCK
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "outside")

    with pytest.raises(NotPlainError), shared.lock(FOLDER):
        pass

    assert not (tmp_path / "outside").exists()
