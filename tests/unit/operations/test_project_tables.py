"""The tables of a dbt project, by its graph and by the replicator."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.destination import lost_table
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations.project_tables import (
    ProjectTables,
    mirrored_nodes,
)
from dbt.adapters.openmirroring.operations.status import status_lines
from dbt.adapters.openmirroring.service.reports import ServiceReport, TableReport
from tests.onelake_server import ROOT, OneLakeServer
from tests.unit.operations.tables import publish

GUID = "1c531795-a42a-447f-b9d1-72eb60bba258"


def node(name: str, kind: str = "model", **config: Any) -> dict[str, Any]:
    return {
        "unique_id": f"{kind}.shop.{name}",
        "name": name,
        "alias": config.pop("alias", name),
        "schema": "sales",
        "resource_type": kind,
        "config": {"materialized": "table", **config},
    }


def test_table_like_nodes_are_mirrored_unless_their_configuration_says_no() -> None:
    nodes = [
        node("table"),
        node("incremental", materialized="incremental"),
        node("seed", "seed", materialized="seed"),
        node("snapshot", "snapshot", materialized="snapshot", mirror=True),
        node("local", mirror=False),
        node("view", materialized="view"),
        node("failures", "test"),
    ]

    names = [found.name for found in mirrored_nodes(nodes)]

    assert names == ["table", "incremental", "seed", "snapshot"]


@pytest.mark.parametrize("text", ["sales.past", "past", "history", "model.shop.history"])
def test_a_node_is_found_by_each_of_its_names(storage: Storage, text: str) -> None:
    tables = ProjectTables(
        storage, "shop", "sales", [node("orders"), node("history", alias="past")]
    )

    assert tables.node(text).table == "sales.past"


def test_a_table_without_a_schema_folder_is_called_by_its_name_alone(storage: Storage) -> None:
    tables = ProjectTables(storage, "shop", "sales", [node("orders", schema_folder=False)])

    assert tables.node("model.shop.orders").table == "orders"
    (status,) = tables.statuses()
    assert (status.table, status.mirrored_table) == ("orders", "dbo.orders")


def test_a_name_of_several_tables_is_refused(storage: Storage) -> None:
    tables = ProjectTables(storage, "shop", "sales", [node("a", alias="b"), node("b", alias="c")])

    with pytest.raises(DbtRuntimeError, match=r"more than one mirrored table: sales\.b, sales\.c"):
        tables.node("b")


def status_of_orders(storage: Storage, report: ServiceReport) -> list[str]:
    """The cells of the service, as far as they have anything."""
    _, line = status_lines(ProjectTables(storage, "shop", "sales", [node("orders")]), report)
    return _after_changes(line)


def _after_changes(line: str) -> list[str]:
    return re.split(r"\s{2,}", line)[7:]


def reported(status: str, error: str, last_sync: datetime | None) -> ServiceReport:
    return ServiceReport("Running", "", {"sales.orders": TableReport(status, error, last_sync)})


def test_a_table_is_behind_until_the_service_has_applied_something_since(storage: Storage) -> None:
    time = publish(storage)
    before, after = time - timedelta(seconds=1), time + timedelta(seconds=1)

    def of(last_sync: datetime | None, error: str = "") -> list[str]:
        return status_of_orders(storage, reported("Replicating", error, last_sync))

    assert of(after) == ["Replicating", f"{after:%Y-%m-%d %H:%M:%S}"]
    assert of(before) == ["Replicating", f"{before:%Y-%m-%d %H:%M:%S}", "behind"]
    assert of(None) == ["Replicating", "behind"]
    assert of(before, "no good")[2:] == ["behind; no good"]


def test_a_table_that_has_failed_is_behind_whenever_it_was_synchronized(storage: Storage) -> None:
    after = publish(storage) + timedelta(seconds=1)

    status = status_of_orders(storage, reported("Failed", "no good", after))

    assert status[-1] == "behind; no good"


def test_a_table_without_a_schema_folder_has_the_default_schema_in_the_service(
    storage: Storage,
) -> None:
    after = publish(storage, schema="") + timedelta(seconds=1)
    report = ServiceReport("Running", "", {"dbo.orders": TableReport("Replicating", "", after)})
    at_root = node("orders")
    at_root["config"]["schema_folder"] = False

    _, line = status_lines(ProjectTables(storage, "shop", "sales", [at_root]), report)

    assert _after_changes(line) == ["Replicating", f"{after:%Y-%m-%d %H:%M:%S}"]


def test_a_table_that_the_service_does_not_have_is_behind(storage: Storage) -> None:
    publish(storage)

    assert status_of_orders(storage, ServiceReport("Running")) == ["behind"]


def test_without_a_service_nobody_knows_whether_a_table_is_behind(storage: Storage) -> None:
    publish(storage)

    assert status_of_orders(storage, ServiceReport()) == []


def test_the_state_has_a_colour_in_a_terminal_only(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(storage)
    tables = ProjectTables(storage, "shop", "sales", [node("orders")])
    green = "\x1b[32mpublished\x1b[0m"

    monkeypatch.setattr("dbt_common.ui.USE_COLOR", True)
    assert green in status_lines(tables, ServiceReport(), 80)[1]
    assert green not in status_lines(tables, ServiceReport())[1]

    monkeypatch.setattr("dbt_common.ui.USE_COLOR", False)  # --no-use-colors
    assert green not in status_lines(tables, ServiceReport(), 80)[1]


def test_a_batch_without_files_leaves_no_table_behind(storage: Storage) -> None:
    last_sync = publish(storage)
    publish(storage, files=0)

    told = status_of_orders(storage, reported("Replicating", "", last_sync))

    assert told[2:] == []


def test_many_tables_take_two_requests_each_at_most(server: OneLakeServer) -> None:
    storage = server.storage()
    names = [f"t{i}" for i in range(20)]
    for name in names:
        for _ in range(2):
            publish(storage, table=name)
        first = f"sales.schema/{name}/{1:020d}.parquet"
        storage.rename(first, first.replace(name, f"{name}/_ProcessedFiles"))
    publish(storage, table="gone")
    storage.write("_scratchPad/sales.t0/held.json", b"{}")
    tables = ProjectTables(storage, "shop", "sales", [node(name) for name in [*names, "new"]])
    server.requests.clear()

    states = {status.table: status.state for status in tables.statuses()}

    assert states == {
        "sales.t0": "held",
        **{f"sales.{name}": "published" for name in names[1:]},
        "sales.gone": "elsewhere",
        "sales.new": "not published",
    }
    assert len(server.requests) <= 2 * len(states)


@pytest.mark.parametrize(
    "prefix", [ROOT, "1c531795-a42a-447f-b9d1-72eb60bba258/Files/LandingZone"]
)
def test_the_files_of_all_tables_are_those_of_each_folder(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    """OneLake may call the item by its id in a listing."""
    storage = server.storage()
    publish(storage)
    storage.write("_scratchPad/sales.orders/x", b"1")
    folders = ("", "sales.schema", "sales.schema/orders", "_scratchPad/sales.orders", "none")
    expected = [storage.list(folder) for folder in folders]
    server.shown_root = prefix

    files = storage.at_once()

    assert [files.list(folder) for folder in folders] == expected
    assert files.read("_scratchPad/sales.orders/x") == b"1"
    assert files.read("_scratchPad/sales.orders/y") is None


def test_a_table_that_fabric_has_lost_is_reported(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lost_table, "NEW", timedelta())
    publish(storage)
    publish(storage)
    first = f"sales.schema/orders/{1:020d}.parquet"
    storage.rename(first, first.replace("orders/", "orders/_ProcessedFiles/"))

    (told,) = status_of_orders(storage, ServiceReport("Running"))

    assert told.startswith("behind; Fabric no longer mirrors sales.orders")
    assert status_of_orders(storage, ServiceReport()) == []
