"""Runs that are killed with SIGKILL as in `processes/test_killed_runs.py`, at further points."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.functional.processes import test_killed_runs as killed_runs
from tests.functional.project import Project, canonical


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
    "point",
    [
        "while building",
        "after the manifest",
        "after the first file",
        "after the old snapshot is dropped",
    ],
)
def test_an_incremental_run_that_was_killed_is_not_lost_and_not_done_twice(
    tmp_path: Path, point: str
) -> None:
    """dbt asks for a watermark when it compiles the model: after the recovery."""
    project = Project(tmp_path)
    rows = """
        {{% set last = run_query('select max(id) from ' ~ this).rows[0][0]
            if execute and is_incremental() else -1 %}}
        select id, 'run {}' as run from range({}) where id > {{{{ last }}}}
    """
    options = {"materialized": "incremental", "incremental_strategy": "append"}
    project.model(rows.format(1, 3), **options)
    killed_runs.succeed(project)
    project.model(rows.format(2, 5), **options)
    killed_runs.die(project, point)
    project.model(rows.format(3, 6), **options)

    output = killed_runs.succeed(project)

    committed = point != "while building"
    assert ("which an earlier run had left" in output) == committed
    second = 2 if committed else 3
    runs = (1, 1, 1, second, second, 3)
    assert project.relation() == Counter(
        canonical({"id": id, "run": f"run {run}"}.items()) for id, run in enumerate(runs)
    )
    project.assert_mirrored()
