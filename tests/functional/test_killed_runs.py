"""A run that is killed with SIGKILL: the next one ends with the mirror equal to the model.

Every run is a process of its own, with the embedded Spark and its metastore in the project. What
goes wrong at every other point is in `test_faults.py`.
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

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize(
    ("kind", "points"),
    [
        ("changes", ["after the first file"]),
        *(
            pytest.param(kind, points, marks=pytest.mark.exhaustive)
            for kind, points in (
                ("initial", ["after the manifest"]),
                ("changes", ["while building", "after the old snapshot is dropped"]),
                ("rebuild", ["after the old folder is dropped"]),
            )
        ),
    ],
)
def test_the_run_after_a_kill_brings_mirror_and_model_together(
    tmp_path: Path, kind: str, points: list[str]
) -> None:
    """One history a kind of publication: killed at each point in turn, recovered every time."""
    project = Project(tmp_path)
    if kind != "initial":
        gone = ", 0 as gone" if kind == "rebuild" else ""
        project.model(f"select *{gone} from ({LOAD.format(salt='', rows=20000)})", **OPTIONS)
        succeed(project)
    for step, point in enumerate(points):
        if kind == "initial":
            project = Project(tmp_path / str(step))
        columns = f", {step} as c{step}" if kind == "rebuild" else ""  # one dropped, one added
        sql = LOAD.format(salt=step, rows=20000 + 500 * step)
        project.model(f"select *{columns} from ({sql})", **OPTIONS)

        die(project, point)
        if point == "while building":
            # a table that was killed before the catalog knew it
            schema = project.path / ".spark" / "warehouse" / f"{project.schema}.db"
            (schema / "orders__next_202601010000000badcafe" / "_temporary").mkdir(parents=True)
        output = succeed(project)

        project.assert_mirrored()
        assert len(project.files()) >= 2
        committed = point != "while building"
        assert ("which an earlier run had left" in output) == committed, point
        assert ("unchanged" in output) == committed, "what was committed is not published again"


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("while building", marks=pytest.mark.exhaustive),
        "after the old snapshot is dropped",
    ],
)
def test_an_incremental_run_that_was_killed_is_not_lost_and_not_done_twice(
    tmp_path: Path, point: str
) -> None:
    project = Project(tmp_path)
    rows = "select {} as id, 'x' as name"
    options: dict[str, Any] = {"materialized": "incremental"}
    project.model(rows.format(0), **options)
    succeed(project)
    project.model(rows.format(1), **options)

    die(project, point)
    project.model(rows.format(2), **options)
    output = succeed(project)
    committed = point == "after the old snapshot is dropped"
    assert ("which an earlier run had left" in output) == committed

    kept = [0, 2] if point == "while building" else [0, 1, 2]
    assert sorted(int(dict(row)["id"].split()[1]) for row in project.relation()) == kept
    project.assert_mirrored()


@pytest.mark.parametrize(
    "point",
    [
        "after the manifest",
        pytest.param("after the first file", marks=pytest.mark.exhaustive),
        pytest.param("after the old snapshot is dropped", marks=pytest.mark.exhaustive),
    ],
)
def test_a_watermark_is_read_after_what_a_killed_run_has_committed(
    tmp_path: Path, point: str
) -> None:
    """It is asked for when dbt compiles the model."""
    project = Project(tmp_path)
    rows = """
        {{% set last = run_query('select max(id) from ' ~ this).rows[0][0]
            if execute and is_incremental() else -1 %}}
        select id from range({}) where id > {{{{ last }}}}
    """
    options = {"materialized": "incremental", "incremental_strategy": "append"}
    project.model(rows.format(3), **options)
    succeed(project)
    project.model(rows.format(5), **options)
    die(project, point)
    project.model(rows.format(6), **options)

    output = succeed(project)

    assert "which an earlier run had left" in output
    assert sorted(dict(row)["id"] for row in project.relation().elements()) == [
        f"int {n}" for n in range(6)
    ]
    project.assert_mirrored()


def tables(project: Project) -> list[str]:
    """Return the tables in Spark, without folders that were moved out of their way."""
    return sorted(name for name in project.tables() if "__left_" not in name)


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

    assert tables(project) == ["orders"]
    # nobody knows its rows, so they stay
    assert [path.name for path in warehouse.glob("orders__left_*/*")] == ["part-0.parquet"]
    assert len(project.relation()) == 1

    project.model("select 1 as id", "checked", unique_key="id")
    (warehouse / "checked" / "_temporary").mkdir(parents=True)
    done = dbt(project, "-m", "dbt.cli.main", mode="--empty")
    assert done.returncode == 0, done.stdout
    assert tables(project) == ["checked", "orders"]
    succeed(project)
    project.assert_mirrored("checked")


@pytest.mark.exhaustive
def test_a_rename_that_was_killed_half_way_is_done_again(tmp_path: Path) -> None:
    """The metastore renames the folder before the table."""
    project = Project(tmp_path)
    project.model("select id, 'a' as name from range(3)", unique_key="id")
    succeed(project)
    project.model("select id, 'b' as name from range(3)", unique_key="id")
    die(project, "after the old snapshot is dropped")
    warehouse = project.path / ".spark" / "warehouse" / f"{project.schema}.db"
    (following,) = warehouse.glob("orders__next_*")
    following.rename(warehouse / "orders")

    succeed(project)

    project.assert_mirrored()
