"""The tables of a dbt project, by its graph and by the replicator."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.batch import RowCounts
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations.project_tables import (
    ProjectTables,
    mirrored_nodes,
)
from dbt.adapters.openmirroring.operations.status import check, status_lines
from dbt.adapters.openmirroring.service.reports import ServiceReport, TableReport
from tests.onelake_server import ROOT, OneLakeServer
from tests.unit.operations.tables import apply_first_file, node, publish

NOT_ASKED = ServiceReport()


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


def test_a_node_is_found_by_each_of_its_names_if_it_is_the_only_one(storage: Storage) -> None:
    nodes = [node("orders"), node("history", alias="past"), node("past", alias="future")]
    tables = ProjectTables(storage, "shop", "sales", nodes)

    for text in ("sales.past", "history", "model.shop.history"):
        assert tables.node(text).table == "sales.past"
    several = r"more than one mirrored table: sales\.future, sales\.past"
    with pytest.raises(DbtRuntimeError, match=several):
        tables.node("past")
    unknown = r"is not a mirrored table of this project\. Its mirrored tables: sales\.future, "
    with pytest.raises(DbtRuntimeError, match=unknown):
        tables.node("nothing")


def test_a_table_without_a_schema_folder_has_the_default_schema_in_the_service(
    storage: Storage,
) -> None:
    after = publish(storage, schema="") + timedelta(seconds=1)
    report = ServiceReport("Running", "", {"dbo.orders": TableReport("Replicating", "", after)})
    tables = ProjectTables(storage, "shop", "sales", [node("orders", schema_folder=False)])

    assert tables.node("model.shop.orders").table == "orders"
    (status,) = tables.statuses(report)
    assert (status.table, status.mirrored_table) == ("orders", "dbo.orders")
    assert (status.applied.status, status.is_behind) == ("Replicating", False)


def test_only_batches_of_this_project_are_unfinished(storage: Storage) -> None:
    publish(storage, completes=False)
    publish(storage, "returns", project="another", completes=False)

    assert [str(each.table) for each in orders(storage).unfinished()] == ["sales.orders"]


def orders(storage: Storage) -> ProjectTables:
    return ProjectTables(storage, "shop", "sales", [node("orders")])


def status_of_orders(storage: Storage, report: ServiceReport) -> list[str]:
    """The cells of the service, as far as they have anything."""
    _, line = status_lines(orders(storage), report)
    return re.split(r"\s{2,}", line)[7:]


def test_a_table_is_behind_until_the_service_has_applied_something_since(storage: Storage) -> None:
    time = publish(storage)
    before, after = time - timedelta(seconds=1), time + timedelta(seconds=1)
    told_before, told_after = (f"{each:%Y-%m-%d %H:%M:%S}" for each in (before, after))

    for applied, told in (
        (TableReport("Replicating", "", after), ["Replicating", told_after]),
        (TableReport("Replicating", "", before), ["Replicating", told_before, "behind"]),
        (TableReport("Replicating"), ["Replicating", "behind"]),
        (
            TableReport("Replicating", "no good", before),
            ["Replicating", told_before, "behind; no good"],
        ),
        (TableReport("Failed", "no good", after), ["Failed", told_after, "behind; no good"]),
    ):
        report = ServiceReport("Running", "", {"sales.orders": applied})
        assert status_of_orders(storage, report) == told
    assert status_of_orders(storage, ServiceReport("Running")) == ["behind"]
    assert status_of_orders(storage, NOT_ASKED) == []
    publish(storage, rows=RowCounts())
    report = ServiceReport("Running", "", {"sales.orders": TableReport("Replicating", "", time)})
    assert status_of_orders(storage, report)[2:] == [], "a batch without files is not missed"


def test_the_state_has_a_colour_in_a_terminal_only(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(storage)
    green = "\x1b[32mpublished\x1b[0m"

    monkeypatch.setattr("dbt_common.ui.USE_COLOR", True)
    assert green in status_lines(orders(storage), NOT_ASKED, 80)[1]
    assert green not in status_lines(orders(storage), NOT_ASKED)[1]

    monkeypatch.setattr("dbt_common.ui.USE_COLOR", False)  # --no-use-colors
    assert green not in status_lines(orders(storage), NOT_ASKED, 80)[1]


def test_many_tables_take_two_requests_each_at_most(server: OneLakeServer) -> None:
    storage = server.storage()
    names = [f"t{i}" for i in range(20)]
    for name in names:
        publish(storage, name)
        publish(storage, name)
        apply_first_file(storage, TableFolder("sales", name))
    publish(storage, "gone")
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
    of_status = len(server.requests)
    assert of_status <= 2 * len(states)
    check(tables, ServiceReport("Running"), "", "", timedelta(), timedelta(), as_json=True)
    assert len(server.requests) == 2 * of_status


@pytest.mark.parametrize(
    "prefix", [ROOT, "1c531795-a42a-447f-b9d1-72eb60bba258/Files/LandingZone"]
)
def test_the_files_of_all_tables_are_those_of_each_folder(
    server: OneLakeServer, prefix: str
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
