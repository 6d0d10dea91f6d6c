"""Dagster materializes a project as assets, and mails what its tables need."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.matrix import ROOT
from tests.pages import text_of
from tests.recipes.recipe import Recipe, comparable, told

# prints the lineage of an asset
STORED = """
import dagster as dg
stored = dg.DagsterInstance.get().get_latest_materialization_event(dg.AssetKey("customers"))
metadata = stored.asset_materialization.metadata
for column in metadata["dagster/column_schema"].schema.columns:
    for source in metadata["dagster/column_lineage"].lineage.deps_by_column[column.name]:
        print(f"{column.name}: {source.asset_key.to_user_string()}.{source.column_name}")
"""

# sends the mail about the last run, as Dagster's daemon does, and prints it in place of a server
MAIL = """
import contextlib, smtplib
import dagster as dg
import alerts
class Server:
    def login(self, user, password): pass
    def sendmail(self, sender, to, message): print(message)
smtplib.SMTP_SSL = lambda *_, **__: contextlib.nullcontext(Server())
instance = dg.DagsterInstance.get()
run = instance.get_runs(limit=1)[0]
failure = dg.DagsterEventType.RUN_FAILURE
[event] = [each.dagster_event for each in instance.all_logs(run.run_id, of_type=failure)]
context = dg.build_run_status_sensor_context("mail", event, instance, run)
alerts.mail(context.for_run_failure())
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
    for line in dagster.shown():
        assert line in comparable(result.stderr)


def test_a_job_stores_columns_and_their_lineage(dagster: Recipe) -> None:
    added = ".fetch_column_metadata()"
    assert f".stream(){added}" in text_of(ROOT / "docs" / "scheduling.md", "Dagster")
    dagster.replace("definitions.py", ".stream()", f".stream(){added}")

    result = dagster.shell("\n".join([*dagster.commands(), f"python -c '{STORED}'"]))

    assert not result.returncode
    assert "customer: orders.customer\namount: orders.amount\n" in result.stdout


def test_a_failed_test_publishes_nothing_and_a_mail_says_what_its_table_waits_for(
    dagster: Recipe,
) -> None:
    dagster.take("alerts")
    dagster.replace("models/orders.sql", "id * 10 as amount", "nullif(id, 5) * 10 as amount")
    *first, build = dagster.commands()
    assert dagster.shell("\n".join([*first, build])).returncode
    assert dagster.published() == {}
    check = build.replace("definitions.py -j every_night", "alerts.py -j shop_check")
    assert check != build
    secret = {"SMTP_PASSWORD": "s3cret"}

    assert dagster.shell("\n".join([*first, check]), secret).returncode

    (dagster.folder / "mail.py").write_text(MAIL)
    mail = dagster.shell("\n".join([*first, "python mail.py"]), secret)
    assert not mail.returncode
    assert "A mirrored table needs somebody" in mail.stdout
    assert told("alerts", "sales.orders: held") in mail.stdout
