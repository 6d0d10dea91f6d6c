"""After any fault of any request to OneLake, the next run ends with mirror and model equal."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest

from dbt.adapters.openmirroring.landing_zone.onelake import claim as onelake_claim
from tests.functional.faults.test_faults import SCENARIOS, assert_right
from tests.functional.project import Project
from tests.functional.test_onelake import assert_mirrored
from tests.onelake_server import OneLakeServer

# faults of a request, and how often each happens
GONE = "the network is gone"
REQUEST_FAULTS: dict[str, tuple[str, int]] = {
    GONE: ("reset", 10**6),
    "storm of 429": ("throttled", 6),
    "answer is lost": ("lost", 1),
    "answer is lost behind a 503": ("lost 503", 1),
}


@pytest.mark.parametrize("kind", REQUEST_FAULTS)
@pytest.mark.parametrize("name", SCENARIOS)
def test_mirror_and_model_come_together_after_any_failure_of_any_request(
    onelake: Project,
    server: OneLakeServer,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    kind: str,
    record_property: Callable[[str, object], None],
) -> None:
    # requests have the same number in each run
    monkeypatch.setattr(onelake_claim, "RENEWAL", 600)
    scenario = SCENARIOS[name]()
    scenario.begin(onelake)
    for n in count(1):
        scenario.change(onelake, n)
        what, times = REQUEST_FAULTS[kind]
        fault = server.fail(what, after=n - 1, times=times)
        succeeded = onelake.dbt(scenario.command)
        happened = fault.times < times
        server.faults.clear()
        onelake.let_claims_expire()

        assert succeeded or kind == GONE
        # the next run releases a folder that this one could not release
        if kind == GONE:
            onelake.run(command=scenario.command)
        assert_right(onelake, scenario, n)
        assert_mirrored(onelake, scenario.table(n))
        if not happened:
            break
    assert n > 20
    record_property(f"{name}: {kind}", n - 1)
