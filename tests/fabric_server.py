"""Fabric's REST API in the process of a test, with its production URL.

Requests and answers are those of Microsoft's specification (fabric-rest-api-specs,
`mirroredDatabase`, `sqlEndpoint` and `platform`), errors those of its articles, and
CapacityNotActive, with HTTP 404, as Fabric was seen to answer for a paused capacity.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
from azure.core.credentials import AccessToken
from azure.core.pipeline.transport import RequestsTransport

from dbt.adapters.openmirroring.rest import azure_requests
from tests.onelake_server import TOKEN, Request, Response, no_answer, session_with

HOST = "api.fabric.microsoft.com"

Answer = tuple[int, dict[str, str], Any]


@dataclass
class Database:
    """A mirrored database.

    Args:
        statuses: the one it has now, and those that follow, one at each time it is asked for
        scan: the tables, as `getTablesMirroringStatus` tells them
        endpoint: the id of its SQL analytics endpoint; None while there is none
        refresh: what a refresh of the endpoint says of the tables
        acted: called with `startMirroring` or `stopMirroring` after it
    """

    name: str
    statuses: list[str] = field(default_factory=lambda: ["Running"])
    error: dict[str, str] | None = None
    definition: Any = None
    scan: Callable[[], list[dict[str, Any]]] = field(default=list)
    endpoint: str | None = field(default_factory=lambda: str(uuid.uuid4()))
    refresh: Callable[[], list[dict[str, Any]]] = field(default=list)
    acted: Callable[[str], object] = field(default=str)
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def status(self) -> str:
        return self.statuses[0]

    def parts(self) -> list[dict[str, str]]:
        """Its definition, beside which Fabric tells more."""
        platform = {"metadata": {"type": "MirroredDatabase", "displayName": self.name}}
        return [
            {
                "path": path,
                "payload": base64.b64encode(json.dumps(content, indent=4).encode()).decode(),
                "payloadType": "InlineBase64",
            }
            for path, content in ((".platform", platform), ("mirroring.json", self.definition))
        ]


@dataclass
class Workspace:
    name: str
    databases: list[Database] = field(default_factory=list)
    capacity_paused: bool = False
    id: str = field(default_factory=lambda: str(uuid.uuid4()))


class Clock:
    """A time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)


class Credential:
    """Somebody whose token Fabric accepts."""

    def __init__(self, token: str = TOKEN) -> None:
        self.scopes: list[str] = []
        self._token = token

    def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        self.scopes += scopes
        return AccessToken(self._token, 2**40)


class FabricServer:
    """The part of Fabric that a mirrored database needs.

    Args:
        page_size: of lists
        continuation: of every page of every list, in place of the true one; `{}` in it is a number
            that is always another one
        token: the one that it accepts
    """

    def __init__(self, page_size: int = 2) -> None:
        self.page_size = page_size
        self.token = TOKEN
        self.continuation = ""
        self.workspaces: list[Workspace] = []
        self.requests: list[Request] = []
        self.clock = Clock()
        self.operation: list[dict[str, Any]] = []
        """The states of a long running operation; if empty, everything is done at once."""
        self.changed: Callable[[str, Database], object] = lambda *_: None
        """Called with `created` or `deleted` and the database. It may raise, as if unanswered."""
        self._results: dict[str, Any] = {}
        self._faults: list[tuple[str, Answer | str]] = []

    def connect(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the client of the REST API talk to this server."""
        monkeypatch.setattr(azure_requests, "RequestsTransport", lambda **_: _Transport(self))

    def workspace(self, name: str, *databases: Database) -> Workspace:
        workspace = Workspace(name, list(databases))
        self.workspaces.append(workspace)
        return workspace

    def fail(
        self, path_end: str, status: int, code: str = "", times: int = 1, **headers: str
    ) -> None:
        """Let the next requests to a path be refused."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._faults += [(path_end, _error(status, code or "UnknownError", named))] * times

    def recover(self) -> None:
        """Let no more requests go wrong."""
        self._faults.clear()

    def break_connection(self, path_end: str, kind: str = "reset", times: int = 1) -> None:
        """Let the next requests to a path have no answer."""
        self._faults += [(path_end, kind)] * times

    def paths(self) -> list[str]:
        """The last part of the paths that were asked for."""
        return [request.path.rpartition("/")[2] for request in self.requests]

    def handle(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            requests.RequestException: if there is no answer
        """
        assert request.host == HOST, f"a request to {request.host}"
        self.requests.append(request)
        status, headers, body = self._answer(request)
        content = b"" if body is None else json.dumps(body).encode()
        return Response(status, {"Content-Type": "application/json", **headers}, content)

    def _answer(self, request: Request) -> Answer:
        for i, (path_end, fault) in enumerate(self._faults):
            if request.path.endswith(path_end):
                del self._faults[i]
                if isinstance(fault, str):
                    raise no_answer(fault)
                return fault
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _error(401, "Unauthorized")
        path = request.path.removeprefix("v1/")
        body = json.loads(request.body) if request.body else {}
        return self._route(request.method, path, request.query, body)

    def _route(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        if (method, path) == ("GET", "workspaces"):
            found = [
                {"id": w.id, "displayName": w.name, "description": "", "type": "Workspace"}
                for w in self.workspaces
            ]
            return self._page("value", found, path, query)
        if method == "GET" and path.startswith("operations/"):
            return self._operation(path)
        kinds = "mirroredDatabases|sqlEndpoints"
        match = re.fullmatch(rf"workspaces/([^/]+)/({kinds})(?:/([^/]+))?(?:/(\w+))?", path)
        workspace = next((w for w in self.workspaces if match and w.id == match[1]), None)
        if not match or not workspace:
            return _error(404, "WorkspaceNotFound")
        if workspace.capacity_paused:
            return _error(404, "CapacityNotActive")
        if match[2] == "sqlEndpoints":
            return self._refresh(workspace, method, match[3], match[4], body)
        if not match[3]:
            if method == "GET":
                found = [
                    {"id": d.id, "displayName": d.name, "type": "MirroredDatabase"}
                    for d in workspace.databases
                ]
                return self._page("value", found, path, query)
            return self._create(workspace, body)
        database = next((d for d in workspace.databases if d.id == match[3]), None)
        if database and (method, match[4]) == ("GET", None):
            return 200, {}, _properties(database)
        if database and (method, match[4]) == ("DELETE", None):
            workspace.databases.remove(database)
            self.changed("deleted", database)
            return 200, {}, None
        if method != "POST" or not database:
            return _error(404, "ItemNotFound")
        if match[4] == "getDefinition":
            told = {"definition": {"parts": database.parts()}}
            return self._accepted(told) or (200, {}, told)
        if match[4] == "updateDefinition":
            return self._update(database, body)
        return self._act(database, match[4], path, query)

    def _update(self, database: Database, body: Any) -> Answer:
        if database.status == "Initializing":
            return _error(400, "MirroredDatabaseNotReady")
        definition = _read_definition(body)
        old, new = (
            each["properties"]["target"]["typeProperties"].get("defaultSchema")
            for each in (database.definition, definition)
        )
        if old != new and database.status not in ("Initialized", "Stopped"):
            return _error(400, "InvalidRequest")
        if not self.operation or self.operation[-1]["status"] != "Failed":
            database.definition = definition
        return self._accepted() or (200, {}, None)

    def _operation(self, path: str) -> Answer:
        """The state of a long running operation, or its result once it has succeeded."""
        _, id_, *result = path.split("/")
        if result:
            found = self._results.get(id_)
            is_there = found is not None and self.operation[0]["status"] == "Succeeded"
            return (200, {}, found) if is_there else _error(400, "OperationHasNoResult")
        state = self.operation[0] if len(self.operation) == 1 else self.operation.pop(0)
        return 200, {"Retry-After": "20"}, state

    def _refresh(
        self, workspace: Workspace, method: str, id_: str, action: str, body: Any
    ) -> Answer:
        database = next((d for d in workspace.databases if d.endpoint == id_), None)
        if not database:
            return _error(404, "ItemNotFound")
        if (method, action) != ("POST", "refreshMetadata"):
            return _error(404, "EndpointNotFound")
        timeout = body.get("timeout", {"timeUnit": "Minutes", "value": 15})
        assert set(body) <= {"timeout", "recreateTables"}
        assert timeout["timeUnit"] in ("Seconds", "Minutes", "Hours", "Days")
        assert timeout["value"] > 0
        told = {"value": database.refresh()}
        return self._accepted(told) or (200, {}, told)

    def _create(self, workspace: Workspace, body: Any) -> Answer:
        name = body["displayName"]
        if name in [database.name for database in workspace.databases]:
            return _error(409, "ItemDisplayNameAlreadyInUse")
        definition = _read_definition(body)
        created = Database(name, ["Initializing", "Initialized"], definition=definition)
        if not self.operation or self.operation[-1]["status"] != "Failed":
            workspace.databases.append(created)
            self.changed("created", created)
        told = {"id": created.id, "displayName": name, "type": "MirroredDatabase"}
        return self._accepted() or (201, {}, told)

    def _accepted(self, result: Any = None) -> Answer | None:
        if not self.operation:
            return None
        id_ = str(uuid.uuid4())
        self._results[id_] = result
        # Fabric was seen to name hosts of its clusters here
        location = f"https://wabi-west-us-redirect.analysis.windows.net/v1/operations/{id_}"
        headers = {"Location": location, "x-ms-operation-id": id_, "Retry-After": "30"}
        return 202, headers, None

    def _act(self, database: Database, action: str, path: str, query: dict[str, str]) -> Answer:
        if action == "getTablesMirroringStatus":
            return self._page("data", database.scan(), path, query)
        if action == "getMirroringStatus":
            told: dict[str, Any] = {"status": database.status}
            if database.error:
                told["error"] = database.error
            del database.statuses[: len(database.statuses) > 1]
            return 200, {}, told
        if database.status == "Initializing":
            return _error(400, "MirroredDatabaseNotReady")
        if action == "startMirroring":
            database.statuses = ["Starting", "Running"]
        elif action == "stopMirroring":
            database.statuses = ["Stopping", "Stopped"]
        else:
            return _error(404, "EndpointNotFound")
        database.acted(action)
        return self._accepted() or (200, {}, None)

    def _page(
        self, key: str, elements: list[dict[str, Any]], path: str, query: dict[str, str]
    ) -> Answer:
        start = int(query.get("continuationToken", "0;=").split(";")[0])
        end = start + self.page_size
        body: dict[str, Any] = {key: elements[start:end]}
        if end < len(elements):
            body["continuationToken"] = quote(f"{end};=")
            # no token may go to another host
            body["continuationUri"] = (
                f"https://elsewhere.example/v1/{path}?continuationToken={quote(f'{end};=')}"
            )
        if self.continuation:
            body["continuationUri"] = self.continuation.format(len(self.requests))
        return 200, {}, body


def table(name: str, status: str = "Replicating", **more: Any) -> dict[str, Any]:
    """A table as `getTablesMirroringStatus` tells it.

    Args:
        name: `schema.table`
        more: `last_sync`, `error`
    """
    schema, _, identifier = name.rpartition(".")
    told: dict[str, Any] = {
        "sourceObjectType": "Table",
        "sourceSchemaName": schema,
        "sourceTableName": identifier,
        "status": status,
    }
    if "last_sync" in more:
        told["metrics"] = {
            "processedBytes": 1247,
            "processedRows": 6,
            "lastSyncDateTime": more["last_sync"],
        }
    if "error" in more:
        told["error"] = {"errorCode": "SchemaMergeFailure", "message": more["error"]}
    return told


def _read_definition(body: Any) -> Any:
    [part] = body["definition"]["parts"]
    assert (part["path"], part["payloadType"]) == ("mirroring.json", "InlineBase64")
    return json.loads(base64.b64decode(part["payload"]))


def sync(name: str, status: str = "Success", **more: Any) -> dict[str, Any]:
    """A table as a refresh of the SQL analytics endpoint tells it.

    Args:
        name: with or without its schema: the documentation does not say which
        more: `ended`, `last`, the times of the end and of the last success, and `error`
    """
    ended = more.get("ended", "2024-10-08T05:08:00.0000000Z")
    told = {
        "tableName": name,
        "startDateTime": "2024-10-08T05:07:30.1234567Z",
        "endDateTime": ended,
        "status": status,
        "lastSuccessfulSyncDateTime": more.get("last", ended if status == "Success" else None),
    }
    if "error" in more:
        told["error"] = {"errorCode": "AdalRetryException", "message": more["error"]}
    return told


def _properties(database: Database) -> dict[str, Any]:
    endpoint: dict[str, Any] = {"provisioningStatus": "InProgress"}
    if database.endpoint:
        endpoint = {
            "connectionString": "xxx.datawarehouse.fabric.microsoft.com",
            "id": database.endpoint,
            "provisioningStatus": "Success",
        }
    return {
        "displayName": database.name,
        "type": "MirroredDatabase",
        "id": database.id,
        "properties": {"sqlEndpointProperties": endpoint},
    }


def _error(status: int, code: str, headers: dict[str, str] | None = None) -> Answer:
    body = {
        "errorCode": code,
        "message": f"The message of {code}.",
        "requestId": "cfafbeb1-8037-4d0c-896e-a46fb27ff227",
        "isRetriable": status == 429,
    }
    return status, headers or {}, body


class _Transport(RequestsTransport):  # type: ignore[misc] # it is imported lazily
    """azure-core's own, on a session that ends in this process."""

    def __init__(self, server: FabricServer) -> None:
        super().__init__(session=session_with(server.handle), session_owner=False)
        self._clock = server.clock

    def sleep(self, duration: float) -> None:
        self._clock.sleep(duration)


def answers_of(fabric: FabricServer) -> Callable[[Request], Response]:
    """Return what answers the requests of another process to Fabric's REST API."""
    return fabric.handle
