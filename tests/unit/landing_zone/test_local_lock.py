"""A table of a landing zone is held by one run, until its process ends."""

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
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage

FOLDER = "_scratchPad/sales.orders"
LOCK = "_scratchPad/_locks/sales.orders"


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "LandingZone")


def test_a_folder_is_held_by_one_until_its_process_ends(storage: LocalStorage) -> None:
    held, tell = os.pipe()
    child = os.fork()
    if child == 0:
        lock = storage.lock(FOLDER)
        lock.__enter__()
        os.write(tell, b"held")
        signal.pause()
    try:
        assert os.read(held, 4) == b"held"
        with pytest.raises(ConcurrentPublicationError), storage.lock(FOLDER):
            pass
        with storage.lock("_scratchPad/sales.items"):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    for _ in range(2):
        with storage.lock(FOLDER):
            assert storage.list(FOLDER) == []


def test_the_file_of_a_lock_is_on_the_scratch_pad_and_no_table(storage: LocalStorage) -> None:
    with storage.lock(FOLDER):
        assert storage.read(LOCK) == b""
        assert table_folders(storage) == {TableFolder("sales", "orders")}

    assert storage.list("") == []


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS])
def test_a_mount_without_locks_is_refused(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)

    with (
        pytest.raises(LandingZoneUnavailableError, match=f"Cannot lock.*{os.strerror(number)}"),
        storage.lock(FOLDER),
    ):
        pass


def test_a_lock_that_is_a_link_is_refused(storage: LocalStorage, tmp_path: Path) -> None:
    path = tmp_path / "LandingZone" / LOCK
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "outside")

    with pytest.raises(NotPlainError), storage.lock(FOLDER):
        pass

    assert not (tmp_path / "outside").exists()
