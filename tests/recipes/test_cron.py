"""The lines of crontabs run a project every night, and mail which tables need attention."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from tests.recipes.recipe import Recipe

FULL_LOAD = {"orders": [6], "customers": [3]}


@pytest.fixture
def cron(tmp_path: Path) -> Recipe:
    recipe = Recipe("cron", tmp_path)
    recipe.set_up()
    return recipe


def line(cron: Recipe) -> str:
    """The command of the crontab."""
    last = (cron.folder / "crontab").read_text().splitlines()[-1]
    return last.split(maxsplit=5)[5]


def test_a_run_prints_nothing_and_publishes_everything(cron: Recipe) -> None:
    night = cron.shell(line(cron), {"PATH": "/usr/bin:/bin"})

    assert (night.returncode, night.stdout, night.stderr) == (0, "", "")
    assert cron.published() == FULL_LOAD


def test_a_run_is_skipped_while_the_one_before_runs(cron: Recipe) -> None:
    with (cron.folder / "nightly.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        night = cron.shell(line(cron))

    assert night.returncode
    assert cron.published() == {}


def test_a_failed_test_is_printed_and_a_mail_says_what_waits_for_it(cron: Recipe) -> None:
    nightly = line(cron)
    cron.shell(nightly)
    cron.take("recipes", "Alerts")
    fine = cron.shell(line(cron))
    assert (fine.returncode, fine.stdout, fine.stderr) == (0, "", "")
    cron.replace("models/orders.sql", "id * 10 as amount", "nullif(id, 5) * 10 as amount")

    night, held = cron.shell(nightly), cron.shell(line(cron))

    assert night.returncode
    assert "not_null_orders_amount" in night.stdout
    assert cron.published() == FULL_LOAD
    assert held.returncode
    assert "sales.orders: held: because not_null_orders_amount failed" in held.stdout

    cron.replace("models/orders.sql", "nullif(id, 5) * 10 as amount", "(id + 1) * 10 as amount")

    assert not cron.shell(nightly).returncode
    assert cron.published() == {"orders": [6, 6], "customers": [3, 3]}
