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


@pytest.mark.local("the other machine is a folder beside it")
def test_who_publishes_a_table_that_another_one_has_published_is_refused_as_the_page_says(
    project: Project,
) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    before = project.state_of_zone()
    project.go_to_another_machine()

    error = project.fail()

    assert "set a `schema` of your own" in error
    assert is_shown(error)
    assert project.state_of_zone() == before

    assert project.run("--full-refresh")["publication"] == "rebuild"


@pytest.mark.local("another project has another server")
def test_two_projects_with_one_table_are_refused_as_the_page_says(
    project: Project, new_project: Callable[[Path], Project], tmp_path: Path
) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    before = project.state_of_zone()
    project.go_to_another_machine()
    other = new_project(tmp_path / "finance")
    other.name = "finance"
    other.target["landing_zone"] = str(project.landing_zone)
    other.name_schema(project.schema)
    other.model(ORDERS, unique_key="id")

    error = other.fail()

    assert "belongs to the dbt project 'shop'" in error
    assert is_shown(error)
    assert project.state_of_zone() == before


@pytest.mark.local("another run holds a folder of OneLake in another way")
def test_two_runs_of_one_table_at_once_are_refused_as_the_page_says(project: Project) -> None:
    project.model(ORDERS, unique_key="id")
    with project.storage.lock(f"_scratchPad/{project.schema}.orders"):
        error = project.fail()

    assert "it is publishing this table now" in error
    assert is_shown(error)
