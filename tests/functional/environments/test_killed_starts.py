"""The start of Spark is killed at each point that its files show, and the next command starts.

Each start reaches a point after the one at which the start before was killed.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.functional.processes.test_processes import BIN
from tests.functional.project import Project
from tests.functional.test_disk import mounted

pytestmark = pytest.mark.needs(session="starts the embedded Spark")

METASTORE = Path(".spark", "metastore_db")


class Point(NamedTuple):
    """A point of a start: a file or a folder is written, and the folder has so many files."""

    path: Path
    files: int = 0


JVM_STARTS = Point(Path(".spark/tmp/spark.properties"))
KEEPER_RUNS = Point(Path(".spark/keeper.json"))
DERBY_BEGINS = Point(METASTORE)
DERBY_MAKES_ITS_TABLES = Point(METASTORE / "seg0", 30)
DERBY_ENDS = Point(METASTORE / "service.properties")
HIVE_MAKES_ITS_TABLES = Point(METASTORE / "seg0", 100)
METASTORE_IS_OPENED = Point(METASTORE / "db.lck")
SPARK_HAS_STARTED = Point(METASTORE / "openmirroring.json")

# a killed start may have gone on for a moment, so that the next one begins behind a point
LATER = dict.fromkeys(
    (DERBY_BEGINS, DERBY_MAKES_ITS_TABLES, DERBY_ENDS, HIVE_MAKES_ITS_TABLES),
    (HIVE_MAKES_ITS_TABLES, SPARK_HAS_STARTED),
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    created = Project(tmp_path / "shop")
    created.target["spark_idle_timeout"] = 0
    created.write_project()
    created.model("select id, 'x' as name from range(3)", unique_key="id")
    yield created
    (created.path / ".spark" / "keeper.json").unlink(missing_ok=True)  # ends its Spark


class Run:
    """A `dbt run` that has just begun, in a terminal of its own."""

    def __init__(self, project: Project) -> None:
        self._folder = project.path
        self._began = time.time_ns()
        self._terminal, theirs = os.openpty()
        self._output = project.path.with_name("output.txt")

        def take_terminal() -> None:
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
            # what a shell runs in the background ignores them
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            signal.signal(signal.SIGHUP, signal.SIG_DFL)

        with self._output.open("w") as output:
            self._process = subprocess.Popen(
                [BIN / "dbt", "run"],
                cwd=project.path,
                stdin=theirs,
                stdout=output,
                stderr=output,
                start_new_session=True,
                preexec_fn=take_terminal,
            )
        os.close(theirs)

    def wait_for(self, point: Point) -> None:
        deadline = time.monotonic() + 240
        while not any(map(self._is_at, (point, *LATER.get(point, ())))):
            assert self._process.poll() is None, self._output.read_text()
            assert time.monotonic() < deadline, self._output.read_text()
            time.sleep(0.001)

    def _is_at(self, point: Point) -> bool:
        path = self._folder / point.path
        try:
            is_written = path.stat().st_mtime_ns > self._began
            return is_written and (not point.files or len([*path.iterdir()]) >= point.files)
        except FileNotFoundError:
            return False

    def wait(self) -> str:
        """Wait for the end, and return what the run has printed."""
        self._process.wait(240)
        if self._terminal:
            os.close(self._terminal)
        return self._output.read_text()

    def kill(self, how: str) -> str:
        """Kill the run by a signal, Ctrl-C or the end of its terminal."""
        match how:
            case "its terminal is closed":
                os.close(self._terminal)
                self._terminal = 0
            case "Ctrl-C":
                os.write(self._terminal, b"\x03")
            case _:
                self._process.send_signal(signal.Signals[how])
        told = self.wait()
        assert self._process.returncode, told
        return told


def run(project: Project) -> None:
    started = Run(project)
    told = started.wait()
    assert "Completed successfully" in told, told
    project.assert_mirrored()


def kill_at(project: Project, point: Point, how: str) -> str:
    """Run until a point, and kill the run."""
    started = Run(project)
    started.wait_for(point)
    return started.kill(how)


def test_a_start_that_is_killed_at_any_point_is_followed_by_one_that_starts(
    project: Project,
) -> None:
    kill_at(project, JVM_STARTS, "SIGKILL")
    kill_at(project, KEEPER_RUNS, "SIGTERM")
    kill_at(project, DERBY_BEGINS, "SIGHUP")
    told = kill_at(project, DERBY_MAKES_ITS_TABLES, "Ctrl-C")
    assert "Spark was interrupted while it started" in told
    assert "Traceback" not in told
    kill_at(project, DERBY_ENDS, "its terminal is closed")
    kill_at(project, HIVE_MAKES_ITS_TABLES, "SIGKILL")
    kill_at(project, SPARK_HAS_STARTED, "SIGKILL")

    # in a later start, in a new JVM and in one that was ready
    kill_at(project, METASTORE_IS_OPENED, "SIGKILL")
    kill_at(project, SPARK_HAS_STARTED, "SIGTERM")
    project.target["spark_idle_timeout"] = "5m"
    project.write_profile()
    run(project)
    kill_at(project, METASTORE_IS_OPENED, "SIGKILL")
    run(project)


def test_a_start_whose_disk_is_full_is_followed_by_one_that_starts(project: Project) -> None:
    with mounted(project.path / ".spark", "64m") as disk:
        started = Run(project)
        started.wait_for(DERBY_ENDS)
        disk.fill()
        assert "Spark did not start" in started.wait()
        disk.mend()
        run(project)
        disk.fill()
        assert "Completed successfully" not in Run(project).wait()
        disk.mend()
        run(project)
