"""Dagster materializes a project as assets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matrix import PYTHON, ROOT, install
from tests.recipes.recipe import PROJECT, SCHEDULING, Recipe

DEFINITIONS = """
from pathlib import Path
import dagster as dg
from dagster_dbt import DbtCliResource, DbtProject, dbt_assets
project = DbtProject(project_dir=Path(__file__).parent)
project.prepare_if_dev()
@dbt_assets(
    manifest=project.manifest_path,
    pool="spark",
    retry_policy=dg.RetryPolicy(max_retries=1, delay=1),
)
def shop(context: dg.AssetExecutionContext, dbt: DbtCliResource):
    yield from dbt.cli(["build"], context=context).stream()
every_night = dg.define_asset_job("every_night", selection=dg.AssetSelection.all())
defs = dg.Definitions(
    assets=[shop],
    jobs=[every_night],
    schedules=[dg.ScheduleDefinition(job=every_night, cron_schedule="0 5 * * *")],
    resources={"dbt": DbtCliResource(project_dir=project)},
)
"""
COMMANDS = (
    "mkdir -p dagster_home && touch dagster_home/dagster.yaml",
    "export DAGSTER_HOME=$PWD/dagster_home",
    "dagster instance concurrency set spark 1",
    "dbt parse",
    "dagster job execute -f definitions.py -j every_night",
)

# prints the lineage of an asset
STORED = """
import dagster as dg
stored = dg.DagsterInstance.get().get_latest_materialization_event(dg.AssetKey("customers"))
metadata = stored.asset_materialization.metadata
for column in metadata["dagster/column_schema"].schema.columns:
    for source in metadata["dagster/column_lineage"].lineage.deps_by_column[column.name]:
        print(f"{column.name}: {source.asset_key.to_user_string()}.{source.column_name}")
"""


@pytest.fixture
def dagster(tmp_path: Path) -> Recipe:
    recipe = Recipe(PROJECT, tmp_path)
    recipe.take(SCHEDULING, PROJECT)
    recipe.write("definitions.py", DEFINITIONS)
    environment = ROOT / "build" / "recipes" / "dagster"
    install(environment, PYTHON, ["java"], ["dagster-dbt"])
    (tmp_path / ".venv").symlink_to(environment)
    return recipe


def test_a_job_publishes_every_asset(dagster: Recipe) -> None:
    result = dagster.shell("\n".join(COMMANDS))

    assert not result.returncode
    assert dagster.published() == {"orders": [6], "customers": [3]}
    assert "Asset check 'not_null_orders_amount' on 'orders' passed." in result.stderr


def test_a_job_stores_columns_and_their_lineage(dagster: Recipe) -> None:
    dagster.replace("definitions.py", ".stream()", ".stream().fetch_column_metadata()")

    result = dagster.shell("\n".join([*COMMANDS, f"python -c '{STORED}'"]))

    assert not result.returncode
    assert "customer: orders.customer\namount: orders.amount\n" in result.stdout


def test_a_failed_test_publishes_nothing(dagster: Recipe) -> None:
    dagster.replace("models/orders.sql", "id * 10 as amount", "nullif(id, 5) * 10 as amount")

    assert dagster.shell("\n".join(COMMANDS)).returncode
    assert dagster.published() == {}
