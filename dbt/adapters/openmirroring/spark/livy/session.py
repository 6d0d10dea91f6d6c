"""The Livy session of a command, and dbt's connections, each with a Spark session in it.

A Livy session is a Spark application. It may take minutes to start, and uses a part of the
cluster. Later commands use it again if the profile asks for it. In it, each dbt connection has a
`SparkSession` from `newSession()`, with settings and temporary views of its own.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.openmirroring.spark import errors, python_models
from dbt.adapters.openmirroring.spark.livy import driver
from dbt.adapters.openmirroring.spark.livy.client import (
    LivyClient,
    LivyError,
    SessionEndedError,
    session_ended,
)
from dbt.adapters.openmirroring.spark.livy.conversation import OVER, Answer, Conversation, Request
from dbt.adapters.openmirroring.spark.livy.records import (
    RecordFile,
    SessionRecord,
    left_records,
)
from dbt.adapters.openmirroring.spark.session import SessionHandle
from dbt.adapters.openmirroring.text.codes import note, with_code
from dbt.adapters.openmirroring.types.crossing import AS_THEY_ARE, received, selection

logger = AdapterLogger("OpenMirroring")

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

# seconds that a session may take to start, and to end, and seconds before the user is told
_START, _END = 1200.0, 60.0
_TELL_AFTER = 5.0


class LivySession:
    """The Livy session of a command.

    Args:
        options: those of a new session
        records: a folder for the records of the project's sessions
        stays: whether the session stays for later commands
        threads: of dbt
        identity: whose session it is; another identity gets one of its own
    """

    def __init__(
        self,
        client: LivyClient,
        options: Mapping[str, Any],
        records: Path,
        stays: bool = False,
        threads: int = 1,
        identity: Sequence[str | None] = (),
    ) -> None:
        self._client = client
        self._options = dict(options)
        self._records = records
        self._stays = stays
        self._threads = threads
        # a hash, because options may have secrets
        made_for = json.dumps([self._options, list(identity)], sort_keys=True, default=str)
        self._made_for = hashlib.sha256(made_for.encode()).hexdigest()
        self._lock = threading.RLock()
        self._over = threading.Event()
        self._record: RecordFile | None = None
        self._conversation: Conversation | None = None

    def conversation(
        self, cancelled: threading.Event, known: Conversation | None = None
    ) -> Conversation:
        """Return the conversation with a Livy session. Start one if there is none.

        It is the known one if the connection has its Spark session there.

        Raises:
            SessionEndedError: if the session of the known one has ended
            LivyError: if the session does not start
            DbtRuntimeError: if the user has cancelled
        """
        if known and known.ended:
            raise session_ended(known.session, "while another statement ran", is_sent=False)
        with self._lock:
            self._stop_if(cancelled)
            if self._conversation is None or self._conversation.ended:
                session = self._reused(cancelled) or self._started(cancelled)
                self._conversation = Conversation(self._client, session, DRIVER, self._threads)
                if self._over.is_set():  # `end` has not seen the session
                    self.end()
                    self._stop_if(cancelled)
            return self._conversation

    def end(self) -> None:
        """End the command. End its session too, unless later commands may use it."""
        self._over.set()
        talk, self._conversation = self._conversation, None
        record = self._record
        if talk is None or record is None:
            return
        if talk.end(self._stays) and self._stays and not talk.ended:
            self._write(record, talk.session, is_used=False)
            record.release()
        else:
            self._delete(talk.session)
            record.remove()

    def _write(self, record: RecordFile, session: str, is_used: bool) -> None:
        record.write(
            SessionRecord(
                url=self._client.url, session=session, made_for=self._made_for, is_used=is_used
            )
        )

    def _delete(self, session: str) -> None:
        try:
            self._client.delete(session)
        except LivyError as error:
            if error.status != 404:
                told = f"{error.text} It ends by itself when it has been idle for some time."
                logger.warning(with_code(told, error.code))

    def _reused(self, cancelled: threading.Event) -> str | None:
        """Return a session that an earlier command has left, None if there is none.

        Nothing that the earlier command has started runs on in it. A session of a killed command
        that is not used again is ended, and one with other options or of another identity.
        """
        taken = None
        for record in left_records(self._records):
            left = record.read()
            if left is None:
                record.remove()
            elif left.url != self._client.url:
                record.release()
            elif self._may_use(left) and not taken and self._takes(left.session, cancelled):
                taken, self._record = left.session, record
                self._write(record, taken, is_used=True)
            elif left.is_used or self._stays:
                self._end_left(left.session, cancelled)
                record.remove()
            else:
                record.release()
        return taken

    def _may_use(self, left: SessionRecord) -> bool:
        return self._stays and left.made_for == self._made_for

    def _takes(self, session: str, cancelled: threading.Event) -> bool:
        """Let a session of an earlier command begin anew. Return whether it does."""
        try:
            if self._wait(session, cancelled):
                return False
            return self._begin(session, cancelled) == 0
        except SessionEndedError:
            return False
        except LivyError as error:
            if error.status not in (403, 404):  # it belongs to somebody else
                raise
            return False

    def _end_left(self, session: str, cancelled: threading.Event) -> None:
        """End a session of an earlier command, so that its statements do not run on."""
        started = time.monotonic()
        try:
            self._client.delete(session)
            while not (state := self._client.state(session)).has_ended:
                if time.monotonic() - started > _END:
                    raise LivyError(
                        f"Livy has not ended session {session} of an earlier command, in which "
                        f"statements may still run: it is {state.told}. Run again later."
                    )
                self._pause(started, cancelled)
        except LivyError as error:
            if error.status not in (403, 404):  # it has ended, or belongs to somebody else
                raise

    def _started(self, cancelled: threading.Event) -> str:
        name = f"dbt-openmirroring-{uuid.uuid4().hex[:12]}"
        self._record = RecordFile(self._records, name)
        session = None
        try:
            session = self._client.create({"name": name, **self._options})
            self._write(self._record, session, is_used=True)
            if ended := self._wait(session, cancelled):
                raise LivyError(f"Livy's session {session} has not started: {ended}")
            self._begin(session, cancelled)
        except BaseException:
            if session:
                self._delete(session)
            self._record.remove()
            self._record = None
            raise
        return session

    def _wait(self, session: str, cancelled: threading.Event) -> str:
        """Wait until a session takes statements. If it has ended, return its state."""
        started, is_told = time.monotonic(), False
        while not (state := self._client.state(session)).is_ready:
            waited = time.monotonic() - started
            if state.has_ended:
                return state.told
            if waited > _START:
                raise LivyError(
                    f"Livy's session {session} has not started within {_START / 60:.0f} minutes: "
                    f"it is {state.told}. Look at Livy, or run again later."
                )
            if waited > _TELL_AFTER and not is_told:
                is_told = True
                note(f"Waiting for Livy to start a Spark (session {session})")
            self._pause(started, cancelled)
        return ""

    def _begin(self, session: str, cancelled: threading.Event) -> int:
        """Start the driver in a session. Return how many statements in it do not end."""
        started = time.monotonic()
        code = f"{_START_DRIVER}\n{DRIVER}.begin()"
        printed = self._client.run(session, code, lambda: self._pause(started, cancelled))
        running = re.search(r"openmirroring:running:(\d+)", printed)
        return int(running[1]) if running else 0

    def _pause(self, started: float, cancelled: threading.Event) -> None:
        """Wait before the next request for a state."""
        cancelled.wait(self._client.pause_since(started))
        self._stop_if(cancelled)

    def _stop_if(self, cancelled: threading.Event) -> None:
        # before its first node, dbt ends an interrupted command without cancelling statements
        if self._over.is_set():
            raise DbtRuntimeError(OVER)
        if cancelled.is_set():
            cancelled.clear()  # so that statements that clean up afterwards can run
            raise DbtRuntimeError("The statement was cancelled.")


class LivyHandle(SessionHandle):
    """A dbt connection, with the settings of its Spark session."""

    def __init__(self, livy: LivySession, settings: Mapping[str, str]) -> None:
        self._livy = livy
        self._settings = settings
        self._name = uuid.uuid4().hex
        self._conversation: Conversation | None = None
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
        """Let the driver carry out a task in the Spark session of this connection.

        Raises:
            SessionEndedError: if the Livy session has ended; the next request opens a new one
        """
        try:
            self._conversation = self._livy.conversation(self._cancelled, self._conversation)
            request = Request(self._name, {"settings": dict(self._settings), **task})
            return self._conversation.ask(request, self._cancelled)
        except SessionEndedError:
            self._conversation = None
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
        if self._conversation is not None:
            self._conversation.close(self._name)
