"""The embedded Spark of a process, which the commands that run at the same time share."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dbt.adapters.exceptions.connection import FailedToConnectError

from dbt.adapters.openmirroring.spark.embedded import start as embedded
from dbt.adapters.openmirroring.spark.embedded.jvm import Lease, SparkInUseError
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


@pytest.fixture
def ctrl_c() -> Iterator[Callable[[str], None]]:
    """Return a function that presses Ctrl-C once the main thread waits in a function."""
    # a shell lets what it runs in the background ignore it
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    main, threads = threading.main_thread().ident, list[threading.Thread]()

    def waits_in(function: str) -> bool:
        frame = sys._current_frames()[main or 0]
        return frame.f_code.co_name == function

    def press(function: str) -> None:
        wait_until(lambda: waits_in(function))
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

    def later(function: str) -> None:
        threads.append(threading.Thread(target=press, args=[function]))
        threads[-1].start()

    yield later
    for thread in threads:
        thread.join()
    signal.signal(signal.SIGINT, former)


@pytest.mark.parametrize("wait", ["wait_for_start", "session"])
def test_ctrl_c_ends_a_command_that_waits_for_spark_at_once_and_the_next_one_has_it(
    starts: Starts, wait: str, ctrl_c: Callable[[str], None]
) -> None:
    spark, command = ProcessSpark(), Command()
    starts.may_end.clear()
    spark.start_early(command, SHOP)
    wait_until(lambda: starts.calls)
    ctrl_c(wait)

    with pytest.raises(FailedToConnectError, match="was interrupted while it started"):
        spark.session(command, SHOP) if wait == "session" else spark.wait_for_start(command)

    spark.release(command)
    starts.may_end.set()
    assert spark.session(Command(), SHOP)


def test_a_command_waits_only_for_the_spark_that_it_has_begun_to_start(starts: Starts) -> None:
    spark, command = ProcessSpark(), Command()
    starts.may_end.clear()
    spark.start_early(command, SHOP)
    wait_until(lambda: starts.calls)

    spark.wait_for_start(Command())

    starts.may_end.set()
    spark.wait_for_start(command)
    assert starts.started


def test_a_start_that_is_interrupted_ends_its_jvm_for_which_a_later_one_would_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, keeper = socket.socketpair()
    monkeypatch.setattr(embedded, "find_java_home", lambda _: tmp_path)
    monkeypatch.setattr(embedded, "take", lambda *_: Lease(ours))

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded, "_started", interrupted)
    # the Spark of other tests in this process stays
    monkeypatch.setattr(embedded, "_forget", lambda: None)

    with pytest.raises(KeyboardInterrupt):
        embedded.start(SparkSetup(tmp_path, {}))

    assert keeper.recv(1) == b"", "a keeper kills the JVM when the connection ends"
    keeper.close()
