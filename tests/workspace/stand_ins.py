"""The stand-ins of OneLake, Fabric and Livy, for the whole command as users run it.

`python -m tests.workspace.stand_ins` runs it with them, `--fault NAME` with something planted that
goes wrong. What follows `--` are arguments of the command.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import trustme

from dbt.adapters.openmirroring.replicator import replicator
from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.replicator import Replicator
from tests import fabric_server
from tests.fabric_server import Database, FabricServer, sync
from tests.livy_server import Answer, LivyServer, Session
from tests.onelake_driver import proxy
from tests.onelake_server import (
    ITEM,
    TOKEN,
    WORKSPACE,
    OneLakeServer,
    Refused,
    Request,
    Response,
    listening,
    no_answer,
)

# the name of the workspace
NAME = "Contoso Sales"

_AZ = """#!/bin/sh
[ "$1 $2" = "account get-access-token" ] || exit 1
echo '{"accessToken": "%s", "expires_on": %d, "tokenType": "Bearer"}'
"""


class OneLake(OneLakeServer):
    """OneLake of one workspace, whose only mirrored database is that of the run.

    Args:
        elsewhere: the paths of requests to other items, which no run may send
    """

    def __init__(self, folder: Path, workspace: str) -> None:
        self._begun, self.speed = time.time(), 1.0
        super().__init__()
        self.folder, self.workspace = folder, workspace
        self.database: Database | None = None
        self.elsewhere: list[str] = []

    @property
    def landing_zone(self) -> Path:
        return self.folder / "Files" / "LandingZone"

    def open(self, database: Database | None) -> None:
        """Have the folders of a new database, or none after its end."""
        self.database = database
        shutil.rmtree(self.folder, ignore_errors=True)
        self.landing_zone.mkdir(parents=True)
        self.share(self.landing_zone)

    def show(self) -> None:
        """Have in OneLake what the replicator has made."""
        self.show_tables(self.folder / "Tables")
        self.show_monitoring(self.folder / "Files" / "Monitoring")

    def handle(self, request: Request) -> Response:
        id_ = self.database.id if self.database else ""
        places = (request.path, *request.query.values())
        if not id_ or self.workspace not in request.path or not any(id_ in p for p in places):
            self.elsewhere.append(request.path)
            return self._error(Refused(404, "PathNotFound"))
        names = {self.workspace: WORKSPACE, id_: ITEM}
        answer = super().handle(
            replace(
                request,
                path=_renamed(request.path, names),
                query={key: _renamed(value, names) for key, value in request.query.items()},
                headers={key: _renamed(value, names) for key, value in request.headers.items()},
            )
        )
        if b"<Name>" in answer.body or b'"paths"' in answer.body:
            body = answer.body.replace(ITEM.encode(), id_.encode())
            headers = answer.headers | {"Content-Length": str(len(body))}
            return replace(answer, body=body, headers=headers)
        return answer

    def _now(self) -> float:
        # a claim of a killed run expires in seconds
        return super()._now() + (time.time() - self._begun) * (self.speed - 1)


def _renamed(text: str, names: dict[str, str]) -> str:
    for old, new in names.items():
        text = text.replace(old, new)
    return text


@dataclass
class StandIns:
    """The servers, and how a process reaches them.

    Args:
        network: variables of the process
        victim: the process that Ctrl-C is for
        broken: by table, the message of an error that Fabric reports of it
        middle: happens in the middle of a run, when files were landed and nothing was applied
    """

    onelake: OneLake
    fabric: FabricServer
    livy: LivyServer
    network: dict[str, str]
    victim: int = 0
    broken: dict[str, str] = field(default_factory=dict)
    middle: Callable[[], object] = int
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def databases(self) -> list[str]:
        """The names of the mirrored databases in the workspace."""
        return [database.name for database in self.fabric.workspaces[0].databases]

    def interrupt(self) -> None:
        os.kill(self.victim or os.getpid(), signal.SIGINT)

    def scan(self) -> list[dict[str, Any]]:
        """Apply what was landed, and say of the tables what Fabric says."""
        middle, self.middle = self.middle, int
        middle()
        with self.lock:
            return self._scan() if self.onelake.database else []

    def _scan(self) -> list[dict[str, Any]]:
        Replicator(self.onelake.landing_zone).scan()
        self.onelake.show()
        path = self.onelake.folder / "Files" / "Monitoring" / "tables.json"
        return [self._told(each) for each in json.loads(path.read_text())["tables"]]

    def refresh(self) -> list[dict[str, Any]]:
        now = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%S.%f}0Z"
        tables = self.fabric.workspaces[0].databases[-1].scan()
        return [sync(each["sourceTableName"], ended=now, last=now) for each in tables]

    def _told(self, table: dict[str, Any]) -> dict[str, Any]:
        metrics, name = table["metrics"], table["sourceTableName"]
        told: dict[str, Any] = {
            "sourceObjectType": "Table",
            "sourceSchemaName": table["sourceSchemaName"],
            "sourceTableName": name,
            "status": "Failed" if name in self.broken else table["status"],
            "metrics": {
                "processedBytes": metrics["processedByte"],
                "processedRows": metrics["processedRowCount"],
                "lastSyncDateTime": metrics["lastSyncTimeUtc"],
            },
        }
        message = self.broken.get(name, table["errorMessage"])
        if message:
            code = table["errorCode"] or "SourceTableFailure"
            told["error"] = {"errorCode": code, "message": message}
        return told


@contextmanager
def stand_ins(folder: Path, token: str = TOKEN) -> Iterator[StandIns]:
    """Let processes reach OneLake, Fabric and Livy on this machine, with the URLs of production.

    Args:
        folder: for the mirrored database, a certificate and `az`
        token: the one that `az` gives
    """
    authority, certificate, az = trustme.CA(), folder / "ca.pem", folder / "bin" / "az"
    authority.cert_pem.write_to_path(str(certificate))
    az.parent.mkdir()
    az.write_text(_AZ % (token, 2**32))
    az.chmod(0o755)
    fabric = FabricServer(page_size=20)
    workspace = fabric.workspace(NAME, Database("sales of others"))
    onelake = OneLake(folder / ITEM, workspace.id)
    fabric.token = onelake.token = token
    spark = Spark()
    livy = HighConcurrency(spark.interpreter)
    servers = StandIns(onelake, fabric, livy, {})

    def changed(what: str, database: Database) -> None:
        with servers.lock:
            onelake.open(database if what == "created" else None)
        database.scan, database.refresh = servers.scan, servers.refresh
        database.acted = lambda action: _stopped(onelake) if action == "stopMirroring" else None

    fabric.changed = changed
    answers = {fabric_server.HOST: fabric.handle}
    try:
        with listening(onelake, authority, answers) as port, proxy(port) as proxy_port:
            servers.network = {
                "HTTPS_PROXY": f"http://127.0.0.1:{proxy_port}",
                "REQUESTS_CA_BUNDLE": str(certificate),  # of Azure's clients
                "SSL_CERT_FILE": str(certificate),  # of deltalake
                "PATH": f"{az.parent}:{os.environ['PATH']}",
            }
            yield servers
    finally:
        spark.stop()
        livy.stop()


def _stopped(onelake: OneLake) -> None:
    """Forget all tables: a start begins with the files that are left."""
    shutil.rmtree(onelake.folder / "Tables", ignore_errors=True)


# What goes wrong, by name


def _fails(servers: StandIns) -> None:
    user = "ada@contoso.com"
    message = f"The column 'price' of {NAME} cannot be merged, says {user}. SchemaMergeFailure"
    servers.broken["deleted"] = message


def _never_starts(servers: StandIns) -> None:
    changed = servers.fabric.changed

    def created(what: str, database: Database) -> None:
        changed(what, database)
        database.acted = lambda _: database.statuses.__setitem__(slice(None), ["Starting"])

    servers.fabric.changed = created


def _loses_creation(servers: StandIns) -> None:
    changed = servers.fabric.changed

    def created(what: str, database: Database) -> None:
        changed(what, database)
        if what == "created":
            raise no_answer("reset")

    servers.fabric.changed = created


def _without_endpoint(servers: StandIns) -> None:
    changed = servers.fabric.changed

    def created(what: str, database: Database) -> None:
        changed(what, database)
        database.endpoint = None

    servers.fabric.changed = created


def _refuses_removal(servers: StandIns) -> None:
    handle = servers.fabric._answer

    def answer(request: Request) -> Any:
        if request.method == "DELETE":
            return fabric_server._error(403, "InsufficientPrivileges")
        return handle(request)

    servers.fabric._answer = answer  # type: ignore[method-assign]


def _interrupts_twice(servers: StandIns) -> None:
    servers.middle = servers.interrupt
    handle = servers.fabric._answer

    def answer(request: Request) -> Any:
        if request.method == "DELETE":
            servers.interrupt()
        return handle(request)

    servers.fabric._answer = answer  # type: ignore[method-assign]


def _ignores_marker(servers: StandIns) -> None:
    check = vars(replicator)["check_operations"]

    def checked(rows: Any, keys: tuple[str, ...]) -> None:
        if 4 in rows["__rowMarker__"].to_pylist():
            raise TableError("InputValidationError", "4 is not a row marker.")
        check(rows, keys)

    vars(replicator)["check_operations"] = checked


def _middle(servers: StandIns, happens: Callable[[], object]) -> None:
    servers.middle = happens


def _is_down(servers: StandIns) -> None:
    tables, at_once = "getTablesMirroringStatus", {"retry_after_ms": "1"}
    _middle(servers, lambda: servers.fabric.fail(tables, 503, times=12, **at_once))


def _expires(servers: StandIns) -> None:
    _middle(servers, lambda: setattr(servers.onelake, "token", "another"))


def _forbids(servers: StandIns) -> None:
    _middle(servers, lambda: servers.onelake.fail("refused", times=10**6, status=403))


FAULTS: dict[str, Callable[[StandIns], object]] = {
    "a table fails": _fails,
    "the database never runs": _never_starts,
    "a rename is refused": lambda s: s.onelake.fail("refused", "rename", after=5, status=403),
    "marker 4 is not understood": _ignores_marker,
    "403 in the middle": _forbids,
    "Ctrl-C": lambda servers: _middle(servers, servers.interrupt),
    "Ctrl-C twice": _interrupts_twice,
    "the removal is refused": _refuses_removal,
    "the answer to the creation is lost": _loses_creation,
    "the REST API is down for a while": _is_down,
    "conditions are ignored": lambda s: s.onelake.ignores.add("if-none-match"),
    "no SQL analytics endpoint": _without_endpoint,
    "the token expires": _expires,
}


@contextmanager
def planted(servers: StandIns, fault: str) -> Iterator[None]:
    """Let something go wrong until the end of the block."""
    with patch.object(replicator, "check_operations", vars(replicator)["check_operations"]):
        FAULTS[fault](servers)
        yield


# Livy


class HighConcurrency(LivyServer):
    """Livy with Fabric's high concurrency sessions: five interpreters with one tag share one."""

    def __init__(self, interpreter: Callable[[], dict[str, Any]]) -> None:
        super().__init__(interpreter)
        self._interpreters: dict[str, tuple[str, Session]] = {}
        self._tags: dict[str, list[str]] = {}

    def _carry_out(self, method: str, path: str, content: Any) -> Answer:
        prefix, _, rest = path.partition("/highConcurrencySessions")
        if prefix or not path.startswith("/highConcurrencySessions"):
            return super()._carry_out(method, path, content)
        parts = rest.strip("/").split("/") if rest.strip("/") else []
        if not parts:
            return self._acquire(content["sessionTag"])
        if len(parts) == 1:
            return self._interpreter(method, parts[0])
        found = self._interpreters.get(parts[2])
        if not found:
            return 404, {}, {"message": "no such interpreter"}
        number = parts[4] if len(parts) > 4 else None
        return self._statement(found[1], method, number, parts[-1] == "cancel", content)

    def _acquire(self, tag: str) -> Answer:
        sessions = self._tags.setdefault(tag, [])
        held = [session for session, _ in self._interpreters.values()]
        found = next((s for s in sessions if held.count(s) < 5), None)
        if found is None:
            _, _, created = super()._carry_out("POST", "/sessions", {})
            found = str(created["id"])
            sessions.append(found)
        id_ = f"hc-{len(self._interpreters)}-{len(self.requests)}"
        self._interpreters[id_] = found, Session(id_, self._namespace(), 0)
        return 202, {}, {"id": id_, "state": "NotStarted"}

    def _interpreter(self, method: str, id_: str) -> Answer:
        if id_ not in self._interpreters:
            return 404, {}, {"message": "no such interpreter"}
        session, interpreter = self._interpreters[id_]
        if method == "GET":
            return 200, {}, {"id": id_, "state": "Idle", "sessionId": session, "replId": id_}
        del self._interpreters[id_]
        interpreter.die("released")
        if session not in [held for held, _ in self._interpreters.values()]:
            self.sessions.pop(session).die("its last interpreter was released")
        return 200, {}, {}


class Spark:
    """What the probes need of a Spark, without one."""

    def __init__(self) -> None:
        self._is_over = threading.Event()

    def stop(self) -> None:
        """Let no statement run on."""
        self._is_over.set()

    def interpreter(self) -> dict[str, Any]:
        """The names of an interpreter, with views, settings and jobs of its own."""
        views: set[str] = set()
        settings: dict[str, str] = {}
        cancelled = threading.Event()

        def collect() -> list[Any]:
            while not cancelled.wait(0.01) and not self._is_over.is_set():
                pass
            raise RuntimeError("the job was cancelled")

        def range_(*bounds: int) -> Any:
            summed = SimpleNamespace(collect=collect)
            return SimpleNamespace(
                count=lambda: bounds[-1],
                createTempView=views.add,
                selectExpr=lambda _: summed,
            )

        spark = SimpleNamespace(
            range=range_,
            catalog=SimpleNamespace(tableExists=views.__contains__),
            conf=SimpleNamespace(set=settings.__setitem__, get=settings.get),
        )
        context = SimpleNamespace(
            setJobGroup=lambda *_: cancelled.clear(),
            cancelJobGroup=lambda _: cancelled.set(),
            addJobTag=lambda _: None,
        )
        return {"spark": spark, "sc": context}


def main() -> int:
    """Run the command with the stand-ins."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.workspace.stand_ins", description=__doc__
    )
    parser.add_argument("--fault", choices=FAULTS)
    parser.add_argument("arguments", nargs="*", help="of the command, after --")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        with stand_ins(folder) as servers:
            servers.onelake.speed = 20
            command = [sys.executable, "-m", "tests.workspace", NAME, "--stand-ins"]
            command += ["--authentication", "cli", "--patience", "0.02", "--rows", "1000"]
            arguments = [a if a != "LIVY" else servers.livy.url for a in options.arguments]
            process = subprocess.Popen(
                [*command, *arguments], env={**os.environ, **servers.network}
            )
            servers.victim = process.pid
            if options.fault:
                FAULTS[options.fault](servers)
            status = process.wait()
            print(
                f"exit status {status}; in the workspace: {', '.join(servers.databases)}; "
                f"requests elsewhere: {len(servers.onelake.elsewhere)}"
            )
            counts = (len(servers.onelake.requests), len(servers.fabric.requests))
            print(
                f"requests that arrived: OneLake {counts[0]:,}, REST API {counts[1]:,}, "
                f"Livy {len(servers.livy.requests):,}"
            )
            return status
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
