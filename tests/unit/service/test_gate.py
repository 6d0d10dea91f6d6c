"""The requests of a command to one host."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.rest import azure_requests
from dbt.adapters.openmirroring.rest.azure_requests import Gate, gate_to


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(azure_requests, "time", made)
    return made


@pytest.mark.parametrize("seconds", [0, 0.1, 0.45, 3])
def test_requests_stay_within_the_budget_of_any_minute(clock: Clock, seconds: float) -> None:
    gate, sent = Gate(150), []
    for _ in range(600):
        gate.wait(clock.sleep)
        sent.append(clock.now)
        clock.now += seconds

    most = max(sum(begin <= each < begin + 60 for each in sent) for begin in sent)

    assert most <= 150
    assert most > 100 or seconds == 3


def test_a_few_requests_at_once_do_not_wait(clock: Clock) -> None:
    gate = Gate(150)
    for _ in range(30):
        gate.wait(clock.sleep)

    assert clock.now == 1000


def test_requests_of_all_threads_wait_while_one_of_them_was_asked_to(clock: Clock) -> None:
    gate = Gate()

    with gate.closed(7):
        gate.wait(clock.sleep)
        assert clock.now == 1007

    gate.wait(clock.sleep)
    assert clock.now == 1007


def test_only_fabrics_own_hosts_have_a_budget(clock: Clock) -> None:
    for host, waits in (
        ("api.fabric.microsoft.com", True),
        ("ws.z11.w.api.fabric.microsoft.com", True),
        ("livy.example.com", False),
    ):
        began = clock.now
        assert gate_to(host) is gate_to(host)
        for _ in range(200):
            gate_to(host).wait(clock.sleep)
        assert (clock.now > began) is waits
