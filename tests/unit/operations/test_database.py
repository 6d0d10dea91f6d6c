"""The run-operations that change a mirrored database."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.operations.run_operations import DatabaseOperations
from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase
from tests.fabric_server import Credential, Database, FabricServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FabricServer:
    created = FabricServer()
    created.connect(monkeypatch)
    created.workspace("Sales", Database("shop"))
    return created


@pytest.fixture
def shop(server: FabricServer) -> DatabaseOperations:
    return DatabaseOperations(
        MirroredDatabase("Sales", "shop.MirroredDatabase", Credential(), server.clock)
    )


def test_stopping_needs_the_name_of_the_mirrored_database(
    server: FabricServer, shop: DatabaseOperations
) -> None:
    for given in ({}, {"confirm": "another"}):
        with pytest.raises(CompilationError, match="confirm: shop"):
            list(shop.stop(given))
    assert server.requests == []

    assert "--full-refresh" in list(shop.stop({"confirm": "shop"}))[-1]
    assert server.workspaces[0].databases[0].status == "Stopped"
    assert "Nothing was changed" in next(shop.stop({"confirm": "shop"}))


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("Running", ["already running"]),
        ("Initialized", ["was started"]),
        ("Stopped", ["was started", "--full-refresh"]),
    ],
)
def test_starting_tells_what_was_done(
    server: FabricServer, shop: DatabaseOperations, status: str, told: list[str]
) -> None:
    server.workspaces[0].databases[0].statuses = [status]

    lines = list(shop.start({}))

    assert [part in line for line, part in zip(lines, told, strict=True)] == [True] * len(told)


def test_creating_tells_what_was_done_and_the_definition_is_printed_as_git_has_it(
    server: FabricServer, shop: DatabaseOperations
) -> None:
    server.workspaces[0].databases.clear()

    def create(**settings: Any) -> list[str]:
        return list(shop.create(settings))

    assert "mirror_start" in create(retention_days=7)[-1]
    assert "Nothing was changed" in create()[0]
    assert "Nothing was changed" in create(retention_days=7, default_schema="dbo")[0]
    [line] = create(retention_days=1, change_data_feed=False)
    assert line.endswith("retentionInDays 7 -> 1; enableDeltaChangeDataFeed not set -> False")

    lines = list(shop.definition({}))

    assert json.loads("\n".join(lines))["properties"]["target"]["typeProperties"] == {
        "defaultSchema": "dbo",
        "format": "Delta",
        "retentionInDays": 1,
        "enableDeltaChangeDataFeed": False,
    }
    assert lines[:2] == ["{", '  "properties": {']
