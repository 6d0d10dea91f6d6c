"""Commands that are too short for the optimizing compiler of the JVM."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from dbt.adapters.openmirroring.dbt_core import flags
from dbt.adapters.openmirroring.spark.embedded import short_commands
from dbt.adapters.openmirroring.spark.embedded.short_commands import ShortCommand

ONLY_C1 = ["-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=240m"]


def run(home: Path, *identity: str, statements: tuple[float, ...] = (0.1, 2.0)) -> list[str]:
    """Run a command and return the Java options of its next run."""
    command = ShortCommand(home, *identity)
    for seconds in statements:
        command.statement_took(seconds)
    command.end()
    return ShortCommand(home, *identity).java_options()


def test_a_new_command_has_the_optimizing_compiler(tmp_path: Path) -> None:
    assert ShortCommand(tmp_path, "run").java_options() == []


def test_a_command_that_was_short_leaves_it_out(tmp_path: Path) -> None:
    assert run(tmp_path, "run") == ONLY_C1


def test_a_command_with_a_long_statement_has_it_again(tmp_path: Path) -> None:
    run(tmp_path, "run")

    assert run(tmp_path, "run", statements=(0.1, 9.0, 0.1)) == []


def test_a_long_command_of_short_statements_has_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path, "run")
    monkeypatch.setattr(short_commands, "_SHORT_COMMAND", 0.0)

    assert run(tmp_path, "run") == []


def test_a_command_that_ran_no_statement_changes_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "run", statements=()) == []
    run(tmp_path, "run")

    assert run(tmp_path, "run", statements=()) == ONLY_C1


def test_another_selection_or_target_is_another_command(tmp_path: Path) -> None:
    run(tmp_path, "dev", "run", "('orders',)")

    assert ShortCommand(tmp_path, "prod", "run", "('orders',)").java_options() == []
    assert ShortCommand(tmp_path, "dev", "run", "()").java_options() == []


def test_a_command_that_only_checks_sql_tells_nothing_of_the_one_that_computes_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = set()
    for given in ({}, {"EMPTY": True}, {"SAMPLE": "3 days"}, {"FULL_REFRESH": True}):
        monkeypatch.setattr(
            flags, "_flags", lambda given=given: SimpleNamespace(WHICH="run", **given)
        )
        found.add(flags.selection())

    assert len(found) == 4


def test_a_record_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "short").touch()

    assert run(tmp_path, "run") == []
