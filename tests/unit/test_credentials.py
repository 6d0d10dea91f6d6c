"""The landing zone in the profile; for its authentication see `test_authentication.py`."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtConfigError

from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials

ONELAKE = "https://onelake.dfs.fabric.microsoft.com/shop/m.MirroredDatabase/Files/LandingZone"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"landing_zone": None}, "Must specify `landing_zone`"),
        ({"landing_zone": ONELAKE.replace("https", "http")}, "neither a local folder nor"),
        ({"landing_zone": ONELAKE.replace("microsoft", "example")}, "not one of OneLake's"),
        ({"landing_zone": ONELAKE, "replicate": True}, "a landing zone on this machine"),
        ({"landing_zone": "landing", "staging_location": "staging"}, "in OneLake only"),
        ({"landing_zone": ONELAKE, "staging_location": "nowhere://x"}, "cannot be read here"),
        ({"landing_zone": "landing", "replicate": True}, "ends in Files/LandingZone"),
    ],
)
def test_a_landing_zone_that_cannot_be_used_is_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(DbtConfigError, match=message):
        OpenMirroringCredentials(schema="analytics", **settings)


def test_what_debug_shows_of_onelake_is_who_asks_for_tokens() -> None:
    shown = dict(
        OpenMirroringCredentials(
            schema="analytics",
            landing_zone=ONELAKE,
            authentication="service_principal",
            tenant_id="tenant",
            client_id="client",
            client_secret="s3cret",
        ).connection_info()
    )

    assert shown["landing_zone"] == ONELAKE
    assert shown["authentication"] == "service_principal"
    assert (shown["tenant_id"], shown["client_id"]) == ("tenant", "client")
    assert "s3cret" not in str(shown)
