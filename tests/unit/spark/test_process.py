"""The embedded Spark of a process, which the commands that run at the same time share."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from dbt.adapters.exceptions.connection import FailedToConnectError

from dbt.adapters.openmirroring.spark.embedded import start as embedded
from dbt.adapters.openmirroring.spark.embedded.lease import SparkInUseError
from dbt.adapters.openmirroring.spark.embedded.start import ProcessSpark, SparkSetup

SHOP = SparkSetup(Path("shop"), {})


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
    """Spark's starts."""

    def __init__(self, *errors: FailedToConnectError) -> None:
        self.started: list[Spark] = []
        self.calls = 0
        self._errors = list(errors)

    def start(self, setup: SparkSetup) -> Spark:
        self.calls += 1
        if self._errors:
            raise self._errors.pop(0)
        self.started.append(Spark(setup))
        return self.started[-1]


@pytest.fixture
def starts(monkeypatch: pytest.MonkeyPatch) -> Starts:
    created = Starts()
    monkeypatch.setattr(embedded, "start", created.start)
    return created


@pytest.fixture
def in_use(monkeypatch: pytest.MonkeyPatch) -> Starts:
    """The first start fails."""
    created = Starts(SparkInUseError("in use"))
    monkeypatch.setattr(embedded, "start", created.start)
    return created


def test_a_command_gets_the_spark_that_has_started_in_the_background(starts: Starts) -> None:
    spark, command = ProcessSpark(), Command()

    spark.start_early(command, SHOP)

    assert spark.session(command, SHOP) is starts.started[0]  # type: ignore[comparison-overlap]
    assert starts.calls == 1


def test_a_spark_is_given_back_when_its_command_ends_and_the_next_one_gets_another(
    starts: Starts,
) -> None:
    spark, command, later = ProcessSpark(), Command(), Command()
    spark.session(command, SHOP)

    spark.release(command)

    assert starts.started[0].is_given_back
    assert not spark.is_running
    spark.session(later, SparkSetup(Path("other"), {}))
    assert starts.calls == 2


def test_commands_that_run_at_the_same_time_share_a_spark_until_the_last_one_ends(
    starts: Starts,
) -> None:
    spark, command, other = ProcessSpark(), Command(), Command()
    spark.session(command, SHOP)
    spark.session(other, SHOP)

    spark.release(command)
    assert not starts.started[0].is_given_back
    spark.release(other)

    assert starts.calls == 1
    assert starts.started[0].is_given_back


def test_a_command_of_another_project_is_refused_while_one_runs(starts: Starts) -> None:
    spark, command = ProcessSpark(), Command()
    spark.session(command, SHOP)

    with pytest.raises(FailedToConnectError, match="a process can have one Spark at a time"):
        spark.session(Command(), SparkSetup(Path("other"), {}))

    assert not starts.started[0].is_given_back


def test_a_spark_that_user_code_has_stopped_is_started_again(starts: Starts) -> None:
    spark, command = ProcessSpark(), Command()
    spark.session(command, SHOP)
    starts.started[0].is_running = False

    spark.session(command, SHOP)

    assert starts.started[0].is_given_back
    assert not starts.started[1].is_given_back


def test_a_command_fails_with_the_error_of_the_start_in_the_background(in_use: Starts) -> None:
    spark, command = ProcessSpark(), Command()
    spark.start_early(command, SHOP)

    with pytest.raises(SparkInUseError, match="in use"):
        spark.session(command, SHOP)

    assert in_use.calls == 1, "nobody waits twice for another process"


def test_a_command_does_not_fail_with_the_error_of_an_earlier_one(in_use: Starts) -> None:
    spark, command = ProcessSpark(), Command()
    spark.start_early(command, SHOP)
    while not in_use.calls:
        time.sleep(0.01)
    assert not spark.is_running  # waits until the start has failed
    spark.release(command)  # the command has failed before it used Spark

    assert spark.session(Command(), SHOP)


def test_a_command_that_fails_at_once_does_not_wait_for_spark_which_is_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark, command = ProcessSpark(), Command()
    is_starting, is_released, found = threading.Event(), threading.Event(), Spark(SHOP)

    def start(_: SparkSetup) -> Spark:
        is_starting.set()
        assert is_released.wait(60), "the end of the command waits for this start"
        return found

    monkeypatch.setattr(embedded, "start", start)
    spark.start_early(command, SHOP)
    assert is_starting.wait(60)

    spark.release(command)
    is_released.set()

    deadline = time.monotonic() + 60
    while not found.is_given_back:
        assert time.monotonic() < deadline
        time.sleep(0.01)
