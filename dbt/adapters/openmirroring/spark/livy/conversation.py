"""The talk of a command with the driver in its Livy session.

Statements of all connections run side by side in the session. One thread sends the new ones of
all connections together, and waits for whichever ends first. So the number of requests does not
grow with dbt's threads. `driver.py` is the other side.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import time
import uuid
import zlib
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, TimeoutError
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.spark.livy.client import (
    LAST_PAUSE,
    LivyClient,
    SessionEndedError,
    StatementError,
)
from dbt.adapters.openmirroring.spark.livy.driver import PATIENCE

# Seconds between exchanges that keep an idle session alive. Fabric ends one after 20 minutes.
_KEEP_ALIVE = 240.0

# Statements in one exchange have this many characters at most, if they are more than one. Livy may
# refuse a request that is too large.
_TOGETHER = 100_000

# seconds between two looks for a cancellation
_TICK = 0.1

_PIECE = re.compile(r"openmirroring:(\w+):(\d+):(\d+):([A-Za-z0-9+/=]*):end")

OVER = "The command has ended, so the statement was cancelled."


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


def _value(value: Any) -> Any:
    return Decimal(*value) if isinstance(value, list) else value


@dataclass(eq=False)
class Request:
    """A statement, or a Python model, of a connection.

    Args:
        connection: the name of the connection
        task: what the driver has to do, and the settings of a new Spark session
        answer: the answer, once the driver has sent it
        pieces: those of the answer that have arrived
        is_cancelled: whether the driver has to end it
    """

    connection: str
    task: Mapping[str, object]
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    answer: Future[Answer] = field(default_factory=Future)
    pieces: list[str] = field(default_factory=list)
    is_cancelled: bool = False

    @property
    def content(self) -> dict[str, object]:
        return {"id": self.id, "connection": self.connection, **self.task}

    @property
    def size(self) -> int:
        return sum(len(str(value)) for value in self.task.values())


class _ModelCancelledError(DbtRuntimeError):
    """An exchange was cancelled in Livy, because it runs a Python model that was cancelled."""


class Conversation:
    """The requests of a command to the driver of a Livy session, and their answers.

    Args:
        driver: the driver's name in the session
        threads: as many requests run at once
    """

    def __init__(self, client: LivyClient, session: str, driver: str, threads: int) -> None:
        self.session = session
        self.ended: SessionEndedError | None = None
        self._client = client
        self._driver = driver
        self._threads = threads
        self._changed = threading.Condition()
        self._new: deque[Request] = deque()
        # of these, some may not have arrived yet
        self._running: dict[str, Request] = {}
        self._unconfirmed: dict[str, Request] = {}
        # what the next exchange reports
        self._received: dict[str, int] = {}
        self._closed: list[str] = []
        self._interrupted: set[str] = set()
        self._is_over = False
        self._stopped = threading.Event()
        self._last_news = time.monotonic()
        self._thread = threading.Thread(target=self._talk, daemon=True, name="Livy")
        self._thread.start()

    def ask(self, request: Request, cancelled: threading.Event) -> Answer:
        """Let the driver carry out a request, and return its answer.

        Args:
            cancelled: set if the user has cancelled it. It is cleared, so that statements that
                clean up afterwards can run

        Raises:
            SessionEndedError: if the session has ended
            StatementError: if Livy refuses the request, or cannot be reached
            CutOffError: if the answer does not arrive completely
            DbtRuntimeError: if it was cancelled
        """
        with self._changed:
            self._new.append(request)
            if self.ended or self._is_over:
                self._refuse_new()
            self._changed.notify_all()
        last = None
        try:
            while True:
                try:
                    answer = request.answer.result(_TICK)
                    break
                except TimeoutError:
                    now = time.monotonic()
                if cancelled.is_set():
                    cancelled.clear()
                    request.is_cancelled = True
                    last = now + PATIENCE
                if last and now > last:
                    raise DbtRuntimeError("The statement was cancelled, and has not ended yet.")
        except BaseException:  # includes Ctrl-C in this thread
            request.is_cancelled = True
            raise
        if request.is_cancelled:
            raise DbtRuntimeError("The statement was cancelled.")
        return answer

    def close(self, connection: str) -> None:
        """Let the driver drop the Spark session of a connection with the next exchange."""
        with self._changed:
            self._closed.append(connection)

    def end(self, stays: bool) -> bool:
        """End the conversation. Return whether nothing of it runs in the session any more.

        Args:
            stays: whether the session stays, so that what runs has to be ended first
        """
        with self._changed:
            self._is_over = True
            for request in list(self._running.values()):
                request.is_cancelled = True
            self._changed.notify_all()
        if stays:
            self._thread.join(PATIENCE)
        is_quiet = not self._running
        self._stopped.set()
        return is_quiet

    def _talk(self) -> None:
        error: DbtRuntimeError = DbtRuntimeError(OVER)
        try:
            while self._take():
                try:
                    self._exchange()
                except _ModelCancelledError:
                    continue
                except SessionEndedError as ended:
                    if not self._stopped.is_set():
                        error = self.ended = ended
                    break
                except DbtRuntimeError as failure:
                    self._fail(failure)
        finally:
            with self._changed:
                self._is_over = True
                self._fail(error)
                self._refuse_new()

    def _take(self) -> bool:
        """Take new requests, if nothing runs as soon as there is one. Return False at the end."""
        with self._changed:
            if not self._running:
                self._changed.wait_for(lambda: self._new or self._is_over, _KEEP_ALIVE)
            if self._is_over:
                self._refuse_new()
            size = sum(request.size for request in self._unconfirmed.values())
            while self._new and (not size or size + self._new[0].size <= _TOGETHER):
                request = self._new.popleft()
                size += request.size
                self._running[request.id] = self._unconfirmed[request.id] = request
                self._last_news = time.monotonic()
            return not self._stopped.is_set() and bool(self._running or not self._is_over)

    def _exchange(self) -> None:
        """Send what is new, and take the answers that are there."""
        requests, closed = list(self._unconfirmed.values()), list(self._closed)
        partly = {each.id: len(each.pieces) for each in self._running.values() if each.pieces}
        content = {
            "requests": [request.content for request in requests],
            "received": {**self._received, **partly},
            "ended": closed,
            "cancelled": [each.id for each in self._running.values() if each.is_cancelled],
            "seconds": self._seconds(),
        }
        # the code contains the statements only as a string literal
        code = f"{self._driver}.exchange({json.dumps(content)!r})"
        printed = self._client.run(self.session, code, self._pause)
        self._unconfirmed.clear()
        self._received.clear()
        with self._changed:
            del self._closed[: len(closed)]
        pieces = _PIECE.findall(printed)
        for request, number, count, piece in pieces:
            self._arrived(request, int(number), int(count), piece)
        # what a Python model prints can cut off the answers, which arrive in the next exchange
        if not pieces and not requests and "openmirroring:over" not in printed:
            self._fail(
                CutOffError(
                    f"Livy's answer was cut off after {len(printed):,} characters. The statement "
                    "was carried out. If it returns long rows, select less."
                )
            )

    def _arrived(self, id_: str, number: int, count: int, piece: str) -> None:
        self._last_news = time.monotonic()
        request = self._running.get(id_)
        if request and number == len(request.pieces):
            request.pieces.append(piece)
            if len(request.pieces) < count:
                return
            del self._running[id_]
            try:
                request.answer.set_result(Answer.parse(request.pieces))
            except CutOffError as error:
                request.answer.set_exception(error)
        self._received[id_] = count

    def _fail(self, error: DbtRuntimeError) -> None:
        """Fail the requests that an error concerns: if it came before they were sent, only new."""
        is_sent = not isinstance(error, StatementError) or error.is_sent
        is_of_new = not is_sent and self._unconfirmed and not self.ended
        for request in list((self._unconfirmed if is_of_new else self._running).values()):
            told = error
            if isinstance(error, StatementError):
                told = error.of(is_sent or request.id not in self._unconfirmed)
            request.answer.set_exception(told)
            del self._running[request.id]
        self._unconfirmed.clear()

    def _refuse_new(self) -> None:
        while self._new:
            error = self.ended.of(is_sent=False) if self.ended else DbtRuntimeError(OVER)
            self._new.popleft().answer.set_exception(error)

    def _seconds(self) -> float:
        """Return how long the driver may wait for an answer."""
        if any(request.is_cancelled for request in self._running.values()):
            return self._client.pause_since(time.monotonic())
        # as long as dbt has a free thread, it may send a statement, which waits for the exchange
        is_full = len(self._running) >= self._threads
        return LAST_PAUSE if is_full else self._client.pause_since(self._last_news)

    def _pause(self) -> None:
        if self._stopped.wait(self._client.pause_since(self._last_news)):
            raise DbtRuntimeError(OVER)
        for id_, request in self._unconfirmed.items():
            if "model" in request.task and request.is_cancelled and id_ not in self._interrupted:
                self._interrupted.add(id_)
                raise _ModelCancelledError("The Python model was cancelled.")
