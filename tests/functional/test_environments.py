"""Several people and environments: each publishes tables of its own, and others are refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.functional.project import Project
from tests.matrix import ROOT
from tests.pages import blocks_of

ORDERS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"

# the errors on the page, as lines; `...` stands for what is left out
SHOWN = [
    block.text.partition("...\n")[2]
    for block in blocks_of(ROOT / "docs" / "environments.md")
    if block.language == "console"
]


def alike(text: str) -> str:
    """A text with one word in place of each name, time and space that differs from run to run."""
    for pattern, word in (
        (r"\d{14}[0-9a-f]{8}", "BATCH"),
        (r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", "TIME"),
        (r"target '\w+', user '[^']+'", "WHO"),
        (r"/\S+/LandingZone", "ZONE"),
        (r"\btest_shop\b", "sales"),
        (r"\s+", " "),
    ):
        text = re.sub(pattern, word, text)
    return text.strip()


def is_shown(error: str) -> bool:
    """Check whether the page has an error, perhaps without its end."""
    return any(alike(shown).removesuffix(" ...") in alike(error) for shown in SHOWN)


@pytest.mark.needs(local="another machine and another project are folders beside it")
def test_who_publishes_the_table_of_another_one_is_refused_as_the_page_says(
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
    assert "it is publishing this table now" in same_time
    assert "set a `schema` of your own" in other_machine
    assert "belongs to the dbt project 'shop'" in other_project
    for error in (same_time, other_machine, other_project):
        assert is_shown(error), error

    assert project.run("--full-refresh")["publication"] == "rebuild"
