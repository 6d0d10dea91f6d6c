"""Fabric's REST API, as far as it is about a mirrored database.

The rules come from "Microsoft Fabric REST API", its reference "Mirrored database" and its articles
"Long running operations", "Pagination" and "Throttling".
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any, cast
from urllib.parse import urlsplit

from azure.core import PipelineClient
from azure.core.credentials import TokenCredential
from azure.core.exceptions import AzureError, ClientAuthenticationError, HttpResponseError
from azure.core.pipeline import PipelineResponse
from azure.core.pipeline.policies import (
    BearerTokenCredentialPolicy,
    RequestIdPolicy,
    RetryPolicy,
    UserAgentPolicy,
)
from azure.core.pipeline.transport import RequestsTransport
from azure.core.polling import LROPoller
from azure.core.polling.base_polling import (
    LROBasePolling,
    OperationResourcePolling,
    StatusCheckPolling,
)
from azure.core.rest import HttpRequest, HttpResponse

from dbt.adapters.openmirroring.__version__ import version
from dbt.adapters.openmirroring.landing_zone.onelake_url import is_guid
from dbt.adapters.openmirroring.landing_zone.shown import shown
from dbt.adapters.openmirroring.service.service import (
    NOT_STARTED,
    PAUSE,
    Clock,
    ServiceError,
    ServiceReport,
    TableReport,
    attempts,
    utc_time,
)

# Tokens go here and nowhere else: no URL is followed that an answer contains.
API = "https://api.fabric.microsoft.com/v1"
SCOPE = "https://api.fabric.microsoft.com/.default"

ITEM_SUFFIX = ".MirroredDatabase"

# seconds that Fabric may ask to wait before a request is repeated
_PATIENCE = 300.0

# seconds that a mirrored database may take to be created, started or stopped
_TIMEOUT = 600.0

# of a list; one has a hundred elements or so
_MOST_PAGES = 1000

_WAYS_OUT = {
    "CapacityNotActive": "The capacity of the workspace is paused. Resume it, or assign the "
    "workspace to another one; then select `Resume replication` on the page of the mirrored "
    "database in the Fabric portal.",
    401: "Fabric does not accept the token: look at `authentication` in the profile.",
    403: "The identity needs the right for it in the workspace, and a service principal also the "
    "tenant setting `Service principals can use Fabric APIs`.",
    404: "Look at the workspace and the item in `landing_zone`, and at the identity's right to "
    "see them.",
    429: "Fabric throttles this identity. Run again later, or with fewer tables at once.",
}


class FabricError(ServiceError):
    """Fabric's REST API refuses, or does not answer.

    Args:
        status: of HTTP; None without an answer
    """

    def __init__(self, msg: str, status: int | None = None) -> None:
        super().__init__(msg)
        self.status = status


class MirroredDatabase:
    """The mirrored database that a landing zone belongs to.

    Args:
        workspace, item: as in the landing zone's URL, two names or two GUIDs
        credential: for tokens
        clock: how to wait for Fabric

    Every method raises FabricError when Fabric refuses or cannot be reached.
    """

    def __init__(
        self,
        workspace: str,
        item: str,
        credential: TokenCredential,
        clock: Clock = time,
    ) -> None:
        self._workspace = workspace
        self._item = item
        self._clock = clock
        self._client: PipelineClient[HttpRequest, HttpResponse] = PipelineClient(
            API,
            transport=RequestsTransport(connection_timeout=10, read_timeout=60),
            policies=[
                RequestIdPolicy(),
                UserAgentPolicy(f"dbt-openmirroring/{version}"),
                _Retry(retry_status=5),
                BearerTokenCredentialPolicy(credential, SCOPE),
            ],
        )

    @property
    def name(self) -> str:
        return self._item.removesuffix(ITEM_SUFFIX)

    def create(self, default_schema: str, retention_days: int | None) -> bool:
        """Create it, and wait until it can be started.

        Args:
            default_schema: of tables without a schema
            retention_days: of deleted files, 1 to 30; None for Fabric's default

        Returns:
            False if it is there already; then nothing was changed
        """
        if is_guid(self._item):
            raise FabricError(
                f"The landing zone names the mirrored database by its id, {self._item}, and only "
                "Fabric gives ids. To create one, write the names of workspace and item into "
                f"`landing_zone`: <workspace>/<item>{ITEM_SUFFIX}."
            )
        if self._find() is not None:
            return False
        properties: dict[str, Any] = {"defaultSchema": default_schema, "format": "Delta"}
        if retention_days is not None:
            properties["retentionInDays"] = retention_days
        mirroring = {
            "properties": {
                "source": {"type": "GenericMirror", "typeProperties": {}},
                "target": {"type": "MountedRelationalDatabase", "typeProperties": properties},
            }
        }
        part = {
            "path": "mirroring.json",
            "payload": base64.b64encode(json.dumps(mirroring).encode()).decode(),
            "payloadType": "InlineBase64",
        }
        path = f"workspaces/{self._workspace_id}/mirroredDatabases"
        created = self._run(
            path,
            f"The mirrored database {self.name!r} was not created",
            {"displayName": self.name, "definition": {"parts": [part]}},
        )
        if "id" in created:
            # lists may not have it yet
            self._path = f"{path}/{created['id']}"
        self._wait(lambda status: status != "Initializing", "created")
        return True

    def start(self) -> str:
        """Start it, and wait until it runs.

        Returns:
            the status that it had; nothing was changed if that is `Running`
        """
        report = self._wait(lambda status: status != "Initializing", "ready to be started")
        if report.status == "Running":
            return report.status
        if report.status == "Paused":
            raise FabricError(
                f"The mirrored database {self.name!r} is {report.description}, and only the "
                "Fabric portal resumes it where it was: select `Resume replication` on its page."
            )
        if report.status != "Starting":
            self._run(f"{self._path}/startMirroring", f"{self.name!r} was not started")
        self._wait(lambda status: status == "Running", "started")
        return report.status

    def stop(self) -> bool:
        """Stop it, and wait until it has stopped.

        Returns:
            False if it does not run
        """
        report = self._status()
        if report.status in (*NOT_STARTED, "Stopped"):
            return False
        if report.status != "Stopping":
            self._run(f"{self._path}/stopMirroring", f"{self.name!r} was not stopped")
        self._wait(lambda status: status == "Stopped", "stopped")
        return True

    def report(self) -> ServiceReport:
        """What Fabric says of it and of its tables."""
        report = self._status()
        if report.status in NOT_STARTED:
            return report
        doing = f"The tables of the mirrored database {self.name!r} cannot be listed"
        tables = {
            f"{table.get('sourceSchemaName') or ''}.{table.get('sourceTableName')}": TableReport(
                shown(table.get("status") or ""),
                _error_text(table.get("error")),
                utc_time(_object(table.get("metrics")).get("lastSyncDateTime")),
            )
            for table in self._pages(
                "POST", f"{self._path}/getTablesMirroringStatus", "data", doing
            )
        }
        return ServiceReport(report.status, report.error, tables)

    @cached_property
    def _workspace_id(self) -> str:
        if is_guid(self._workspace):
            return self._workspace
        doing = f"The workspace {self._workspace!r} cannot be looked up"
        found = {
            str(workspace["displayName"]): str(workspace["id"])
            for workspace in self._pages("GET", "workspaces", "value", doing)
        }
        for name, id_ in found.items():
            if name.casefold() == self._workspace.casefold():
                return id_
        raise FabricError(
            f"Fabric shows this identity no workspace {self._workspace!r}. It sees "
            f"{shown(', '.join(map(repr, sorted(found)))) or 'none'}. {_WAYS_OUT[404]}",
            404,
        )

    @cached_property
    def _path(self) -> str:
        id_ = self._find()
        if id_ is None:
            raise FabricError(
                f"The workspace {self._workspace!r} has no mirrored database {self.name!r} that "
                "this identity can see. `dbt run-operation mirror_create_database` creates it.",
                404,
            )
        return f"workspaces/{self._workspace_id}/mirroredDatabases/{id_}"

    def _find(self) -> str | None:
        if is_guid(self._item):
            return self._item
        databases = self._pages(
            "GET",
            f"workspaces/{self._workspace_id}/mirroredDatabases",
            "value",
            f"The mirrored databases of the workspace {self._workspace!r} cannot be listed",
        )
        for database in databases:
            if str(database["displayName"]).casefold() == self.name.casefold():
                return str(database["id"])
        return None

    def _status(self) -> ServiceReport:
        doing = f"The status of the mirrored database {self.name!r} cannot be had"
        body = _json(self._ask("POST", f"{self._path}/getMirroringStatus", doing))
        return ServiceReport(shown(body.get("status") or ""), _error_text(body.get("error")))

    def _wait(self, is_there: Callable[[str], bool], what: str) -> ServiceReport:
        """Wait for a status.

        Args:
            is_there: whether a status is the one that is waited for
            what: in a word, for the error
        """
        report = ServiceReport()
        for _ in attempts(_TIMEOUT, self._clock):
            report = self._status()
            if is_there(report.status):
                return report
        raise FabricError(
            f"The mirrored database {self.name!r} was not {what} within {_TIMEOUT / 60:g} "
            f"minutes: it is {report.description}. Look at its page in the Fabric portal; the "
            "operation can be repeated."
        )

    def _pages(self, method: str, path: str, key: str, doing: str) -> Iterator[dict[str, Any]]:
        """The elements of all pages of a list.

        Raises:
            FabricError: the list has no end
        """
        query = ""
        seen: set[str] = set()
        while query not in seen and len(seen) < _MOST_PAGES:
            seen.add(query)
            body = _json(self._ask(method, f"{path}{query}", doing))
            elements = body.get(key)
            yield from map(_object, elements if isinstance(elements, list) else ())
            query = _continuation(body)
            if not query:
                return
        raise FabricError(
            f"{doing}: after {len(seen):,} pages, Fabric names "
            f"{'one that it has sent before' if query in seen else 'still another one'}. "
            "Run again later."
        )

    def _ask(self, method: str, path: str, doing: str) -> HttpResponse:
        """A request that changes nothing, so it may be repeated whatever happened to it."""
        options = {"retry_on_methods": frozenset(("GET", "POST"))}
        request = HttpRequest(method, f"{API}/{path}")
        response: HttpResponse = self._send(request, doing, **options).http_response
        return response

    def _run(self, path: str, doing: str, body: Any = None) -> dict[str, Any]:
        """A request that changes something, and what it sets going, to its end.

        Returns:
            the answer, empty if it was not done at once
        """
        initial = self._send(HttpRequest("POST", f"{API}/{path}", json=body), doing)
        polling: LROBasePolling[None, Any, Any] = LROBasePolling(
            PAUSE, lro_algorithms=[_Operation(), StatusCheckPolling()]
        )
        try:
            poller: LROPoller[None] = LROPoller(self._client, initial, lambda _: None, polling)
            poller.wait(_TIMEOUT)
        except HttpResponseError as error:
            raise _refusal(doing, cast(HttpResponse, error.response)) from None
        except AzureError as error:
            raise _unreachable(doing, error) from None
        if not poller.done():
            raise FabricError(
                f"{doing} within {_TIMEOUT / 60:g} minutes. It may be still: look at its page in "
                "the Fabric portal, and repeat the operation."
            )
        return _json(initial.http_response)

    def _send(self, request: HttpRequest, doing: str, **options: Any) -> Any:
        """A request, and its answer as azure-core's pollers need it.

        Args:
            doing: what cannot be done, for the error
        """
        try:
            response: Any = self._client.send_request(
                request, _return_pipeline_response=True, **options
            )
        except ClientAuthenticationError as error:
            raise FabricError(
                f"{doing}: there is no token for Fabric. {shown(error.message)} Look at "
                "`authentication` in the profile.",
                401,
            ) from None
        except AzureError as error:
            raise _unreachable(doing, error) from None
        if response.http_response.status_code >= 300:
            raise _refusal(doing, response.http_response)
        return response


class _Retry(RetryPolicy[Any, Any]):
    def is_retry(self, settings: dict[str, Any], response: PipelineResponse[Any, Any]) -> bool:
        is_too_long = (self.get_retry_after(response) or 0) > _PATIENCE
        return not is_too_long and bool(super().is_retry(settings, response))


class _Operation(OperationResourcePolling[Any, Any]):
    """Fabric's long running operations, by their id: `Location` may name another host."""

    def __init__(self) -> None:
        # there may be a result, but it says nothing that is not in the list of databases
        options = {"final-state-via": "operation-location"}
        super().__init__("x-ms-operation-id", lro_options=options)

    def can_poll(self, pipeline_response: Any) -> bool:
        accepted = pipeline_response.http_response.status_code == 202
        return accepted and super().can_poll(pipeline_response)

    def get_polling_url(self) -> str:
        return f"{API}/operations/{super().get_polling_url()}"


def _json(response: HttpResponse) -> dict[str, Any]:
    try:
        return _object(response.json())
    except (ValueError, RecursionError):
        return {}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _continuation(body: dict[str, Any]) -> str:
    """The query of a list's next page, with its question mark; empty after the last one.

    Not the whole URL, which could be of any host; not the token, which is encoded already.
    """
    try:
        following = urlsplit(str(body.get("continuationUri") or "")).query
    except ValueError:  # no URL
        return ""
    return f"?{following}" if following else ""


def _error_text(error: Any) -> str:
    """Fabric's `ErrorResponse` in a line; empty without one."""
    if not isinstance(error, dict):
        return ""
    words = (error.get("errorCode") or error.get("code"), error.get("message"))
    more = [_error_text(detail) for detail in error.get("moreDetails") or ()]
    return shown("; ".join([": ".join(str(word) for word in words if word), *more]))


def _refusal(doing: str, response: HttpResponse) -> FabricError:
    body = _json(response)
    error = body.get("error") if isinstance(body.get("error"), dict) else body
    assert isinstance(error, dict)
    code, status = str(error.get("errorCode") or error.get("code") or ""), response.status_code
    told = _error_text(error) or f"HTTP {status} {shown(response.reason)}"
    request = error.get("requestId") or response.headers.get("RequestId")
    way_out = _WAYS_OUT.get(code) or _WAYS_OUT.get(status) or ""
    if status >= 500:
        way_out = "Fabric has a problem of its own. Run again later."
    identified = f" (request {shown(request)})" if request else ""
    return FabricError(
        f"{doing}. Fabric says {told.rstrip('.')}{identified}. {way_out}".rstrip(), status
    )


def _unreachable(doing: str, error: AzureError) -> FabricError:
    return FabricError(
        f"{doing}: {urlsplit(API).hostname} cannot be reached. {shown(error.message)}"
    )
