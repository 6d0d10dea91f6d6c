"""The mirrored database of a run: what a probe lands in it, and what Fabric makes of that."""

from __future__ import annotations

import io
import json
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
from azure.core.credentials import AccessToken, TokenCredential
from azure.storage.blob import BlobServiceClient, ContainerClient
from azure.storage.filedatalake import DataLakeServiceClient, FileSystemClient
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from dbt.adapters.openmirroring.destination import replica
from dbt.adapters.openmirroring.landing_zone.layout import DEFAULT_SCHEMA, file_name
from dbt.adapters.openmirroring.landing_zone.onelake import storage as onelake_storage
from dbt.adapters.openmirroring.landing_zone.onelake.storage import OneLakeClient, OneLakeStorage
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.rest import azure_requests, scopes
from dbt.adapters.openmirroring.service.authentication import Identity
from dbt.adapters.openmirroring.service.mirrored_database import (
    ITEM_SUFFIX,
    FabricApi,
    FabricError,
    FabricUnavailableError,
    MirroredDatabase,
)
from dbt.adapters.openmirroring.service.reports import FAILED
from tests.delta_tables import content
from tests.unit.replicator.item import SCHEMA, rows
from tests.workspace.probe import Saw, Service, Until, saw

__all__ = ["SCHEMA", "Place", "Table", "applied", "rows", "seen"]

HOST = "onelake.dfs.fabric.microsoft.com"

# the schema of the tables of probes
PROBES = "probes"

# seconds: until landed files are applied, until rows that are applied stay as they are, in which
# something is not expected to happen, and until applied files are moved away
APPLIED, SETTLED, NEVER, MOVED = 600.0, 60.0, 240.0, 900.0

# seconds for which the states of the tables are not asked for again
_STATES_AGE = 15.0

Row = tuple[Any, ...]
Waits = Generator[Until, bool, bool]


class CachedTokens:
    """A credential that asks for a token again only shortly before it expires.

    The Azure CLI is a program that takes a second for each.
    """

    def __init__(self, credential: TokenCredential) -> None:
        self._credential = credential
        self._tokens: dict[tuple[str, ...], AccessToken] = {}

    def get_token(self, *scopes_: str, **options: Any) -> AccessToken:
        known = self._tokens.get(scopes_)
        if known is None or known.expires_on - time.time() < 300:
            known = self._tokens[scopes_] = self._credential.get_token(*scopes_, **options)
        return known


class Clock:
    """A clock that runs faster against stand-ins, which need less time than Fabric.

    Args:
        patience: the part of each wait that is really waited
    """

    def __init__(self, patience: float = 1.0) -> None:
        self._patience = max(patience, 1e-6)

    def monotonic(self) -> float:
        return time.monotonic() / self._patience

    def sleep(self, seconds: float, /) -> None:
        time.sleep(seconds * self._patience)


@dataclass(frozen=True)
class State:
    """What Fabric says of a table.

    Args:
        rows: those that it has processed, of all files
    """

    schema: str
    name: str
    status: str
    code: str = ""
    message: str = ""
    rows: int = 0
    synced: str = ""

    @classmethod
    def parse(cls, told: dict[str, Any]) -> State:
        error, metrics = told.get("error") or {}, told.get("metrics") or {}
        return cls(
            str(told.get("sourceSchemaName") or ""),
            str(told.get("sourceTableName") or ""),
            str(told.get("status") or ""),
            str(error.get("errorCode") or ""),
            str(error.get("message") or ""),
            int(metrics.get("processedRows") or 0),
            str(metrics.get("lastSyncDateTime") or ""),
        )

    @property
    def has_failed(self) -> bool:
        return self.status == FAILED or bool(self.code or self.message)


@dataclass(frozen=True)
class Asked:
    """What the user asks for.

    Args:
        rows: of each of the large publications
        livy: the URL of Livy; empty if it is not to be probed
        pauses: whether the user will pause the capacity
        again: whether this is the second run
    """

    identity: Identity = field(default_factory=Identity)
    rows: int = 1_000_000
    livy: str = ""
    pauses: bool = False
    again: bool = False
    patience: float = 1.0


class Place:
    """The mirrored database of a run.

    Args:
        workspace, database: their ids
        folder: for files of the run on this machine
        log: what dbt prints, for the user only
        tell: prints a line
        undo: lets something be removed at the end: what it is, how to remove it by hand, and how
            the run removes it. It returns a function that removes it now
        setup: what was seen while the database was created and started
    """

    def __init__(
        self,
        asked: Asked,
        credential: TokenCredential,
        workspace: str,
        database: str,
        folder: Path,
        log: Path,
        tell: Callable[[str], None],
        undo: Callable[[str, str, Callable[[], object]], Callable[[], None]],
        setup: dict[str, Any],
    ) -> None:
        self.asked, self.credential, self.folder, self.setup = asked, credential, folder, setup
        self.workspace, self.id, self.log = workspace, database, log
        self.tell, self.undo = tell, undo
        self.clock = Clock(asked.patience)
        self.api = FabricApi(credential, self.clock)
        self.database = MirroredDatabase(workspace, database, credential, self.clock)
        self.url = OneLakeUrl(HOST, workspace, database)
        self.client = OneLakeClient.connect(self.url, credential)
        self.storage = OneLakeStorage(self.client)
        self.path = f"workspaces/{workspace}/mirroredDatabases/{database}"
        self._states: list[State] = []
        self._asked_at = float("-inf")

    @property
    def landing_zone(self) -> str:
        """Its URL, for a profile."""
        return f"https://{HOST}/{self.workspace}/{self.url.root}"

    def table(self, name: str, schema: str = PROBES, **metadata: Any) -> Table:
        """Return a table that no other probe uses.

        Args:
            metadata: of `_metadata.json`; without it, the column `id` is the key
        """
        return Table(self, schema, name, metadata or {"keyColumns": ["id"]})

    def has_started(self) -> bool:
        """Start it again if it has not started without a file. Return whether it runs."""
        if "not started" not in self.setup:
            return True
        self.table("first").declare().land(rows((1, "a")))
        try:
            self.database.start()
        except FabricError:
            return False
        return True

    def states(self) -> list[State]:
        """Return what Fabric says of all tables, which is asked at most every 15 seconds.

        If it gives no answer now, its last one counts.
        """
        if self.clock.monotonic() - self._asked_at >= _STATES_AGE:
            path = f"{self.path}/getTablesMirroringStatus"
            try:
                told = list(self.api.pages("POST", path, "data", "The tables cannot be listed"))
                self._states = [State.parse(each) for each in told]
            except FabricUnavailableError as error:
                self.tell(error.msg)
            self._asked_at = self.clock.monotonic()
        return self._states

    def delta(self, schema: str, name: str) -> DeltaTable | None:
        """Open a mirrored table as the adapter does; None if there is none."""
        item = f"abfss://{self.workspace}@{HOST}/{self.id}"
        token = self.credential.get_token(scopes.STORAGE).token
        options = {**replica.OPTIONS, "bearer_token": token}
        try:
            url = quote(f"{item}/Tables/{schema}/{name}", safe=":/@")
            return DeltaTable(url, storage_options=options)
        except TableNotFoundError:
            return None

    def azure_files(self) -> FileSystemClient:
        """Azure's own client of the DFS API, which retries nothing."""
        account = DataLakeServiceClient(self.url.account_url, self.credential, **_plain())
        return account.get_file_system_client(self.workspace)

    def azure_blobs(self) -> ContainerClient:
        """Azure's own client of the Blob API, which retries nothing."""
        url = self.url.account_url.replace(".dfs.", ".blob.", 1)
        account = BlobServiceClient(url, self.credential, **_plain())
        return account.get_container_client(self.workspace)

    def full(self, path: str) -> str:
        """Return the path in the workspace of a path in the landing zone."""
        return f"{self.url.root}/{path}"


def _plain() -> dict[str, Any]:
    # looked up here, because the requests of a run are counted
    transport = vars(onelake_storage)["RequestsTransport"]
    return {"retry_total": 0, "transport": transport(connection_timeout=10, read_timeout=60)}


class Table:
    """A table folder that a probe fills, and the mirrored table that Fabric makes of it.

    Args:
        schema: empty for a table at the root of the landing zone
        metadata: the content of `_metadata.json`
    """

    def __init__(self, place: Place, schema: str, name: str, metadata: dict[str, Any]) -> None:
        self.place, self.schema, self.name, self.metadata = place, schema, name, metadata
        self.path = f"{schema}.schema/{name}" if schema else name
        self.landed = 0
        self._number = 0
        self._read: tuple[State | None, list[Row] | None] = (None, None)
        self._processed_at: float | None = None

    def declare(self) -> Table:
        """Write its `_metadata.json`."""
        content = json.dumps(self.metadata).encode()
        self.place.storage.write(f"{self.path}/_metadata.json", content)
        return self

    def land(self, content: pa.Table | bytes, number: int = 0, extension: str = "parquet") -> None:
        """Publish a file as the adapter does: it is staged, and renamed.

        Args:
            number: by default that after the last one
        """
        if isinstance(content, pa.Table):
            self.landed += len(content)
            written = io.BytesIO()
            pq.write_table(content, written)
            content = written.getvalue()
        self._number = number or self._number + 1
        self._processed_at = None
        staged = f"_scratchPad/{PROBES}/{uuid.uuid4().hex}"
        self.place.storage.write(staged, content)
        self.place.storage.rename(staged, f"{self.path}/{file_name(self._number, extension)}")

    def files(self, folder: str = "") -> list[str]:
        """The data files in its folder or in one below it."""
        path = f"{self.path}/{folder}" if folder else self.path
        return [e.name for e in self.place.storage.list(path) if e.name[:1].isdigit()]

    @property
    def state(self) -> State | None:
        """What Fabric says of it; None if it is not listed."""
        schemas = (self.schema,) if self.schema else ("", DEFAULT_SCHEMA)
        found = (s for s in self.place.states() if s.name == self.name and s.schema in schemas)
        return next(found, None)

    def delta(self) -> DeltaTable | None:
        return self.place.delta(self.schema or DEFAULT_SCHEMA, self.name)

    def rows(self) -> list[Row] | None:
        """The mirrored rows, in the order of their text; None if there is no table."""
        delta = self.delta()
        if delta is None:
            return None
        return sorted((tuple(row.values()) for row in content(delta).to_pylist()), key=str)

    def columns(self) -> dict[str, str]:
        """The types of the mirrored columns; empty if there is no table."""
        delta = self.delta()
        return {f.name: str(f.type.type) for f in delta.schema().fields} if delta else {}

    def is_settled(self, wanted: Sequence[Row] | None) -> bool:
        """Check whether it has the wanted rows, has failed, or will not change any more."""
        state = self.state
        if state is None or state.has_failed:
            return state is not None
        if self._read[0] != state:  # the rows are read only if Fabric has done something
            self._read = state, self.rows()
        if self._read[1] is not None and self._read[1] == wanted:
            return True
        if state.rows < self.landed:
            return False
        now = self.place.clock.monotonic()
        self._processed_at = self._processed_at or now
        return now - self._processed_at > SETTLED


def applied(table: Table, *wanted: Row) -> Waits:
    """Wait until what was landed is applied.

    Returns:
        whether the table has the wanted rows, and has not failed
    """
    expected = sorted(wanted, key=str)
    yield Until(lambda: table.is_settled(expected), APPLIED)
    state = table.state
    return table.rows() == expected and not (state and state.has_failed)


def settled(*tables: Table) -> Waits:
    """Wait until tables will not change any more, whatever Fabric makes of them."""

    def all_are() -> bool:
        found = [table.is_settled(None) for table in tables]
        return all(found)

    return (yield Until(all_are, APPLIED))


def seen(is_as_assumed: bool | None, *tables: Table, **facts: Any) -> Saw:
    """Return what a probe saw of tables: rows, status and error of each."""
    said = []
    for table in tables:
        state, mirrored = table.state, table.rows()
        name = "" if len(tables) == 1 else f"{table.name.rpartition('_')[2]} "
        facts[f"{name}rows"] = None if mirrored is None else len(mirrored)
        facts[f"{name}status"] = state.status if state else "not listed"
        facts[f"{name}error"] = (state.code or None) if state else None
        said.append(state.message if state else "")
    return saw(is_as_assumed, *said, **facts)


def find_workspace(api: FabricApi, named: str) -> dict[str, str]:
    """Return the workspace with a name or an id.

    Raises:
        FabricError: if the identity sees none
    """
    found = api.pages("GET", "workspaces", "value", "The workspaces cannot be listed")
    for each in found:
        if named.casefold() in (str(each["id"]).casefold(), str(each["displayName"]).casefold()):
            return {"id": str(each["id"]), "name": str(each["displayName"])}
    raise FabricError(
        f"Fabric shows this identity no workspace {named!r}. Check its name or id, and that the "
        "identity has the role Contributor there.",
        404,
    )


def databases(api: FabricApi, workspace: str, name: str) -> list[str]:
    """Return the ids of the mirrored databases with a name."""
    doing = "The mirrored databases of the workspace cannot be listed"
    found = api.pages("GET", f"workspaces/{workspace}/mirroredDatabases", "value", doing)
    return [str(each["id"]) for each in found if each["displayName"] == name]


def create(
    api: FabricApi, credential: TokenCredential, clock: Clock, workspace: str, name: str
) -> tuple[str, dict[str, Any]]:
    """Create and start a mirrored database, as the operations of the adapter do.

    Returns:
        its id, and what was seen: seconds until it could be started and until it ran, and why it
        did not start
    """
    begun = time.monotonic()
    database = MirroredDatabase(workspace, f"{name}{ITEM_SUFFIX}", credential, clock)
    database.create({"retentionInDays": 1})
    setup: dict[str, Any] = {"seconds until initialized": time.monotonic() - begun}
    begun = time.monotonic()
    try:
        database.start()
        setup["seconds until running"] = time.monotonic() - begun
    except FabricError as error:
        setup["not started"] = error.msg
    return databases(api, workspace, name)[0], setup


def remove(api: FabricApi, workspace: str, name: str) -> None:
    """Remove the mirrored databases with a name. It is right if there is none.

    Raises:
        FabricError: if one is still there
    """
    refused: FabricError | None = None
    # without the query, some tenants keep it for some days
    for query in ("?hardDelete=true", "", ""):
        found = databases(api, workspace, name)
        for id_ in found:
            path = f"workspaces/{workspace}/mirroredDatabases/{id_}{query}"
            try:
                api.ask("DELETE", path, "The mirrored database was not removed")
            except FabricError as error:
                refused = None if error.status == 404 else error
        if not found:
            return
    with suppress(FabricError):
        if not databases(api, workspace, name):
            return
    raise refused or FabricError("The mirrored database is still listed")


@contextmanager
def counted(counts: dict[Service, int]) -> Iterator[None]:
    """Count the requests of this process by service."""

    def counting(transport: Any) -> Any:
        class Counting(transport):  # type: ignore[misc]
            def send(self, request: Any, **options: Any) -> Any:
                service = _service(request.url)
                counts[service] = counts.get(service, 0) + 1
                return super().send(request, **options)

        return Counting

    with ExitStack() as patches:
        for module in (onelake_storage, azure_requests):
            name = "RequestsTransport"
            patches.enter_context(patch.object(module, name, counting(vars(module)[name])))
        yield


def _service(url: str) -> Service:
    host = str(urlsplit(url).hostname)
    if host.endswith((".dfs.fabric.microsoft.com", ".blob.fabric.microsoft.com")):
        return "OneLake"
    is_rest = host == "api.fabric.microsoft.com" and "/livyapi/" not in url
    return "Fabric's REST API" if is_rest else "Livy"
