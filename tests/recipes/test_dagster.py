"""Dagster materializes a project as assets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matrix import ROOT
from tests.pages import text_of
from tests.recipes.recipe import Recipe

pytestmark = [pytest.mark.slow, pytest.mark.recipe]

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
    recipe = Recipe("Dagster", tmp_path)
    recipe.set_up()
    # a minute between two tries is for real failures
    recipe.replace("definitions.py", "delay=60", "delay=1")
    return recipe


def test_a_job_publishes_every_asset(dagster: Recipe) -> None:
    result = dagster.shell("\n".join(dagster.commands()))

    assert not result.returncode
    assert dagster.published() == {"orders": [6], "customers": [3]}
    for event in ("ASSET_MATERIALIZATION", "ASSET_CHECK_EVALUATION"):
        assert event in result.stderr


def test_a_job_stores_columns_and_their_lineage(dagster: Recipe) -> None:
    added = ".fetch_column_metadata()"
    assert f".stream(){added}" in text_of(ROOT / "docs" / "scheduling.md", "Dagster")
    dagster.replace("definitions.py", ".stream()", f".stream(){added}")

    result = dagster.shell("\n".join([*dagster.commands(), f"python -c '{STORED}'"]))

    assert not result.returncode
    assert "customer: orders.customer\namount: orders.amount\n" in result.stdout


def test_a_failed_test_fails_the_job_and_publishes_nothing(dagster: Recipe) -> None:
    dagster.replace("models/orders.sql", "id * 10 as amount", "nullif(id, 5) * 10 as amount")

    result = dagster.shell("\n".join(dagster.commands()))

    assert result.returncode
    assert dagster.published() == {}
