"""One Livy session a command, and in it a session of Spark for each connection.

A Livy session is a Spark application, which takes up to minutes to start and a part of the
cluster. It runs statements one after another, and is found again by later commands if the profile
says so. Each connection of dbt has a `SparkSession` of its own in it, by `newSession()`: its
settings and temporary views are its own.
"""

from __future__ import annotations

import json
import queue
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.spark.livy_client import (
    LivyClient,
    LivyError,
    Statement,
    is_session_id,
)
from dbt.adapters.openmirroring.spark.livy_protocol import (
    KEEP_ALIVE,
    START,
    Answer,
    Request,
)

logger = AdapterLogger("OpenMirroring")

# seconds: Fabric ends a session after 20 minutes without a statement
_KEEP_ALIVE = 240.0

# seconds that a session may take to start, and after which the user is told of it
_START = 1200.0
_TELL_AFTER = 5.0

# seconds between two questions, from the first to the last
_FIRST_PAUSE, _LAST_PAUSE = 0.05, 3.0

# of questions about a statement, between two whether its session is still there
_QUESTIONS = 10

_UNKNOWN = "It is not known whether the statement was carried out; it was not repeated."


class SessionEndedError(LivyError):
    """The Livy session is gone, and with it all that the connection had in it."""


class LivySession:
    """The Livy session of a command.

    Args:
        client: of Livy
        options: of a new session
        record: a file with the session that an earlier command has left, for this one and later
            ones; None to end the session with the command
    """

    def __init__(
        self, client: LivyClient, options: Mapping[str, Any], record: Path | None = None
    ) -> None:
        self._client = client
        self._options = dict(options)
        self._record = record
        self._lock = threading.RLock()
        self._session: str | None = None
        self._over = threading.Event()
        self._is_used = False
        self._ended_connections: queue.SimpleQueue[str] = queue.SimpleQueue()

    def session(self, cancelled: threading.Event, known: str | None = None) -> str:
        """The id of a Livy session that takes statements; it is started if there is none.

        Args:
            known: in which a connection has its own session, if it has one

        Raises:
            SessionEndedError: the known one is gone
            LivyError: it does not start
        """
        self._check_known(known)
        with self._lock:
            # another connection may have waited for a new one
            self._check_known(known)
            _stop_if(cancelled)
            if self._session is None:
                self._session = self._found(cancelled) or self._started(cancelled)
                threading.Thread(
                    target=self._keep_alive, args=(self._session,), daemon=True, name="Livy"
                ).start()
            return self._session

    def run(self, session: str, request: Request, cancelled: threading.Event) -> Answer:
        """Carry out a request.

        Args:
            session: of Livy
            cancelled: set to cancel it

        Raises:
            SessionEndedError: the Livy session is gone
            LivyError: Livy refuses it, or cannot be reached
            CutOffError: the answer did not arrive whole
            DbtRuntimeError: it was cancelled
        """
        piece, count = request.piece(0, self._print(session, request.code, cancelled))
        pieces = [piece]
        for number in range(1, count):
            printed = self._print(session, request.code_of_piece(number), cancelled)
            pieces.append(request.piece(number, printed)[0])
        return Answer.parse(pieces)

    def connection_ended(self, name: str) -> None:
        """Let the next request tell that the session of a connection is not needed any more."""
        self._ended_connections.put(name)

    def ended_connections(self) -> Sequence[str]:
        """The connections that ended since this was asked last."""
        ended = []
        with suppress(queue.Empty):
            while True:
                ended.append(self._ended_connections.get_nowait())
        return ended

    def end(self) -> None:
        """The end of the command, and of its session if no later command is to find it."""
        self._over.set()
        session, self._session = self._session, None
        if session is not None and not self._record:
            self._delete(session)

    def _check_known(self, session: str | None) -> None:
        if session not in (None, self._session):
            raise ended_error(str(session), "while another statement ran", is_sent=False)

    def _delete(self, session: str) -> None:
        try:
            self._client.delete(session)
        except LivyError as error:
            logger.warning(f"{error.msg} It ends by itself when it has been idle for some time.")

    def _found(self, cancelled: threading.Event) -> str | None:
        """The session that an earlier command has left, if it is still there."""
        session = self._recorded()
        if session is None or self._client.state(session).has_ended:
            return None
        try:
            self._prepare(session, cancelled)
        except SessionEndedError:
            return None
        return session

    def _recorded(self) -> str | None:
        try:
            content = json.loads(self._record.read_text()) if self._record else {}
            session = content["session"] if content["url"] == self._client.url else ""
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return session if is_session_id(session) else None

    def _started(self, cancelled: threading.Event) -> str:
        name = f"dbt-openmirroring-{uuid.uuid4().hex[:12]}"
        session = self._client.create({"name": name, **self._options})
        try:
            self._prepare(session, cancelled)
        except BaseException:
            self._delete(session)
            raise
        if self._record:
            self._record.parent.mkdir(parents=True, exist_ok=True)
            self._record.write_text(json.dumps({"url": self._client.url, "session": session}))
        return session

    def _prepare(self, session: str, cancelled: threading.Event) -> None:
        """Wait until a session takes statements, and start the driver in it."""
        started, is_told = time.monotonic(), False
        while not (state := self._client.state(session)).is_ready:
            waited = time.monotonic() - started
            if state.has_ended:
                raise SessionEndedError(f"Livy's session {session} has not started: {state.told}")
            if waited > _START:
                raise LivyError(
                    f"Livy's session {session} has not started within {_START / 60:.0f} minutes: "
                    f"it is {state.told}. Look at Livy, or run again later."
                )
            if waited > _TELL_AFTER and not is_told:
                is_told = True
                fire_event(Note(msg=f"Waiting for Livy to start a Spark (session {session})"))
            _pause(waited, cancelled)
        self._print(session, START, cancelled)

    def _keep_alive(self, session: str) -> None:
        """Send a statement now and then, while dbt does other things."""
        while not self._over.wait(_KEEP_ALIVE) and self._session == session:
            is_used, self._is_used = self._is_used, False
            if not is_used:
                try:
                    self._client.submit(session, KEEP_ALIVE)
                except LivyError as error:  # the next statement tells
                    logger.debug(f"{error.msg}")

    def _print(self, session: str, code: str, cancelled: threading.Event) -> str:
        """Run code, and return what it prints."""
        self._is_used = True
        number = None
        try:
            number = self._client.submit(session, code)
            statement = self._wait(session, number, cancelled)
        except SessionEndedError:
            raise
        except LivyError as error:
            # who is refused was heard; without an answer nobody knows
            is_sent = number is not None or (error.status or 500) >= 500
            self._check(session, is_sent, otherwise=error)
            if not is_sent:
                raise
            raise LivyError(f"{error.msg} {_UNKNOWN}", error.status) from None
        if statement.state == "cancelled":
            raise DbtRuntimeError("The statement was cancelled in Livy.")
        if statement.error.startswith("NameError: name 'openmirroring_"):
            self._forget(session)
            raise ended_error(session, "its Python was started anew", is_sent=True)
        if statement.error or statement.state == "error":
            raise LivyError(f"Livy could not run the statement: {statement.error}")
        return statement.printed or ""

    def _wait(self, session: str, number: int, cancelled: threading.Event) -> Statement:
        started = time.monotonic()
        questions = lacking = 0
        while True:
            statement = self._statement(session, number, questions)
            lacking += statement.lacks_output
            if statement.has_ended and (not statement.lacks_output or lacking > _QUESTIONS):
                return statement
            questions += 1
            if questions % _QUESTIONS == 0:
                # Fabric may say for ever that a statement runs whose session is gone
                self._check(session, is_sent=True)
            try:
                _pause(time.monotonic() - started, cancelled)
            except BaseException:  # also Ctrl-C in this thread
                self._cancel(session, number)
                raise

    def _statement(self, session: str, number: int, questions: int) -> Statement:
        try:
            return self._client.statement(session, number)
        except LivyError as error:
            # Fabric may not know a statement yet that it has just taken
            if error.status != 404 or questions > _QUESTIONS:
                raise
        self._check(session, is_sent=True)
        return Statement("waiting")

    def _cancel(self, session: str, number: int) -> None:
        try:
            self._client.cancel(session, number)
        except LivyError as error:
            logger.debug(error.msg)

    def _check(self, session: str, is_sent: bool, otherwise: LivyError | None = None) -> None:
        """Make sure that a session is still there.

        Args:
            is_sent: a statement that may have been carried out
            otherwise: what to raise if Livy does not tell

        Raises:
            SessionEndedError: it is not
        """
        try:
            state = self._client.state(session)
        except LivyError:
            if otherwise:
                raise otherwise from None
            raise
        if state.has_ended:
            self._forget(session)
            raise ended_error(session, state.told, is_sent)

    def _forget(self, session: str) -> None:
        with self._lock:
            if self._session == session:
                self._session = None


def _pause(waited: float, cancelled: threading.Event) -> None:
    """Wait before Livy is asked again: a quarter of the time that it has taken so far.

    Raises:
        DbtRuntimeError: the user has cancelled
    """
    cancelled.wait(min(max(waited / 4, _FIRST_PAUSE), _LAST_PAUSE))
    _stop_if(cancelled)


def _stop_if(cancelled: threading.Event) -> None:
    if cancelled.is_set():
        cancelled.clear()  # what tidies up afterwards is run
        raise DbtRuntimeError("The statement was cancelled.")


def ended_error(session: str, why: str, is_sent: bool) -> SessionEndedError:
    """The error of a statement whose session has ended.

    Args:
        is_sent: the statement may have been carried out
    """
    what = _UNKNOWN if is_sent else "The statement was not sent."
    return SessionEndedError(
        f"Livy's session {session} has ended ({why}). {what} The next node gets a new session; "
        "run this one again."
    )
