"""A mirrored database, asked and changed by Fabric's REST API."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest

from dbt.adapters.openmirroring.rest import scopes
from dbt.adapters.openmirroring.service.mirrored_database import (
    FabricError,
    MirroredDatabase,
    Settings,
)
from dbt.adapters.openmirroring.service.reports import ServiceReport, TableReport, TableSync
from tests.fabric_server import Credential, Database, FabricServer, sync, table
from tests.onelake_server import TOKEN

ITEM = "shop.MirroredDatabase"
# texts of others are shown in a line that does nothing to a terminal
ERROR = {"errorCode": "OutOfLuck", "message": "No luck\n\x1b today."}
TOLD = "OutOfLuck: No luck ? today."


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FabricServer:
    created = FabricServer()
    created.connect(monkeypatch)
    return created


def mirrored_database(
    server: FabricServer, workspace: str = "Sales", item: str = ITEM
) -> MirroredDatabase:
    return MirroredDatabase(workspace, item, Credential(), server.clock)


def refusal(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(FabricError) as caught:
        call(*arguments)
    assert TOKEN not in str(caught.value)
    return str(caught.value.msg)


# Reports


def test_a_report_has_the_status_of_the_database_and_of_each_table(server: FabricServer) -> None:
    tables = [
        table("sales.orders", last_sync="2024-10-08T05:07:11.0663362Z"),
        table("sales.returns", "Failed", error="a column\n is gone"),
        table("sales.regions", "Snap\x1bshotting"),
    ]
    server.workspace("Sales", Database("shop", ["Paused\x07"], ERROR, scan=lambda: tables))

    assert mirrored_database(server).report() == ServiceReport(
        "Paused?",
        TOLD,
        {
            "sales.orders": TableReport(
                "Replicating", "", datetime(2024, 10, 8, 5, 7, 11, 66336, timezone.utc)
            ),
            "sales.returns": TableReport("Failed", "SchemaMergeFailure: a column is gone"),
            "sales.regions": TableReport("Snap?shotting"),
        },
    )


def test_a_database_that_was_never_started_has_no_tables(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop", ["Initialized"]))

    assert mirrored_database(server).report() == ServiceReport("Initialized")
    assert "getTablesMirroringStatus" not in server.paths()


def test_names_are_found_once_on_later_pages_whatever_their_case(server: FabricServer) -> None:
    for name in "abcd":
        server.workspace(name)
    server.workspace("Sales", *(Database(name) for name in "abcd"), Database("Shop"))
    database = mirrored_database(server, "sales")

    for _ in range(2):
        assert database.report().status == "Running"

    assert server.paths().count("workspaces") == 3
    assert server.paths().count("mirroredDatabases") == 3


@pytest.mark.parametrize(
    ("continuation", "told"),
    [
        ("https://api.fabric.microsoft.com/v1/workspaces?continuationToken=0", "sent before"),
        ("https://api.fabric.microsoft.com/v1/workspaces?continuationToken={}", "still another"),
        ("https://[", ""),
        ("https://elsewhere.example", ""),
        ("?", ""),
    ],
)
def test_a_list_ends_where_no_next_page_is_named_or_is_an_error_without_an_end(
    server: FabricServer, continuation: str, told: str
) -> None:
    server.workspace("Sales", Database("shop"))
    server.continuation = continuation
    database = mirrored_database(server)

    if told:
        assert told in refusal(database.report)
    else:
        assert database.report().status == "Running"
    assert len(server.requests) <= 1000


def test_guids_are_taken_as_they_are(server: FabricServer) -> None:
    database = Database("shop")
    workspace = server.workspace("Sales", database)

    assert mirrored_database(server, workspace.id, database.id).report().status == "Running"
    assert server.paths() == ["getMirroringStatus", "getTablesMirroringStatus"]


def test_a_missing_workspace_or_database_is_reported_with_a_way_out(server: FabricServer) -> None:
    server.workspace("Sales", Database("other"))

    assert "sees 'Sales'" in refusal(mirrored_database(server, "Marketing").report)
    assert "mirror_create_database" in refusal(mirrored_database(server).report)


def test_a_token_goes_to_fabric_alone_and_is_for_fabric(
    server: FabricServer, caplog: pytest.LogCaptureFixture
) -> None:
    """Pages and operations name other hosts; the server refuses requests to them."""
    caplog.set_level(logging.DEBUG)
    server.operation = [{"status": "Succeeded"}]
    for name in "abc":
        server.workspace(name)
    server.workspace("Sales", Database("shop", ["Initialized"]))
    credential = Credential()

    MirroredDatabase("Sales", ITEM, credential, server.clock).start()

    sent = {request.headers["authorization"] for request in server.requests}
    assert sent == {f"Bearer {TOKEN}"}
    assert set(credential.scopes) == {scopes.FABRIC}
    assert TOKEN not in caplog.text


# Faults, after which other requests are sent as those to OneLake are (`test_onelake.py`)


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504, None])
def test_a_passing_fault_of_fabric_is_not_noticed(
    server: FabricServer, status: int | None
) -> None:
    server.workspace("Sales", Database("shop"))
    for path in ("workspaces", "mirroredDatabases", "Status"):
        if status:
            server.fail(path, status)
        else:
            server.break_connection(path)

    assert mirrored_database(server).report().status == "Running"


def test_throttling_is_waited_for_as_long_as_fabric_says(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop"))
    server.fail("getMirroringStatus", 429, "RequestBlocked", times=2, Retry_After="55")

    assert mirrored_database(server).report().status == "Running"
    assert server.clock.slept == [55, 55]


def test_a_change_without_an_answer_is_not_repeated(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop", ["Initialized"]))
    server.break_connection("startMirroring")

    assert "cannot be reached" in refusal(mirrored_database(server).start)
    assert server.paths().count("startMirroring") == 1


@pytest.mark.parametrize(
    ("status", "code", "headers", "way_out"),
    [
        (307, "Moved", {"Location": "https://elsewhere.example/v1/workspaces"}, ""),
        (401, "Unauthorized", {}, "Check `authentication` in the profile. [OM702: "),
        (403, "InsufficientPrivileges", {}, "Service principals can use Fabric APIs"),
        (404, "ItemNotFound", {}, "`landing_zone`"),
        (404, "CapacityNotActive", {}, "capacity of the workspace is paused. Resume it"),
        (429, "RequestBlocked", {"Retry_After": "3600"}, "throttles this identity"),
        (429, "RequestBlocked", {"Retry_After": "55"}, "throttles this identity"),
        (503, "UnknownError", {}, "Fabric has an internal problem"),
    ],
)
def test_a_refusal_is_reported_with_its_request_and_a_way_out(
    server: FabricServer, status: int, code: str, headers: dict[str, str], way_out: str
) -> None:
    server.workspace("Sales", Database("shop"))
    server.fail("getMirroringStatus", status, code, times=20, **headers)

    told = refusal(mirrored_database(server).report)

    request = "(request cfafbeb1-8037-4d0c-896e-a46fb27ff227)"
    assert f"Fabric says {code}: The message of {code} {request}." in told
    assert way_out in told
    assert bool(server.clock.slept) == (status == 503 or headers.get("Retry_After") == "55")


# Creating and changing it


def defined(**settings: Any) -> Any:
    """A definition of somebody else's, with more in it than dbt writes."""
    target = {"defaultSchema": "dbo", "format": "Delta", **settings}
    return {
        "properties": {
            "source": {"type": "GenericMirror", "typeProperties": {"new": 1}},
            "target": {"type": "MountedRelationalDatabase", "typeProperties": target},
            "mountedTables": [],
        }
    }


@pytest.mark.parametrize("settings", [{"retentionInDays": 3}, {}])
def test_a_database_is_created_for_open_mirroring(
    server: FabricServer, settings: Settings
) -> None:
    workspace = server.workspace("Sales")
    database = mirrored_database(server)

    assert database.create(settings)

    [created] = workspace.databases
    assert (created.name, created.status) == ("shop", "Initialized")
    expected = defined(**settings)
    expected["properties"]["source"]["typeProperties"] = {}
    del expected["properties"]["mountedTables"]
    assert created.definition == expected

    database.start()
    asked = [r.method for r in server.requests if r.path.endswith("mirroredDatabases")]
    assert asked == ["GET", "POST"], "it is not looked for in lists that may lag"


def test_a_database_that_is_there_is_not_created_nor_one_by_its_id(server: FabricServer) -> None:
    workspace = server.workspace("Sales", Database("shop"))
    by_id = mirrored_database(server, workspace.id, str(uuid.uuid4()))

    assert not mirrored_database(server).create({})
    assert not by_id.create({})
    assert len(workspace.databases) == 1
    assert "Only Fabric gives ids" in refusal(by_id.update, {})


@pytest.mark.parametrize("operation", [[], [{"status": "Succeeded"}]])
def test_a_definition_is_changed_where_it_differs_and_nowhere_else(
    server: FabricServer, operation: list[dict[str, Any]]
) -> None:
    database = Database("shop", definition=defined(retentionInDays=1))
    workspace = server.workspace("Sales", database)
    server.operation = operation
    by_id = mirrored_database(server, workspace.id, database.id)
    settings: Settings = {
        "retentionInDays": 7,
        "enableDeltaChangeDataFeed": True,
        "defaultSchema": "dbo",
    }

    assert mirrored_database(server).update(settings) == {
        "retentionInDays": (1, 7),
        "enableDeltaChangeDataFeed": (None, True),
    }
    assert database.definition == defined(retentionInDays=7, enableDeltaChangeDataFeed=True)
    assert by_id.definition() == database.definition
    server.requests.clear()
    assert by_id.update(settings) == {}
    assert "updateDefinition" not in server.paths()


def test_the_default_schema_changes_only_while_nothing_is_mirrored(server: FabricServer) -> None:
    database = Database("shop", definition=defined())
    server.workspace("Sales", database)

    told = refusal(mirrored_database(server).update, {"defaultSchema": "sales"})

    assert "default schema of 'shop' is 'dbo'" in told
    assert "it is Running. Nothing was changed" in told
    assert "updateDefinition" not in server.paths()
    for status, schema in (("Stopped", "sales"), ("Initialized", "shop")):
        database.statuses = [status]
        mirrored_database(server).update({"defaultSchema": schema})
        assert database.definition == defined(defaultSchema=schema)


def test_a_change_of_the_definition_that_is_refused_is_reported(server: FabricServer) -> None:
    database = Database("shop", definition=defined())
    server.workspace("Sales", database)
    server.fail("updateDefinition", 400, "CorruptedPayload")

    assert "CorruptedPayload" in refusal(mirrored_database(server).update, {"retentionInDays": 7})
    assert database.definition == defined()


OTHER_SHAPES: list[Any] = [None, [], {}, "mirroring", {"properties": {"target": []}}]


@pytest.mark.parametrize(
    "parts",
    [
        *(None, [], "parts", [{}], [{"path": "mirroring.json"}]),
        *(Database("shop", definition=content).parts() for content in OTHER_SHAPES),
    ],
    ids=range(10),
)
def test_an_answer_without_a_definition_is_reported(
    server: FabricServer, monkeypatch: pytest.MonkeyPatch, parts: Any
) -> None:
    database = Database("shop", definition=defined())
    server.workspace("Sales", database)
    monkeypatch.setattr(database, "parts", lambda: parts)

    told = refusal(mirrored_database(server).definition)

    assert "The definition of the mirrored database 'shop' cannot be read: mirroring.json" in told


# Long running operations


@pytest.mark.parametrize(
    ("states", "told", "slept"),
    [
        (["NotStarted", "Running", "Succeeded"], "", 40),
        (["Running"], " was not created within 10 minutes. It may be later", 600),
        (["Running", "Failed"], f" was not created. Fabric says {TOLD}", 20),
    ],
    ids=["succeeds", "has no end", "fails"],
)
def test_a_long_running_operation_is_followed_to_its_end(
    server: FabricServer, states: list[str], told: str, slept: int
) -> None:
    server.workspace("Sales")
    server.operation = [{"status": state, "error": ERROR} for state in states]
    create = mirrored_database(server).create

    if told:
        assert refusal(create, {}).startswith(f"The mirrored database 'shop'{told}")
        # the budget of requests has shorter pauses
        assert sum(each for each in server.clock.slept if each >= 20) == slept
    else:
        assert create({})
        assert server.clock.slept[:2] == [20, 20]


def test_the_refusal_of_a_long_running_operation_is_reported(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop", ["Initialized"]))
    server.operation = [{"status": "Running"}]
    server.fail("startMirroring", 202, x_ms_operation_id="op")
    server.fail("op", 403, "InsufficientPrivileges")

    assert "InsufficientPrivileges" in refusal(mirrored_database(server).start)


# Starting and stopping it


@pytest.mark.parametrize(
    ("statuses", "before", "is_asked_for"),
    [
        (["Initializing", "Initialized"], "Initialized", True),
        (["Stopped"], "Stopped", True),
        (["Running"], "Running", False),
        (["Starting", "Running"], "Starting", False),
    ],
)
def test_a_database_is_started_as_soon_as_it_can_be_unless_it_runs(
    server: FabricServer, statuses: list[str], before: str, is_asked_for: bool
) -> None:
    database = Database("shop", statuses)
    server.workspace("Sales", database)

    assert mirrored_database(server).start() == before
    assert database.status == "Running"
    assert server.paths().count("startMirroring") == is_asked_for


@pytest.mark.parametrize("status", ["Running with warning", "RunningWithWarning"])
def test_a_database_that_runs_with_a_warning_runs(server: FabricServer, status: str) -> None:
    server.workspace("Sales", Database("shop", [status]), Database("new", ["Initialized"]))
    database, new = server.workspaces[0].databases
    new.acted = lambda _: new.statuses.__setitem__(-1, status)

    assert mirrored_database(server).start() == "Running"
    assert "startMirroring" not in server.paths()
    assert mirrored_database(server, item="new.MirroredDatabase").start() == "Initialized"
    assert database.status == new.status == status


def test_a_paused_database_is_not_started_anew(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop", ["Paused"]))

    assert "`Resume replication`" in refusal(mirrored_database(server).start)
    assert "startMirroring" not in server.paths()


def test_a_database_that_does_not_start_is_reported_with_its_error(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop", ["Starting"], ERROR))

    told = refusal(mirrored_database(server).start)

    assert f"not started within 10 minutes: it is Starting ({TOLD})" in told


@pytest.mark.parametrize("status", ["Running", "Initialized", "Stopped"])
def test_a_database_is_stopped_if_it_runs(server: FabricServer, status: str) -> None:
    database = Database("shop", [status])
    server.workspace("Sales", database)

    assert mirrored_database(server).stop() == (status == "Running")
    assert database.status == ("Stopped" if status == "Running" else status)
    assert server.paths().count("stopMirroring") == (status == "Running")


# Its SQL analytics endpoint


def test_a_refresh_of_the_sql_endpoint_tells_how_it_went_with_each_table(
    server: FabricServer,
) -> None:
    told = [
        sync("sales.orders", ended="2025-08-08T10:36:54.9651741Z", last="2024-01-01T00:00:00Z"),
        sync("regions", "NotRun", last="2025-08-06T08:32:53.3890146Z"),
        sync("returns", "Failure", error="The token\n is gone."),
    ]
    server.workspace("Sales", Database("shop", refresh=lambda: told))
    server.operation = [{"status": s} for s in ("NotStarted", "Running", "Succeeded")]

    assert mirrored_database(server).refresh_sql_endpoint() == [
        TableSync(
            "sales.orders",
            "Success",
            visible=datetime(2025, 8, 8, 10, 36, 54, 965174, timezone.utc),
        ),
        TableSync(
            "regions", "NotRun", visible=datetime(2025, 8, 6, 8, 32, 53, 389014, timezone.utc)
        ),
        TableSync("returns", "Failure", "AdalRetryException: The token is gone."),
    ]
    assert server.paths()[-1] == "result"


def test_a_refresh_that_fails_is_reported(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop"))
    server.operation = [{"status": "Failed", "error": ERROR}]

    assert refusal(mirrored_database(server).refresh_sql_endpoint) == (
        f"The SQL analytics endpoint of 'shop' was not refreshed. Fabric says {TOLD}"
    )


def test_a_database_without_a_sql_endpoint_says_so(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop", endpoint=None))

    told = refusal(mirrored_database(server).refresh_sql_endpoint)

    assert "no such endpoint (provisioning status: InProgress)" in told


@pytest.mark.parametrize("value", [None, "tables", {"orders": 1}, [None, "orders", 1]])
def test_a_result_of_another_shape_is_no_table(server: FabricServer, value: Any) -> None:
    server.workspace("Sales", Database("shop", refresh=lambda: value))

    told = mirrored_database(server).refresh_sql_endpoint()

    assert {(each.table, each.visible) for each in told} <= {("", None)}
