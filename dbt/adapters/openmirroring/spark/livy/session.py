"""The Livy session of a command, and dbt's connections, each with a Spark session in it.

A Livy session is a Spark application. It may take minutes to start, and uses a part of the
cluster. It runs statements one after another. Later commands use it again if the profile asks for
it. In it, each dbt connection has a `SparkSession` from `newSession()`, with settings and
temporary views of its own. Requests become code, and `driver.py` is the other side.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import queue
import re
import threading
import time
import uuid
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.openmirroring.spark import errors, python_models
from dbt.adapters.openmirroring.spark.livy import driver
from dbt.adapters.openmirroring.spark.livy.client import LivyClient, LivyError, Statement
from dbt.adapters.openmirroring.spark.session import SessionHandle
from dbt.adapters.openmirroring.text.codes import CodedLogger
from dbt.adapters.openmirroring.types.crossing import AS_THEY_ARE, received, selection

logger = CodedLogger("OpenMirroring")

_SOURCES = {
    module.__name__.rpartition(".")[2]: inspect.getsource(module)
    for module in (errors, python_models, driver)
}

# The name of the driver in a session. It has a hash of the sources, because different versions of
# dbt-openmirroring may share a Livy session.
DRIVER = "openmirroring_" + hashlib.sha256(repr(_SOURCES).encode()).hexdigest()[:16]

# The code that starts the driver, once per Livy session.
_START_DRIVER = f"""\
if {DRIVER!r} not in globals():
    def {DRIVER}():
        modules = {{}}
        for name, source in {_SOURCES!r}.items():
            modules[name] = {{"__name__": "openmirroring_" + name}}
            exec(compile(source, "<dbt-openmirroring " + name + ">", "exec"), modules[name])
        return modules["driver"]["Driver"](
            spark,
            modules["python_models"]["create_view"],
            modules["errors"]["explained"],
        )
    {DRIVER} = {DRIVER}()
"""

# code that does nothing, to keep an idle session from being ended
KEEP_ALIVE = "None"

# seconds between statements that keep a session alive; Fabric ends an idle one after 20 minutes
_KEEP_ALIVE = 240.0

# seconds that a session may take to start, and seconds before the user is told about the wait
_START = 1200.0
_TELL_AFTER = 5.0

# shortest and longest pause in seconds between two requests for a state
_FIRST_PAUSE, _LAST_PAUSE = 0.05, 3.0

# requests for the state of a statement before the session itself is checked
_QUESTIONS = 10

_UNKNOWN = "It is not known whether the statement was carried out; it was not repeated."


class SessionEndedError(LivyError):
    """The Livy session has ended, so the connection has lost its Spark session."""


class LivySession:
    """The Livy session of a command.

    Args:
        options: those of a new session
        record: a file with the id of the session that commands share; None to end the session
            with the command
        identity: whose session it is; another identity gets one of its own
    """

    def __init__(
        self,
        client: LivyClient,
        options: Mapping[str, Any],
        record: Path | None = None,
        identity: Sequence[str | None] = (),
    ) -> None:
        self._client = client
        self._options = dict(options)
        self._record = record
        # a hash, because options may have secrets
        made_for = json.dumps([self._options, list(identity)], sort_keys=True, default=str)
        self._made_for = hashlib.sha256(made_for.encode()).hexdigest()
        self._lock = threading.RLock()
        self._session: str | None = None
        self._over = threading.Event()
        self._is_used = False
        self._ended_connections: queue.SimpleQueue[str] = queue.SimpleQueue()

    def session(self, cancelled: threading.Event, known: str | None = None) -> str:
        """Return the id of a Livy session that takes statements. Start one if there is none.

        It is the known one if the connection has its Spark session there.

        Raises:
            SessionEndedError: if the known session has ended
            LivyError: if the session does not start
            DbtRuntimeError: if the user has cancelled
        """
        self._check_known(known)
        with self._lock:
            # another connection may have started a new session while this one waited for the lock
            self._check_known(known)
            self._stop_if(cancelled)
            if self._session is None:
                self._session = self._found(cancelled) or self._started(cancelled)
                if self._over.is_set():  # `end` has not seen the session
                    self.end()
                    self._stop_if(cancelled)
                threading.Thread(
                    target=self._keep_alive, args=(self._session,), daemon=True, name="Livy"
                ).start()
            return self._session

    def run(self, session: str, code: str, cancelled: threading.Event) -> str:
        """Run code and return the text that it prints.

        Raises:
            SessionEndedError: if the Livy session has ended
            LivyError: if Livy refuses the request or cannot be reached
            DbtRuntimeError: if the statement was cancelled
        """
        self._is_used = True
        number = None
        try:
            number = self._client.submit(session, code)
            statement = self._wait(session, number, cancelled)
        except SessionEndedError:
            raise
        except LivyError as error:
            # A refused statement was not carried out. Without an answer, or with a server error,
            # it may have been.
            is_sent = number is not None or (error.status or 500) >= 500
            self._check(session, is_sent, otherwise=error)
            if not is_sent:
                raise
            raise LivyError(f"{error.msg} {_UNKNOWN}", error.status) from None
        if statement.state == "cancelled":
            raise DbtRuntimeError("The statement was cancelled in Livy.")
        if statement.error.startswith("NameError: name 'openmirroring_"):
            self._forget(session)
            raise _ended(session, "its Python was started anew", is_sent=True)
        if statement.error or statement.state == "error":
            raise LivyError(f"Livy could not run the statement: {statement.error}")
        return statement.printed or ""

    def connection_ended(self, name: str) -> None:
        """Let the next request report that a connection does not need its Spark session."""
        self._ended_connections.put(name)

    def ended_connections(self) -> list[str]:
        """Return the connections that have ended since the last call."""
        ended = []
        with suppress(queue.Empty):
            while True:
                ended.append(self._ended_connections.get_nowait())
        return ended

    def end(self) -> None:
        """End the command. End its session too, unless later commands may use it."""
        self._over.set()
        session, self._session = self._session, None
        if session is None:
            return
        if not self._record:
            self._delete(session)
        elif ended := self.ended_connections():
            # no request follows that could report them
            try:
                self._client.submit(session, f"{DRIVER}.forget({ended!r})")
            except LivyError as error:
                logger.debug(error.msg)

    def _check_known(self, session: str | None) -> None:
        if session not in (None, self._session):
            raise _ended(str(session), "while another statement ran", is_sent=False)

    def _delete(self, session: str) -> None:
        try:
            self._client.delete(session)
        except LivyError as error:
            if error.status != 404:
                logger.warning(
                    f"{error.msg} It ends by itself when it has been idle for some time."
                )

    def _found(self, cancelled: threading.Event) -> str | None:
        """Return the session of an earlier command if it still takes statements, else None.

        A session that was started with other options, or for another identity, is ended.
        """
        try:
            content = json.loads(self._record.read_text()) if self._record else {}
            session, made_for = str(content["session"]), content["made_for"]
            if content["url"] != self._client.url:
                return None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        try:
            if self._client.state(session).has_ended:
                return None
            if made_for != self._made_for:
                self._delete(session)
                return None
            self._prepare(session, cancelled)
        except SessionEndedError:
            return None
        except LivyError as error:
            if error.status not in (403, 404):  # it belongs to somebody else
                raise
            return None
        return session

    def _started(self, cancelled: threading.Event) -> str:
        name = f"dbt-openmirroring-{uuid.uuid4().hex[:12]}"
        session = self._client.create({"name": name, **self._options})
        try:
            self._prepare(session, cancelled)
            if self._record:
                self._record.parent.mkdir(parents=True, exist_ok=True)
                content = {"url": self._client.url, "session": session, "made_for": self._made_for}
                self._record.write_text(json.dumps(content))
        except BaseException:
            self._delete(session)
            raise
        return session

    def _prepare(self, session: str, cancelled: threading.Event) -> None:
        """Wait until a session takes statements, then start the driver in it."""
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
            self._pause(waited, cancelled)
        self.run(session, _START_DRIVER, cancelled)

    def _keep_alive(self, session: str) -> None:
        """Send a statement from time to time while dbt sends none."""
        while not self._over.wait(_KEEP_ALIVE) and self._session == session:
            is_used, self._is_used = self._is_used, False
            if not is_used:
                try:
                    self._client.submit(session, KEEP_ALIVE)
                except LivyError as error:  # the next statement reports it
                    logger.debug(f"{error.msg}")

    def _wait(self, session: str, number: int, cancelled: threading.Event) -> Statement:
        started = time.monotonic()
        questions = lacking = 0
        while True:
            try:
                statement = self._client.statement(session, number)
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
                self._pause(time.monotonic() - started, cancelled)
            except BaseException:  # includes Ctrl-C in this thread
                with suppress(LivyError):
                    self._client.cancel(session, number)
                raise

    def _check(self, session: str, is_sent: bool, otherwise: LivyError | None = None) -> None:
        """Raise SessionEndedError if a session has ended; `otherwise` if its state is unknown.

        Args:
            is_sent: whether a statement may have been carried out
        """
        try:
            state = self._client.state(session)
        except LivyError as error:
            raise otherwise or error from None
        if state.has_ended:
            self._forget(session)
            raise _ended(session, state.told, is_sent)

    def _forget(self, session: str) -> None:
        with self._lock:
            if self._session == session:
                self._session = None

    def _pause(self, waited: float, cancelled: threading.Event) -> None:
        """Wait before the next request for a state, for a quarter of the time waited so far."""
        cancelled.wait(min(max(waited / 4, _FIRST_PAUSE), _LAST_PAUSE))
        self._stop_if(cancelled)

    def _stop_if(self, cancelled: threading.Event) -> None:
        # before its first node, dbt ends an interrupted command without cancelling statements
        if self._over.is_set():
            raise DbtRuntimeError("The command has ended, so the statement was cancelled.")
        if cancelled.is_set():
            cancelled.clear()  # so that statements that clean up afterwards can run
            raise DbtRuntimeError("The statement was cancelled.")


def _ended(session: str, why: str, is_sent: bool) -> SessionEndedError:
    """Return the error for a statement, which may have been carried out if it was sent."""
    what = _UNKNOWN if is_sent else "The statement was not sent."
    return SessionEndedError(
        f"Livy's session {session} has ended ({why}). {what} The next node gets a new session; "
        "run this one again."
    )


class CutOffError(DbtRuntimeError):
    """An answer did not arrive completely."""


@dataclass(frozen=True)
class Answer:
    """The answer of the driver.

    Args:
        columns: for each column its name, its type and whether it can be NULL
        rows: the rows; None if the driver waits to be told how to send them
        error: the error of Spark or of a Python model; empty if there is none
    """

    columns: tuple[tuple[str, str, bool], ...] = ()
    rows: tuple[tuple[Any, ...], ...] | None = ()
    error: str = ""

    @classmethod
    def parse(cls, pieces: Sequence[str]) -> Answer:
        """Read an answer from its pieces.

        Raises:
            CutOffError: if it cannot be read
        """
        try:
            content: Any = json.loads(zlib.decompress(base64.b64decode("".join(pieces))))
            described = content.get("columns", ())
            columns = tuple((str(name), str(type_), bool(null)) for name, type_, null in described)
            found = content.get("rows", ())
            rows = None if found is None else tuple(tuple(map(_value, row)) for row in found)
        except (ValueError, TypeError, AttributeError, KeyError, ArithmeticError, zlib.error):
            raise CutOffError(
                "Livy's answer cannot be read. The statement was carried out."
            ) from None
        return cls(columns, rows, str(content.get("error", "")))


class LivyHandle(SessionHandle):
    """A dbt connection, with the settings of its Spark session."""

    def __init__(self, livy: LivySession, settings: Mapping[str, str]) -> None:
        self._livy = livy
        self._settings = settings
        self._name = uuid.uuid4().hex
        self._session: str | None = None
        self._cancelled = threading.Event()
        self._answer = Answer()

    def run(self, sql: str) -> None:
        self._answer = Answer()
        answer = self._ask(sql=sql, as_they_are=AS_THEY_ARE)
        if answer.rows is None:
            types = [dtype for _, dtype, _ in answer.columns]
            sent = self._ask(select=selection(types))
            rows = tuple(received(types, sent.rows or ()))
            answer = replace(answer, rows=rows, error=sent.error)
        if answer.error:
            raise DbtDatabaseError(answer.error)
        self._answer = answer

    def create_view(self, name: str, code: str, node: str) -> None:
        answer = self._ask(model=code, view=name, node=node)
        if answer.error:
            raise DbtRuntimeError(answer.error)

    def _ask(self, **task: Any) -> Answer:
        """Send a task to the driver, which runs it in the Spark session of this connection.

        Raises:
            SessionEndedError: if the Livy session has ended; the next request opens a new one
            CutOffError: if the answer does not arrive completely
        """
        try:
            self._session = self._livy.session(self._cancelled, self._session)
            request = uuid.uuid4().hex
            content = {
                "id": request,
                "session": self._name,
                "settings": dict(self._settings),
                "ended": self._livy.ended_connections(),
                **task,
            }
            # the code contains the statement only as a string literal
            code = f"{DRIVER}.run({json.dumps(content)!r})"
            pieces: list[str] = []
            while True:
                printed = self._livy.run(self._session, code, self._cancelled)
                head = f"openmirroring:{request}:{len(pieces)}:"
                found = re.search(rf"{head}(\d+):([A-Za-z0-9+/=]*):end", printed)
                if not found:
                    raise CutOffError(
                        f"Livy's answer was cut off after {len(printed):,} characters. The "
                        "statement was carried out. If it returns long rows, select less."
                    )
                pieces.append(found[2])
                if len(pieces) >= int(found[1]):
                    return Answer.parse(pieces)
                code = f"{DRIVER}.show({self._name!r}, {request!r}, {len(pieces)})"
        except SessionEndedError:
            self._session = None
            raise

    @property
    def description(self) -> Sequence[tuple[Any, ...]]:
        return [(*described, *[None] * 4, null) for *described, null in self._answer.columns]

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._answer.rows or ())

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        return self.fetchall()[:size]

    def cancel(self) -> None:
        self._cancelled.set()

    def close(self) -> None:
        self._answer = Answer()
        if self._session is not None:
            self._livy.connection_ended(self._name)


def _value(value: Any) -> Any:
    return Decimal(*value) if isinstance(value, list) else value
