"""The lines that a user sees while nodes take long."""

from __future__ import annotations

import io
import threading
from argparse import Namespace
from queue import Queue

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.dbt_core.flags import terminal
from dbt.adapters.openmirroring.node.progress import COMPARING, WRITING, Progress


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


def test_a_long_node_shows_its_step_its_tasks_and_its_seconds(
    progress: Progress, clock: Clock
) -> None:
    with progress.node("orders", lambda: lambda: (120, 1400)):
        progress.show_step(COMPARING)
        clock.seconds = 34

        assert progress.lines() == ["orders: comparing, 120 of 1,400 tasks, 34 s"]


def test_step_and_seconds_are_shown_where_spark_does_not_report_its_tasks(
    progress: Progress, clock: Clock
) -> None:
    with progress.node("orders", lambda: lambda: None):
        progress.show_step(WRITING)
        clock.seconds = 10

        assert progress.lines() == ["orders: writing files, 10 s"]


def test_a_short_node_shows_nothing(progress: Progress, clock: Clock) -> None:
    with progress.node("orders", lambda: lambda: (1, 2)):
        clock.seconds = 9

        assert progress.lines() == []


def test_a_node_that_has_ended_shows_nothing(progress: Progress, clock: Clock) -> None:
    with pytest.raises(DbtRuntimeError), progress.node("orders", lambda: lambda: None):
        raise DbtRuntimeError("The SQL of the node fails")
    clock.seconds = 20

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


FLAGS = {"QUIET": False, "LOG_FORMAT": "default", "LOG_LEVEL": "info"}


def test_lines_go_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    monkeypatch.setattr("dbt.flags.GLOBAL_FLAGS", Namespace(**FLAGS))

    show = terminal()
    assert show
    show("orders: comparing, 34 s")

    assert shown.getvalue() == "orders: comparing, 34 s\n"


@pytest.mark.parametrize(
    ("stream", "flags"),
    [
        (io.StringIO, {}),
        (Terminal, {"QUIET": True}),
        (Terminal, {"LOG_FORMAT": "json"}),
        (Terminal, {"LOG_LEVEL": "warn"}),
    ],
    ids=["no terminal", "--quiet", "--log-format json", "--log-level warn"],
)
def test_nothing_is_shown_where_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], flags: dict[str, object]
) -> None:
    monkeypatch.setattr("sys.stderr", stream())
    monkeypatch.setattr("dbt.flags.GLOBAL_FLAGS", Namespace(**FLAGS | flags))

    assert terminal() is None
