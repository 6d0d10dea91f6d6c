"""Runs that are killed with SIGKILL as in `processes/test_killed_runs.py`, at further points."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.functional.processes import test_killed_runs as killed_runs


@pytest.mark.parametrize(
    ("kind", "point"),
    [
        ("initial", "after the manifest"),
        ("changes", "while building"),
        ("changes", "after the old snapshot is dropped"),
        ("rebuild", "after the old folder is dropped"),
    ],
)
def test_the_run_after_a_kill_brings_mirror_and_model_together(
    tmp_path: Path, kind: str, point: str
) -> None:
    killed_runs.test_the_run_after_a_kill_brings_mirror_and_model_together(tmp_path, kind, point)


@pytest.mark.parametrize(
    "point", ["while building", "after the first file", "after the old snapshot is dropped"]
)
def test_an_incremental_run_that_was_killed_is_not_lost_and_not_done_twice(
    tmp_path: Path, point: str
) -> None:
    test = killed_runs.test_an_incremental_run_that_was_killed_is_not_lost_and_not_done_twice
    test(tmp_path, point)
