"""A mirrored database, asked and changed by Fabric's REST API."""

from __future__ import annotations

import logging
import socket
import uuid
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest
from azure.core.pipeline.transport import HttpTransport

from dbt.adapters.openmirroring.rest import azure_requests, scopes
from dbt.adapters.openmirroring.service.definition import Settings
from dbt.adapters.openmirroring.service.fabric_api import FabricError
from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase
from dbt.adapters.openmirroring.service.reports import ServiceReport, TableReport, TableSync
from tests.fabric_server import Credential, Database, FabricServer, sync, table
from tests.onelake_server import TOKEN

ITEM = "shop.MirroredDatabase"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FabricServer:
    created = FabricServer()
    created.connect(monkeypatch)
    return created


def mirrored_database(
    server: FabricServer, workspace: str = "Sales", item: str = ITEM, **options: Any
) -> MirroredDatabase:
    credential = options.pop("credential", Credential())
    return MirroredDatabase(workspace, item, credential, server.clock)


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(FabricError) as caught:
        call(*arguments)
    assert TOKEN not in str(caught.value)
    return str(caught.value.msg)


def test_a_report_has_the_status_of_the_database_and_of_each_table(server: FabricServer) -> None:
    database = Database("shop", scan=lambda: tables)
    tables = [
        table("sales.orders", last_sync="2024-10-08T05:07:11.0663362Z"),
        table("sales.returns", "Failed", error="a column\n is gone"),
        table("sales.regions", "Snapshotting"),
    ]
    server.workspace("Sales", database)

    assert mirrored_database(server).report() == ServiceReport(
        "Running",
        "",
        {
            "sales.orders": TableReport(
                "Replicating", "", datetime(2024, 10, 8, 5, 7, 11, 66336, timezone.utc)
            ),
            "sales.returns": TableReport("Failed", "SchemaMergeFailure: a column is gone"),
            "sales.regions": TableReport("Snapshotting"),
        },
    )


def test_a_report_has_the_error_of_the_database(server: FabricServer) -> None:
    error = {"errorCode": "InternalError", "message": "It broke."}
    server.workspace("Sales", Database("shop", ["Paused"], error))

    assert mirrored_database(server).report() == ServiceReport(
        "Paused", "InternalError: It broke."
    )


def test_a_database_that_was_never_started_has_no_tables(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop", ["Initialized"]))

    assert mirrored_database(server).report() == ServiceReport("Initialized")
    assert "getTablesMirroringStatus" not in server.paths()


def test_names_are_found_on_later_pages_whatever_their_case(server: FabricServer) -> None:
    for name in "abcd":
        server.workspace(name)
    server.workspace("Sales", *(Database(name) for name in "abcd"), Database("Shop"))

    assert mirrored_database(server, "sales").report().status == "Running"
    assert server.paths().count("workspaces") == 3
    assert server.paths().count("mirroredDatabases") == 3


@pytest.mark.parametrize(
    ("continuation", "told"),
    [
        ("https://api.fabric.microsoft.com/v1/workspaces?continuationToken=0", "sent before"),
        ("https://api.fabric.microsoft.com/v1/workspaces?continuationToken={}", "still another"),
    ],
)
def test_a_list_without_an_end_is_an_error(
    server: FabricServer, continuation: str, told: str
) -> None:
    server.workspace("Sales", Database("shop"))
    server.continuation = continuation

    assert told in refusal(mirrored_database(server).report)
    assert len(server.requests) <= 1000


@pytest.mark.parametrize("continuation", ["https://[", "https://elsewhere.example", "?"])
def test_a_list_ends_where_no_next_page_is_named(server: FabricServer, continuation: str) -> None:
    server.workspace("Sales", Database("shop"))
    server.continuation = continuation

    assert mirrored_database(server).report().status == "Running"


def test_names_are_looked_up_once(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop"))
    database = mirrored_database(server)

    database.report()
    database.report()

    assert server.paths().count("workspaces") == 1


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

    mirrored_database(server, credential=credential).start()

    assert {request.authorization for request in server.requests} == {f"Bearer {TOKEN}"}
    assert set(credential.scopes) == {scopes.FABRIC}
    assert TOKEN not in caplog.text


def test_a_redirect_is_not_followed(server: FabricServer) -> None:
    server.fail("workspaces", 307, "Moved", Location="https://elsewhere.example/v1/workspaces")

    assert "Fabric says Moved" in refusal(mirrored_database(server).report)
    assert server.paths() == ["workspaces"]


def test_throttling_is_waited_for_as_long_as_fabric_says(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop"))
    server.fail("getMirroringStatus", 429, "RequestBlocked", times=2, Retry_After="55")

    assert mirrored_database(server).report().status == "Running"
    assert server.clock.slept == [55, 55]


def test_throttling_without_an_end_is_reported(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop"))
    server.fail("getMirroringStatus", 429, "RequestBlocked", times=20, Retry_After="55")

    told = refusal(mirrored_database(server).report)

    assert "RequestBlocked" in told
    assert "throttles this identity" in told


def test_a_throttled_request_does_not_wait_for_hours(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop"))
    server.fail("getMirroringStatus", 429, "RequestBlocked", Retry_After="3600")

    assert "throttles this identity" in refusal(mirrored_database(server).report)
    assert server.clock.slept == []


@pytest.mark.parametrize("status", [408, 500, 502, 503, 504])
def test_a_passing_fault_of_fabric_is_not_noticed(server: FabricServer, status: int) -> None:
    server.workspace("Sales", Database("shop"))
    for path in ("workspaces", "mirroredDatabases", "Status"):
        server.fail(path, status)

    assert mirrored_database(server).report().status == "Running"


def test_a_question_without_an_answer_is_asked_again(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop"))
    for path in ("workspaces", "getMirroringStatus"):
        server.break_connection(path)

    assert mirrored_database(server).report().status == "Running"


def test_a_name_that_cannot_be_resolved_is_reported_after_a_few_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(host: str, *_: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    slept: list[float] = []
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(HttpTransport, "sleep", lambda _, seconds: slept.append(seconds))
    now = SimpleNamespace(monotonic=lambda: sum(slept))
    monkeypatch.setattr(azure_requests, "time", now)

    told = refusal(MirroredDatabase("Sales", ITEM, Credential()).report)

    assert told.endswith(
        "api.fabric.microsoft.com cannot be reached: the name api.fabric.microsoft.com cannot be "
        "resolved."
    )
    assert sum(slept) <= 5


def test_a_change_without_an_answer_is_not_repeated(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop", ["Initialized"]))
    server.break_connection("startMirroring")

    assert "cannot be reached" in refusal(mirrored_database(server).start)
    assert server.paths().count("startMirroring") == 1


def test_a_lasting_fault_is_reported_with_its_request(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop"))
    server.fail("getMirroringStatus", 503, times=20)

    told = refusal(mirrored_database(server).report)

    assert "(request cfafbeb1-8037-4d0c-896e-a46fb27ff227). Fabric has an internal problem" in told


@pytest.mark.parametrize(
    ("status", "code", "way_out"),
    [
        (401, "Unauthorized", "`authentication`"),
        (403, "InsufficientPrivileges", "Service principals can use Fabric APIs"),
        (404, "ItemNotFound", "`landing_zone`"),
        (404, "CapacityNotActive", "capacity of the workspace is paused"),
    ],
)
def test_a_refusal_is_reported_with_a_way_out(
    server: FabricServer, status: int, code: str, way_out: str
) -> None:
    server.workspace("Sales", Database("shop"))
    server.fail("getMirroringStatus", status, code)

    told = refusal(mirrored_database(server).report)

    assert f"Fabric says {code}: The message of {code} (request" in told
    assert way_out in told
    assert len(server.clock.slept) == 0


def test_a_paused_capacity_is_reported(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop")).capacity_paused = True

    assert "Resume it" in refusal(mirrored_database(server).report)


def test_a_wrong_token_is_not_reported(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop"))
    database = mirrored_database(server, credential=Credential("another.secret"))

    told = refusal(database.report)

    assert "does not accept the token" in told
    assert "another.secret" not in told


def test_a_database_is_created_for_open_mirroring(server: FabricServer) -> None:
    workspace = server.workspace("Sales")

    assert mirrored_database(server).create({"retentionInDays": 3})

    [database] = workspace.databases
    assert (database.name, database.status) == ("shop", "Initialized")
    assert database.definition == {
        "properties": {
            "source": {"type": "GenericMirror", "typeProperties": {}},
            "target": {
                "type": "MountedRelationalDatabase",
                "typeProperties": {
                    "defaultSchema": "dbo",
                    "format": "Delta",
                    "retentionInDays": 3,
                },
            },
        }
    }


def test_a_created_database_is_not_looked_for_in_lists_that_may_lag(server: FabricServer) -> None:
    server.workspace("Sales")
    database = mirrored_database(server)

    database.create({})
    database.start()

    methods = [r.method for r in server.requests if r.path.endswith("mirroredDatabases")]
    assert methods == ["GET", "POST"]


def test_the_retention_is_fabrics_if_none_is_given(server: FabricServer) -> None:
    workspace = server.workspace("Sales")

    mirrored_database(server).create({})

    target = workspace.databases[0].definition["properties"]["target"]
    assert "retentionInDays" not in target["typeProperties"]


def test_a_database_that_is_there_is_not_created(server: FabricServer) -> None:
    workspace = server.workspace("Sales", Database("shop"))

    assert not mirrored_database(server).create({})
    assert len(workspace.databases) == 1


def test_nothing_can_be_created_by_its_id(server: FabricServer) -> None:
    workspace = server.workspace("Sales")
    database = mirrored_database(server, workspace.id, str(uuid.uuid4()))

    assert not database.create({})
    assert "Only Fabric gives ids" in refusal(database.update, {})


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


@pytest.mark.parametrize("operation", [[], [{"status": "Succeeded"}]])
def test_a_definition_is_changed_where_it_differs_and_nowhere_else(
    server: FabricServer, operation: list[dict[str, Any]]
) -> None:
    database = Database("shop", definition=defined(retentionInDays=1))
    workspace = server.workspace("Sales", database)
    server.operation = operation

    by_name, by_id = (
        mirrored_database(server),
        mirrored_database(server, workspace.id, database.id),
    )
    settings: Settings = {
        "retentionInDays": 7,
        "enableDeltaChangeDataFeed": True,
        "defaultSchema": "dbo",
    }

    assert by_name.update(settings) == {
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


@pytest.mark.parametrize("content", [None, [], {}, "mirroring", {"properties": {"target": []}}])
def test_a_definition_of_another_shape_is_reported(server: FabricServer, content: Any) -> None:
    server.workspace("Sales", Database("shop", definition=content))

    told = refusal(mirrored_database(server).definition)

    assert "The definition of the mirrored database 'shop' cannot be read" in told


@pytest.mark.parametrize("parts", [None, [], "parts", [{}], [{"path": "mirroring.json"}]])
def test_an_answer_without_a_definition_is_reported(
    server: FabricServer, monkeypatch: pytest.MonkeyPatch, parts: Any
) -> None:
    database = Database("shop", definition=defined())
    server.workspace("Sales", database)
    monkeypatch.setattr(database, "parts", lambda: parts)

    assert "mirroring.json is missing" in refusal(mirrored_database(server).definition)


def test_a_long_running_operation_is_followed_to_its_end(server: FabricServer) -> None:
    server.workspace("Sales")
    server.operation = [{"status": s} for s in ("NotStarted", "Running", "Succeeded")]

    assert mirrored_database(server).create({})
    assert server.clock.slept[:2] == [20, 20]


def test_a_long_running_operation_without_an_end_is_reported(server: FabricServer) -> None:
    server.workspace("Sales")
    server.operation = [{"status": "Running"}]

    told = refusal(mirrored_database(server).create, {})

    assert told.startswith("The mirrored database 'shop' was not created within 10 minutes.")
    assert sum(server.clock.slept) == 600


def test_the_failure_of_a_long_running_operation_is_reported(server: FabricServer) -> None:
    server.workspace("Sales")
    error = {"errorCode": "CorruptedPayload", "message": "It cannot be read."}
    server.operation = [{"status": "Running"}, {"status": "Failed", "error": error}]

    told = refusal(mirrored_database(server).create, {})

    assert told == (
        "The mirrored database 'shop' was not created. Fabric says CorruptedPayload: It cannot "
        "be read."
    )


def test_the_refusal_of_a_long_running_operation_is_reported(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop", ["Initialized"]))
    server.operation = [{"status": "Running"}]
    server.fail("startMirroring", 202, x_ms_operation_id="op")
    server.fail("op", 403, "InsufficientPrivileges")

    assert "InsufficientPrivileges" in refusal(mirrored_database(server).start)


@pytest.mark.parametrize("statuses", [["Initializing", "Initialized"], ["Stopped"]])
def test_a_database_is_started_as_soon_as_it_can_be(
    server: FabricServer, statuses: list[str]
) -> None:
    database = Database("shop", statuses)
    server.workspace("Sales", database)

    assert mirrored_database(server).start() in ("Initialized", "Stopped")
    assert database.status == "Running"
    assert server.paths().count("startMirroring") == 1


@pytest.mark.parametrize("status", ["Running", "Starting"])
def test_a_database_that_runs_is_not_started_again(server: FabricServer, status: str) -> None:
    server.workspace("Sales", Database("shop", [status, "Running"]))

    assert mirrored_database(server).start() == status
    assert "startMirroring" not in server.paths()


def test_a_paused_database_is_not_started_anew(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop", ["Paused"]))

    assert "`Resume replication`" in refusal(mirrored_database(server).start)
    assert "startMirroring" not in server.paths()


def test_a_database_that_does_not_start_is_reported_with_its_error(server: FabricServer) -> None:
    error = {"errorCode": "OutOfLuck", "message": "No luck today."}
    server.workspace("Sales", Database("shop", ["Starting"], error))

    told = refusal(mirrored_database(server).start)

    assert "not started within 10 minutes: it is Starting (OutOfLuck: No luck today.)" in told


def test_a_database_is_stopped(server: FabricServer) -> None:
    database = Database("shop")
    server.workspace("Sales", database)

    assert mirrored_database(server).stop()
    assert database.status == "Stopped"


@pytest.mark.parametrize("status", ["Initialized", "Stopped"])
def test_a_database_that_does_not_run_is_not_stopped(server: FabricServer, status: str) -> None:
    server.workspace("Sales", Database("shop", [status]))

    assert not mirrored_database(server).stop()
    assert "stopMirroring" not in server.paths()


def test_a_refresh_of_the_sql_endpoint_tells_how_it_went_with_each_table(
    server: FabricServer,
) -> None:
    told = [
        sync("sales.orders", ended="2025-08-08T10:36:54.9651741Z"),
        sync("regions", "NotRun", last="2025-08-06T08:32:53.3890146Z"),
        sync("returns", "Failure", error="The token\n is gone."),
    ]
    server.workspace("Sales", Database("shop", refresh=lambda: told))

    assert mirrored_database(server).refresh_sql_endpoint() == [
        TableSync(
            "sales.orders",
            "Success",
            visible=datetime(2025, 8, 8, 10, 36, 54, 965174, timezone.utc),
        ),
        TableSync(
            "regions",
            "NotRun",
            visible=datetime(2025, 8, 6, 8, 32, 53, 389014, timezone.utc),
        ),
        TableSync("returns", "Failure", "AdalRetryException: The token is gone."),
    ]


def test_a_success_is_visible_from_its_end_whatever_the_last_one_was(
    server: FabricServer,
) -> None:
    told = sync("orders", last="2024-01-01T00:00:00Z", ended="2025-01-01T00:00:00Z")
    server.workspace("Sales", Database("shop", refresh=lambda: [told]))

    [orders] = mirrored_database(server).refresh_sql_endpoint()

    assert orders.visible == datetime(2025, 1, 1, tzinfo=timezone.utc)


def test_a_refresh_that_takes_long_is_followed_to_its_result(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop", refresh=lambda: [sync("orders")]))
    server.operation = [{"status": s} for s in ("NotStarted", "Running", "Succeeded")]

    [orders] = mirrored_database(server).refresh_sql_endpoint()

    assert orders.table == "orders"
    assert server.paths()[-1] == "result"


def test_a_refresh_that_fails_is_reported(server: FabricServer) -> None:
    server.workspace("Sales", Database("shop"))
    error = {"errorCode": "Timeout", "message": "It took too long."}
    server.operation = [{"status": "Failed", "error": error}]

    assert refusal(mirrored_database(server).refresh_sql_endpoint) == (
        "The SQL analytics endpoint of 'shop' was not refreshed. Fabric says Timeout: It took too "
        "long."
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
