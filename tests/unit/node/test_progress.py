"""The lines that a user sees while nodes take long."""

from __future__ import annotations

import io
import threading
from argparse import Namespace
from contextlib import suppress
from queue import Queue

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.dbt_core.flags import terminal
from dbt.adapters.openmirroring.node.progress import COMPARING, WRITING, Progress
from dbt.adapters.openmirroring.spark.session import Tasks


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(clock: Clock) -> Progress:
    return Progress(print, 10.0, clock)


@pytest.mark.parametrize(
    ("step", "tasks", "seconds", "lines"),
    [
        (COMPARING, lambda: (120, 1400), 34, ["orders: comparing, 120 of 1,400 tasks, 34 s"]),
        # where Spark does not report its tasks
        (WRITING, lambda: None, 10, ["orders: writing files, 10 s"]),
        (WRITING, lambda: (1, 2), 9, []),
    ],
)
def test_a_long_node_shows_its_step_its_tasks_and_its_seconds(
    progress: Progress, clock: Clock, step: str, tasks: Tasks, seconds: int, lines: list[str]
) -> None:
    with suppress(DbtRuntimeError), progress.node("orders", lambda: tasks):
        progress.show_step(step)
        clock.seconds = seconds

        assert progress.lines() == lines
        raise DbtRuntimeError("The SQL of the node fails")

    assert progress.lines() == []


def test_nodes_of_several_threads_have_a_line_each(progress: Progress, clock: Clock) -> None:
    is_running, may_end = threading.Event(), threading.Event()

    def run_customers() -> None:
        with progress.node("customers", lambda: lambda: None):
            progress.show_step(WRITING)
            is_running.set()
            may_end.wait()

    with progress.node("orders", lambda: lambda: (1, 2)):
        other = threading.Thread(target=run_customers)
        other.start()
        is_running.wait()
        progress.show_step(COMPARING)
        clock.seconds = 12
        lines = progress.lines()
        may_end.set()
        other.join()

    assert lines == ["orders: comparing, 1 of 2 tasks, 12 s", "customers: writing files, 12 s"]


def test_an_upload_is_reported_from_any_thread(progress: Progress, clock: Clock) -> None:
    with progress.node("orders", lambda: lambda: None):
        told = progress.uploads()
        assert told
        uploading = threading.Thread(target=told, args=(8 * 2**20, 1024 * 2**20))
        uploading.start()
        uploading.join()
        clock.seconds = 10

        assert progress.lines() == ["orders: uploading, 8 of 1,024 MB, 10 s"]


def test_lines_are_printed_again_and_again_while_a_node_runs(clock: Clock) -> None:
    shown: Queue[str] = Queue()
    progress = Progress(shown.put, 0.001, clock)

    for name in ("orders", "customers"):
        with progress.node(name, lambda: lambda: None):
            clock.seconds += 1

            lines = iter(shown.get, None)
            for _ in range(2):
                assert next(each for each in lines if name in each) == f"{name}: preparing, 1 s"


def test_spark_is_not_followed_where_nobody_looks() -> None:
    progress = Progress(None)

    with progress.node("orders", lambda: pytest.fail("Spark was asked")):
        progress.show_step(COMPARING)

        assert progress.lines() == []
        assert progress.uploads() is None


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "flags", "is_shown"),
    [
        (Terminal, {}, True),
        (io.StringIO, {}, False),
        (Terminal, {"QUIET": True}, False),
        (Terminal, {"LOG_FORMAT": "json"}, False),
        (Terminal, {"LOG_LEVEL": "warn"}, False),
    ],
    ids=["terminal", "no terminal", "--quiet", "--log-format json", "--log-level warn"],
)
def test_lines_go_to_a_terminal_where_somebody_looks(
    monkeypatch: pytest.MonkeyPatch,
    stream: type[io.StringIO],
    flags: dict[str, object],
    is_shown: bool,
) -> None:
    shown = stream()
    monkeypatch.setattr("sys.stderr", shown)
    given = {"QUIET": False, "LOG_FORMAT": "default", "LOG_LEVEL": "info", **flags}
    monkeypatch.setattr("dbt.flags.GLOBAL_FLAGS", Namespace(**given))

    show = terminal()
    if show:
        show("orders: comparing, 34 s")

    assert shown.getvalue() == ("orders: comparing, 34 s\n" if is_shown else "")
