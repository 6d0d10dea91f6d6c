"""`dbt clone`: the relations of another target, without building them."""

from __future__ import annotations

import shutil

import pytest

from tests.functional.project import Project

pytestmark = pytest.mark.usefixtures("manifest_file")


@pytest.mark.needs(pyspark="it has a Python model too, and Thrift knows SQL only")
def test_a_clone_is_a_view_until_its_model_is_run(project: Project) -> None:
    project.model("select 1 as id, 'a' as name", unique_key="id")
    python = "def model(dbt, session):\n    return session.range(2)\n"
    project.write("models/numbers.py", python)
    project.run()
    keep_state(project)

    assert clone(project)

    for name in ("orders", "numbers"):
        (created,) = project.sql(f"show create table {project.schema}.{name}")
        assert created[0].startswith("CREATE VIEW")
        cloned = project.relation(name)
        assert not project.folder(name).exists(), "a view is not mirrored"
        assert project.run("--select", name)["publication"] == "initial"
        assert project.relation(name) == cloned
        project.assert_mirrored(name)


def keep_state(project: Project) -> None:
    """Let the last run be what can be cloned into another target."""
    shutil.copytree(project.path / "target", project.path / "state")
    project.name_schema(f"{project.schema}_development")


def clone(project: Project, *args: str) -> bool:
    return project.dbt("clone", "--state", "state", *args)


def refused(project: Project, *args: str) -> str:
    return project.fail("--state", "state", *args, command="clone")


@pytest.fixture
def beside(project: Project) -> Project:
    """A target with a history of its own, beside the one that can be cloned."""
    project.model("select 1 as id, 'theirs' as name", materialized="incremental", unique_key="id")
    project.run()
    keep_state(project)
    for key in range(2):
        sql = f"select {key} as id, 'ours' as name"
        project.model(sql, materialized="incremental", unique_key="id")
        project.run()
    return project


def test_a_clone_is_never_put_in_the_place_of_a_mirrored_table(beside: Project) -> None:
    before = beside.state()

    error = refused(beside, "--full-refresh")

    assert f"`{beside.schema}`.`orders` is a mirrored table" in error
    assert "Nothing was changed" in error
    assert "into another schema" in error
    assert beside.state() == before
    assert clone(beside), "one that leaves it as it is"
    assert beside.state() == before
    # nor while its rows are held, nor if its node is a view now
    model = {"materialized": "incremental", "unique_key": "id"}
    for config in ({**model, "publish": "on_request"}, {"materialized": "view"}):
        beside.model("select 3 as id, 'ours' as name", **config)
        if "publish" in config:
            beside.run()
        assert "mirrored table" in refused(beside, "--full-refresh")
    beside.model("select 3 as id, 'ours' as name", **model)
    beside.run()
    assert sum(beside.relation().values()) == 3
    beside.assert_mirrored()


def test_a_clone_is_not_put_where_spark_has_lost_a_mirrored_table(beside: Project) -> None:
    """The next run would take the view for one of the user's, and rebuild the mirror from less."""
    mirror = beside.mirror()
    beside.sql(f"drop table {beside.schema}.orders")

    for args in ([], ["--full-refresh"]):
        error = refused(beside, *args)
        assert "is a mirrored table" in error
        assert "Spark has lost" in error

    assert "no baseline" in beside.fail()
    assert beside.mirror() == mirror
    beside.run("--full-refresh")
    assert clone(beside)


def test_a_clone_may_replace_what_is_not_mirrored(project: Project) -> None:
    project.model("select 1 as id", mirror=False)
    project.model("select 1 as id", "seen", materialized="view")
    project.run()
    keep_state(project)
    project.run()

    for _ in range(2):
        assert clone(project, "--full-refresh")

    (created,) = project.sql(f"show create table {project.schema}.orders")
    assert created[0].startswith("CREATE VIEW")
