"""`dbt clone`: the relations of another target, without building them."""

from __future__ import annotations

import shutil

import pytest

from tests.functional.project import Project


@pytest.mark.pyspark("it has a Python model too, and Thrift knows SQL only")
def test_a_clone_is_a_view_until_its_model_is_run(project: Project) -> None:
    project.model("select 1 as id, 'a' as name", unique_key="id")
    python = "def model(dbt, session):\n    return session.range(2)\n"
    project.write("models/numbers.py", python)
    project.run()
    shutil.copytree(project.path / "target", project.path / "state")
    project.name_schema(f"{project.schema}_development")

    assert project.dbt("clone", "--state", "state")

    for name in ("orders", "numbers"):
        (created,) = project.sql(f"show create table {project.schema}.{name}")
        assert created[0].startswith("CREATE VIEW")
        cloned = project.relation(name)
        assert not project.folder(name).exists(), "a view is not mirrored"
        assert project.run("--select", name)["publication"] == "initial"
        assert project.relation(name) == cloned
        project.assert_mirrored(name)
