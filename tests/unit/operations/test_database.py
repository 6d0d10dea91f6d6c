"""The run-operations that change a mirrored database."""

from __future__ import annotations

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.operations.database import DatabaseOperations
from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase
from tests.fabric_server import Credential, Database, FabricServer


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FabricServer:
    created = FabricServer()
    created.connect(monkeypatch)
    created.workspace("Sales", Database("shop"))
    return created


@pytest.fixture
def database(server: FabricServer) -> MirroredDatabase:
    return MirroredDatabase("Sales", "shop.MirroredDatabase", Credential(), server.clock)


def test_stopping_needs_the_name_of_the_mirrored_database(
    server: FabricServer, database: MirroredDatabase
) -> None:
    for confirm in (None, "another", True):
        with pytest.raises(CompilationError, match="confirm: shop"):
            list(DatabaseOperations(database).stop(confirm))  # type: ignore[arg-type]
    assert server.requests == []

    assert "--full-refresh" in list(DatabaseOperations(database).stop("shop"))[-1]
    assert server.workspaces[0].databases[0].status == "Stopped"
    assert "Nothing was changed" in next(DatabaseOperations(database).stop("shop"))


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ("Running", ["runs already"]),
        ("Initialized", ["was started"]),
        ("Stopped", ["was started", "--full-refresh"]),
    ],
)
def test_starting_tells_what_was_done(
    server: FabricServer, database: MirroredDatabase, status: str, told: list[str]
) -> None:
    server.workspaces[0].databases[0].statuses = [status]

    lines = list(DatabaseOperations(database).start())

    assert [part in line for line, part in zip(lines, told, strict=True)] == [True] * len(told)


@pytest.mark.parametrize("days", [0, 31, "7", 1.5])
def test_a_retention_that_fabric_does_not_have_is_refused(
    server: FabricServer, database: MirroredDatabase, days: object
) -> None:
    with pytest.raises(CompilationError, match="1 to 30"):
        list(DatabaseOperations(database).create("dbo", days))  # type: ignore[arg-type]
    assert server.requests == []


def test_creating_tells_what_was_done(server: FabricServer, database: MirroredDatabase) -> None:
    [line] = DatabaseOperations(database).create("dbo", None)
    assert "there already" in line

    server.workspaces[0].databases.clear()
    assert "mirror_start" in list(DatabaseOperations(database).create("dbo", 7))[-1]
