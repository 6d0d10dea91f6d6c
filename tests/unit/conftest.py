from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.disk.calls import rename_to_new
from dbt.adapters.openmirroring.landing_zone.local import by_path as windows
from dbt.adapters.openmirroring.landing_zone.local import storage as local_storage
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from tests.onelake_server import OneLakeServer

# what Windows lacks: locks of folders, mounts of Linux, a file system that loses power, and the
# embedded Spark and the replicator
collect_ignore = (
    [
        *("landing_zone/test_local_lock.py", "landing_zone/test_power_loss.py", "replicator"),
        *("spark/test_embedded.py", "spark/test_inherited.py", "spark/test_java.py"),
        *("spark/test_keeper.py", "spark/test_lease.py"),
    ]
    if sys.platform == "win32"
    else []
)


@pytest.fixture(params=["local", "onelake"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Every kind of landing zone: the tests of the protocol hold for all of them."""
    if request.param == "local":
        return LocalStorage(tmp_path / "LandingZone")
    server: OneLakeServer = request.getfixturevalue("server")
    return server.storage()


@pytest.fixture
def by_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Local landing zones are used as on Windows, which has no open folders."""
    for name in ("Folders", "FolderLock"):
        monkeypatch.setattr(local_storage, name, getattr(windows, name))
    if sys.platform != "win32":
        monkeypatch.setattr(Path, "rename", rename_like_windows)


def rename_like_windows(source: Path, target: Path) -> None:
    """Rename a file, but never replace another one. Both in one step."""
    folder = os.open(source.parent, os.O_DIRECTORY), os.open(target.parent, os.O_DIRECTORY)
    try:
        rename_to_new(source.name, folder[0], target.name, folder[1])
    finally:
        for descriptor in folder:
            os.close(descriptor)
