"""Several people and environments: each publishes tables of its own, and others are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional.project import Project

ORDERS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"


@pytest.mark.needs(local="another machine and another project are folders beside it")
def test_who_publishes_the_table_of_another_one_is_refused(
    project: Project, new_project: Callable[[Path], Project], tmp_path: Path
) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    before = project.state_of_zone()
    with project.storage.lock(f"_scratchPad/{project.schema}.orders"):
        same_time = project.fail()
    project.go_to_another_machine()
    other_machine = project.fail()
    other = new_project(tmp_path / "finance")
    other.name = "finance"
    other.target["landing_zone"] = str(project.landing_zone)
    other.name_schema(project.schema)
    other.model(ORDERS, unique_key="id")
    other_project = other.fail()

    assert project.state_of_zone() == before
    # the codes to which docs/scheduling.md leads
    assert "OM501" in same_time
    assert "it is publishing this table now" in same_time
    assert "OM405" in other_machine
    assert "set a `schema` of your own" in other_machine
    assert "OM402" in other_project
    assert "belongs to the dbt project 'shop'" in other_project

    assert project.run("--full-refresh")["publication"] == "rebuild"
