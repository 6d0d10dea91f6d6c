"""Linters, coverage and lineage read a project."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.matrix import PYTHON, ROOT, install
from tests.recipes.recipe import PROJECT, SCHEDULING, Recipe

PACKAGES = ["dbt-osmosis", "dbt-score", "dbt-coverage", "sqlfluff"]

# where dbt-osmosis writes the columns of a model
OSMOSIS = """
name: shop
version: "1.0"
profile: shop
models:
  +publish: after_tests
  shop:
    +dbt-osmosis: "_{model}.yml"
"""

# prints where the column `amount` comes from
LINEAGE = """
import json
from pathlib import Path
from sqlglot.lineage import lineage
manifest = json.loads(Path("target/manifest.json").read_text())
model = manifest["nodes"]["model.shop.customers"]
dialect = manifest["metadata"]["adapter_type"]
for node in lineage("amount", model["compiled_code"], schema={}, dialect=dialect).walk():
    print(node.name)
"""


@pytest.fixture
def shop(tmp_path: Path) -> Recipe:
    recipe = Recipe(PROJECT, tmp_path)
    recipe.take(SCHEDULING, PROJECT)
    recipe.write("dbt_project.yml", OSMOSIS)
    environment = ROOT / "build" / "recipes" / "tools"
    install(environment, PYTHON, ["java"], PACKAGES)
    (tmp_path / ".venv").symlink_to(environment)
    return recipe


def printed(shop: Recipe, command: str) -> str:
    result = shop.shell(command)
    assert not result.returncode
    return result.stdout


def test_tools_read_the_project_that_dbt_has_built(shop: Recipe) -> None:
    printed(shop, "dbt build")
    printed(shop, "dbt docs generate")

    assert printed(shop, f"python -c '{LINEAGE}'") == "amount\norders.amount\n"
    assert "Total" in printed(shop, "dbt-coverage compute doc")
    printed(shop, "dbt-osmosis yaml refactor --auto-apply")
    columns = yaml.safe_load((shop.folder / "models" / "_orders.yml").read_text())
    assert [each["data_type"] for each in columns["models"][0]["columns"]] == ["bigint"] * 3
    assert "Project score" in shop.shell("dbt-score lint").stdout
    linted = printed(shop, "sqlfluff lint models --dialect sparksql --rules references")
    assert "All Finished" in linted
