"""What the graph of a dbt project and the replicator say of its tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.project_tables import (
    ProjectTables,
    ReplicatorReport,
    mirrored_nodes,
    replicator_reports,
)
from dbt.adapters.openmirroring.text_table import text_table


def node(name: str, kind: str = "model", **config: Any) -> dict[str, Any]:
    return {
        "unique_id": f"{kind}.shop.{name}",
        "name": name,
        "alias": config.pop("alias", name),
        "schema": "sales",
        "resource_type": kind,
        "config": {"materialized": "table", **config},
    }


def test_what_is_a_table_is_mirrored_unless_it_says_no() -> None:
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


def test_the_words_of_the_replicator_are_read(tmp_path: Path) -> None:
    landing_zone = tmp_path / "LandingZone"
    monitoring = tmp_path / "Monitoring" / "tables.json"
    table = {"sourceSchemaName": "sales", "sourceTableName": "orders", "status": "Failed"}

    assert replicator_reports(landing_zone) == {}
    monitoring.parent.mkdir()
    for damaged in ("", "[]", '{"tables": [1]}'):
        monitoring.write_text(damaged)
        assert replicator_reports(landing_zone) == {}
    monitoring.write_text(json.dumps({"tables": [{**table, "errorMessage": "no\n good"}]}))
    assert replicator_reports(landing_zone) == {
        "sales.orders": ReplicatorReport("Failed", "no good")
    }


def test_text_is_aligned() -> None:
    rows = [("name", "n", ""), ("a", "10", "a note"), ("longer", "1", "")]

    assert list(text_table(rows, numbers=(1,))) == [
        "name     n",
        "a       10  a note",
        "longer   1",
    ]
