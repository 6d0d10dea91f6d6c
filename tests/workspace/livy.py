"""Probes of Livy in Fabric: throttling, threads, long outputs, and high concurrency sessions.

A session is a Spark, so these probes are asked one after another, and only with `--livy`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any

from azure.core.rest import HttpRequest

from dbt.adapters.openmirroring.rest.azure_requests import RestClient, Retry, body_of
from dbt.adapters.openmirroring.spark.livy.client import LivyClient, LivyError
from dbt.adapters.openmirroring.spark.servers import LivyServer
from tests.workspace.place import Place
from tests.workspace.probe import Steps, Until, not_clear, probe, saw

# seconds: until a session has started, until a statement has ended, and longer than an idle one
# is kept
_START, _STATEMENT, _IDLE = 1200.0, 300.0, 1500.0

# seconds between two statements that keep a session alive
_KEEP_ALIVE = 240.0

# statements that are asked for, and the seconds between two of them: 300 a minute
_QUESTIONS, _BETWEEN = 300, 0.2

# runs until it is cancelled
_LONG = "spark.range(0, 10**13).selectExpr('sum(id)').collect()"

# runs a job after its statement has ended
_LATER = """
import threading, time
_probe = []
def _later():
    time.sleep({seconds})
    _probe.append(spark.range(3).count())
threading.Thread(target=_later).start()
"""

Waiting = Generator[Until, bool, Any]


class Livy:
    """Livy as the probes use it: sessions by the adapter's client, the rest by its REST client.

    A `with` block ends what it has started, because each Spark takes capacity.
    """

    def __init__(self, place: Place) -> None:
        self._ends: list[Callable[[], None]] = []
        server = LivyServer(place.asked.livy)
        credential = place.credential if server.is_fabric else None
        self.place = place
        self.client = LivyClient(server, credential)
        self.high = f"{server.sessions.removesuffix('/sessions')}/highConcurrencySessions"
        self._rest = RestClient(server.url, "Livy", Retry(retry_total=0), credential)

    def __enter__(self) -> Livy:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # a run that is stopped removes all itself
        if kind is None or issubclass(kind, Exception):
            for end in reversed(self._ends):
                with suppress(Exception):  # the end of the run tries again
                    end()

    def ask(self, method: str, url: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        """Send a request once, and return status and content of the answer."""
        # Livy may want a header against requests of other sites
        headers = {"X-Requested-By": "dbt-openmirroring"}
        request = HttpRequest(method, url, json=body, headers=headers)
        answer = self._rest.call(request, "Livy was not asked")
        retry = {"Retry-After": answer.headers["Retry-After"]} if _waits(answer) else {}
        return answer.status_code, body_of(answer) | retry

    def session(self) -> Waiting:
        """Start a session, and return its id; it is ended at the end of the run."""
        id_ = self.client.create({})
        how = f"end the session {id_} in Fabric's Monitoring hub"
        self._ends.append(self.place.undo("a Livy session", how, lambda: self._end(id_)))
        if not (yield Until(lambda: self.client.state(id_).is_ready, _START)):
            raise LivyError(f"The session has not started: {self.client.state(id_).told}")
        return id_

    def _end(self, id_: str) -> None:
        with suppress(LivyError):  # it may have ended
            self.client.delete(id_)
        if not self.client.state(id_).has_ended:
            raise LivyError("The session is still there")

    def run(self, session: str, code: str) -> Waiting:
        """Run code in a session, and return what it has printed."""
        number = self.client.submit(session, code)
        ended = ("available", "error", "cancelled")
        yield Until(lambda: self.client.statement(session, number).state in ended, _STATEMENT)
        statement = self.client.statement(session, number)
        return statement.error or (statement.printed or "").strip()

    def acquire(self, tag: str) -> Waiting:
        """Acquire an interpreter in a high concurrency session."""
        status, body = self.ask("POST", self.high, {"sessionTag": tag})
        if status >= 300:
            raise LivyError(f"No interpreter was acquired: HTTP {status}", status)
        repl = Repl(self, str(body["id"]))
        what = "an interpreter of a high concurrency session"
        how = f"end the session with the tag {tag} in Fabric's Monitoring hub"
        self._ends.append(self.place.undo(what, how, repl.release))
        if not (yield Until(repl.is_ready, _START)):
            raise LivyError("The interpreter has not started")
        return repl


def _waits(answer: Any) -> bool:
    return "Retry-After" in answer.headers


class Repl:
    """An interpreter in a high concurrency session."""

    def __init__(self, livy: Livy, id_: str) -> None:
        self.id, self.session, self._repl, self._livy = id_, "", "", livy

    def is_ready(self) -> bool:
        _, body = self._livy.ask("GET", f"{self._livy.high}/{self.id}")
        self.session, self._repl = str(body.get("sessionId", "")), str(body.get("replId", ""))
        return str(body.get("state", "")).lower() == "idle" and bool(self.session and self._repl)

    def release(self) -> None:
        status, _ = self._livy.ask("DELETE", f"{self._livy.high}/{self.id}")
        if status >= 300 and status != 404:
            raise LivyError(f"The interpreter is still there: HTTP {status}", status)

    def submit(self, code: str) -> int:
        status, body = self._livy.ask("POST", self._url, {"kind": "pyspark", "code": code})
        if status >= 300:
            raise LivyError(f"The statement was not taken: HTTP {status}", status)
        return int(body["id"])

    def state(self, number: int) -> str:
        status, body = self._livy.ask("GET", f"{self._url}/{number}")
        return str(body.get("state", "")).lower() if status < 300 else "gone"

    def cancel(self, number: int) -> None:
        self._livy.ask("POST", f"{self._url}/{number}/cancel")

    def run(self, code: str) -> Waiting:
        """Run code, and return what it has printed, or the error."""
        number = self.submit(code)
        ended = ("available", "error", "cancelled", "gone")
        yield Until(lambda: self.state(number) in ended, _STATEMENT)
        _, body = self._livy.ask("GET", f"{self._url}/{number}")
        output = body.get("output") or {}
        return str((output.get("data") or {}).get("text/plain", output.get("evalue", ""))).strip()

    @property
    def _url(self) -> str:
        return f"{self._livy.high}/{self.session}/repls/{self._repl}/statements"


def _tag() -> str:
    return f"dbt-openmirroring-probe-{uuid.uuid4().hex[:8]}"


@probe(
    25,
    group="livy",
    asks="At 300 requests a minute for statements, when does Livy answer 429, and does it say how "
    "long to wait?",
    assumes="After about 200, with `Retry-After`.",
    source='throttling, "API quota limits": 200 a minute for an identity; it does not name Livy',
    rests_on="rest/azure_requests.py::Retry",
    otherwise="Set the pauses of the Livy session so that all threads stay below that number.",
    lane="livy",
    needs="livy",
)
def throttled_livy(place: Place) -> Steps:
    with Livy(place) as livy:
        session = yield from livy.session()
        yield from livy.run(session, "1")
        url = f"{livy.client.url}/{session}/statements/0"
        for question in range(1, _QUESTIONS + 1):
            status, body = livy.ask("GET", url)
            if status == 429:
                waits = "Retry-After" in body
                return saw(
                    waits and question > 150, after_requests=question, with_retry_after=waits
                )
            place.clock.sleep(_BETWEEN)
        return saw(None, after_requests=0, requests=_QUESTIONS)


@probe(
    26,
    group="livy",
    asks="If two interpreters of one session each run their statement 1, does a cancellation end "
    "only one?",
    assumes="Yes.",
    source='high concurrency, "Sessions are isolated"',
    rests_on="",
    otherwise="Do not use high concurrency sessions: a cancelled node would end another one.",
    lane="livy",
    needs="livy",
)
def cancelled_neighbour(place: Place) -> Steps:
    tag = _tag()
    with Livy(place) as livy:
        first: Repl = yield from livy.acquire(tag)
        second: Repl = yield from livy.acquire(tag)
        for repl in (first, second):
            yield from repl.run("0")
        numbers = [repl.submit(_LONG) for repl in (first, second)]
        yield Until(lambda: first.state(numbers[0]) == "running", _STATEMENT)
        first.cancel(numbers[0])
        is_cancelled = yield Until(
            lambda: first.state(numbers[0]) not in ("running", "waiting", "cancelling"), _STATEMENT
        )
        second_runs = second.state(numbers[1]) in ("running", "waiting")
        second.cancel(numbers[1])
        shares = first.session == second.session
        if not shares:
            return not_clear(one_session=False)
        return saw(is_cancelled and second_runs, cancelled=is_cancelled, other_runs_on=second_runs)


@probe(
    27,
    group="livy",
    asks="Are temporary views and `SET` of one interpreter seen in another one?",
    assumes="No.",
    source="no page of Microsoft says so; another adapter's README does",
    rests_on="spark/livy/driver.py::Driver",
    otherwise="Nothing to change: each connection has a Spark session of its own.",
    lane="livy",
    needs="livy",
)
def views_of_a_neighbour(place: Place) -> Steps:
    tag = _tag()
    with Livy(place) as livy:
        first: Repl = yield from livy.acquire(tag)
        second: Repl = yield from livy.acquire(tag)
        make = "spark.range(1).createTempView('probe_view'); spark.conf.set('probe.key', 'mine')"
        yield from first.run(make)
        view = yield from second.run("print(spark.catalog.tableExists('probe_view'))")
        setting = yield from second.run("print(spark.conf.get('probe.key', 'none'))")
        seen = {"view": view == "True", "setting": setting == "mine"}
        return saw(not any(seen.values()), **seen)


@probe(
    28,
    group="livy",
    asks="Do five interpreters with one tag share a session, and what does the sixth get?",
    assumes="One session; the sixth gets another one.",
    source='high concurrency, "Session packing"',
    rests_on="",
    otherwise="Let a pool of interpreters end where Fabric's session ends.",
    lane="livy",
    needs="livy",
)
def six_interpreters(place: Place) -> Steps:
    tag = _tag()
    with Livy(place) as livy:
        repls: list[Repl] = []
        for _ in range(6):
            repls.append((yield from livy.acquire(tag)))
        first, sessions = repls[0].session, [repl.session for repl in repls]
        shared = sessions[:5].count(first)
        sixth = sessions[5] != first
        return saw(
            shared == 5 and sixth, in_the_first_session=sessions.count(first), sixth_apart=sixth
        )


@probe(
    29,
    group="livy",
    asks="If an interpreter is released while it runs, does its statement end? Does the session "
    "end with the last one?",
    assumes="We do not know; yes.",
    source="no page says so; a user of another adapter saw the second",
    rests_on="",
    otherwise="Let the next command wait for the statement, or cancel it first.",
    lane="livy",
    needs="livy",
)
def released_interpreter(place: Place) -> Steps:
    tag = _tag()
    with Livy(place) as livy:
        repl: Repl = yield from livy.acquire(tag)
        number = repl.submit(_LONG)
        yield Until(lambda: repl.state(number) == "running", _STATEMENT)
        repl.release()
        has_ended = yield Until(
            lambda: repl.state(number) not in ("running", "waiting"), _STATEMENT
        )
        session_ended = yield Until(lambda: livy.client.state(repl.session).has_ended, _STATEMENT)
        return saw(session_ended or None, statement_ends=has_ended, session_ends=session_ended)


@probe(
    30,
    group="livy",
    asks="Is an interpreter ended that is idle for 25 minutes while another one of its session "
    "works?",
    assumes="We do not know; a session ends after 20 idle minutes.",
    source='Livy, "Session time-out"; it does not name interpreters',
    rests_on="spark/livy/conversation.py::_KEEP_ALIVE",
    otherwise="Keep each interpreter alive, not only the session.",
    lane="livy",
    needs="livy",
)
def idle_interpreter(place: Place) -> Steps:
    tag = _tag()
    with Livy(place) as livy:
        idle: Repl = yield from livy.acquire(tag)
        busy: Repl = yield from livy.acquire(tag)
        for _ in range(round(_IDLE / _KEEP_ALIVE)):
            yield from busy.run("0")
            yield Until(lambda: False, _KEEP_ALIVE)
        printed = yield from idle.run("print('here')")
        return saw(None, idle_one_answers=printed == "here")


@probe(
    31,
    group="livy",
    asks="Does a thread in the driver outlive its statement, and are there job tags?",
    assumes="Yes, and yes.",
    source="no page says so",
    rests_on="",
    otherwise="Do not run statements of several connections in threads of the driver.",
    lane="livy",
    needs="livy",
)
def thread_in_the_driver(place: Place) -> Steps:
    with Livy(place) as livy:
        session = yield from livy.session()
        code = _LATER.format(seconds=2 * place.asked.patience)
        yield from livy.run(session, code)
        yield Until(lambda: False, 10)
        counted = yield from livy.run(session, "print(_probe)")
        tags = yield from livy.run(session, "print(hasattr(sc, 'addJobTag'))")
        return saw(counted == "[3]", outlives=counted == "[3]", job_tags=tags == "True")


@probe(
    32,
    group="livy",
    asks="Does an output of a million characters arrive whole, and does a statement every four "
    "minutes keep a session alive?",
    assumes="Yes, and yes.",
    source='Livy, "Session time-out"; no page has a limit of outputs',
    rests_on="spark/livy/driver.py::PIECE",
    otherwise="Set `PIECE` to what arrives, and `_KEEP_ALIVE` to less.",
    lane="livy",
    needs="livy",
)
def long_output(place: Place) -> Steps:
    with Livy(place) as livy:
        session = yield from livy.session()
        printed = yield from livy.run(session, "print('x' * 1_000_000)")
        for _ in range(round(_IDLE / _KEEP_ALIVE)):
            yield from livy.run(session, "None")
            yield Until(lambda: False, _KEEP_ALIVE)
        is_alive = livy.client.state(session).is_ready
        return saw(len(printed) == 1_000_000 and is_alive, characters=len(printed), alive=is_alive)
