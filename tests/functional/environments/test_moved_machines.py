"""A project that is copied, moved or restored in part is refused, and no row goes.

Every run is a process of its own, with the embedded Spark in the project.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
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
    # a Spark that ends with its command uses its folder until it lets go of the lock
    lock = os.open(folder / ".spark", os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    os.close(lock)
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


@pytest.mark.parametrize("lost", ["metastore_db", "warehouse"])
def test_without_metastore_or_warehouse_nothing_is_published_or_removed(
    project: Project, lost: str
) -> None:
    spark = project.path / ".spark"
    shutil.rmtree(spark / lost)
    before = project.state()[0] if lost == "metastore_db" else project.files()

    for command in (["run"], ["run", "--full-refresh"], rebuild(project)):
        assert f"{lost} is gone" in dbt(project.path, *command, succeeds=False)
    assert before == (project.state()[0] if lost == "metastore_db" else project.files())
    assert not (spark / lost).exists()


@pytest.fixture(params=["a Spark is ready", "none is ready"])
def moving(request: pytest.FixtureRequest, project: Project) -> Iterator[Project]:
    """A project in whose folder of Spark something is moved, while a Spark is ready or not."""
    project.target["spark_idle_timeout"] = "5m" if request.param == "a Spark is ready" else 0
    project.write_profile()
    dbt(project.path)
    yield project
    for record in project.path.parents[1].rglob("keeper.json"):
        record.unlink()  # ends the Spark


def test_each_way_out_of_a_metastore_and_a_warehouse_that_do_not_belong_together_works(
    moving: Project, tmp_path: Path
) -> None:
    spark, backup, older = moving.path / ".spark", tmp_path / "backup", tmp_path / "older"
    shutil.copytree(spark, older)
    assert "unchanged" in dbt(moving.path)
    shutil.copytree(spark, backup)

    for lost in ("metastore_db", "warehouse"):
        shutil.rmtree(spark / lost)
        assert f"{lost} is gone, but" in dbt(moving.path, succeeds=False)
        restore(spark, backup)
        assert "unchanged" in dbt(moving.path)

    restore(spark, older, "metastore_db")
    assert "were not used together last" in dbt(moving.path, succeeds=False)
    restore(spark, backup)
    assert "unchanged" in dbt(moving.path)

    records = [spark / name / "openmirroring.json" for name in ("metastore_db", "warehouse")]
    records[0].write_text("{")
    assert f"{records[0]} is damaged" in dbt(moving.path, succeeds=False)
    for record in records:
        record.unlink()
    assert "unchanged" in dbt(moving.path)

    # without a backup, what is left is moved away: Spark begins without tables
    for name in ("metastore_db", "warehouse"):
        (spark / name).rename(tmp_path / name)
    rows(moving, 6, 9)
    assert "no baseline" in dbt(moving.path, succeeds=False)
    dbt(moving.path, "run", "--full-refresh")
    moving.assert_mirrored()
    assert len(moving.relation()) == 3


def restore(spark: Path, backup: Path, *names: str) -> None:
    for name in names or ("metastore_db", "warehouse"):
        shutil.rmtree(spark / name, ignore_errors=True)
        shutil.copytree(backup / name, spark / name)


def test_each_way_out_of_a_project_that_was_moved_or_copied_works(
    moving: Project, tmp_path: Path
) -> None:
    copies = [copied(moving, tmp_path / name) for name in ("back", "restored", "anew")]
    before = moving.files(), moving.relation()
    for copy in copies:
        told = dbt(copy.path, succeeds=False)
        assert f"was {moving.path / '.spark'} when Spark used it last" in told
    back, restored, anew = copies

    shutil.rmtree(restored.path / ".spark")
    restored.target |= {"replicate": True, "restore_baseline": True}
    restored.write_profile()
    rows(restored, 6, 9, "of the copy")
    assert "+3" in dbt(restored.path)
    restored.assert_mirrored()
    assert len(restored.relation()) == 9

    shutil.rmtree(anew.path / ".spark")
    assert "no baseline" in dbt(anew.path, succeeds=False)
    dbt(anew.path, "run", "--full-refresh")
    anew.assert_mirrored()

    assert (moving.files(), moving.relation()) == before
    moving.path.rename(tmp_path / "original")
    back.path.rename(moving.path)
    assert "unchanged" in dbt(moving.path)


def rebuild(project: Project) -> list[str]:
    return ["run-operation", "mirror_rebuild", "--args", f"{{table: {project.schema}.orders}}"]
