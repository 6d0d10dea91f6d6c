"""How probes are asked: side by side, none stops another one, and all that was made is removed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

import tests.workspace.pages  # noqa: F401 - all probes
from tests.fabric_server import Clock
from tests.workspace.probe import PROBES, Probe, Saw, Steps, Until, saw, with_those_before
from tests.workspace.run import Interruptions, Undo, ask


def probe(number: int, steps: Callable[[Any], Steps | Saw], **more: Any) -> Probe:
    return Probe(number, "landing", "", "", "", "", "", steps, **more)


def answers(*probes: Probe) -> dict[int, Saw]:
    """Ask probes, and return what they saw, in the order of their ends."""
    found: dict[int, Saw] = {}
    place: Any = SimpleNamespace(clock=Clock(), tell=str)
    ask(probes, place, lambda asked, seen, _: found.update({asked.number: seen}))
    return found


def waiting(seconds: float, happens: Callable[[], bool] = bool) -> Callable[[Any], Steps]:
    def steps(_: Any) -> Steps:
        happened = yield Until(happens, seconds)
        return saw(happened)

    return steps


@pytest.fixture
def terminal() -> Iterator[None]:
    """Ctrl-C interrupts, which a shell lets processes in the background ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_probes_wait_side_by_side_and_those_of_a_lane_one_after_another() -> None:
    order = answers(
        probe(1, waiting(60), lane="dbt"),
        probe(2, waiting(10), lane="dbt"),
        probe(3, waiting(30)),
        probe(4, lambda _: saw(True), is_last=True),
    )

    assert list(order) == [3, 1, 2, 4]


def test_a_probe_that_goes_on_with_what_others_have_made_is_asked_after_them() -> None:
    assert with_those_before([49, 20]) == {40, 49, 20}
    assert with_those_before([44]) == {40, 41, 42, 43, 44}
    for number, each in PROBES.items():
        if each.after:
            assert each.after < number
            assert PROBES[each.after].lane == each.lane != ""


def test_a_probe_goes_on_as_soon_as_what_it_waits_for_has_happened() -> None:
    looks = iter([False, False, True])

    assert answers(probe(1, waiting(600, lambda: next(looks))))[1].answer == "as assumed"


def test_a_probe_that_fails_says_why_and_stops_no_other_one() -> None:
    def fails_at_once(_: Any) -> Saw:
        raise ValueError("no luck")

    def fails_later(_: Any) -> Steps:
        yield Until(lambda: True, 1)
        raise OSError("no luck either")

    def fails_to_look() -> bool:
        raise RuntimeError("nothing to see")

    found = answers(
        probe(1, fails_at_once),
        probe(2, fails_later),
        probe(3, waiting(10, fails_to_look)),
        probe(4, waiting(10, lambda: True)),
    )

    assert {number: seen.said for number, seen in found.items()} == {
        1: ("no luck",),
        2: ("no luck either",),
        3: ("nothing to see",),
        4: (),
    }
    assert found[4].answer == "as assumed"


def test_an_answer_that_a_result_may_not_have_is_a_failure() -> None:
    recorded: list[Saw] = []

    def record(_: Probe, seen: Saw, __: float) -> None:
        if seen.answer != "failed":
            raise ValueError("not in a result")
        recorded.append(seen)

    place: Any = SimpleNamespace(clock=Clock(), tell=str)
    ask([probe(1, lambda _: saw(True))], place, record)

    assert [seen.said for seen in recorded] == [("not in a result",)]


def test_everything_is_removed_in_reverse_though_one_thing_cannot_be() -> None:
    removed: list[str] = []
    told: list[str] = []
    undo = Undo()

    def refuse() -> None:
        raise ValueError("403")

    undo.add("a database", "by hand", lambda: removed.append("a database"))
    early = undo.add("a session", "by hand", lambda: removed.append("a session"))
    undo.add("a process", "kill 1", refuse)
    undo.add("a folder", "by hand", lambda: removed.append("a folder"))
    early()

    left = undo.all(told.append, kept=["a folder"])

    assert removed == ["a session", "a database"]
    assert [(each.what, each.how) for each in left] == [("a process", "kill 1")]
    assert told == ["a process was not removed: 403"]


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_interruption_stops_the_probes_and_no_other_one_does_anything(
    number: signal.Signals,
) -> None:
    told: list[str] = []
    interruptions = Interruptions(told.append)
    stopped = False

    with interruptions.handled():
        try:
            with interruptions.stop():
                os.kill(os.getpid(), number)
        except KeyboardInterrupt:
            stopped = True
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGINT)

    assert stopped
    assert told == ["removing what this run has made: please wait"] * 2
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
