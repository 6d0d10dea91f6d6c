"""Livy's answers, and who is told a secret."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from typing import Any

import pytest
import requests
from dbt_common.exceptions import DbtConfigError
from requests.adapters import HTTPAdapter
from urllib3 import HTTPResponse

from dbt.adapters.openmirroring.credentials import OpenMirroringCredentials
from dbt.adapters.openmirroring.spark.livy.client import (
    LivyClient,
    LivyError,
    SessionState,
    session_state,
)
from tests.fabric_server import Credential
from tests.onelake_server import TOKEN
from tests.unit.spark.livy import Livy

FABRIC = (
    "https://api.fabric.microsoft.com/v1/workspaces/11111111-1111-1111-1111-111111111111/"
    "lakehouses/22222222-2222-2222-2222-222222222222/livyapi/versions/2023-12-01"
)

IDLE = {"livyInfo": {"currentState": "idle"}}


@pytest.fixture
def livy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Livy]:
    started = Livy(monkeypatch)
    yield started
    started.server.stop()


def credentials(**settings: Any) -> OpenMirroringCredentials:
    given = {"method": "livy", "schema": "analytics", "landing_zone": "landing", **settings}
    found: OpenMirroringCredentials = OpenMirroringCredentials.from_dict(given)
    return found


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"state": "idle"}, SessionState(True, False, "idle")),
        ({"state": "busy", "log": []}, SessionState(True, False, "busy")),
        ({"state": "starting", "log": ["a", " b "]}, SessionState(False, False, "starting: b")),
        ({"state": "not_started"}, SessionState(False, False, "not_started")),
        ({"state": "dead", "log": ["\tkilled\x1b"]}, SessionState(False, True, "dead: killed?")),
        ({"state": "shutting_down"}, SessionState(False, True, "shutting_down")),
        # Fabric: nothing of the session yet, then the session without what Livy says of it
        ({}, SessionState(False, False, "unknown")),
        (
            {"fabricSessionStateInfo": {"state": "acquiringSession"}},
            SessionState(False, False, "acquiringsession"),
        ),
        ({"state": "starting", **IDLE}, SessionState(False, False, "idle")),
        ({"state": "idle", **IDLE}, SessionState(True, False, "idle")),
        (
            {"state": "idle", "livyInfo": {"currentState": "dead"}},
            SessionState(False, True, "dead"),
        ),
        (
            {"fabricSessionStateInfo": {"state": "error", "errorMessage": "no\ncapacity"}},
            SessionState(False, True, "error: no capacity"),
        ),
        (
            {"state": "error", "errorInfo": [{"errorCode": "OOM", "message": "too large"}]},
            SessionState(False, True, "error: OOM: too large"),
        ),
        ({"state": 7, "livyInfo": [], "errorInfo": {}, "log": 1}, SessionState(False, False, "7")),
    ],
)
def test_the_state_of_a_session_is_read_as_apache_and_fabric_say_it(
    body: dict[str, Any], expected: SessionState
) -> None:
    assert session_state(body) == expected


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ((401, {}, {"msg": "who?"}), "says: who\\?. Check `authentication`, or `user`"),
        ((403, {}, {"errorCode": "No", "message": "no right."}), "says: No: no right. Fabric"),
        ((404, {}, None), "says: HTTP 404 Not Found. Check `host`"),
        ((400, {}, ["?"]), "says: HTTP 400 Bad Request."),
        ((302, {"Location": "http://127.0.0.1:1/"}, None), "says: HTTP 302"),
        ((201, {}, None), "has answered without a session id"),
    ],
)
def test_an_answer_that_is_no_session_is_reported(livy: Livy, answer: Any, message: str) -> None:
    livy.server.answer = lambda *_: answer  # type: ignore[method-assign]

    with pytest.raises(LivyError, match=message):
        livy.client().create({})


def test_apache_livy_may_ask_for_a_password_and_may_not_be_there(livy: Livy) -> None:
    livy.client(user="me", password="s3cret").create({})

    (headers,) = livy.server.headers
    assert headers["authorization"] == "Basic " + base64.b64encode(b"me:s3cret").decode()
    assert headers["x-requested-by"] == "dbt-openmirroring"
    livy.server.stop()
    with pytest.raises(LivyError, match=f"{livy.server.url} cannot be reached"):
        livy.client().create({})


def test_fabric_gets_a_token_at_the_url_of_its_documentation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, str]] = []

    def send(
        adapter: HTTPAdapter, request: requests.PreparedRequest, **_: Any
    ) -> requests.Response:
        asked.append((str(request.url), str(request.headers["Authorization"])))
        content = io.BytesIO(json.dumps({"id": "33333333-3333"}).encode())
        return adapter.build_response(
            request, HTTPResponse(content, {}, 202, preload_content=False)
        )

    monkeypatch.setattr(HTTPAdapter, "send", send)
    for host in (FABRIC, f"{FABRIC}/", f"{FABRIC}/sessions"):
        client = LivyClient(credentials(host=host).livy_server, Credential())

        assert client.create({}) == "33333333-3333"

    assert asked == [(f"{FABRIC}/sessions", f"Bearer {TOKEN}")] * 3


@pytest.mark.parametrize(
    ("host", "is_fabric"),
    [
        (FABRIC, True),
        (FABRIC.replace("api.", "ws.z11.w.api."), True),
        (FABRIC.replace("https", "http"), False),
        (FABRIC.replace("https://api", "https://evil-api"), False),
        (FABRIC.replace("microsoft.com", "microsoft.com.example"), False),
        ("https://example.com/api.fabric.microsoft.com/", False),
        ("http://localhost:8998", False),
    ],
)
def test_only_fabric_is_sent_fabrics_tokens(host: str, is_fabric: bool) -> None:
    assert credentials(host=host).livy_server.is_fabric is is_fabric


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "`method: livy` needs `host: <URL of Livy>`, not None"),
        ({"host": "livy:8998"}, "needs `host: <URL of Livy>`, not 'livy:8998'"),
        ({"host": "https://me:s3cret@livy"}, "not 'https://livy'"),
        ({"host": "https://livy/?doAs=me"}, "needs `host: <URL of Livy>`"),
        ({"host": FABRIC, "workspaceid": "1"}, "`workspaceid` is not a setting of `method: livy`"),
        ({"host": FABRIC, "port": 8998}, "`port` is not a setting of `method: livy`"),
        ({"host": FABRIC, "user": "me", "password": "x"}, "are for Apache Livy"),
        ({"host": "http://livy", "user": "me"}, "`user` needs `password`"),
        ({"host": "http://livy", "password": "me"}, "`password` needs `user`"),
        (
            {"host": FABRIC, "authentication": "token", "token": "x"},
            "`authentication: token` is a token for OneLake",
        ),
        ({"method": "session", "reuse_session": True}, "`reuse_session` is for `method: livy`"),
        ({"method": "session", "session_options": {"a": 1}}, "`session_options` is for"),
    ],
)
def test_a_profile_that_does_not_fit_is_refused_by_the_name_of_the_setting(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(DbtConfigError, match=message):
        credentials(**settings)


def test_a_password_is_not_shown() -> None:
    given = credentials(host="https://livy", user="me", password="s3cret")

    shown = dict(given.connection_info())

    assert (shown["host"], shown["user"]) == ("https://livy", "me")
    assert "s3cret" not in f"{shown} {given.livy_server!r} {given!r}"
