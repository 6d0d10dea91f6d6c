"""The lines at a terminal while a node takes long."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

from tests.functional.project import Project

# dbt, with lines that come at once
DBT = """
import functools
from dbt.adapters.openmirroring import impl
impl.Progress = functools.partial(impl.Progress, interval=0.2)
from dbt.cli.main import cli
cli()
"""

SLOW = """
def model(dbt, session):
    dbt.config(materialized="table")
    from pyspark.sql.functions import udf

    @udf("long")
    def slow(number):
        import time
        time.sleep(2)
        return number

    numbers = session.range(0, 6, 1, 6)
    return numbers.select(slow("id").alias("id"))
"""


def at_a_terminal(folder: Path, *command: str) -> tuple[int, str]:
    """The exit status of dbt, and what it has written to a terminal as its errors."""
    terminal, stderr = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", DBT, *command],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=stderr,
    ) as process:
        os.close(stderr)
        shown = b""
        try:
            while read := os.read(terminal, 4096):
                shown += read
        except OSError:  # Linux says in this way that nobody writes to it any more
            pass
        os.close(terminal)
    return process.returncode, shown.decode()


def test_a_long_node_shows_its_step_and_its_tasks_at_a_terminal_and_not_in_the_log(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path / "shop")
    project.write("models/orders.py", SLOW)

    status, shown = at_a_terminal(project.path, "run")

    assert status == 0
    lines = shown.splitlines()
    assert all(re.fullmatch(r"orders: [a-z ]+(, \d of \d tasks)?, \d+ s", line) for line in lines)
    assert [line for line in lines if re.match(r"orders: building, \d of 6 tasks, ", line)]
    log = (project.path / "logs" / "dbt.log").read_text()
    assert "initial +6" in log
    assert "orders: building" not in log
