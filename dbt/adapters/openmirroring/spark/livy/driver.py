"""The part of `method: livy` that runs in the driver of a Livy session.

The adapter sends the source of this module to the session. So the module imports nothing but
PySpark. `conversation.py` is the other side.

Livy's own SQL returns at most 1,000 rows and no exact decimals. So statements are PySpark code.
"""

from __future__ import annotations

import base64
import decimal
import json
import math
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

# maximum characters of an answer that are printed at once, because Livy keeps the outputs of the
# last hundred statements in memory
PIECE = 1_000_000

# Seconds without an exchange after which the dbt of the statements is taken for dead, and they are
# cancelled. A dead command's claim on a table in OneLake lasts longer than that.
SILENCE = 120.0

# seconds in which cancelled statements of an earlier command have to end
PATIENCE = 30.0

# A setting of a session, which Spark copies to the jobs of its queries. A job group that is set in
# a thread would not do: Livy's Python has no thread of the JVM for each of its own.
_GROUP = "spark.jobGroup.id"


class Driver:
    """The Spark sessions of dbt's connections within one Livy session, and their statements.

    Livy runs one piece of code after another. So each statement of Spark gets a thread, and each
    exchange with dbt starts new ones and brings the answers of those that have ended. Only the
    exchange itself prints, because Livy closes the standard output after it. A Python model runs
    in the exchange, so that it can print too.

    Args:
        spark: Livy's own Spark session
        create_view, explained: the functions of `python_models.py` and `errors.py`
    """

    def __init__(
        self,
        spark: SparkSession,
        create_view: Callable[..., None],
        explained: Callable[[Py4JJavaError], str],
    ) -> None:
        self._spark = spark
        self._create_view = create_view
        self._explained = explained
        self._changed = threading.Condition()
        self._sessions: dict[str, SparkSession] = {}
        self._results: dict[str, DataFrame] = {}
        self._latest: dict[str, threading.Thread] = {}
        self._running: set[str] = set()
        self._cancelled: set[str] = set()
        self._answers: dict[str, list[str]] = {}
        self._seen: set[str] = set()
        self._heard = math.inf
        self._is_watched = False

    def begin(self) -> None:
        """End what an earlier command has left, and print how many of its statements run on."""
        end = time.monotonic() + PATIENCE
        while self._running and time.monotonic() < end:
            self._cancel(self._running)
            with self._changed:
                self._changed.wait(0.5)
        for held in (self._sessions, self._results, self._latest, self._answers):
            held.clear()
        print(f"\nopenmirroring:running:{len(self._running)}\n")

    def exchange(self, text: str) -> None:
        """Start requests, wait until an answer is there, and print the answers.

        The same exchange may arrive again. No request is carried out twice.

        Args:
            text: in JSON the new `requests`; for each answer that dbt has `received` how many of
                its pieces; the connections that have `ended`; the requests to be `cancelled`; the
                `seconds` to wait
        """
        given = json.loads(text)
        self._heard = math.inf
        for request, pieces in given["received"].items():
            if pieces >= len(self._answers.get(request, ())):
                self._answers.pop(request, None)
        for connection in given["ended"]:
            for held in (self._sessions, self._results, self._latest):
                held.pop(connection, None)
        self._cancel(given["cancelled"])
        for request in sorted(given["requests"], key=lambda request: "model" in request):
            self._start(request)
        with self._changed:
            self._changed.wait_for(lambda: self._answers or not self._running, given["seconds"])
        self._show(given["received"])
        self._heard = time.monotonic()

    def _start(self, request: dict[str, Any]) -> None:
        if request["id"] in self._seen:
            return
        self._seen.add(request["id"])
        before = self._latest.get(request["connection"])
        if "model" in request:
            self._carry_out(request, before)
            return
        with self._changed:
            self._running.add(request["id"])
            if not self._is_watched:
                self._is_watched = True
                threading.Thread(target=self._watch, daemon=True).start()
        thread = threading.Thread(target=self._carry_out, args=(request, before), daemon=True)
        self._latest[request["connection"]] = thread
        thread.start()

    def _carry_out(self, request: dict[str, Any], before: threading.Thread | None) -> None:
        if before:
            before.join()
        try:
            answer = json.dumps(self._answer(request))
        except Exception as error:
            text = self._explained(error) if isinstance(error, Py4JJavaError) else str(error)
            answer = json.dumps({"error": text or type(error).__name__})
        text = base64.b64encode(zlib.compress(answer.encode())).decode()
        with self._changed:
            self._answers[request["id"]] = [
                text[start : start + PIECE] for start in range(0, len(text), PIECE)
            ]
            self._running.discard(request["id"])
            self._changed.notify_all()

    def _show(self, received: dict[str, int]) -> None:
        room = PIECE
        for request, pieces in list(self._answers.items()):
            number = received.get(request, 0)
            if len(pieces[number]) <= room:
                room -= len(pieces[number])
                print(f"\nopenmirroring:{request}:{number}:{len(pieces)}:{pieces[number]}:end")
        print("openmirroring:over\n")

    def _cancel(self, requests: Iterable[str]) -> None:
        """Cancel the jobs of requests. Call it until they end: a statement can start more jobs."""
        self._cancelled.update(requests)
        for request in self._cancelled & self._running:
            self._spark.sparkContext.cancelJobGroup(request)

    def _watch(self) -> None:
        """Cancel statements whose dbt is silent, until none run."""
        while True:
            with self._changed:
                if self._changed.wait_for(lambda: not self._running, SILENCE / 20):
                    self._is_watched = False
                    return
            if time.monotonic() - self._heard > SILENCE:
                self._cancel(set(self._running))

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        session = self._sessions.get(request["connection"])
        if session is None:
            session = self._spark.newSession()
            for key, value in request["settings"].items():
                session.conf.set(key, value)
            self._sessions[request["connection"]] = session
        if request["id"] in self._cancelled:
            return {"error": "The statement was cancelled."}
        if "model" in request:
            session.conf.unset(_GROUP)  # its jobs are in the group of Livy's own statement
            self._create_view(request["view"], request["model"], session, request["node"])
            return {}
        session.conf.set(_GROUP, request["id"])
        if "select" in request:
            select = request["select"]
            result = self._results.pop(request["connection"]).toDF(*select)
            return {"rows": rows_for_json(result.selectExpr(*select.values()).collect())}
        result = session.sql(request["sql"])
        fields = result.schema.fields
        columns = [(each.name, each.dataType.simpleString(), each.nullable) for each in fields]
        if all(re.fullmatch(request["as_they_are"], dtype) for _, dtype, _ in columns):
            return {"columns": columns, "rows": rows_for_json(result.collect())}
        self._results[request["connection"]] = result
        return {"columns": columns, "rows": None}


def rows_for_json(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Return rows for JSON, in which a decimal is a text in a list."""
    return [
        [[str(value)] if isinstance(value, decimal.Decimal) else value for value in row]
        for row in rows
    ]
