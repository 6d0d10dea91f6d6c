"""The embedded Spark of a process, which the commands that run at the same time share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dbt.adapters.exceptions.connection import FailedToConnectError

from dbt.adapters.openmirroring.spark.embedded import start as embedded
from dbt.adapters.openmirroring.spark.embedded.jvm import SparkInUseError
from dbt.adapters.openmirroring.spark.embedded.start import ProcessSpark, SparkSetup

SHOP, OTHER = SparkSetup(Path("shop"), {}), SparkSetup(Path("other"), {})


class Command:
    """A command of dbt."""


class Spark:
    """One that runs until somebody stops it."""

    def __init__(self, setup: SparkSetup) -> None:
        self.setup = setup
        self.session = self
        self.is_running = True
        self.is_given_back = False

    def give_back(self) -> None:
        self.is_given_back = True


class Starts:
    """Spark's starts. Those of `errors` fail."""

    def __init__(self) -> None:
        self.started: list[Spark] = []
        self.calls = 0
        self.errors: list[FailedToConnectError] = []
        self.may_end = threading.Event()
        self.may_end.set()

    def start(self, setup: SparkSetup) -> Spark:
        self.calls += 1
        assert self.may_end.wait(60), "the end of the command waits for this start"
        if self.errors:
            raise self.errors.pop()
        self.started.append(Spark(setup))
        return self.started[-1]


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    created = Starts()
    monkeypatch.setattr(embedded, "start", created.start)
    return created


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_command_gets_the_spark_that_has_started_in_the_background(starts: Starts) -> None:
    spark, command = ProcessSpark(), Command()

    spark.start_early(command, SHOP)

    assert spark.session(command, SHOP) is starts.started[0]  # type: ignore[comparison-overlap]
    assert starts.calls == 1


def test_commands_at_the_same_time_share_a_spark_until_the_last_one_ends(starts: Starts) -> None:
    spark, command, other = ProcessSpark(), Command(), Command()
    spark.session(command, SHOP)
    spark.session(other, SHOP)
    with pytest.raises(FailedToConnectError, match="a process can have one Spark at a time"):
        spark.session(Command(), OTHER)

    spark.release(command)
    assert not starts.started[0].is_given_back
    spark.release(other)

    assert starts.calls == 1
    assert starts.started[0].is_given_back
    assert not spark.is_running
    spark.session(Command(), OTHER)
    assert starts.calls == 2


def test_a_spark_that_user_code_has_stopped_is_started_again(starts: Starts) -> None:
    spark, command = ProcessSpark(), Command()
    spark.session(command, SHOP)
    starts.started[0].is_running = False

    spark.session(command, SHOP)

    assert starts.started[0].is_given_back
    assert not starts.started[1].is_given_back


def test_a_command_fails_with_the_error_of_the_start_in_the_background(starts: Starts) -> None:
    starts.errors.append(SparkInUseError("in use"))
    spark, command = ProcessSpark(), Command()
    spark.start_early(command, SHOP)

    with pytest.raises(SparkInUseError, match="in use"):
        spark.session(command, SHOP)

    assert starts.calls == 1, "nobody waits twice for another process"


def test_a_command_does_not_fail_with_the_error_of_an_earlier_one(starts: Starts) -> None:
    starts.errors.append(SparkInUseError("in use"))
    spark, command = ProcessSpark(), Command()
    spark.start_early(command, SHOP)
    wait_until(lambda: starts.calls)
    assert not spark.is_running  # waits until the start has failed
    spark.release(command)  # the command has failed before it used Spark

    assert spark.session(Command(), SHOP)


def test_a_command_that_fails_at_once_does_not_wait_for_spark_which_is_given_back(
    starts: Starts,
) -> None:
    spark, command = ProcessSpark(), Command()
    starts.may_end.clear()
    spark.start_early(command, SHOP)
    wait_until(lambda: starts.calls)

    spark.release(command)
    starts.may_end.set()

    wait_until(lambda: starts.started and starts.started[0].is_given_back)
