"""A project that is copied, moved or restored in part: its tables stay its own, and no row goes.

Every run is a process of its own, with the embedded Spark in the project.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.functional.project import Project

INCREMENTAL = """
    select * from (select id, concat('{name} ', id) as name from range({begin}, {end}))
    {{% if is_incremental() %}} where id >= {begin} {{% endif %}}
"""


def dbt(folder: Path, *arguments: str, succeeds: bool = True) -> str:
    """Run a command, and return its output in one line."""
    done = subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", *(arguments or ("run",)), "--profiles-dir", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    # 2 if Spark has not started
    assert done.returncode in ((0,) if succeeds else (1, 2)), done.stdout
    return " ".join(done.stdout.split())


def rows(project: Project, begin: int, end: int, name: str = "order") -> None:
    """The model gets rows; without its snapshot they would be all that it has."""
    sql = INCREMENTAL.format(begin=begin, end=end, name=name)
    project.model(sql, unique_key="id", materialized="incremental")


def copied(project: Project, folder: Path) -> Project:
    """As `cp -a` does it, with the landing zone."""
    shutil.copytree(project.path, folder, symlinks=True)
    found = object.__new__(Project)
    found.__dict__ = {
        **project.__dict__,
        "path": folder,
        "landing_zone": folder / project.landing_zone.relative_to(project.path),
    }
    return found


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose table has rows that its model would not compute again."""
    created = Project(tmp_path / "a shop, 'new'" / "shop")
    rows(created, 0, 3)
    dbt(created.path)
    rows(created, 3, 6)
    dbt(created.path)
    created.assert_mirrored()
    return created


def test_a_copied_project_works_on_its_own_files(project: Project, tmp_path: Path) -> None:
    copy = copied(project, tmp_path / "copy")
    before = project.files(), project.relation()
    rows(copy, 6, 9, "of the copy")

    told = dbt(copy.path)

    assert f"Spark's tables were moved from {project.path / '.spark'} to" in told
    assert "+3" in told
    copy.assert_mirrored()
    assert len(copy.relation()) == 9
    assert (project.files(), project.relation()) == before

    rows(project, 6, 8, "of the original")
    assert "+2" in dbt(project.path)
    project.assert_mirrored()


@pytest.mark.parametrize("lost", ["metastore_db", "warehouse"])
def test_without_metastore_or_warehouse_nothing_is_published_or_removed(
    project: Project, tmp_path: Path, lost: str
) -> None:
    spark, backup = project.path / ".spark", tmp_path / "backup"
    shutil.copytree(spark, backup)
    shutil.rmtree(spark / lost)
    before = project.state()[0] if lost == "metastore_db" else project.files()

    for command in (["run"], ["run", "--full-refresh"], rebuild(project)):
        assert f"{lost} is gone" in dbt(project.path, *command, succeeds=False)
    assert before == (project.state()[0] if lost == "metastore_db" else project.files())
    assert not (spark / lost).exists()

    # a way out: what was lost is put back
    shutil.copytree(backup / lost, spark / lost)
    assert "unchanged" in dbt(project.path)
    project.assert_mirrored()

    # the other one: what is left is moved away, and the node is computed anew
    shutil.rmtree(spark / lost)
    (spark / {"warehouse": "metastore_db"}.get(lost, "warehouse")).rename(tmp_path / "left")
    rows(project, 6, 9)
    assert "no published snapshot" in dbt(project.path, succeeds=False)
    dbt(project.path, "run", "--full-refresh")
    project.assert_mirrored()
    assert len(project.relation()) == 3


def rebuild(project: Project) -> list[str]:
    return ["run-operation", "mirror_rebuild", "--args", f"{{table: {project.schema}.orders}}"]
