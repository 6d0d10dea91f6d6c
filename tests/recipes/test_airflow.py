"""Airflow runs a project as one task, or as one task for each node."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recipes.recipe import Recipe

pytestmark = [pytest.mark.slow, pytest.mark.recipe]

# the tests tell nobody that they ran, and load no examples
SETTINGS = {"DO_NOT_TRACK": "True", "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}


@pytest.fixture
def airflow(tmp_path: Path) -> Recipe:
    recipe = Recipe("Airflow", tmp_path)
    recipe.set_up()
    # minutes between two tries are for real failures
    recipe.replace("dags/shop.py", "retries=1", "retries=0")
    recipe.replace("dags/shop_nodes.py", '"retries": 1', '"retries": 0')
    return recipe


def test_one_task_publishes_everything_and_so_does_one_task_for_each_node(
    airflow: Recipe,
) -> None:
    *first, one_task, folder, pool, each_node = airflow.commands()
    build = airflow.shell("\n".join([*first, one_task]), SETTINGS)
    assert not build.returncode
    assert airflow.published() == {"orders": [6], "customers": [3]}
    airflow.replace("models/orders.sql", "range(6)", "range(9)")

    nodes = airflow.shell("\n".join([*first, folder, pool, each_node]), SETTINGS)

    assert not nodes.returncode
    assert airflow.published() == {"orders": [6, 3], "customers": [3, 3]}
