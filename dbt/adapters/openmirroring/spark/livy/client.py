"""A client of the Livy REST APIs of Microsoft Fabric and Apache Livy.

The client is built on azure-core, which gets Fabric's tokens and retries throttled requests.
Livy's own Python client supports only pickled jobs, no statements, and does not support Fabric.

Sources: "REST API" of Apache Livy's documentation; "Livy API" of Microsoft Fabric's, with the
definition `Livy-API-swagger` in microsoft/fabric-samples.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from azure.core.credentials import TokenCredential
from azure.core.rest import HttpRequest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.rest.azure_requests import (
    RestClient,
    RestError,
    Retry,
    body_of,
    error_text,
    json_object,
)
from dbt.adapters.openmirroring.spark.servers import LivyServer
from dbt.adapters.openmirroring.text.shown import shown, shown_url

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


# the longest pause between two requests for a state, in seconds
LAST_PAUSE = 3.0

# requests for the state of a statement before the session itself is checked
_QUESTIONS = 10


class LivyError(RestError):
    """Livy refused a request, or did not answer."""


class StatementError(LivyError):
    """A statement failed in Livy, not in Spark.

    Args:
        why: what Livy says, in sentences
        is_sent: whether it may have been carried out
        status: the HTTP status; None without an answer
    """

    def __init__(
        self, why: str, is_sent: bool, status: int | None = None, *, code: str = ""
    ) -> None:
        super().__init__(self._text(why, is_sent), status, code=code)
        self.why = why
        self.is_sent = is_sent

    def of(self, is_sent: bool) -> StatementError:
        """Return the same error of another statement that waited for the same answer."""
        return type(self)(self.why, is_sent, self.status, code=self.code)

    def _text(self, why: str, is_sent: bool) -> str:
        if not is_sent:
            return why
        return f"{why} It is not known whether the statement was carried out; it was not repeated."


class SessionEndedError(StatementError):
    """The Livy session has ended, so dbt's connections have lost their Spark sessions."""

    def _text(self, why: str, is_sent: bool) -> str:
        told = super()._text(why, is_sent) if is_sent else f"{why} The statement was not sent."
        return f"{told} The next node gets a new session; run this one again."


def session_ended(session: str, why: str, is_sent: bool) -> SessionEndedError:
    return SessionEndedError(f"Livy's session {session} has ended ({why}).", is_sent)


@dataclass(frozen=True)
class SessionState:
    """Whether a Livy session takes statements, or never will again, and why, in one line."""

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


class LivyClient:
    """A client of Livy.

    Every method raises LivyError if Livy refuses a request or cannot be reached. The credential
    gets Fabric's tokens; Apache Livy needs none.
    """

    def __init__(self, server: LivyServer, credential: TokenCredential | None) -> None:
        self.url = server.sessions
        # Fabric counts the requests of an identity
        self._first_pause = 0.3 if server.is_fabric else 0.05
        self._place = shown_url(server.url)
        # Livy requires this header if its protection against cross-site requests is on
        headers = {"X-Requested-By": "dbt-openmirroring"}
        if server.user and not credential:
            login = base64.b64encode(f"{server.user}:{server.password}".encode()).decode()
            headers["Authorization"] = f"Basic {login}"
        self._client = RestClient(
            self.url,
            self._place,
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

    def pause_since(self, start: float) -> float:
        """Return the pause before the next request: a quarter of the time since a start.

        Args:
            start: as `time.monotonic` has it
        """
        return min(max((time.monotonic() - start) / 4, self._first_pause), LAST_PAUSE)

    def create(self, options: dict[str, Any]) -> str:
        """Request a new session with options of Livy's documentation, and return its id.

        A request without an answer is not repeated, because each request starts a Spark.
        """
        body = self._send("POST", "", "Livy has not started a session", options, repeatable=False)
        if body.get("id") is None:
            raise LivyError(f"Livy at {self._place} has answered without a session id.")
        return str(body["id"])

    def state(self, session: str) -> SessionState:
        """Return the state of a session, which has ended if Livy does not know it."""
        try:
            body = self._send("GET", f"/{session}", "Livy does not tell the state of the session")
        except LivyError as error:
            if error.status != 404:
                raise
            return SessionState(False, True, "not found")
        return session_state(body)

    def delete(self, session: str) -> None:
        self._send("DELETE", f"/{session}", "Livy has not ended the session")

    def submit(self, session: str, code: str) -> int:
        """Submit code as a statement, and return its number.

        The request may be repeated, so running the code twice must do no harm.
        """
        statement = {"kind": "pyspark", "code": code}
        path = f"/{session}/statements"
        number = self._send("POST", path, "Livy has not taken the statement", statement).get("id")
        if not isinstance(number, int):
            raise LivyError(f"Livy at {self._place} has answered without a statement id.")
        return number

    def statement(self, session: str, number: int) -> Statement:
        path = f"/{session}/statements/{number}"
        body = self._send("GET", path, "Livy does not tell the state of the statement")
        output = json_object(body.get("output"))
        data = output.get("data")
        printed = str(json_object(data).get("text/plain", "")) if data is not None else None
        error = ""
        if output.get("status") == "error":
            error = f"{output.get('ename', '')}: {output.get('evalue', '')}"
        return Statement(str(body.get("state", "")).lower(), printed, error)

    def run(self, session: str, code: str, pause: Callable[[], None]) -> str:
        """Run code in a session and return the text that it prints.

        Args:
            pause: waits between two requests for the state; it may raise to cancel the statement

        Raises:
            SessionEndedError: if the session has ended
            StatementError: if Livy refuses a request, or cannot be reached
            DbtRuntimeError: if the statement was cancelled in Livy
        """
        number = None
        try:
            number = self.submit(session, code)
            statement = self._wait(session, number, pause)
        except SessionEndedError:
            raise
        except LivyError as error:
            # A refused statement was not carried out. Without an answer, or with a server error,
            # it may have been.
            is_sent = number is not None or (error.status or 500) >= 500
            try:
                self._check(session, is_sent)
            except SessionEndedError:
                raise
            except LivyError:
                pass  # the first error is told
            raise StatementError(error.text, is_sent, error.status, code=error.code) from None
        if statement.state == "cancelled":
            raise DbtRuntimeError("The statement was cancelled in Livy.")
        if statement.error.startswith("NameError: name 'openmirroring_"):
            raise session_ended(session, "its Python was started anew", is_sent=True)
        if statement.error or statement.state == "error":
            raise StatementError(f"Livy could not run the statement: {statement.error}.", True)
        return statement.printed or ""

    def _wait(self, session: str, number: int, pause: Callable[[], None]) -> Statement:
        questions = lacking = 0
        while True:
            try:
                statement = self.statement(session, number)
            except LivyError as error:
                # Fabric may not yet find a statement that it has just accepted
                if error.status != 404 or questions > _QUESTIONS:
                    raise
                self._check(session, is_sent=True)
                statement = Statement("waiting")
            if statement.state in ("error", "cancelled"):
                return statement
            if statement.state == "available":
                # Livy reads the output before the state, which may change in between
                lacking += 1
                if statement.error or statement.printed is not None or lacking > _QUESTIONS:
                    return statement
            questions += 1
            if questions % _QUESTIONS == 0:
                # Fabric may report a statement as running forever after its session has ended
                self._check(session, is_sent=True)
            try:
                pause()
            except BaseException:  # includes Ctrl-C in this thread
                with suppress(LivyError):
                    self.cancel(session, number)
                raise

    def _check(self, session: str, is_sent: bool) -> None:
        """Raise SessionEndedError if a session has ended."""
        state = self.state(session)
        if state.has_ended:
            raise session_ended(session, state.told, is_sent)

    def cancel(self, session: str, number: int) -> None:
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
        request = HttpRequest(method, f"{self.url}{path}", json=content)
        methods = frozenset(("GET", "POST", "DELETE") if repeatable else ())
        response = self._client.call(request, doing, retry_on_methods=methods)
        body = body_of(response)
        if response.status_code >= 300:
            told = error_text(body) or f"HTTP {response.status_code} {shown(response.reason)}"
            way_out = _WAYS_OUT.get(response.status_code, "")
            raise LivyError(
                f"{doing}. {self._place} says: {told.rstrip('.')}. {way_out}".rstrip(),
                response.status_code,
            )
        return body


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
    errors, log = (
        found if isinstance(found := body.get(name), list) else [] for name in ("errorInfo", "log")
    )
    reasons = [
        *map(error_text, errors),
        shown(fabric.get("errorMessage") or ""),
        *map(shown, log[-1:]),
    ]
    state = (ended or states or ["unknown"])[-1]
    told = ": ".join([state, *filter(None, reasons)][:2])
    is_ready = not ended and not set(states).intersection(_STARTING) and state in _READY
    return SessionState(is_ready, bool(ended), told)
