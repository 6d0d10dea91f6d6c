"""dbt is called several times in one process, between which no process has Spark."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.functional.one_process import SCENARIOS

pytestmark = [pytest.mark.slow, pytest.mark.session("starts the embedded Spark")]

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_commands_of_one_process_do_not_get_in_each_others_way(
    tmp_path: Path, scenario: str
) -> None:
    command = [sys.executable, "-m", "tests.functional.one_process", str(tmp_path), scenario]

    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600)

    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
