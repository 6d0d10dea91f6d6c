"""A client of the Livy REST APIs of Microsoft Fabric and Apache Livy.

The client is built on azure-core, which gets Fabric's tokens and retries throttled requests.
Livy's own Python client supports only pickled jobs, no statements, and does not support Fabric.

Sources: "REST API" of Apache Livy's documentation; "Livy API" of Microsoft Fabric's, with the
definition `Livy-API-swagger` in microsoft/fabric-samples.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from typing import Any

from azure.core.credentials import TokenCredential
from azure.core.rest import HttpRequest

from dbt.adapters.openmirroring.rest.azure_requests import Retry
from dbt.adapters.openmirroring.rest.client import (
    RestClient,
    RestError,
    body_of,
    error_text,
    json_object,
)
from dbt.adapters.openmirroring.spark.livy.server import LivyServer
from dbt.adapters.openmirroring.text.shown import shown

_SESSION_ID = re.compile(r"[\w-]+")

# the states of a session; Fabric adds states of its own for the time before Livy has the session
_STARTING = ("starting", "not_started")
_READY = ("idle", "busy", "running")
_ENDED = (
    *("dead", "error", "killed", "success", "shutting_down"),
    *("cancelled", "cancelling", "failed", "not_found"),
)

_WAYS_OUT = {
    401: "Check `authentication`, or `user` and `password`, in the profile.",
    403: "Fabric needs the right to run Spark in the workspace, and for a service principal also "
    "the tenant setting `Service principals can use Fabric APIs`.",
    404: "Check `host` in the profile.",
    429: "Run again later, or with fewer `threads`.",
    430: "The capacity has no room for another Spark. End one that is not needed in Fabric's "
    "Monitoring hub, or run again later.",
}


class LivyError(RestError):
    """Livy refused a request, or did not answer."""


@dataclass(frozen=True)
class SessionState:
    """The state of a Livy session.

    Args:
        is_ready: whether the session takes statements
        has_ended: whether the session will never take statements again
        told: the state and its reason, in one line
    """

    is_ready: bool
    has_ended: bool
    told: str


@dataclass(frozen=True)
class Statement:
    """The state of a statement.

    Args:
        state: e.g. `running`, `available`, `cancelled`
        printed: the text that the code has printed; None if there is no output
        error: the error that stopped the code; empty if there is none
    """

    state: str
    printed: str | None = None
    error: str = ""

    @property
    def has_ended(self) -> bool:
        return self.state in ("available", "error", "cancelled")

    @property
    def lacks_output(self) -> bool:
        """Whether the statement is reported as available, but without its output.

        Livy reads the output before the state, which may change in between.
        """
        return self.state == "available" and self.printed is None and not self.error


class LivyClient:
    """A client of Livy.

    Every method raises LivyError if Livy refuses a request or cannot be reached.

    Args:
        server: the Livy server
        credential: gets Fabric's tokens; None for Apache Livy
    """

    def __init__(self, server: LivyServer, credential: TokenCredential | None) -> None:
        self._server = server
        # Livy requires this header if its protection against cross-site requests is on
        headers = {"X-Requested-By": "dbt-openmirroring"}
        if server.user and not credential:
            login = base64.b64encode(f"{server.user}:{server.password}".encode()).decode()
            headers["Authorization"] = f"Basic {login}"
        self._client = RestClient(
            server.sessions,
            server.shown_url,
            Retry(
                # few, because Apache Livy always answers 500 for a session that has ended
                most_attempts=3,
                retry_total=12,
                retry_connect=6,
                retry_read=6,
                retry_status=12,
                retry_backoff_factor=1,
                retry_backoff_max=60,
            ),
            credential,
            headers,
            refused=LivyError,
            unanswered=LivyError,
        )

    @property
    def url(self) -> str:
        """The URL of Livy's sessions."""
        return self._server.sessions

    def create(self, options: dict[str, Any]) -> str:
        """Request a new session, which takes no statements until it is ready.

        A request without an answer is not repeated, because each request starts a Spark.

        Args:
            options: the options of the session, as in Livy's documentation

        Returns:
            the id of the session
        """
        body = self._send("POST", "", "Livy has not started a session", options, repeatable=False)
        session = str(body.get("id", ""))
        if not is_session_id(session):
            raise LivyError(f"Livy at {self._server.shown_url} has answered without a session id.")
        return session

    def state(self, session: str) -> SessionState:
        """Return the state of a session. A session that Livy does not know has ended."""
        try:
            body = self._send("GET", f"/{session}", "Livy does not tell the state of the session")
        except LivyError as error:
            if error.status != 404:
                raise
            return SessionState(False, True, "not found")
        return session_state(body)

    def delete(self, session: str) -> None:
        """End a session."""
        self._send("DELETE", f"/{session}", "Livy has not ended the session")

    def submit(self, session: str, code: str) -> int:
        """Submit code as a statement.

        The request may be repeated, so running the code twice must do no harm.

        Returns:
            the id of the statement
        """
        statement = {"kind": "pyspark", "code": code}
        path = f"/{session}/statements"
        body = self._send("POST", path, "Livy has not taken the statement", statement)
        number = body.get("id")
        if not isinstance(number, int):
            raise LivyError(
                f"Livy at {self._server.shown_url} has answered without a statement id."
            )
        return number

    def statement(self, session: str, number: int) -> Statement:
        """Return the state of a statement."""
        path = f"/{session}/statements/{number}"
        body = self._send("GET", path, "Livy does not tell the state of the statement")
        output = json_object(body.get("output"))
        data = output.get("data")
        printed = str(json_object(data).get("text/plain", "")) if data is not None else None
        error = ""
        if output.get("status") == "error":
            error = f"{output.get('ename', '')}: {output.get('evalue', '')}"
        return Statement(str(body.get("state", "")).lower(), printed, error)

    def cancel(self, session: str, number: int) -> None:
        """Cancel a statement."""
        path = f"/{session}/statements/{number}/cancel"
        self._send("POST", path, "Livy has not cancelled the statement")

    def _send(
        self,
        method: str,
        path: str,
        doing: str,
        content: dict[str, Any] | None = None,
        repeatable: bool = True,
    ) -> dict[str, Any]:
        request = HttpRequest(method, f"{self._server.sessions}{path}", json=content)
        methods = frozenset(("GET", "POST", "DELETE") if repeatable else ())
        response = self._client.call(request, doing, retry_on_methods=methods)
        body = body_of(response)
        if response.status_code >= 300:
            told = error_text(body) or f"HTTP {response.status_code} {shown(response.reason)}"
            way_out = _WAYS_OUT.get(response.status_code, "")
            raise LivyError(
                f"{doing}. {self._server.shown_url} says: {told.rstrip('.')}. {way_out}".rstrip(),
                response.status_code,
            )
        return body


def is_session_id(text: object) -> bool:
    """Check whether a text can be the id of a session: a number, or in Fabric a GUID."""
    return isinstance(text, str) and _SESSION_ID.fullmatch(text) is not None


def session_state(body: dict[str, Any]) -> SessionState:
    """Read the state of a session from an answer of Apache Livy or Fabric.

    Fabric returns up to three states, each of them optional: its own state while it gets a Spark,
    the state of the session, and the state that Livy reports.
    """
    fabric = json_object(body.get("fabricSessionStateInfo"))
    named = (
        fabric.get("state"),
        body.get("state"),
        json_object(body.get("livyInfo")).get("currentState"),
    )
    states = [str(state).lower() for state in named if state]
    ended = [state for state in states if state in _ENDED]
    errors = body.get("errorInfo")
    log = body.get("log")
    reasons = [
        *(error_text(error) for error in (errors if isinstance(errors, list) else ())),
        shown(fabric.get("errorMessage") or ""),
        *(shown(line) for line in (log if isinstance(log, list) else ())[-1:]),
    ]
    state = (ended or states or ["unknown"])[-1]
    told = ": ".join([state, *[reason for reason in reasons if reason][:1]])
    is_ready = bool(states) and states[-1] in _READY
    is_ready = is_ready and not ended and not set(states).intersection(_STARTING)
    return SessionState(is_ready, bool(ended), told)
