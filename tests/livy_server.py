"""Livy, as its documentation says: it runs the code that it is sent in this process.

As a program (`spark-submit livy_server.py <port>`) it has a real Spark. Tests of the client give
it what the code needs of one.
"""

from __future__ import annotations

import ast
import io
import json
import math
import os
import queue
import re
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, str], Any]

# the answer of a request, in place of its own
DROPPED = "no answer"


@dataclass
class Fault:
    """A fault that happens to requests.

    Args:
        method, path: a regular expression of the end of the path
        answer: DROPPED to close the connection
        is_carried_out: all the same
        times: how often
    """

    method: str
    path: str
    answer: Answer | str
    is_carried_out: bool = False
    times: int = 1


@dataclass
class Statement:
    number: int
    code: str
    state: str = "waiting"
    output: dict[str, Any] | None = None

    def told(self) -> dict[str, Any]:
        return {"id": self.number, "code": self.code, "state": self.state, "output": self.output}


class Session:
    """An interpreter, which runs statements one after another.

    Args:
        namespace: of the code; its `sc` can cancel
        questions: about its state until it has started
    """

    def __init__(self, id_: str | int, namespace: dict[str, Any], questions: int) -> None:
        self.id = id_
        self.namespace = namespace
        self.questions = questions
        self.died: str | None = None
        self.statements: list[Statement] = []
        self._queue: queue.Queue[Statement | None] = queue.Queue()
        threading.Thread(target=self._interpret, daemon=True).start()

    @property
    def state(self) -> str:
        if self.died:
            return "dead"
        if self.questions > 0:
            return "starting"
        is_busy = any(each.state in ("waiting", "running") for each in self.statements)
        return "busy" if is_busy else "idle"

    def submit(self, code: str) -> Statement:
        statement = Statement(len(self.statements), code)
        self.statements.append(statement)
        self._queue.put(statement)
        return statement

    def cancel(self, statement: Statement) -> None:
        if statement.state == "waiting":
            statement.state = "cancelled"
        elif statement.state == "running":
            statement.state = "cancelling"
            self.namespace["sc"].cancelJobGroup(str(statement.number))

    def die(self, reason: str) -> None:
        """End as a Spark does that is killed: what runs never ends."""
        self.died = reason
        self._queue.put(None)

    def _interpret(self) -> None:
        while (statement := self._queue.get()) and not self.died:
            if statement.state != "waiting":
                continue
            statement.state = "running"
            self.namespace["sc"].setJobGroup(str(statement.number), "of a statement")
            output = _output(statement.code, self.namespace)
            if self.died:
                return
            statement.output = {"execution_count": statement.number, **output}
            statement.state = "available" if statement.state == "running" else "cancelled"


class LivyServer:
    """Livy's REST API.

    Args:
        namespace: for a new session
        in_fabric: speak as Microsoft Fabric does, not as Apache Livy
    """

    def __init__(
        self,
        namespace: Callable[[], dict[str, Any]],
        in_fabric: bool = False,
        port: int = 0,
    ) -> None:
        self._namespace = namespace
        self._in_fabric = in_fabric
        self.sessions: dict[str, Session] = {}
        self.created: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.faults: list[Fault] = []
        self.questions = 1
        self.dies_at_birth = ""
        self.late_outputs = 0
        """How often a statement is said to be available before its output is."""
        self.most_printed = sys.maxsize
        """Characters of an output, which is cut off after these."""
        self.most_requests = sys.maxsize
        """Requests in a minute, after which one is refused."""
        self._times: list[float] = []
        handler = type("Handler", (_Handler,), {"livy": self})
        self._http = ThreadingHTTPServer(("127.0.0.1", port), handler)
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def stop(self) -> None:
        # a statement that still waits would be run in the middle of another test
        for session in self.sessions.values():
            session.die("stopped")
        self._http.shutdown()
        self._http.server_close()

    def fail(self, method: str, path: str, status: int, times: int = 1, **headers: str) -> None:
        """Refuse the next requests; `_` in the names of headers stands for `-`."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = status, named, self._error(f"told {status}")
        self.faults.append(Fault(method, path, answer, times=times))

    def count(self, method: str, path: str) -> int:
        """How many requests there were."""
        return sum(m == method and bool(re.search(path, p)) for m, p in self.requests)

    def answer(
        self, method: str, path: str, headers: dict[str, str], content: Any
    ) -> Answer | str:
        self.requests.append((method, path))
        self.headers.append(headers)
        now = time.monotonic()
        self._times = [each for each in self._times if now - each < 60]
        if len(self._times) >= self.most_requests:
            rest = math.ceil(self._times[0] + 60 - now)
            return 429, {"Retry-After": str(rest)}, self._error("too many requests")
        self._times.append(now)
        for fault in self.faults:
            if fault.times > 0 and fault.method == method and re.search(f"{fault.path}$", path):
                fault.times -= 1
                if fault.is_carried_out:
                    self._carry_out(method, path, content)
                return fault.answer
        return self._carry_out(method, path, content)

    def _carry_out(self, method: str, path: str, content: Any) -> Answer:
        if path == "/sessions" and method == "POST":
            return self._create(content)
        found = re.fullmatch(r"/sessions/([\w-]+)(?:/statements(?:/(\d+)(/cancel)?)?)?", path)
        session = self.sessions.get(found[1]) if found else None
        if not found or not session:
            return 404, {}, self._error(f"{path} not found.")
        if path == f"/sessions/{found[1]}":
            if method == "DELETE":
                self.sessions.pop(found[1]).die("deleted")
                return 200, {}, {"msg": "deleted"}
            session.questions -= 1
            return 200, {}, self._told(session)
        return self._statement(session, method, found[2], bool(found[3]), content)

    def _create(self, content: Any) -> Answer:
        self.created.append(content)
        id_: str | int = str(uuid.uuid4()) if self._in_fabric else len(self.created) - 1
        session = Session(id_, self._namespace(), self.questions)
        self.sessions[str(id_)] = session
        if self.dies_at_birth:
            session.die(self.dies_at_birth)
        if self._in_fabric:  # nothing else is known yet
            return 202, {}, {"id": id_, "fabricSessionStateInfo": {"state": "acquiringSession"}}
        return 201, {}, self._told(session)

    def _statement(
        self, session: Session, method: str, number: str | None, is_cancel: bool, content: Any
    ) -> Answer:
        if session.died:
            return 500, {}, self._error("Session is in state dead")
        if number is None:
            assert method == "POST"
            assert content["kind"] == "pyspark"
            return 201, {}, session.submit(content["code"]).told()
        if int(number) >= len(session.statements):
            return 404, {}, self._error("Statement not found")
        statement = session.statements[int(number)]
        if is_cancel:
            session.cancel(statement)
            return 200, {}, {"msg": "canceled"}
        told = statement.told()
        if self.late_outputs > 0:
            self.late_outputs -= 1
            return 200, {}, {**told, "state": "available", "output": None}
        if statement.output and "data" in statement.output:
            printed = statement.output["data"]["text/plain"][: self.most_printed]
            told["output"] = {**statement.output, "data": {"text/plain": printed}}
        return 200, {}, told

    def _told(self, session: Session) -> dict[str, Any]:
        told: dict[str, Any] = {"id": session.id, "state": session.state}
        if not self._in_fabric:
            return {**told, "log": ["stdout:", session.died or "started"]}
        if session.died:
            told["errorInfo"] = [{"errorCode": "SESSION_DIED", "message": session.died}]
        # Livy's own state follows when it has the session
        info = {"livyInfo": {"currentState": session.state}}
        return told if session.state == "starting" else {**told, **info}

    def _error(self, text: str) -> dict[str, str]:
        return {"errorCode": "Told", "message": text} if self._in_fabric else {"msg": text}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    livy: LivyServer

    def do_GET(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = json.loads(content) if content else None
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.livy.answer(self.command, self.path, headers, found)
        if isinstance(answer, str):
            self.close_connection = True
            return
        status, headers, body = answer
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Printed(io.TextIOBase):
    """The output of each interpreter, apart. It is closed after each statement.

    Threads that a statement has started have none, as it may be that of another statement.
    """

    def __init__(self) -> None:
        self.local = threading.local()

    def write(self, text: str) -> int:
        if hasattr(self.local, "text"):
            self.local.text += text
            return len(text)
        if threading.current_thread() is threading.main_thread() and sys.__stdout__:
            return sys.__stdout__.write(text)
        raise ValueError("I/O operation on closed file.")


def _output(code: str, namespace: dict[str, Any]) -> dict[str, Any]:
    """Run code as an interpreter does: of the last expression, the value is printed."""
    if not isinstance(sys.stdout, _Printed):
        sys.stdout = _Printed()
    printed = sys.stdout.local
    printed.text = ""
    try:
        tree = ast.parse(code)
        exec(compile(ast.Module(tree.body[:-1], []), "<stdin>", "exec"), namespace)
        exec(compile(ast.Interactive(tree.body[-1:]), "<stdin>", "single"), namespace)
        return {"status": "ok", "data": {"text/plain": printed.text.rstrip()}}
    except BaseException as error:
        lines = traceback.format_exception(error)
        name = type(error).__name__
        return {"status": "error", "ename": name, "evalue": str(error), "traceback": lines}
    finally:
        del printed.text


def main() -> None:
    """Be Livy on a port, the argument, with the Spark that spark-submit has started."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.enableHiveSupport().getOrCreate()
    namespace = {"spark": spark, "sc": spark.sparkContext}
    LivyServer(namespace.copy, port=int(sys.argv[1]))
    parent = os.getppid()
    while os.getppid() == parent:  # spark-submit is there
        time.sleep(1)


if __name__ == "__main__":
    main()
