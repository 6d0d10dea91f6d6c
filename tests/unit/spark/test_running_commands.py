"""Making an image of Spark's classes gives way to the commands of the user."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.spark.embedded.running_commands import (
    RunningCommands,
    StillRunningError,
)

COMMAND = """
import sys
from pathlib import Path
from dbt.adapters.openmirroring.spark.embedded.running_commands import RunningCommands

RunningCommands(Path(sys.argv[1])).enter()
print("runs", flush=True)
sys.stdin.read()
"""


def test_nobody_waits_where_no_command_has_run(tmp_path: Path) -> None:
    RunningCommands(tmp_path / "images").wait(0)


def test_all_commands_have_to_end(tmp_path: Path) -> None:
    commands = [RunningCommands(tmp_path) for _ in range(2)]
    for command in commands:
        command.enter()
        command.enter()  # the next one of the same process

    for command in commands:
        with pytest.raises(StillRunningError):
            RunningCommands(tmp_path).wait(0)
        command.leave()

    RunningCommands(tmp_path).wait(0)


def test_a_killed_command_has_ended(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COMMAND, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout
        assert running.stdout.readline() == b"runs\n"
        with pytest.raises(StillRunningError):
            RunningCommands(tmp_path).wait(0)

        running.kill()
        running.wait()

        RunningCommands(tmp_path).wait(0)


def test_a_command_runs_also_where_no_file_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    command = RunningCommands(tmp_path / "file" / "images")
    command.enter()
    command.leave()
