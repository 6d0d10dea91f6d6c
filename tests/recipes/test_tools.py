"""Linters, coverage and lineage read a project as their section says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.recipes.recipe import Recipe, comparable


@pytest.fixture
def tools(tmp_path: Path) -> Recipe:
    recipe = Recipe("Tools", tmp_path, "packages")
    recipe.set_up()
    return recipe


def test_tools_read_the_project_that_dbt_has_built(tools: Recipe) -> None:
    build, docs, lineage, coverage, osmosis, score, sqlfluff, *_ = tools.commands()
    for command in (build, docs):
        assert not tools.shell(command).returncode

    told = tools.shell(lineage).stdout + tools.shell(coverage).stdout
    assert not tools.shell(osmosis).returncode
    columns = yaml.safe_load((tools.folder / "models" / "_orders.yml").read_text())
    assert [each["data_type"] for each in columns["models"][0]["columns"]] == ["bigint"] * 3
    told += tools.shell(score).stdout
    linted = tools.shell(sqlfluff)
    assert not linted.returncode
    for line in tools.shown():
        assert line in comparable(told + linted.stdout)
