from pathlib import Path

import pytest

from dbt.adapters.openmirroring.landing_zone.local import LocalStorage
from dbt.adapters.openmirroring.landing_zone.storage import Storage


@pytest.fixture(params=["local"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """Every kind of landing zone: the tests of the protocol hold for all of them."""
    return LocalStorage(tmp_path / "LandingZone")
