from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.landing_zone.local import LocalStorage
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from tests.onelake_server import OneLakeServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OneLakeServer]:
    """OneLake, with nothing in its landing zone; whatever must not happen there fails the test."""
    started = OneLakeServer()
    started.connect(monkeypatch)
    yield started
    assert not started.violations


@pytest.fixture(params=["local", "onelake"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Every kind of landing zone: the tests of the protocol hold for all of them."""
    if request.param == "local":
        return LocalStorage(tmp_path / "LandingZone")
    server: OneLakeServer = request.getfixturevalue("server")
    return server.storage()
