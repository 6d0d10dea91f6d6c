"""What a dbt command does, by its name and flags."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import click
import pytest
from dbt.cli.main import cli

from dbt.adapters.openmirroring.dbt_core import flags


@pytest.mark.parametrize(
    ("given", "publishes", "tests", "runs_hooks"),
    [
        ({"WHICH": "run"}, True, False, True),
        ({"WHICH": "seed"}, True, False, True),
        ({"WHICH": "test"}, False, True, True),
        ({"WHICH": "build"}, True, True, True),
        ({"WHICH": "retry"}, True, True, True),
        ({"WHICH": "build", "EMPTY": False, "SAMPLE": None}, True, True, True),
        ({"WHICH": "build", "EMPTY": True}, False, False, True),
        ({"WHICH": "build", "SAMPLE": "3 days"}, False, False, True),
        ({"WHICH": "show"}, False, False, False),
        ({}, False, False, False),
    ],
)
def test_a_command_publishes_and_tests_only_all_rows(
    monkeypatch: pytest.MonkeyPatch,
    given: dict[str, Any],
    publishes: bool,
    tests: bool,
    runs_hooks: bool,
) -> None:
    monkeypatch.setattr(flags, "_flags", lambda: SimpleNamespace(**given))

    assert flags.is_publishing() == publishes
    assert flags.is_testing() == tests
    assert flags.is_running_hooks() == runs_hooks


def test_a_command_is_running_only_while_dbt_runs_one() -> None:
    assert not flags.is_in_command()
    with click.Context(click.Command("other")):
        assert not flags.is_in_command()
    with click.Context(cli.commands["run"], parent=click.Context(cli)):
        assert flags.is_in_command()


@pytest.mark.parametrize(
    ("command", "needs_spark", "known"),
    [("run", True, ["model.shop.orders"]), ("retry", True, []), ("parse", False, [])],
)
def test_what_a_command_has_selected_is_known_but_for_a_retry(
    monkeypatch: pytest.MonkeyPatch, command: str, needs_spark: bool, known: list[str]
) -> None:
    monkeypatch.setattr(flags, "_flags", lambda: SimpleNamespace(WHICH=command))
    # a retry finds those of an earlier command in the process
    of_dbt = [] if command == "parse" else ["model.shop.orders"]
    monkeypatch.setattr("dbt.selected_resources.SELECTED_RESOURCES", of_dbt)

    assert flags.uses_spark() == needs_spark
    assert list(flags.selected()) == known
