"""Dagster materializes a project as assets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recipes.recipe import Recipe

pytestmark = [pytest.mark.slow, pytest.mark.recipe]


@pytest.fixture
def dagster(tmp_path: Path) -> Recipe:
    recipe = Recipe("dagster", tmp_path)
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


def test_a_failed_test_fails_the_job_and_publishes_nothing(dagster: Recipe) -> None:
    dagster.replace("models/orders.sql", "id * 10 as amount", "nullif(id, 5) * 10 as amount")

    result = dagster.shell("\n".join(dagster.commands()))

    assert result.returncode
    assert dagster.published() == {}
