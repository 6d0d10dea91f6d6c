"""Linters, coverage and lineage read a project as their section says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.recipes.recipe import Recipe

pytestmark = [pytest.mark.slow, pytest.mark.recipe]


@pytest.fixture
def tools(tmp_path: Path) -> Recipe:
    recipe = Recipe("Tools", tmp_path, "packages")
    recipe.set_up()
    return recipe


def test_tools_read_the_project_that_dbt_has_built(tools: Recipe) -> None:
    build, docs, lineage, coverage, osmosis, score, sqlfluff, *_ = tools.commands()
    for command in (build, docs):
        assert not tools.shell(command).returncode

    assert tools.shell(lineage).stdout.split() == ["amount", "orders.amount"]
    assert "0/5" in tools.shell(coverage).stdout
    assert not tools.shell(osmosis).returncode
    columns = yaml.safe_load((tools.folder / "models" / "_orders.yml").read_text())
    assert [each["data_type"] for each in columns["models"][0]["columns"]] == ["bigint"] * 3
    assert "Project score" in tools.shell(score).stdout
    assert not tools.shell(sqlfluff).returncode
