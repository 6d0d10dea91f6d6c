"""Statements through Livy, whatever happens to its sessions and to requests."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.onelake.claim import EXPIRY
from dbt.adapters.openmirroring.spark.livy import conversation, driver
from dbt.adapters.openmirroring.spark.livy.client import LivyError, SessionEndedError
from dbt.adapters.openmirroring.spark.livy.conversation import CutOffError
from dbt.adapters.openmirroring.spark.livy.session import LivyHandle, LivySession
from tests.livy_server import DROPPED, Fault
from tests.unit.spark.livy import Livy, Spark

NO_OPTIONS: dict[str, Any] = {}


@pytest.fixture(params=["apache", "fabric"])
def livy(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Livy]:
    monkeypatch.setattr(conversation, "LAST_PAUSE", 0.05)
    started = Livy(monkeypatch, in_fabric=request.param == "fabric")
    yield started
    started.released.set()
    started.server.stop()


@pytest.fixture
def session(livy: Livy, tmp_path: Path) -> Iterator[LivySession]:
    created = LivySession(livy.client(), {}, tmp_path / "livy")
    yield created
    created.end()


def ask(handle: LivyHandle, sql: str) -> list[tuple[Any, ...]]:
    handle.execute(sql)
    return [tuple(row) for row in handle.fetchall()]


def ran(livy: Livy, statement: str) -> int:
    return livy.ran.count(statement)


def driver_of(livy: Livy) -> Any:
    """Our part in the only session."""
    (there,) = livy.server.sessions.values()
    (driver,) = [
        value for name, value in there.namespace.items() if name.startswith("openmirroring_")
    ]
    return driver


def wait_until(condition: Callable[[], object]) -> None:
    pause = threading.Event()
    while not condition():
        pause.wait(0.01)


@pytest.mark.parametrize(
    "statement",
    [
        "select 'a'",
        "'''\"\"\"\\n\\\\ \\' \\\" \n\r\t %s %d {} {{ }} ${x} %%sql !ls",
        "é ü 漢字 \x00 \u2028 😀",
        "%md",
        "x" * 300_000,
    ],
    ids=["plain", "quotes", "unicode", "magic", "long"],
)
def test_a_statement_and_its_rows_arrive_as_they_are(session: LivySession, statement: str) -> None:
    assert ask(LivyHandle(session, {}), statement) == [(statement,)]


def test_spark_sends_a_time_in_the_time_zone_of_the_session(
    livy: Livy, session: LivySession
) -> None:
    handle = LivyHandle(session, {})

    [[found]] = ask(handle, "times")

    assert str(found) == "2024-10-27 02:30:00+01:00"
    assert handle.description == [("at", "timestamp", None, None, None, None, True)]
    assert driver_of(livy)._results == {}


def test_connections_share_a_livy_session_and_nothing_else(
    livy: Livy, session: LivySession
) -> None:
    handles = [LivyHandle(session, {"a": str(number)}) for number in range(4)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda handle: ask(handle, "setting a"), handles))

    assert found == [[("0",)], [("1",)], [("2",)], [("3",)]]
    assert len(livy.server.created) == 1


def waiting(livy: Livy, session: LivySession, pool: ThreadPoolExecutor, count: int) -> list[Any]:
    """Let statements wait on as many connections."""
    running = [pool.submit(ask, LivyHandle(session, {}), "wait") for _ in range(count)]
    wait_until(lambda: len(livy.running) == count)
    return running


def test_statements_of_several_connections_run_side_by_side_and_end_in_their_own_order(
    livy: Livy, session: LivySession
) -> None:
    with ThreadPoolExecutor(3) as pool:
        running = waiting(livy, session, pool, 3)

        assert ask(LivyHandle(session, {}), "overtakes") == [("overtakes",)]

        assert len(livy.running) == 3
        livy.released.set()
        assert [each.result() for each in running] == [[("wait",)]] * 3


def test_more_connections_do_not_send_more_requests(livy: Livy, tmp_path: Path) -> None:
    """New statements of all connections are one request, and so is the question for answers."""
    session = LivySession(livy.client(), {}, tmp_path, threads=8)
    handles = [LivyHandle(session, {}) for _ in range(8)]
    ask(handles[0], "first")
    before = livy.server.count("POST", "/statements$")

    with ThreadPoolExecutor(8) as pool:
        # all but the first come while the first is sent
        running = [pool.submit(ask, handle, "wait") for handle in handles]
        wait_until(lambda: len(livy.running) == 8)
        livy.released.set()
        assert [each.result() for each in running] == [[("wait",)]] * 8

    assert livy.server.count("POST", "/statements$") - before <= 8
    session.end()


def test_statements_of_a_connection_run_one_after_another(
    livy: Livy, session: LivySession
) -> None:
    """Also after one that was cancelled and has not ended yet."""
    handle = LivyHandle(session, {})
    with ThreadPoolExecutor(2) as pool:
        stubborn = pool.submit(ask, handle, "wait")
        wait_until(lambda: livy.running)
        following = pool.submit(ask, handle, "next")
        ask(LivyHandle(session, {}), "another connection")
        assert ran(livy, "next") == 0

        livy.released.set()

        assert [stubborn.result(), following.result()] == [[("wait",)], [("next",)]]


def test_a_session_keeps_nothing_of_connections_that_are_closed(
    livy: Livy, tmp_path: Path
) -> None:
    """While its command runs, and when it stays for the next one."""
    session = LivySession(livy.client(), {}, tmp_path, stays=True)
    for number in range(3):
        handle = LivyHandle(session, {})
        ask(handle, str(number))
        handle.close()
    last = LivyHandle(session, {})
    ask(last, "last")

    driver = driver_of(livy)
    assert len(driver._sessions) == len(driver._latest) == len(driver._answers) == 1
    session.end()
    run_command(livy, tmp_path)
    assert len(driver._sessions) == len(driver._latest) == len(driver._answers) == 1


def test_a_long_answer_arrives_in_pieces(
    livy: Livy, session: LivySession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [(random.Random(n).randbytes(40_000).hex(),) for n in range(60)]
    monkeypatch.setattr(livy, "_answer", lambda *_: rows)
    handle = LivyHandle(session, {})

    assert ask(handle, "rows") == rows
    assert [tuple(row) for row in handle.fetchmany(2)] == rows[:2]
    # the size of an answer grows, as it is in Base64
    assert livy.server.count("POST", "/statements$") >= 1 + 4


def test_an_answer_that_is_cut_off_is_an_error(livy: Livy, session: LivySession) -> None:
    handle = LivyHandle(session, {})
    livy.server.most_printed = 90

    with pytest.raises(CutOffError, match="cut off after 90 characters"):
        ask(handle, "rows")

    assert handle.fetchall() == []
    assert ran(livy, "rows") == 1


def test_an_output_that_follows_its_state_is_waited_for(livy: Livy, session: LivySession) -> None:
    livy.server.late_outputs = 3

    assert ask(LivyHandle(session, {}), "rows") == [("rows",)]


def test_errors_of_spark_and_of_python_models_are_reported(session: LivySession) -> None:
    handle = LivyHandle(session, {})
    code = "def model(dbt, session):\n    return 1 / 0\n\nclass dbtObj:\n"
    code += "    def __init__(self, load): pass\n"

    with pytest.raises(DbtDatabaseError, match=r"\[SOME_CLASS\] It failed. SQLSTATE: 42000"):
        ask(handle, "fail")
    with pytest.raises(DbtRuntimeError, match=r"return 1 / 0(.|\n)*ZeroDivisionError"):
        handle.create_view("`rows`", code, "model.shop.orders")

    assert ask(handle, "next") == [("next",)]


@pytest.mark.parametrize("status", [429, 430])
@pytest.mark.parametrize("path", ["/sessions", "/statements", r"/statements/\d+"])
def test_a_throttled_request_is_sent_again_when_livy_says_so(
    livy: Livy, session: LivySession, status: int, path: str
) -> None:
    method = "GET" if path.endswith("+") else "POST"
    livy.server.fail(method, path, status, times=2, Retry_After="7")

    assert ask(LivyHandle(session, {}), "rows") == [("rows",)]

    assert livy.slept == [7, 7]
    assert ran(livy, "rows") == len(livy.server.created) == 1


def test_a_session_for_which_there_is_no_capacity_is_not_asked_for_for_ever(
    livy: Livy, session: LivySession
) -> None:
    livy.server.fail("POST", "/sessions", 430, times=1000)

    with pytest.raises(LivyError, match=r"told 430\. The capacity has no room for another Spark"):
        ask(LivyHandle(session, {}), "rows")

    assert 100 < sum(livy.slept) < 1000


LOST = pytest.mark.parametrize("answer", [DROPPED, (503, {}, {}), (500, {}, {})])


@LOST
def test_a_statement_whose_answer_is_lost_or_that_arrives_late_is_not_run_twice(
    livy: Livy, session: LivySession, answer: Any
) -> None:
    handle = LivyHandle(session, {})
    ask(handle, "first")
    livy.server.faults.append(Fault("POST", "/statements", answer, is_carried_out=True))

    assert ask(handle, "rows") == [("rows",)]

    assert livy.server.count("POST", "/statements$") == 1 + 1 + 2
    (there,) = livy.server.sessions.values()
    late = there.submit(there.statements[1].code)
    wait_until(lambda: late.output)
    assert livy.ran == ["first", "rows"]


@LOST
def test_a_session_whose_answer_is_lost_is_not_started_twice(
    livy: Livy, session: LivySession, answer: Any
) -> None:
    livy.server.faults.append(Fault("POST", "/sessions", answer, is_carried_out=True))

    with pytest.raises(LivyError, match="Livy has not started a session"):
        ask(LivyHandle(session, {}), "rows")

    assert len(livy.server.created) == 1


@pytest.mark.parametrize("answer", [429, 500, 502, 503, 504, DROPPED])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", r"/sessions/[\w-]+"),
        ("POST", "/statements"),
        ("GET", r"/statements/\d+"),
        ("DELETE", r"/sessions/[\w-]+"),
    ],
)
def test_a_request_of_a_command_is_sent_again_after_a_failure_that_passes(
    livy: Livy, tmp_path: Path, method: str, path: str, answer: Any
) -> None:
    """All but the start of a session: each one would start a Spark."""
    fault = answer if answer == DROPPED else (answer, {}, {})
    livy.server.faults.append(Fault(method, path, fault))
    session = LivySession(livy.client(), {}, tmp_path)

    assert ask(LivyHandle(session, {}), "rows") == [("rows",)]
    session.end()

    assert [each.times for each in livy.server.faults] == [0]
    assert livy.server.sessions == {}
    assert ran(livy, "rows") == len(livy.server.created) == 1


def test_a_session_that_does_not_start_tells_why(livy: Livy, session: LivySession) -> None:
    livy.server.questions = 1000
    livy.server.dies_at_birth = "no memory"

    with pytest.raises(LivyError, match=r"has not started: dead: .*no memory"):
        ask(LivyHandle(session, {}), "rows")


def test_a_session_that_dies_while_a_statement_runs_fails_it_and_the_next_gets_a_new_one(
    livy: Livy, session: LivySession
) -> None:
    handle = LivyHandle(session, {})
    with ThreadPoolExecutor(1) as pool:
        failing = pool.submit(ask, handle, "wait")
        wait_until(lambda: ran(livy, "wait"))
        (there,) = livy.server.sessions.values()
        there.die("killed by YARN")

        with pytest.raises(SessionEndedError) as caught:
            failing.result()

    assert "has ended (dead: " in caught.value.msg
    assert "killed by YARN" in caught.value.msg
    assert "not known whether the statement was carried out; it was not repeated" in (
        caught.value.msg
    )
    livy.released.set()
    assert ask(handle, "next") == [("next",)]
    assert ran(livy, "wait") == 1
    assert len(livy.server.created) == 2


def test_a_session_that_dies_fails_all_statements_that_run_in_it(
    livy: Livy, session: LivySession
) -> None:
    with ThreadPoolExecutor(3) as pool:
        running = waiting(livy, session, pool, 3)
        (there,) = livy.server.sessions.values()

        there.die("no memory")

        for each in running:
            with pytest.raises(SessionEndedError, match=r"no memory(.|\n)*it was not repeated"):
                each.result()
    livy.released.set()
    assert ask(LivyHandle(session, {}), "next") == [("next",)]
    assert ran(livy, "wait") == 3


@pytest.mark.parametrize(
    ("fate", "told"),
    [("dead", "it was idle"), ("deleted", ""), ("anew", "its Python was started anew")],
)
def test_a_session_that_is_gone_before_a_statement_fails_it_once_on_each_connection(
    livy: Livy, session: LivySession, fate: str, told: str
) -> None:
    handles = [LivyHandle(session, {}) for _ in range(2)]
    for handle in handles:
        ask(handle, "first")
    (there,) = livy.server.sessions.values()
    if fate == "anew":
        there.namespace = {name: there.namespace[name] for name in ("spark", "sc")}
    else:
        there.die("it was idle")
    if fate == "deleted":
        livy.server.sessions.clear()

    for handle, why in zip(handles, (told, ""), strict=True):
        # their temporary views and settings are gone
        with pytest.raises(SessionEndedError, match=f"has ended .*{why}"):
            ask(handle, "second")

    assert [ask(handle, "third") for handle in handles] == [[("third",)]] * 2
    assert ran(livy, "second") == 0
    assert len(livy.server.created) == 2


def test_a_statement_that_is_cancelled_ends_in_livy_too(livy: Livy, session: LivySession) -> None:
    handle = LivyHandle(session, {})
    with ThreadPoolExecutor(1) as pool:
        failing = pool.submit(ask, handle, "wait")
        wait_until(lambda: ran(livy, "wait"))

        handle.cancel()

        with pytest.raises(DbtRuntimeError, match="was cancelled"):
            failing.result()
    assert livy.running == []
    assert ask(handle, "what tidies up") == [("what tidies up",)]


def test_a_python_model_is_cancelled_in_livy_and_prints_nothing_into_answers(
    livy: Livy, session: LivySession
) -> None:
    handle, code = LivyHandle(session, {}), "print('openmirroring: a line')\n"
    code += "def model(dbt, session):\n    return session.sql('wait')\n\nclass dbtObj:\n"
    code += "    def __init__(self, load): pass\n"
    with ThreadPoolExecutor(1) as pool:
        failing = pool.submit(handle.create_view, "`rows`", code, "model.shop.orders")
        wait_until(lambda: livy.running)

        handle.cancel()
        wait_until(lambda: livy.server.count("POST", "/cancel$"))
        livy.released.set()  # of a model, Livy's own group of jobs is cancelled

        with pytest.raises(DbtRuntimeError, match="was cancelled"):
            failing.result()
    assert ask(handle, "next") == [("next",)]


@pytest.mark.parametrize("stays", [False, True])
def test_a_command_that_ends_leaves_no_statement_running(
    livy: Livy, tmp_path: Path, stays: bool
) -> None:
    session = LivySession(livy.client(), {}, tmp_path, stays)
    with ThreadPoolExecutor(4) as pool:
        running = waiting(livy, session, pool, 4)

        session.end()

        if stays:
            assert livy.running == []
        for each in running:
            with pytest.raises(DbtRuntimeError, match=r"cancelled"):
                each.result()
    assert len(livy.server.sessions) == stays
    livy.released.set()


def killed(session: LivySession) -> None:
    """Let go of a session as a process does that is killed."""
    assert session._conversation
    assert session._record
    session._conversation._stopped.set()
    session._record.release()


@pytest.mark.parametrize("stays", [False, True])
def test_a_command_after_a_killed_one_does_not_meet_its_statements(
    livy: Livy, tmp_path: Path, stays: bool
) -> None:
    dead = LivySession(livy.client(), {}, tmp_path, stays)
    with ThreadPoolExecutor(4) as pool:
        running = waiting(livy, dead, pool, 4)
        killed(dead)
        (old,) = livy.server.sessions

        session = LivySession(livy.client(), {}, tmp_path, stays)
        assert ask(LivyHandle(session, {}), "rows") == [("rows",)]

        if stays:
            assert livy.running == []
        assert list(livy.server.sessions) == [old] if stays else [old] != [*livy.server.sessions]
        assert [each.exception() is not None for each in running] == [True] * 4
        livy.released.set()
    session.end()
    assert len(recorded(tmp_path)) == stays


def test_statements_are_cancelled_when_their_dbt_has_fallen_silent(
    livy: Livy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another machine may run the next command, as soon as the claim of this one has expired."""
    assert driver.SILENCE < EXPIRY
    monkeypatch.setattr(driver, "SILENCE", 0.1)
    session: Any = Spark(livy._answer, livy)
    there = driver.Driver(session, lambda *_: None, str)
    request = {"id": "1", "connection": "a", "settings": {}, "sql": "wait", "as_they_are": ""}
    nothing = {"received": {}, "ended": [], "cancelled": [], "seconds": 0}

    there.exchange(json.dumps({"requests": [request], **nothing}))

    wait_until(lambda: ran(livy, "wait"))
    wait_until(lambda: not livy.running)


def test_a_session_with_statements_that_do_not_end_is_not_used_again(
    livy: Livy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = LivySession(livy.client(), {}, tmp_path, stays=True)
    with ThreadPoolExecutor(1) as pool:
        waiting(livy, dead, pool, 1)
        killed(dead)
        monkeypatch.setattr(livy, "cancelJobGroup", lambda _: None)
        (there,) = livy.server.sessions.values()
        begin = driver_of(livy).begin.__func__.__globals__
        begin["PATIENCE"] = 0.1

        run_command(livy, tmp_path)

        assert there.died == "deleted"
        livy.released.set()
    assert len(livy.server.created) == 2


def test_two_commands_at_once_have_a_session_each(livy: Livy, tmp_path: Path) -> None:
    first = LivySession(livy.client(), {}, tmp_path, stays=True)
    with ThreadPoolExecutor(1) as pool:
        running = waiting(livy, first, pool, 1)

        run_command(livy, tmp_path)

        livy.released.set()
        assert [each.result() for each in running] == [[("wait",)]]
    assert len(livy.server.created) == 2


@pytest.mark.parametrize("is_reused", [False, True])
@pytest.mark.parametrize("is_cancelled", [False, True])
def test_a_session_that_still_starts_when_it_is_not_needed_any_more_is_ended(
    livy: Livy, tmp_path: Path, is_reused: bool, is_cancelled: bool
) -> None:
    """Its statement is cancelled, or its command ends."""
    livy.server.questions = 1000 if is_cancelled else 25
    session = LivySession(livy.client(), {}, tmp_path, stays=is_reused)
    handle = LivyHandle(session, {})
    with ThreadPoolExecutor(1) as pool:
        failing = pool.submit(ask, handle, "rows")
        wait_until(lambda: livy.server.sessions)

        if is_cancelled:
            handle.cancel()
        else:
            session.end()

        told = "was cancelled" if is_cancelled else "The command has ended"
        with pytest.raises(DbtRuntimeError, match=told):
            failing.result(timeout=60)
    assert livy.server.sessions == {}


def test_a_session_that_starts_just_after_its_command_has_ended_is_ended(
    livy: Livy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = LivySession(livy.client(), {}, tmp_path)
    started = session._started

    def end_meanwhile(cancelled: threading.Event) -> str:
        there = started(cancelled)
        session.end()
        return there

    monkeypatch.setattr(session, "_started", end_meanwhile)

    with pytest.raises(DbtRuntimeError, match="The command has ended"):
        ask(LivyHandle(session, {}), "rows")

    assert livy.server.sessions == {}
    assert ran(livy, "rows") == 0
    with pytest.raises(DbtRuntimeError, match="The command has ended"):
        ask(LivyHandle(session, {}), "rows")
    assert len(livy.server.created) == 1, "a command that has ended starts none"


def test_a_session_that_cannot_be_recorded_is_not_started(livy: Livy, tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    session = LivySession(livy.client(), {}, tmp_path / "target" / "livy")

    with pytest.raises(OSError, match="target"):
        ask(LivyHandle(session, {}), "rows")

    assert livy.server.created == []


def test_a_session_is_kept_alive_until_its_command_ends(
    livy: Livy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "_KEEP_ALIVE", 0.01)
    session = LivySession(livy.client(), {"driverMemory": "8g"}, tmp_path)
    ask(LivyHandle(session, {}), "rows")
    (there,) = livy.server.sessions.values()
    wait_until(lambda: len(there.statements) > 4)

    session.end()

    assert livy.server.sessions == {}
    assert livy.server.created[0]["driverMemory"] == "8g"


def run_command(
    livy: Livy, folder: Path, options: Mapping[str, Any] = NO_OPTIONS, *identity: str
) -> None:
    """Run a command that leaves its session to the next one."""
    session = LivySession(livy.client(), options, folder, stays=True, identity=identity)
    assert ask(LivyHandle(session, {}), "rows") == [("rows",)]
    session.end()


def recorded(folder: Path) -> list[Any]:
    return [json.loads(path.read_text()) for path in folder.glob("*.json")]


def edit(folder: Path, **content: str) -> None:
    (record,) = folder.glob("*.json")
    record.write_text(json.dumps({**json.loads(record.read_text()), **content}))


def damage(folder: Path) -> None:
    (record,) = folder.glob("*.json")
    record.write_text("[")


def refuse(method: str, path: str, status: int) -> Callable[[Livy, Path], None]:
    def fail(livy: Livy, _: Path) -> None:
        (there,) = livy.server.sessions
        livy.server.fail(method, f"/sessions/{there}{path}", status)

    return fail


def kill(livy: Livy, _: Path) -> None:
    (there,) = livy.server.sessions.values()
    there.die("it was idle")


# what happens to a session between two commands that could share it
FATES: dict[str, Callable[[Livy, Path], object]] = {
    "dead": kill,
    "deleted": lambda livy, _: livy.server.sessions.clear(),
    "elsewhere": lambda _, folder: edit(folder, url="http://127.0.0.1:1/sessions"),
    "damaged": lambda _, folder: damage(folder),
    # this identity may not use it
    **{
        f"{method} {status}": refuse(method, path, status)
        for method, path in (("GET", ""), ("POST", "/statements"))
        for status in (403, 404)
    },
}


@pytest.mark.parametrize("fate", ["nothing", *FATES])
def test_a_session_is_found_again_by_the_next_command_or_replaced(
    livy: Livy, tmp_path: Path, fate: str
) -> None:
    run_command(livy, tmp_path)
    if fate in FATES:
        FATES[fate](livy, tmp_path)

    for _ in range(2):
        run_command(livy, tmp_path)

    assert len(livy.server.created) == (2 if fate in FATES else 1)
    here = [each for each in recorded(tmp_path) if livy.server.url in each["url"]]
    assert [each["session"] for each in here] == list(livy.server.sessions)[-1:]


def test_a_session_is_not_replaced_while_livy_is_out_of_order(livy: Livy, tmp_path: Path) -> None:
    run_command(livy, tmp_path)
    livy.server.fail("GET", "/sessions/[^/]+", 400)

    with pytest.raises(LivyError, match="told 400"):
        run_command(livy, tmp_path)

    assert len(livy.server.created) == 1


@pytest.mark.parametrize(
    ("options", "identity"),
    [({"driverMemory": "8g"}, "me"), ({"conf": {"a.secret": "s3cret"}}, "somebody else")],
)
def test_a_session_with_other_options_or_of_somebody_else_is_ended_and_replaced(
    livy: Livy, tmp_path: Path, options: dict[str, Any], identity: str
) -> None:
    run_command(livy, tmp_path, {"conf": {"a.secret": "s3cret"}}, "me")
    assert "s3cret" not in str(recorded(tmp_path))

    for _ in range(2):
        run_command(livy, tmp_path, options, identity)

    assert [len(livy.server.created), len(livy.server.sessions)] == [2, 1]
