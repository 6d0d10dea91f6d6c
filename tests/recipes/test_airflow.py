"""Airflow runs a project as one task or as one task for each node."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recipes.recipe import Recipe, comparable

# the tests tell nobody that they ran, and load no examples
SETTINGS = {"DO_NOT_TRACK": "True", "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}

# Cosmos makes a task of each model and another of its tests
NODES = """
from pathlib import Path
from airflow.sdk import DAG
from cosmos import (
    DbtTaskGroup, ExecutionConfig, ExecutionMode, InvocationMode, ProfileConfig, ProjectConfig
)
shop = Path("/srv/shop")
with DAG("shop_nodes", schedule=None, catchup=False, max_active_runs=1):
    DbtTaskGroup(
        project_config=ProjectConfig(shop),
        profile_config=ProfileConfig(
            profile_name="shop", target_name="prod", profiles_yml_filepath=shop / "profiles.yml"
        ),
        execution_config=ExecutionConfig(
            execution_mode=ExecutionMode.LOCAL, invocation_mode=InvocationMode.DBT_RUNNER
        ),
        operator_args={"pool": "spark"},
    )
"""
COMMANDS = (
    "mkdir -p .spark",
    "airflow pools set spark 1 'the embedded Spark'",
    "airflow dags test shop_nodes",
)


@pytest.fixture
def airflow(tmp_path: Path) -> Recipe:
    recipe = Recipe("Airflow", tmp_path)
    recipe.set_up("astronomer-cosmos")
    # minutes between two tries are for real failures
    recipe.replace("dags/shop.py", "retries=1", "retries=0")
    recipe.write("dags/shop_nodes.py", NODES)
    return recipe


def test_one_task_publishes_everything_and_so_does_one_task_for_each_node(
    airflow: Recipe,
) -> None:
    *first, one_task = airflow.commands()
    build = airflow.shell("\n".join([*first, one_task]), SETTINGS)
    assert not build.returncode
    assert airflow.published() == {"orders": [6], "customers": [3]}
    airflow.replace("models/orders.sql", "range(6)", "range(9)")

    nodes = airflow.shell("\n".join([*first, *COMMANDS]), SETTINGS)

    assert not nodes.returncode
    assert airflow.published() == {"orders": [6, 3], "customers": [3, 3]}
    for line in airflow.shown():
        assert line in comparable(build.stdout + build.stderr)
