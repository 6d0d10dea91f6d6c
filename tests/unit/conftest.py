from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.rest.azure_requests import gate_to
from tests.onelake_server import OneLakeServer

# what Windows lacks: locks of folders, FIFOs, loss of power, and a keeper
collect_ignore = (
    [
        *("landing_zone/test_local_lock.py", "landing_zone/test_power_loss.py"),
        "replicator/test_hostile_tables.py",
        *("spark/test_embedded.py", "spark/test_inherited.py", "spark/test_java.py"),
        *("spark/test_keeper.py", "workspace"),
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


@pytest.fixture(autouse=True)
def _requests_of_other_tests_do_not_count() -> None:
    gate_to.cache_clear()
