"""OneLake on this machine, as far as it is documented and as strict.

What it answers follows the REST specification of Azure Data Lake Storage Gen2 and Azure Blob
Storage, and Fabric's documentation "OneLake API parity" for what OneLake refuses. Everything can
go wrong on purpose, and what must never happen in a landing zone is recorded.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import threading
import time
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email.utils import formatdate
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.etree import ElementTree

import pytest
import requests
import trustme
from azure.core.pipeline.policies import _retry
from azure.core.pipeline.transport import HttpTransport, RequestsTransport
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse
from urllib3.exceptions import ProtocolError

from dbt.adapters.openmirroring.landing_zone.onelake import claim as onelake_claim
from dbt.adapters.openmirroring.landing_zone.onelake import storage as onelake_storage
from dbt.adapters.openmirroring.landing_zone.onelake.storage import (
    OneLakeClient,
    OneLakeStorage,
    StagingFolder,
)
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.rest import azure_requests
from dbt.adapters.openmirroring.service.authentication import GivenToken

HOST = "onelake.dfs.fabric.microsoft.com"
WORKSPACE = "shop"
ITEM = "mirror.MirroredDatabase"
ROOT = f"{ITEM}/Files/LandingZone"
TABLES = f"{ITEM}/Tables"
MONITORING = f"{ITEM}/Files/Monitoring"
URL = f"https://{HOST}/{WORKSPACE}/{ROOT}"
TOKEN = "token of the test"

_NUMBERED = re.compile(rf"{re.escape(ROOT)}/(?!_scratchPad/).*\d{{20}}\.\w+")
_IGNORED = ("x-ms-owner", "x-ms-group", "x-ms-permissions", "x-ms-acls", "x-ms-access-tier")


@dataclass
class Node:
    """A file, or a folder if it has no data."""

    data: bytes | None
    etag: str
    modified: float
    md5: bytes | None = None
    appended: bytes = b""
    complete: bool = True


@dataclass(frozen=True)
class Request:
    """As it arrives; header names in lower case, the path decoded, after the host."""

    method: str
    host: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def target(self) -> str:
        """The path in the workspace."""
        return self.path.partition("/")[2]

    @property
    def operation(self) -> str:
        if ".blob." in self.host:
            block = {"block": "put block", "blocklist": "put block list"}
            put = block.get(self.query.get("comp", ""), "put blob")
            get = "list blobs" if self.query.get("comp") == "list" else "read"
            names = {"GET": get, "HEAD": "properties", "PUT": put, "DELETE": "delete blob"}
            return names.get(self.method, "unknown")
        if self.method == "GET" and self.query.get("resource") == "filesystem":
            return "list"
        if self.method == "PUT" and "x-ms-rename-source" in self.headers:
            return "rename"
        names = {"DELETE": "delete", "PUT": "create", "HEAD": "properties", "GET": "read"}
        action = self.query.get("action")
        return action if action and action != "getStatus" else names.get(self.method, "unknown")


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class Refused(Exception):
    """The request is answered by an error."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


# the statuses and codes of faults that are refusals
_REFUSALS = {
    "throttled": (429, "TooManyRequests"),
    "busy": (503, "ServerBusy"),
    "in use": (409, "PathInUse"),
}


def no_answer(kind: str) -> requests.RequestException:
    """What the client gets in place of an answer: `reset`, `slow` or `unresolved`."""
    if kind == "slow":
        return requests.ReadTimeout()
    if kind == "unresolved":
        told = "Temporary failure in name resolution"
        return requests.ConnectionError(socket.gaierror(socket.EAI_AGAIN, told))
    reset = ConnectionResetError(104, "reset")
    return requests.ConnectionError(ProtocolError("Connection aborted.", reset))


@dataclass
class Fault:
    """A fault of requests.

    Args:
        kind: `throttled` (429), `busy` (503), `in use` (409), `refused` (by status and code),
            `reset`: not carried out and not answered; `lost`: carried out, not answered; `lost
            503`: carried out, answered by an error; `slow`: carried out, answered too late;
            `dropped`: not carried out, answered as if it were; `unresolved`: not sent, since its
            name cannot be resolved; `expired`: refused, as all that follow, for their token
        operation: of the requests; None for all
        after: so many of them are spared
        times: so many go wrong
        retry_after: seconds, for `throttled`
    """

    kind: str
    operation: str | None = None
    after: int = 0
    times: int = 1
    retry_after: int = 1
    status: int = 403
    code: str = "Forbidden"

    def takes(self, request: Request) -> bool:
        if self.operation not in (None, request.operation) or self.times == 0:
            return False
        if self.after > 0:
            self.after -= 1
            return False
        self.times -= 1
        return True


KINDS = ("throttled", "busy", "reset", "lost", "lost 503", "slow")


class OneLakeServer:
    """One workspace with one mirrored database.

    Args:
        page_size: entries of a listing in one answer
        shown_root: the landing zone in the names of a listing
        depth: levels of a recursive listing; 0 for all
        rename_changes_etag: as OneLake is said to do; ADLS does not
        source_first: a rename looks at its source before it looks at its target
        token: the one that it accepts
        ignores: conditions that are ignored, and reported as such
        ignores_silently: conditions that are ignored without a word
    """

    def __init__(self) -> None:
        self.page_size = 5000
        self.shown_root = ROOT
        self.depth = 0
        self.delete_page_size = 0
        self.rename_changes_etag = True
        self.source_first = False
        self.token = TOKEN
        self.ignores: set[str] = set()
        self.ignores_silently: set[str] = set()
        self.requests: list[Request] = []
        self.faults: list[Fault] = []
        self.slept: list[float] = []
        self.violations: list[str] = []
        self._seen: dict[str, bytes | None] = {}
        self._nodes: dict[str, Node] = {}
        self._blocks: dict[str, dict[str, bytes]] = {}
        self._folder: _Folder | None = None
        self._ahead = 0.0
        self._etags = 0
        self._lock = threading.RLock()
        for folder in (ITEM, f"{ITEM}/Files", ROOT, TABLES):
            self._nodes[folder] = self._node(None)

    def fail(self, kind: str, operation: str | None = None, **options: Any) -> Fault:
        """Let requests go wrong from now on."""
        fault = Fault(kind, operation, **options)
        self.faults.append(fault)
        return fault

    def expire_token(self, operation: str, after: int = 0) -> None:
        """Accept no token any more, from one of the next such requests on."""
        self.fail("expired", operation, after=after)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        with self._lock:
            if self._folder:  # the files that are there become so much older
                self._folder.read(self._nodes, self._node)
            self._ahead += seconds

    def counts(self) -> Counter[str]:
        """Requests by operation, also those that went wrong."""
        return Counter(request.operation for request in self.requests)

    def content(self, path: str) -> bytes | None:
        """A file of the landing zone."""
        node = self._nodes.get(f"{ROOT}/{path}")
        return node.data if node else None

    def share(self, folder: Path) -> None:
        """Let the landing zone be a folder of this machine, which anybody may change."""
        self._folder = _Folder(folder)

    def copy(self, folder: str, target: str) -> None:
        """Have the files of a folder of the landing zone in another folder too, at once."""
        with self._lock:
            for path in self._in(f"{ROOT}/{folder}"):
                copied = path.replace(f"{ROOT}/{folder}", f"{ROOT}/{target}", 1)
                self._make_folders(copied)
                self._nodes[copied] = self._node(self._nodes[path].data)

    def show_tables(self, folder: Path) -> None:
        """Have in OneLake the mirrored tables that are in a folder of this machine now."""
        self._show(folder, TABLES)

    def show_monitoring(self, folder: Path) -> None:
        """Have in OneLake what the service reports of itself."""
        self._show(folder, MONITORING)

    def _show(self, folder: Path, target: str) -> None:
        with self._lock:
            for gone in self._in(target):
                del self._nodes[gone]
            for path in folder.rglob("*"):
                name = f"{target}/{path.relative_to(folder)}"
                self._nodes[name] = self._node(None if path.is_dir() else path.read_bytes())

    def connect(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the client of the landing zone talk to this server, and wait for nothing long.

        For retries, time passes as if it had waited.
        """
        monkeypatch.setattr(onelake_storage, "RequestsTransport", self.transport)
        monkeypatch.setattr(HttpTransport, "sleep", lambda _, seconds: self.slept.append(seconds))
        now = lambda: time.monotonic() + sum(list(self.slept))  # noqa: E731
        monkeypatch.setattr(_retry, "time", SimpleNamespace(time=now))
        monkeypatch.setattr(azure_requests, "time", SimpleNamespace(monotonic=now))
        monkeypatch.setattr(onelake_claim, "RENEWAL", 0.05)
        monkeypatch.setattr(onelake_claim, "PAUSE", 0.05)

    def storage(self, staging: Path | None = None) -> OneLakeStorage:
        """The landing zone, for a process of its own."""
        folder = StagingFolder(f"file://{staging}") if staging else None
        return OneLakeStorage(self.client(), folder)

    def client(self) -> OneLakeClient:
        return OneLakeClient.connect(OneLakeUrl.parse(URL), GivenToken(TOKEN))

    def transport(self, **_options: Any) -> RequestsTransport:
        """The client's own transport, except that no socket is between it and the server."""
        return RequestsTransport(session=session_with(self.handle))

    # Requests

    def handle(self, request: Request) -> Response:
        """Answer a request.

        Raises:
            requests.RequestException: if there is no answer
        """
        with self._lock:
            self.requests.append(request)
            fault = next((fault for fault in self.faults if fault.takes(request)), None)
            kind = fault.kind if fault else ""
            if fault and (kind in _REFUSALS or kind == "refused"):
                refused = Refused(*_REFUSALS.get(kind, (fault.status, fault.code)))
                wait = {"Retry-After": str(fault.retry_after)} if kind == "throttled" else {}
                return self._error(refused, wait)
            if kind == "dropped":
                return Response(201, self._about(self._node(b"")))
            if kind in ("reset", "unresolved"):
                raise no_answer(kind)
            if kind == "expired":
                self.token = "another"
            response = self._carry_out(request)
            if kind == "lost 503":
                return self._error(Refused(503, "ServerBusy"))
            if kind in ("lost", "slow"):
                raise no_answer(kind)
            return response

    def _carry_out(self, request: Request) -> Response:
        if self._folder:
            self._folder.read(self._nodes, self._node)
            # changes by others there are not the client's
            self._seen = self._numbered()
        try:
            response = self._admitted(request)(request)
        except Refused as refused:
            response = self._error(refused)
        if self._folder:
            self._folder.write(self._nodes)
        self._observe()
        ignored = [*self.ignores, *(name for name in _IGNORED if name in request.headers)]
        response.headers["Date"] = formatdate(self._now(), usegmt=True)
        if ignored:
            response.headers["x-ms-rejected-headers"] = ",".join(ignored)
        return response

    def _admitted(self, request: Request) -> Callable[[Request], Response]:
        """Return what carries out a request."""
        if request.headers.get("authorization") != f"Bearer {self.token}":
            raise Refused(401, "InvalidAuthenticationInfo")
        if "x-ms-version" not in request.headers:
            raise Refused(400, "MissingRequiredHeader")
        if not request.host.endswith(".fabric.microsoft.com"):
            raise Refused(400, "InvalidUri")
        if request.path.partition("/")[0] != WORKSPACE:
            raise Refused(404, "FilesystemNotFound")
        name = request.operation.replace(" ", "_")
        carry_out: Callable[[Request], Response] | None = getattr(self, f"_{name}", None)
        if not carry_out:
            raise Refused(400, "UnsupportedQueryParameter")
        # OneLake allows no more of the workspace than HEAD and listings
        listings = ("list", "list blobs", "properties")
        if not request.target and request.operation not in listings:
            raise Refused(400, "OperationNotAllowedOnWorkspace")
        path = request.query.get("directory") or request.query.get("prefix") or request.target
        # a comparison of a mirrored table with its model reads that too
        is_shown = path.startswith((f"{TABLES}/", f"{MONITORING}/"))
        may_read = is_shown and request.operation in ("read", *listings)
        if not f"{path}/".startswith(f"{ROOT}/") and not may_read:
            self.violations.append(f"{request.operation} outside the landing zone: {path}")
        return carry_out

    def _guard(self, path: str) -> None:
        """The item and the folders in it are Fabric's."""
        if path.count("/") < 2:
            raise Refused(403, "OperationNotAllowedOnManagedFolder")

    def _error(self, refused: Refused, headers: dict[str, str] | None = None) -> Response:
        body = {"error": {"code": refused.code, "message": f"{refused.code} (of the test)"}}
        return Response(
            refused.status,
            {
                "x-ms-error-code": refused.code,
                "Content-Type": "application/json",
                "Date": formatdate(self._now(), usegmt=True),
                **(headers or {}),
            },
            json.dumps(body).encode(),
        )

    # The tree

    def _now(self) -> float:
        return time.time() + self._ahead

    def _next_etag(self) -> str:
        self._etags += 1
        return f"0x8D{self._etags:012X}"

    def _node(self, data: bytes | None, digest: bytes | None = None) -> Node:
        return Node(data, self._next_etag(), self._now(), digest)

    def _get(self, path: str, code: str = "PathNotFound") -> Node:
        node = self._nodes.get(path)
        if node is None:
            raise Refused(404, code)
        return node

    def _file(self, path: str) -> Node:
        node = self._get(path)
        if node.data is None:
            raise Refused(409, "ResourceTypeMismatch")
        return node

    def _in(self, folder: str) -> list[str]:
        return [path for path in self._nodes if path.startswith(f"{folder}/")]

    def _make_folders(self, path: str) -> None:
        parts = path.split("/")[:-1]
        for i in range(1, len(parts) + 1):
            folder = "/".join(parts[:i])
            if folder not in self._nodes:
                self._nodes[folder] = self._node(None)
            elif self._nodes[folder].data is not None:
                raise Refused(409, "PathConflict")

    def _check_conditions(self, request: Request, path: str, prefix: str = "") -> None:
        def condition(name: str) -> str | None:
            header = f"{prefix}{name}"
            if header in self.ignores | self.ignores_silently:
                return None
            return request.headers.get(header)

        node = self._nodes.get(path)
        if condition("if-none-match") == "*" and node:
            code = "BlobAlreadyExists" if ".blob." in request.host else "PathAlreadyExists"
            raise Refused(409, code)
        match = condition("if-match")
        if match and (node is None or match.strip('"') not in ("*", node.etag)):
            raise Refused(412, "SourceConditionNotMet" if prefix else "ConditionNotMet")

    def _about(self, node: Node) -> dict[str, str]:
        return {"ETag": f'"{node.etag}"', "Last-Modified": formatdate(node.modified, usegmt=True)}

    # The DFS API

    def _create(self, request: Request) -> Response:
        path, resource = request.target, request.query.get("resource")
        self._guard(path)
        if resource not in ("file", "directory"):
            raise Refused(400, "MissingRequiredQueryParameter")
        self._check_conditions(request, path)
        existing = self._nodes.get(path)
        if existing and (existing.data is None) != (resource == "directory"):
            raise Refused(409, "ResourceTypeMismatch")
        self._make_folders(path)
        if existing is None or resource == "file":
            self._nodes[path] = self._node(None if resource == "directory" else b"")
            # it is there, and more is to come
            self._nodes[path].complete = resource == "directory"
        return Response(201, self._about(self._nodes[path]))

    def _append(self, request: Request) -> Response:
        node = self._file(request.target)
        if int(request.query["position"]) != len(node.data or b"") + len(node.appended):
            raise Refused(400, "InvalidAppendPosition")
        node.appended += request.body
        return Response(202)

    def _flush(self, request: Request) -> Response:
        node = self._file(request.target)
        self._check_conditions(request, request.target)
        if "position" not in request.query:
            raise Refused(400, "MissingRequiredQueryParameter")
        whole = (node.data or b"") + node.appended
        if int(request.query["position"]) != len(whole):
            raise Refused(400, "InvalidFlushPosition")
        node.data, node.appended, node.complete = whole, b"", True
        node.etag, node.modified = self._next_etag(), self._now()
        return Response(200, self._about(node))

    def _rename(self, request: Request) -> Response:
        target = request.target
        workspace, _, source = (
            unquote(request.headers["x-ms-rename-source"]).lstrip("/").partition("/")
        )
        if workspace != WORKSPACE or (self.source_first and source not in self._nodes):
            raise Refused(404, "SourcePathNotFound")
        self._guard(target)
        self._guard(source)
        self._check_conditions(request, target)
        node = self._get(source, "SourcePathNotFound")
        self._check_conditions(request, source, "x-ms-source-")
        existing = self._nodes.get(target)
        if existing and existing.data is None and (node.data is not None or self._in(target)):
            raise Refused(409, "DestinationPathIsNotEmpty")
        if target.rpartition("/")[0] not in self._nodes:
            raise Refused(404, "RenameDestinationParentPathNotFound")
        for path in [source, *self._in(source)]:
            self._nodes[target + path[len(source) :]] = self._nodes.pop(path)
        if self.rename_changes_etag:
            node.etag = self._next_etag()
        return Response(201, self._about(node))

    def _delete(self, request: Request) -> Response:
        path, recursive = request.target, request.query.get("recursive")
        self._guard(path)
        node = self._get(path)
        self._check_conditions(request, path)
        inside = self._in(path)
        if node.data is None:
            if recursive is None:
                raise Refused(400, "MissingRequiredQueryParameter")
            if inside and recursive == "false":
                raise Refused(409, "DirectoryNotEmpty")
        if self.delete_page_size and len(inside) > self.delete_page_size:
            for child in sorted(inside, reverse=True)[: self.delete_page_size]:
                del self._nodes[child]
            return Response(200, {"x-ms-continuation": "more"})
        for gone in [path, *inside]:
            del self._nodes[gone]
        return Response(200)

    def _list(self, request: Request) -> Response:
        folder = request.query.get("directory", "")
        if folder:
            self._get(folder)
        paths = sorted(self._in(folder))
        depth = self.depth if request.query.get("recursive") == "true" else 1
        if depth:
            paths = [path for path in paths if path[len(folder) + 1 :].count("/") < depth]
        start = int(request.query.get("continuation", 0))
        page = paths[start : start + self.page_size]
        entries = []
        for path in page:
            node = self._nodes[path]
            entry = {
                "name": path.replace(ROOT, self.shown_root, 1),
                "contentLength": str(len(node.data or b"")),
                "etag": node.etag,
                "lastModified": formatdate(node.modified, usegmt=True),
                "owner": "$superuser",
                "group": "$superuser",
                "permissions": "---------",
            }
            entries.append(entry | ({"isDirectory": "true"} if node.data is None else {}))
        headers = {"Content-Type": "application/json"}
        if start + self.page_size < len(paths):
            headers["x-ms-continuation"] = str(start + self.page_size)
        return Response(200, headers, json.dumps({"paths": entries}).encode())

    # The Blob API

    def _list_blobs(self, request: Request) -> Response:
        """All that is below a prefix, in the order of the names (REST reference, "List Blobs")."""
        prefix, start = request.query["prefix"], request.query.get("startFrom", "")
        results = ElementTree.Element("EnumerationResults")
        blobs = ElementTree.SubElement(results, "Blobs")
        for path in sorted(self._nodes):
            if path.startswith(prefix) and path >= start:
                blob = ElementTree.SubElement(blobs, "Blob")
                ElementTree.SubElement(blob, "Name").text = path
                properties = ElementTree.SubElement(blob, "Properties")
                node = self._nodes[path]
                for name, value in {
                    "Last-Modified": formatdate(node.modified, usegmt=True),
                    "Etag": node.etag,
                    "Content-Length": str(len(node.data or b"")),
                    "Content-Type": "application/octet-stream",
                    "BlobType": "BlockBlob",
                    "ResourceType": "directory" if node.data is None else "file",
                }.items():
                    ElementTree.SubElement(properties, name).text = value
        ElementTree.SubElement(results, "NextMarker")
        body: bytes = ElementTree.tostring(results, "utf-8", xml_declaration=True)
        return Response(200, {"Content-Type": "application/xml"}, body)

    def _properties(self, request: Request) -> Response:
        if not request.target:
            return Response(200)
        node = self._get(request.target, "BlobNotFound")
        headers = {
            **self._about(node),
            "Content-Length": str(len(node.data or b"")),
            "Content-Type": "application/octet-stream",
            "x-ms-blob-type": "BlockBlob",
            "x-ms-resource-type": "directory" if node.data is None else "file",
        }
        if node.data is None:
            headers["x-ms-meta-hdi_isfolder"] = "true"
        if node.md5:
            headers["Content-MD5"] = b64encode(node.md5).decode()
        return Response(200, headers)

    def _read(self, request: Request) -> Response:
        headers = self._properties(request).headers
        data = self._nodes[request.target].data or b""
        wanted = request.headers.get("x-ms-range") or request.headers.get("range")
        if not wanted:
            return Response(200, headers, data)
        start, _, end = wanted.removeprefix("bytes=").partition("-")
        first, last = int(start), min(int(end or len(data)), len(data) - 1)
        if first >= len(data):
            raise Refused(416, "InvalidRange")
        part = data[first : last + 1]
        headers["Content-Length"] = str(len(part))
        headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        if "Content-MD5" in headers:
            headers["x-ms-blob-content-md5"] = headers.pop("Content-MD5")
        return Response(206, headers, part)

    def _put_blob(self, request: Request) -> Response:
        if request.headers.get("x-ms-blob-type") != "BlockBlob":
            raise Refused(400, "MissingRequiredHeader")
        digest = self._verified(request)
        return self._commit_blob(request, request.body, digest)

    def _put_block(self, request: Request) -> Response:
        self._guard(request.target)
        self._verified(request)
        self._blocks.setdefault(request.target, {})[request.query["blockid"]] = request.body
        return Response(201)

    def _put_block_list(self, request: Request) -> Response:
        blocks = self._blocks.get(request.target, {})
        names = [item.text or "" for item in ElementTree.fromstring(request.body)]
        if not all(name in blocks for name in names):
            raise Refused(400, "InvalidBlockList")
        # blocks that are part of the file already can be named again
        return self._commit_blob(request, b"".join(blocks[name] for name in names), None)

    def _verified(self, request: Request) -> bytes:
        digest = md5(request.body, usedforsecurity=False).digest()
        sent = request.headers.get("content-md5")
        if sent and b64decode(sent) != digest:
            raise Refused(400, "Md5Mismatch")
        return digest

    def _commit_blob(self, request: Request, data: bytes, digest: bytes | None) -> Response:
        path = request.target
        self._guard(path)
        self._check_conditions(request, path)
        if path in self._nodes:
            self._file(path)
        self._make_folders(path)
        given = request.headers.get("x-ms-blob-content-md5")
        self._nodes[path] = self._node(data, b64decode(given) if given else digest)
        return Response(201, self._about(self._nodes[path]))

    def _delete_blob(self, request: Request) -> Response:
        self._guard(request.target)
        self._check_conditions(request, request.target)
        self._get(request.target, "BlobNotFound")
        self._file(request.target)
        del self._nodes[request.target]
        return Response(202)

    # Changes that must never happen

    def _observe(self) -> None:
        numbered = self._numbered()
        for path, data in numbered.items():
            if not self._nodes[path].complete or self._nodes[path].appended:
                self.violations.append(f"{path} is visible before it is complete")
            elif path in self._seen and self._seen[path] is not data:
                self.violations.append(f"{path} was written twice")
        self._seen = numbered

    def _numbered(self) -> dict[str, bytes | None]:
        return {path: n.data for path, n in self._nodes.items() if _NUMBERED.fullmatch(path)}


class _Folder:
    """A folder that has what is in the landing zone, and the other way round."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[str, tuple[int, ...]] = {}
        self._data: dict[str, bytes | None] = {}

    def read(self, nodes: dict[str, Node], node: Callable[[bytes | None], Node]) -> None:
        """Have in the landing zone what somebody has changed in the folder."""
        found = {f"{ROOT}/{path.relative_to(self._folder)}": path for path in self._paths()}
        for gone in self._data.keys() - found.keys():
            del nodes[gone]
        for name, path in found.items():
            with suppress(FileNotFoundError):
                state = _state(path)
                if state != self._seen.get(name):
                    nodes[name] = node(None if path.is_dir() else path.read_bytes())
                    self._seen[name] = state
        self._remember(nodes)

    def write(self, nodes: dict[str, Node]) -> None:
        """Have in the folder what a request has changed in the landing zone."""
        before = self._data
        self._remember(nodes)
        for name, data in self._data.items():
            path = self._folder / name.removeprefix(f"{ROOT}/")
            if name not in before and data is None:
                path.mkdir(parents=True, exist_ok=True)
            elif name not in before or before[name] is not data:
                whole = self._folder.with_name("written")
                whole.parent.mkdir(parents=True, exist_ok=True)
                whole.write_bytes(data or b"")
                path.parent.mkdir(parents=True, exist_ok=True)
                whole.replace(path)
            else:
                continue
            self._seen[name] = _state(path)
        for gone in sorted(before.keys() - self._data.keys(), reverse=True):
            path = self._folder / gone.removeprefix(f"{ROOT}/")
            with suppress(FileNotFoundError):
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _paths(self) -> Iterator[Path]:
        for folder, folders, files in os.walk(self._folder):
            yield from (Path(folder, name) for name in [*folders, *files])

    def _remember(self, nodes: dict[str, Node]) -> None:
        inside = {name: node for name, node in nodes.items() if name.startswith(f"{ROOT}/")}
        self._data = {name: node.data for name, node in inside.items()}
        self._seen = {name: state for name, state in self._seen.items() if name in inside}


def _state(path: Path) -> tuple[int, ...]:
    """Another one if somebody has written a file again; a folder is just there."""
    found = path.stat()
    return () if path.is_dir() else (found.st_ino, found.st_size, found.st_mtime_ns)


def session_with(handle: Callable[[Request], Response]) -> requests.Session:
    """A session whose requests are answered in this process."""
    session = requests.Session()
    session.mount("https://", _Adapter(handle))
    return session


class _Adapter(HTTPAdapter):
    def __init__(self, handle: Callable[[Request], Response]) -> None:
        super().__init__()
        self._handle = handle

    def send(  # type: ignore[override]
        self, request: requests.PreparedRequest, **_: Any
    ) -> requests.Response:
        body = request.body or b""
        content = body.read() if hasattr(body, "read") else body
        arrived = received(
            str(request.method),
            str(request.url),
            {name: str(value) for name, value in request.headers.items()},
            content if isinstance(content, bytes) else str(content).encode(),
        )
        try:
            answer = self._handle(arrived)
        except requests.RequestException as error:
            error.request = request
            raise
        raw = HTTPResponse(
            BytesIO(answer.body if request.method != "HEAD" else b""),
            headers=answer.headers,
            status=answer.status,
            preload_content=False,
            request_method=request.method,
            reason="told",
        )
        return self.build_response(request, raw)


def received(method: str, url: str, headers: dict[str, str], body: bytes) -> Request:
    """A request as the server sees it."""
    parts = urlsplit(url)
    return Request(
        method,
        str(parts.hostname),
        unquote(parts.path.lstrip("/")),
        dict(parse_qsl(parts.query, keep_blank_values=True)),
        {name.lower(): value for name, value in headers.items()},
        body,
    )


@contextmanager
def through_sockets(port: int, authority: Path) -> Iterator[Callable[..., RequestsTransport]]:
    """Let the client send what is for OneLake to a port of this machine, with TLS.

    Args:
        authority: its certificate
    """

    def transport(**options: Any) -> RequestsTransport:
        return RequestsTransport(connection_verify=str(authority), **options)

    connect = socket.create_connection
    with (
        patch.object(onelake_storage, "RequestsTransport", transport),
        patch(
            "urllib3.util.connection.create_connection",
            lambda _address, *args, **options: connect(("127.0.0.1", port), 10),
        ),
    ):
        yield transport


@contextmanager
def listening(
    server: OneLakeServer,
    authority: trustme.CA,
    others: Mapping[str, Callable[[Request], Response]] | None = None,
) -> Iterator[int]:
    """Let the server listen on a port of this machine, with TLS.

    Args:
        others: what answers for other hosts there
    """
    answers = dict.fromkeys((HOST, HOST.replace("dfs", "blob")), server.handle)
    answers |= others or {}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*answers).configure_cert(context)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            url = f"https://{self.headers['Host']}{self.path}"
            try:
                request = received(self.command, url, dict(self.headers), body)
                answer = answers[request.host](request)
            except requests.RequestException:
                self.close_connection = True
                with suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
                return
            self.send_response_only(answer.status)
            for name, value in (
                {"Content-Length": str(len(answer.body))} | answer.headers
            ).items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)
            self.wfile.flush()

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.socket = context.wrap_socket(http.socket, server_side=True)
    with serving(http) as port:
        yield port


@contextmanager
def serving(http: ThreadingHTTPServer) -> Iterator[int]:
    """Let a server answer in a thread of its own, and yield its port."""
    thread = threading.Thread(target=http.serve_forever)
    thread.start()
    try:
        yield http.server_port
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
