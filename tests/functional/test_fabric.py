"""A landing zone of Fabric: what its REST API says before, while and after dbt publishes.

The replicator does the work of Fabric each time that the REST API is asked for the tables.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import trustme
from dbt.adapters.events.logging import AdapterLogger
from deltalake import DeltaTable

from dbt.adapters.openmirroring.destination import replica
from dbt.adapters.openmirroring.service import monitoring
from tests.fabric_server import Database, FabricServer, sync
from tests.functional.onelake import apply
from tests.functional.project import Project
from tests.functional.test_replica import declare_test, outcome
from tests.onelake_driver import proxy
from tests.onelake_server import OneLakeServer, listening

ORDERS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"


@pytest.fixture
def database(onelake: Project, fabric: FabricServer) -> Database:
    """The mirrored database of the project's landing zone; it runs."""
    [created] = fabric.workspaces[0].databases
    created.scan = lambda: apply(onelake.landing_zone)
    return created


def warnings(project: Project, *command: str) -> str:
    """Return the warnings of a command that succeeds."""
    with patch.object(AdapterLogger, "warning") as warning:
        assert project.dbt(*command)
    return "\n".join(call.args[0] for call in warning.call_args_list)


@pytest.mark.core
def test_a_rebuild_waits_for_fabric_and_changes_follow_it(
    project: Project, database: Database
) -> None:
    project.model(ORDERS, unique_key="id")
    project.run()
    project.mirror()
    project.model("select 1 as id, 2 as name", unique_key="id")
    assert project.run()["publication"] == "rebuild"
    told = [t["sourceTableName"] for t in database.scan()]
    project.model("select 1 as id, 3 as name", unique_key="id")

    assert project.run()["publication"] == "changes"

    assert told == ["orders"]
    project.assert_mirrored()


def test_a_command_waits_only_for_rebuilds_of_tables_that_it_needs(
    project: Project, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("orders", "regions", "returns"):
        project.model(ORDERS, name, unique_key="id")
    project.write(
        "models/latest.sql",
        "{{ config(materialized='view') }} select * from {{ ref('orders') }}",
    )
    project.model("select count(*) as number from {{ ref('latest') }}", "counts")
    assert project.dbt("run")
    tables, scan = database.scan(), database.scan
    for name in ("orders", "regions"):
        project.model("select 1 as id, 2 as name", name, unique_key="id")
    database.scan = lambda: tables  # Fabric drops nothing
    with monkeypatch.context() as impatient:
        impatient.setattr(monitoring, "REBUILD_TIMEOUT", 0.05)
        assert "has not dropped" in project.fail("--select", "orders", "regions")

    told = warnings(project, "run", "--select", "returns")

    assert told.count("This command has run no node that needs the table") == 2
    database.scan = scan
    assert project.dbt("run", "--select", "counts")
    assert project.relation("counts") == {(("number", "int 1"),): 1}
    unfinished = project.landing_zone / "_scratchPad"
    assert [path.name for path in unfinished.iterdir()] == [f"{project.schema}.regions"]
    [way_out] = set(re.findall(r"dbt (run-operation mirror_recover)", told))
    assert project.dbt(*way_out.split())
    for name in ("orders", "regions", "counts"):
        project.assert_mirrored(name)


def test_a_table_that_fabric_has_lost_is_published_anew_as_the_message_says(
    project: Project, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "NEW", timedelta())
    project.model(ORDERS, unique_key="id")
    project.run()
    project.model(f"{ORDERS} where id = 1", unique_key="id")
    project.run()
    database.scan()
    scan, database.scan = database.scan, list  # it was stopped and started
    before = project.state()

    message = project.fail()

    assert "no longer mirrors" in message
    assert "(1 were published last)" in message
    assert project.state() == before
    database.scan = scan
    [arguments] = re.findall(r"dbt run-operation mirror_rebuild --args '(.*)'", message)
    assert project.dbt("run-operation", "mirror_rebuild", "--args", arguments)
    assert len(project.files()) == 1
    project.assert_mirrored()


def test_the_first_files_come_before_the_start_and_stopping_must_be_confirmed(
    project: Project,
    database: Database,
    fabric: FabricServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fabric.workspaces[0].databases.clear()
    project.model(ORDERS, unique_key="id")

    assert "mirror_create_database" in project.fail()
    arguments = "{default_schema: sales, retention_days: 7}"
    assert project.dbt("run-operation", "mirror_create_database", "--args", arguments)
    [created] = fabric.workspaces[0].databases
    created.scan = database.scan
    capsys.readouterr()
    assert project.dbt("run-operation", "mirror_definition")
    target = json.loads(capsys.readouterr().out)["properties"]["target"]["typeProperties"]
    assert target == {"defaultSchema": "sales", "format": "Delta", "retentionInDays": 7}
    assert "mirror_start" in warnings(project, "run")
    assert project.dbt("run-operation", "mirror_start")

    assert created.status == "Running"
    project.assert_mirrored()
    assert not project.dbt("run-operation", "mirror_stop")
    assert created.status == "Running"
    assert project.dbt("run-operation", "mirror_stop", "--args", "{confirm: mirror}")
    assert created.status == "Stopped"
    assert not project.dbt("debug")


@pytest.fixture
def readable(
    onelake: Project,
    server: OneLakeServer,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Path]:
    """The mirrored tables are in OneLake, for deltalake too; here they can be changed."""
    tables = onelake.landing_zone.parents[1] / "Tables"
    scan = database.scan

    def scan_and_show() -> list[dict[str, Any]]:
        told = scan()
        server.show_tables(tables)
        return told

    database.scan = scan_and_show
    with listening(server, trustme.CA()) as port, proxy(port) as proxy_port:
        through = {"proxy_url": f"http://127.0.0.1:{proxy_port}"}
        trusted = {"allow_invalid_certificates": "true"}
        options = replica.OPTIONS | through | trusted
        monkeypatch.setattr(replica, "OPTIONS", options)
        yield tables


def compare(project: Project, timeout: int) -> str:
    """Return the message of the data test; empty if the mirrored table is equal."""
    declare_test(project, timeout=timeout)
    return "" if project.dbt("test") else outcome(project)[1]


def test_a_data_test_compares_the_mirrored_table_in_onelake_or_says_why_it_cannot(
    project: Project, database: Database, server: OneLakeServer, readable: Path
) -> None:
    columns = "id, name, cast(id as decimal(9, 2)) as price, timestamp'2024-02-29 23:59' as at"
    project.model(f"select {columns} from ({ORDERS})", unique_key="id")
    project.run()
    scan, database.scan = database.scan, list
    assert f"not applied within 0 seconds: {project.schema}.orders" in compare(project, 0)
    database.scan = scan
    server.fail("refused", "list blobs", times=100)
    told = compare(project, 0)
    assert f"The mirrored table {project.schema}.orders cannot be read" in told
    assert "permission to read all OneLake data" in told
    server.faults.clear()

    assert compare(project, 5) == ""

    DeltaTable(readable / project.schema / "orders").update({"name": "'B'"}, predicate="id = 2")
    assert "Got 1 result" in compare(project, 5)
    assert not [path for path in (project.path / "staging").rglob("*") if path.is_file()]
    shutil.rmtree(readable)


def test_a_command_waits_until_all_is_applied_and_reports_see_it_or_warns(
    project: Project, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    project.target |= {"wait_for_mirror": 30, "refresh_sql_endpoint": True}
    project.write_project()
    project.model(ORDERS, unique_key="id")
    table = f"{project.schema}.orders"
    times: list[str] = []

    def refresh() -> list[dict[str, Any]]:
        times.append(f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%S.%f}0Z")
        return [sync(table, ended=times[-1])]

    database.refresh = refresh

    assert warnings(project, "run") == ""
    assert project.landing_zone.parents[1].joinpath("Tables", project.schema, "orders").exists()
    capsys.readouterr()
    assert project.dbt("run-operation", "mirror_status")
    headline, line = capsys.readouterr().out.splitlines()[-2:]
    assert line[headline.index("visible") :] == times[0][:19].replace("T", " ")
    project.run()
    assert len(times) == 1, "nothing new was published"

    project.model(f"{ORDERS} where id = 1", unique_key="id")
    database.refresh = lambda: [sync("orders", "Failure", error="No token.")]
    assert f"{table}: AdalRetryException: No token." in warnings(project, "run")

    project.model(ORDERS, unique_key="id")
    project.target["wait_for_mirror"] = 0.1
    project.write_project()
    tables = database.scan()
    scan, database.scan = database.scan, lambda: tables
    assert "orders: Replicating" in warnings(project, "run")
    database.scan = scan
    project.assert_mirrored()


@pytest.mark.core
def test_a_run_on_a_new_machine_restores_its_tables_from_onelake(
    project: Project,
    server: OneLakeServer,
    readable: Path,
    record_property: Callable[[str, object], None],
) -> None:
    project.target["restore_baseline"] = True
    project.write_project()
    project.model(f"{ORDERS} where id < 2", unique_key="id")
    project.run()
    project.go_to_another_machine()
    project.model(ORDERS.replace("'b'", "'c'"), unique_key="id")
    server.fail("refused", "list blobs", times=100)
    refused = project.fail()
    assert f"The mirrored table {project.schema}.orders cannot be read" in refused
    assert "permission to read all OneLake data" in refused
    assert project.tables() == []
    server.faults.clear()
    before = server.counts()

    project.run()

    record_property("requests of a restored change set", sum((server.counts() - before).values()))
    assert project.results()["orders"]["message"].startswith("+1 ~0 -0")
    assert (readable / project.schema / "orders").exists()
    project.assert_mirrored()
    assert not [path for path in (project.path / "staging").rglob("*") if path.is_file()]
