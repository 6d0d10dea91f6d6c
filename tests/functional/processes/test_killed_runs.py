"""A run that is killed with SIGKILL: the next one ends with the mirror equal to the model.

Every run is a process of its own, with the embedded Spark and its metastore in the project. What
goes wrong at every other point is in `functional/faults`.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import new_batch_id
from tests.functional.project import Project

# a load of more than one file, in columns whose names the metastore must keep too
LOAD = """
    select id, sha2(concat(id, '{salt}'), 512) as `comma, semicolon; ``quote.dot`, id % 7 as n
    from range(0, {rows}, 1, 4)
"""
OPTIONS: dict[str, Any] = {"unique_key": "id", "target_file_size": "256kb"}


def dbt(project: Project, *command: str, mode: str = "") -> subprocess.CompletedProcess[str]:
    arguments = ["run", mode] if mode else ["run"]
    return subprocess.run(
        [sys.executable, *command, *arguments, "--project-dir", ".", "--profiles-dir", "."],
        cwd=project.path,
        capture_output=True,
        text=True,
        timeout=300,
    )


def succeed(project: Project) -> str:
    done = dbt(project, "-m", "dbt.cli.main")
    assert done.returncode == 0, done.stdout
    return done.stdout


def die(project: Project, point: str) -> None:
    killed = dbt(project, str(Path(__file__).with_name("killed_dbt.py")), point)
    assert killed.returncode == -signal.SIGKILL, killed.stdout


@pytest.mark.parametrize(("kind", "point"), [("changes", "after the first file")])
def test_the_run_after_a_kill_brings_mirror_and_model_together(
    tmp_path: Path, kind: str, point: str
) -> None:
    project = Project(tmp_path)
    if kind != "initial":
        gone = ", 0 as gone" if kind == "rebuild" else ""
        project.model(f"select *{gone} from ({LOAD.format(salt='', rows=20000)})", **OPTIONS)
        succeed(project)
    project.model(LOAD.format(salt="new", rows=20500), **OPTIONS)

    die(project, point)
    schema = project.path / ".spark" / "warehouse" / f"{project.schema}.db"
    if point == "while building":
        # a table that was killed before the catalog knew it
        (schema / "orders__next_202601010000000badcafe" / "_temporary").mkdir(parents=True)
    if point == "after the old snapshot is dropped":
        # killed half way: the metastore renames the folder before the table
        (following,) = schema.glob("orders__next_*")
        following.rename(schema / "orders")
    output = succeed(project)

    project.assert_mirrored()
    assert len(project.files()) >= 2
    committed = point != "while building"
    assert ("which an earlier run had left" in output) == committed
    assert ("unchanged" in output) == committed, "what was committed is not published again"


def test_folders_that_kills_leave_in_the_warehouse_do_not_stop_the_next_run(
    tmp_path: Path,
) -> None:
    """Builds that publish nothing are healed as well: `mirror: false`, and `--empty`."""
    project = Project(tmp_path)
    warehouse = project.path / ".spark" / "warehouse" / f"{project.schema}.db"
    project.model("select 1 as id", mirror=False)
    die(project, "while building")
    # a table that was dropped, but not its folder, and one that the catalog never knew
    (warehouse / "orders" / "part-0.parquet").mkdir(parents=True)
    (warehouse / f"orders__next_{new_batch_id()}" / "_temporary").mkdir(parents=True)

    succeed(project)

    # nobody knows its rows, so they stay
    assert [path.name for path in warehouse.glob("orders__left_*/*")] == ["part-0.parquet"]
    assert {name.partition("__left_")[0] for name in project.tables()} == {"orders"}
    assert len(project.relation()) == 1

    project.model("select 1 as id", "checked", unique_key="id")
    (warehouse / "checked" / "_temporary").mkdir(parents=True)
    done = dbt(project, "-m", "dbt.cli.main", mode="--empty")
    assert done.returncode == 0, done.stdout
    assert {n.partition("__left_")[0] for n in project.tables()} == {"checked", "orders"}
    succeed(project)
    project.assert_mirrored("checked")
