"""A mirrored database in Fabric, by its REST API: its status and definition, its start and stop.

The definition is `mirroring.json`, in the REST API and in Git. It may have settings that this
version does not know. The rules come from "Microsoft Fabric REST API", its articles "Long running
operations", "Pagination" and "Throttling" and its references "Mirrored database" and "Mirrored
database definition", and from Fabric's documentation, "Fabric mirroring public REST API" and
"Delta change data feed in mirroring for Fabric".
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlsplit

from azure.core.credentials import TokenCredential
from azure.core.rest import HttpRequest, HttpResponse

from dbt.adapters.openmirroring.landing_zone.layout import DEFAULT_SCHEMA, mirrored_table
from dbt.adapters.openmirroring.landing_zone.onelake.url import is_guid
from dbt.adapters.openmirroring.rest.azure_requests import (
    RestClient,
    RestError,
    Retry,
    body_of,
    error_text,
    json_object,
)
from dbt.adapters.openmirroring.service.reports import (
    NOT_STARTED,
    PAUSE,
    Clock,
    ServiceError,
    ServiceReport,
    ServiceUnavailableError,
    TableReport,
    TableSync,
    attempts,
    utc_time,
)
from dbt.adapters.openmirroring.text.shown import shown

# Tokens are sent only to this host: URLs in answers are never followed.
API = "https://api.fabric.microsoft.com/v1"

# seconds that an operation may take
TIMEOUT = 600.0

# the limit for the pages of a list; a page has about a hundred elements
_MOST_PAGES = 1000

NOT_FOUND = (
    "Check the workspace and the item in `landing_zone`, and that the identity may see them."
)

_WAYS_OUT = {
    "CapacityNotActive": "The capacity of the workspace is paused. Resume it, or assign the "
    "workspace to another one; then select `Resume replication` on the page of the mirrored "
    "database in the Fabric portal.",
    401: "Fabric does not accept the token. Check `authentication` in the profile.",
    403: "The identity needs the right for it in the workspace, and a service principal also the "
    "tenant setting `Service principals can use Fabric APIs`.",
    404: NOT_FOUND,
    429: "Fabric throttles this identity. Run again later, or with fewer tables at once.",
}

ITEM_SUFFIX = ".MirroredDatabase"

# statuses in which the default schema may be changed ("Update mirrored database definition")
_SCHEMA_MAY_CHANGE = ("Initialized", "Stopped")

_RUNNING = "Running"

_PATH = "mirroring.json"
_SCHEMA = "defaultSchema"

# the settings of a mirrored database's target, by their names in `mirroring.json`
Settings = Mapping[str, str | int | bool]

Definition = dict[str, Any]


class FabricError(RestError, ServiceError):
    """Fabric's REST API refused a request, or did not answer."""


class FabricUnavailableError(FabricError, ServiceUnavailableError):
    """Fabric's REST API does not answer now."""


class FabricApi:
    """Fabric's REST API, with the rights of an identity.

    Every method raises FabricError if Fabric refuses a request or cannot be reached. The message
    begins with the argument `doing`, which says what was not done.

    Args:
        credential: the credential to get tokens from
        clock: the clock to wait for Fabric with
    """

    def __init__(self, credential: TokenCredential, clock: Clock = time) -> None:
        self._clock = clock
        self._client = RestClient(
            API,
            str(urlsplit(API).hostname),
            Retry(retry_status=5),
            credential,
            refused=FabricError,
            unanswered=FabricUnavailableError,
        )

    def pages(self, method: str, path: str, key: str, doing: str) -> Iterator[dict[str, Any]]:
        """Yield the elements of all pages of a list.

        Args:
            key: the name of the list in a page

        Raises:
            FabricError: if the list does not end
        """
        query = ""
        seen: set[str] = set()
        while query not in seen and len(seen) < _MOST_PAGES:
            seen.add(query)
            body = self.ask(method, f"{path}{query}", doing)
            elements = body.get(key)
            yield from map(json_object, elements if isinstance(elements, list) else ())
            query = _continuation(body)
            if not query:
                return
        raise FabricUnavailableError(
            f"{doing}: after {len(seen):,} pages, Fabric names "
            f"{'one that it has sent before' if query in seen else 'still another one'}. "
            "Run again later."
        )

    def ask(self, method: str, path: str, doing: str) -> dict[str, Any]:
        """Send a request that changes nothing. So it can be retried after any failure."""
        return body_of(self._answer(method, path, doing))

    def run(
        self, path: str, doing: str, body: Any = None, has_result: bool = False
    ) -> dict[str, Any]:
        """Send a request that changes something, and wait until its operation has ended.

        Args:
            has_result: whether a long running operation has a result when it has ended

        Returns:
            the result of a long running operation that has one; otherwise the answer
        """
        response = self._send(HttpRequest("POST", f"{API}/{path}", json=body), doing)
        id_ = response.headers.get("x-ms-operation-id")
        if response.status_code == 202 and id_:
            # the URL in the header `Location` is not used, because it may name another host
            operation = f"operations/{quote(id_, safe='')}"
            self._wait(operation, doing)
            if has_result:
                return self.ask("GET", f"{operation}/result", doing)
        return body_of(response)

    def _wait(self, operation: str, doing: str) -> None:
        """Wait until a long running operation has ended."""
        deadline = self._clock.monotonic() + TIMEOUT
        while self._clock.monotonic() < deadline:
            response = self._answer("GET", operation, doing)
            status = body_of(response).get("status")
            if status == "Succeeded":
                return
            if status == "Failed":
                raise _refusal(doing, response)
            seconds = response.headers.get("Retry-After", "")
            self._clock.sleep(float(seconds) if seconds.isdigit() else PAUSE)
        raise FabricError(
            f"{doing} within {TIMEOUT / 60:g} minutes. It may be later: look at its page in "
            "the Fabric portal, and repeat the operation."
        )

    def _answer(self, method: str, path: str, doing: str) -> HttpResponse:
        request = HttpRequest(method, f"{API}/{path}")
        return self._send(request, doing, retry_on_methods=frozenset(("GET", "POST")))

    def _send(self, request: HttpRequest, doing: str, **options: Any) -> HttpResponse:
        response = self._client.call(request, doing, **options)
        if response.status_code >= 300:
            raise _refusal(doing, response)
        return response


class MirroredDatabase:
    """The mirrored database that a landing zone belongs to.

    Every method raises FabricError if Fabric refuses a request or cannot be reached.

    Args:
        workspace, item: two names or two GUIDs, as in the landing zone's URL
    """

    def __init__(
        self, workspace: str, item: str, credential: TokenCredential, clock: Clock = time
    ) -> None:
        self._workspace = workspace
        self._item = item
        self._clock = clock
        self._api = FabricApi(credential, clock)

    @property
    def name(self) -> str:
        return self._item.removesuffix(ITEM_SUFFIX)

    def create(self, settings: Settings) -> bool:
        """Create the database, and wait until it can be started.

        Returns:
            False if the database exists already; then nothing was changed
        """
        if self._find() is not None:
            return False
        path = f"workspaces/{self._workspace_id}/mirroredDatabases"
        created = self._api.run(
            path,
            f"The mirrored database {self.name!r} was not created",
            {
                "displayName": self.name,
                "definition": {"parts": _parts_of(_new_definition(settings))},
            },
        )
        if "id" in created:
            # a list may not show the new database yet
            self._path = f"{path}/{created['id']}"
        self._wait(lambda status: status != "Initializing", "created")
        return True

    def definition(self) -> Definition:
        """Read the definition of the database from Fabric."""
        doing = f"The definition of the mirrored database {self.name!r} cannot be read"
        try:
            body = self._api.run(f"{self._path}/getDefinition", doing, has_result=True)
        except FabricError as error:
            if error.status == 404 and is_guid(self._item):
                raise FabricError(
                    f"{error.text} Only Fabric gives ids: to create a mirrored database, write "
                    "the names of workspace and item into `landing_zone`: "
                    f"<workspace>/<item>{ITEM_SUFFIX}.",
                    error.status,
                ) from None
            raise
        parts: Any = json_object(body.get("definition")).get("parts")
        try:
            (payload,) = (part["payload"] for part in parts if part["path"] == _PATH)
            definition: Definition = json.loads(base64.b64decode(payload, validate=True))
            settings = _settings_of(definition)
            if not isinstance(settings, dict):
                raise TypeError(f"its target is {type(settings).__name__}")
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            problem = f"{_PATH} is missing, or is not as Fabric documents it ({error!r})"
            raise FabricError(f"{doing}: {shown(problem)}") from error
        return definition

    def update(self, settings: Settings) -> dict[str, tuple[Any, Any]]:
        """Change some settings of the database.

        Returns:
            the old and the new value of each that differed; empty if nothing was changed
        """
        definition = self.definition()
        present = _settings_of(definition)
        changes = {
            name: (present.get(name), value)
            for name, value in settings.items()
            if present.get(name) != value
        }
        if not changes:
            return changes
        report = self._wait(lambda status: status != "Initializing", "ready to be changed")
        if _SCHEMA in changes and report.status not in _SCHEMA_MAY_CHANGE:
            old, new = changes[_SCHEMA]
            raise FabricError(
                f"The default schema of {self.name!r} is {shown(old)!r}. It can become {new!r} "
                f"only before mirroring starts or while it is stopped, and it is {report.status}. "
                "Nothing was changed. `dbt run-operation mirror_stop` stops it; when it starts "
                "again, it starts from nothing with the files that are still there."
            )
        present.update(settings)
        self._api.run(
            f"{self._path}/updateDefinition",
            f"The definition of the mirrored database {self.name!r} was not changed",
            {"definition": {"parts": _parts_of(definition)}},
        )
        return changes

    def start(self) -> str:
        """Start mirroring, and wait until it runs.

        Returns:
            the status before; if it was `Running`, nothing was changed
        """
        report = self._wait(lambda status: status != "Initializing", "ready to be started")
        if _runs(report.status):
            return _RUNNING
        if report.status == "Paused":
            raise FabricError(
                f"The mirrored database {self.name!r} is {report.description}, and only the "
                "Fabric portal resumes it where it was: select `Resume replication` on its page."
            )
        if report.status != "Starting":
            self._api.run(f"{self._path}/startMirroring", f"{self.name!r} was not started")
        self._wait(_runs, "started")
        return report.status

    def stop(self) -> bool:
        """Stop mirroring, and wait until it has stopped. Return False if it was not running."""
        report = self._status()
        if report.status in (*NOT_STARTED, "Stopped"):
            return False
        if report.status != "Stopping":
            self._api.run(f"{self._path}/stopMirroring", f"{self.name!r} was not stopped")
        self._wait(lambda status: status == "Stopped", "stopped")
        return True

    def report(self) -> ServiceReport:
        """Read the status of the database and of its tables."""
        report = self._status()
        if report.status in NOT_STARTED:
            return report
        doing = f"The tables of the mirrored database {self.name!r} cannot be listed"
        tables = {
            mirrored_table(
                table.get("sourceSchemaName"), table.get("sourceTableName")
            ): TableReport(
                shown(table.get("status") or ""),
                error_text(table.get("error")),
                utc_time(json_object(table.get("metrics")).get("lastSyncDateTime")),
            )
            for table in self._api.pages(
                "POST", f"{self._path}/getTablesMirroringStatus", "data", doing
            )
        }
        return ServiceReport(report.status, report.error, tables)

    def refresh_sql_endpoint(self) -> list[TableSync]:
        """Refresh the SQL analytics endpoint, so that it shows all applied rows, and wait for it.

        Source: "Items - Refresh Sql Endpoint Metadata" in the reference of the REST API.
        """
        doing = f"The SQL analytics endpoint of {self.name!r} was not refreshed"
        properties = json_object(self._api.ask("GET", self._path, doing).get("properties"))
        endpoint = json_object(properties.get("sqlEndpointProperties"))
        id_ = str(endpoint.get("id") or "")
        if not is_guid(id_):
            status = shown(endpoint.get("provisioningStatus") or "none")
            raise FabricError(
                f"{doing}: Fabric reports no such endpoint (provisioning status: {status}). "
                "Look at the page of the mirrored database in the Fabric portal."
            )
        path = f"workspaces/{self._workspace_id}/sqlEndpoints/{id_}/refreshMetadata"
        timeout = {"timeout": {"timeUnit": "Seconds", "value": int(TIMEOUT)}}
        tables = self._api.run(path, doing, timeout, has_result=True).get("value")
        told = tables if isinstance(tables, list) else ()
        return [_table_sync(json_object(each)) for each in told]

    @cached_property
    def _workspace_id(self) -> str:
        if is_guid(self._workspace):
            return self._workspace
        doing = f"The workspace {self._workspace!r} cannot be looked up"
        visible = {
            str(workspace["displayName"]): str(workspace["id"])
            for workspace in self._api.pages("GET", "workspaces", "value", doing)
        }
        for name, id_ in visible.items():
            if name.casefold() == self._workspace.casefold():
                return id_
        raise FabricError(
            f"Fabric shows this identity no workspace {self._workspace!r}. It sees "
            f"{shown(', '.join(map(repr, sorted(visible)))) or 'none'}. {NOT_FOUND}",
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
                code="OM706",
            )
        return f"workspaces/{self._workspace_id}/mirroredDatabases/{id_}"

    def _find(self) -> str | None:
        if is_guid(self._item):
            return self._item
        databases = self._api.pages(
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
        doing = f"The status of the mirrored database {self.name!r} cannot be read"
        body = self._api.ask("POST", f"{self._path}/getMirroringStatus", doing)
        return ServiceReport(shown(body.get("status") or ""), error_text(body.get("error")))

    def _wait(self, is_there: Callable[[str], bool], what: str) -> ServiceReport:
        """Wait for a status. `what` is a word for it, for the error."""
        report = ServiceReport()
        for _ in attempts(TIMEOUT, self._clock):
            report = self._status()
            if is_there(report.status):
                return report
        raise FabricError(
            f"The mirrored database {self.name!r} was not {what} within {TIMEOUT / 60:g} minutes: "
            f"it is {report.description}. Look at its page in the Fabric portal; you can repeat "
            "the operation."
        )


def _runs(status: str) -> bool:
    """Check whether a mirrored database runs; the portal also has `Running with warning`."""
    return status.startswith(_RUNNING)


def _table_sync(told: Mapping[str, Any]) -> TableSync:
    """Read a `TableSyncStatus` of the REST API."""
    status = shown(told.get("status") or "")
    # `lastSuccessfulSyncDateTime` may not include a refresh that has just ended
    ended = told.get("endDateTime") if status == "Success" else None
    times = map(utc_time, (told.get("lastSuccessfulSyncDateTime"), ended))
    return TableSync(
        shown(told.get("tableName") or ""),
        status,
        error_text(told.get("error")),
        max(filter(None, times), default=None),
    )


def _new_definition(settings: Settings) -> Definition:
    target = {_SCHEMA: DEFAULT_SCHEMA, "format": "Delta", **settings}
    return {
        "properties": {
            "source": {"type": "GenericMirror", "typeProperties": {}},
            "target": {"type": "MountedRelationalDatabase", "typeProperties": target},
        }
    }


def _settings_of(definition: Definition) -> dict[str, Any]:
    """Return the settings of the target in a definition. Changing them changes the definition."""
    settings: dict[str, Any] = definition["properties"]["target"]["typeProperties"]
    return settings


def _parts_of(definition: Definition) -> list[dict[str, str]]:
    payload = base64.b64encode(json.dumps(definition, indent=2).encode()).decode()
    return [{"path": _PATH, "payload": payload, "payloadType": "InlineBase64"}]


def _continuation(body: dict[str, Any]) -> str:
    """Return the query of a list's next page, with its question mark; empty after the last one.

    The rest of the URL is not used, because it may name any host. The separate continuation token
    is not used, because it is already encoded.
    """
    try:
        following = urlsplit(str(body.get("continuationUri") or "")).query
    except ValueError:  # not a URL
        return ""
    return f"?{following}" if following else ""


def _refusal(doing: str, response: HttpResponse) -> FabricError:
    body = body_of(response)
    error = json_object(body.get("error")) or body
    code, status = str(error.get("errorCode") or error.get("code") or ""), response.status_code
    told = error_text(error) or f"HTTP {status} {shown(response.reason)}"
    request = error.get("requestId") or response.headers.get("RequestId")
    way_out = _WAYS_OUT.get(code) or _WAYS_OUT.get(status) or ""
    if status >= 500:
        way_out = "Fabric has an internal problem. Run again later."
    identified = f" (request {shown(request)})" if request else ""
    is_temporary = status >= 500 or status in (408, 429)
    error_class = FabricUnavailableError if is_temporary else FabricError
    return error_class(
        f"{doing}. Fabric says {told.rstrip('.')}{identified}. {way_out}".rstrip(),
        status,
        code="OM702" if way_out is _WAYS_OUT[401] else "",
    )
