"""The keeper lends a JVM to one command at a time, and ends it. A program stands for the JVM."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.openmirroring.spark.embedded import jvm
from dbt.adapters.openmirroring.spark.embedded import keeper as program
from dbt.adapters.openmirroring.spark.embedded.jvm import stop_spark, take
from dbt.adapters.openmirroring.spark.embedded.keeper import RECORD

# as a JVM, it ends when its standard input is closed, and inherits the lock
JVM = [sys.executable, "-I", "-S", "-c", "import sys; sys.stdin.read()"]
GATEWAY = {"port": 1, "secret": "of the gateway"}
SAME = {"machine": "here", "variable A": "1"}


class Client:
    """A command, with a connection to the keeper."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        connection.settimeout(20)
        self._lines = connection.makefile("r", encoding="utf-8")

    def say(self, **message: Any) -> dict[str, Any] | None:
        """Send a message, and return the answer; None if the connection was closed."""
        self.connection.sendall(json.dumps(message).encode() + b"\n")
        return self.answer()

    def answer(self) -> dict[str, Any] | None:
        line = self._lines.readline()
        return dict(json.loads(line)) if line else None

    def is_disconnected(self) -> bool:
        """Whether the keeper closes the connection before it sends anything."""
        try:
            return self.answer() is None
        except ConnectionError:  # it has not read what was sent
            return True

    def end(self) -> None:
        """End the connection, as the end of a process does."""
        self._lines.close()
        self.connection.close()


class Keeper:
    """A keeper that a command has just started."""

    def __init__(self, home: Path, register: Path | None = None, descriptors: int = 0) -> None:
        home.mkdir(exist_ok=True)
        self.home = home
        ours, theirs = socket.socketpair()
        lock = os.open(home, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        given = [theirs.fileno(), lock]
        limit = ["sh", "-c", f'ulimit -n {descriptors or "$(ulimit -n)"}; exec "$@"', "sh"]
        command = [*limit, sys.executable, "-I", "-S", program.__file__, *map(str, given)]
        subprocess.run(command, pass_fds=given, start_new_session=True, check=True)
        theirs.close()
        os.close(lock)
        self.first = Client(ours)
        told = self.first.say(
            command=JVM,
            environment=dict(os.environ),
            folder=str(home),
            home=str(home),
            register=str(register or home.with_name("register")),
            inherited=SAME,
            pid=os.getpid(),
        )
        assert told
        self.jvm = int(told["jvm"])
        self.first.connection.sendall(json.dumps({"ready": GATEWAY}).encode() + b"\n")

    @property
    def record(self) -> dict[str, Any]:
        return dict(json.loads((self.home / RECORD).read_text()))

    def connect(self, line: str = "") -> Client:
        """Connect, and send a line."""
        client = Client(socket.create_connection(("127.0.0.1", self.record["port"])))
        client.connection.sendall(line.encode())
        return client

    def ask(self, other: Mapping[str, str] = {}) -> tuple[Client, Any]:
        """Ask for the JVM, as a command does. Return its answer."""
        client = self.connect(f"{self.record['secret']}\n")
        assert client.answer() == {"proof": self.record["proof"]}
        return client, client.say(pid=os.getpid(), inherited={**SAME, **other})

    def is_locked(self) -> bool:
        descriptor = os.open(self.home, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def wait_until_ended(self, seconds: float = 10) -> None:
        assert until(lambda: not is_alive(self.jvm), seconds), "the JVM runs on"
        assert until(lambda: not self.is_locked(), seconds)


def until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def parent_of(process: int) -> int:
    status = Path(f"/proc/{process}/stat")
    if not status.exists():
        pytest.skip("only Linux names the parent of a process in a file")
    return int(status.read_text().rpartition(")")[2].split()[1])


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    created = Keeper(tmp_path / "home")
    yield created
    (created.home / RECORD).unlink(missing_ok=True)
    created.first.end()
    created.wait_until_ended()


def test_one_command_at_a_time_has_the_jvm_and_the_folder_is_locked_meanwhile(
    keeper: Keeper,
) -> None:
    """Only the user can read the secret that commands ask with."""
    busy = {"busy": os.getpid()}
    assert (keeper.home / RECORD).stat().st_mode & 0o777 == 0o600
    assert keeper.is_locked()
    assert keeper.ask()[1] == busy

    assert keeper.first.say(returned=60) == {"stays_ready": True}

    assert not keeper.is_locked()
    client, answer = keeper.ask()
    assert answer["granted"].items() >= {**GATEWAY, "jvm": keeper.jvm}.items()
    assert keeper.is_locked()
    assert keeper.ask()[1] == busy
    client.say(returned=60)
    assert "granted" in keeper.ask()[1]
    assert is_alive(keeper.jvm)


def test_a_jvm_is_not_lent_while_somebody_else_has_locked_the_folder(keeper: Keeper) -> None:
    keeper.first.say(returned=60)
    descriptor = os.open(keeper.home, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    _, answer = keeper.ask()

    os.close(descriptor)
    assert answer == {"busy": 0}
    assert "granted" in keeper.ask()[1]


@pytest.mark.parametrize("is_first", [True, False])
def test_the_jvm_of_a_command_that_ends_without_returning_it_is_killed(
    keeper: Keeper, is_first: bool
) -> None:
    client = keeper.first
    if not is_first:
        client.say(returned=60)
        client, _ = keeper.ask()

    client.end()

    keeper.wait_until_ended()


def test_a_jvm_that_was_granted_to_a_command_that_is_interrupted_is_killed(
    keeper: Keeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later command of the same process, as in a notebook, would wait for it."""
    keeper.first.say(returned=60)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(jvm, "connect_to_jvm", interrupted)

    with pytest.raises(KeyboardInterrupt):
        take(keeper.home, {}, {}, SAME, keeper.home.with_name("register"))

    keeper.wait_until_ended()


def test_the_jvm_ends_with_its_keeper_and_the_folder_is_locked_until_then(keeper: Keeper) -> None:
    os.kill(parent_of(keeper.jvm), signal.SIGKILL)

    keeper.wait_until_ended()


@pytest.mark.parametrize("idle", [0, 0.2])
def test_the_jvm_ends_after_the_idle_time(keeper: Keeper, idle: float) -> None:
    assert keeper.first.say(returned=idle) == {"stays_ready": idle > 0}

    keeper.wait_until_ended()

    assert not (keeper.home / RECORD).exists()


def test_a_jvm_that_has_inherited_something_else_is_ended_and_the_names_are_told(
    keeper: Keeper,
) -> None:
    """But not while another command uses it."""
    other = {"variable A": "2", "variable B": "1"}
    assert keeper.ask(other)[1] == {"busy": os.getpid()}
    assert keeper.first.say(returned=60) == {"stays_ready": True}

    client, answer = keeper.ask(other)

    assert answer == {"differs": ["variable A", "variable B"]}
    assert client.answer() is None, "it ends when the JVM has ended"
    keeper.wait_until_ended()


@pytest.mark.parametrize("change", ["moved away", "made anew", "from a backup"])
def test_a_jvm_is_lent_only_with_the_metastore_that_it_had(keeper: Keeper, change: str) -> None:
    """Hive in it would take the tables of the metastore for made."""
    metastore = keeper.home / "metastore_db"
    make_metastore(metastore)
    keeper.first.say(returned=60)
    backup = shutil.copytree(metastore, keeper.home / "backup")
    client, answer = keeper.ask()
    assert "granted" in answer
    make_metastore(metastore)  # Spark ties it to its warehouse in each start
    client.say(returned=60)

    metastore.rename(keeper.home / "old")
    if change == "made anew":
        make_metastore(metastore)
    if change == "from a backup":
        backup.rename(metastore)
    client, answer = keeper.ask()

    assert answer == {"differs": ["metastore"]}
    keeper.wait_until_ended()


def make_metastore(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "service.properties").touch()
    (folder / "openmirroring.json.new").write_text("{}")
    (folder / "openmirroring.json.new").replace(folder / "openmirroring.json")


ASKS = '{"pid": 1, "inherited": {"machine": "here", "variable A": "1"}}\n'
GUESSES = ["", "\n", ASKS, f"{'0' * 64}\n{ASKS}", "GET / HTTP/1.1\r\n\r\n", "0" * 2**20]


@pytest.mark.parametrize("line", GUESSES)
def test_who_does_not_send_the_secret_is_disconnected(keeper: Keeper, line: str) -> None:
    keeper.first.say(returned=60)

    stranger = keeper.connect()
    with suppress(ConnectionError):
        stranger.connection.sendall(line.encode())

    assert stranger.is_disconnected()
    assert "granted" in keeper.ask()[1]


def test_who_sends_the_secret_by_and_by_is_disconnected(keeper: Keeper) -> None:
    """Nobody has to know it for that: the begin may be guessed."""
    stranger = keeper.connect(keeper.record["secret"][:-1])

    assert stranger.is_disconnected()


def test_more_connections_of_others_than_a_keeper_may_have_end_no_jvm_that_is_in_use(
    tmp_path: Path,
) -> None:
    keeper = Keeper(tmp_path / "home", descriptors=32)
    others = [keeper.connect() for _ in range(70)]

    assert keeper.first.say(returned=60) == {"stays_ready": True}

    assert all(other.is_disconnected() for other in others)
    assert is_alive(keeper.jvm)
    keeper.ask()[0].say(returned=0)
    keeper.wait_until_ended()


def test_many_connections_of_others_neither_keep_a_command_from_a_jvm_nor_stay(
    keeper: Keeper,
) -> None:
    keeper.first.say(returned=60)
    others = [keeper.connect() for _ in range(252)]

    assert "granted" in keeper.ask()[1]

    descriptors = Path(f"/proc/{parent_of(keeper.jvm)}/fd")
    assert len(list(descriptors.iterdir())) < 64
    assert all(other.is_disconnected() for other in others)


def test_a_client_that_asks_without_sense_ends_no_jvm(keeper: Keeper) -> None:
    keeper.first.say(returned=60)
    for line in ("{}", "[]", '{"inherited": 1}', "{", "[" * 10**5):
        client, _ = keeper.ask()
        client.say(returned=60)
        with suppress(ConnectionError):
            client.connection.sendall(f"{line}\n".encode())
        client.end()

    assert "granted" in keeper.ask()[1]


@pytest.mark.parametrize("change", ["the record is removed", "the folder is moved", "it is gone"])
def test_an_idle_jvm_ends_when_its_folder_is_another(keeper: Keeper, change: str) -> None:
    moved = keeper.home.with_name("moved")
    keeper.first.say(returned=60)
    if change == "the record is removed":
        (keeper.home / RECORD).unlink()
    else:
        keeper.home.rename(moved)
        keeper.home.mkdir()
    if change == "it is gone":
        shutil.rmtree(moved)

    keeper.wait_until_ended()


def test_a_jvm_in_use_stays_though_its_record_is_removed_and_ends_with_the_command(
    keeper: Keeper,
) -> None:
    (keeper.home / RECORD).unlink()
    time.sleep(0.7)
    assert is_alive(keeper.jvm)

    keeper.first.say(returned=60)

    keeper.wait_until_ended()


def test_a_user_has_one_idle_jvm_that_of_the_project_used_last(tmp_path: Path) -> None:
    register = tmp_path / "cache" / "spark"
    one, other = (Keeper(tmp_path / name, register) for name in ("one", "other"))
    one.first.say(returned=60)
    other.first.say(returned=60)

    one.wait_until_ended()
    assert is_alive(other.jvm)

    third = Keeper(tmp_path / "third", register)
    other.wait_until_ended()
    third.first.say(returned=0)
    third.wait_until_ended()


def test_a_register_of_another_machine_or_without_sense_ends_no_jvm(tmp_path: Path) -> None:
    register = tmp_path / "spark"
    keeper = Keeper(tmp_path / "home", register)
    keeper.first.say(returned=60)
    for content in (b"", b"\xff\n\n", b"elsewhere\n/home", b"x", b"\0"):
        register.write_bytes(content)
        time.sleep(0.7)
        assert is_alive(keeper.jvm)

    register.unlink()
    keeper.ask()[0].say(returned=0)
    keeper.wait_until_ended()


def test_the_record_that_a_killed_keeper_of_the_same_id_has_begun_is_written_anew(
    tmp_path: Path,
) -> None:
    (tmp_path / f"{RECORD}.{os.getpid()}").touch()
    ours, theirs = socket.socketpair()
    folder, lock = str(tmp_path), os.open(tmp_path, os.O_RDONLY)
    given = {"home": folder, "folder": folder, "register": f"{folder}/register", "pid": 1}
    started = {"command": JVM, "environment": dict(os.environ), "inherited": SAME}
    keeper = program.Keeper(program._Client(theirs), {**given, **started}, lock)
    ours.close()  # the command has ended, and with it the JVM

    keeper.run()

    os.close(lock)
    assert list(tmp_path.glob(f"{RECORD}*")) == []


def test_a_keeper_needs_less_than_20_mb_and_has_no_stream_of_its_command(keeper: Keeper) -> None:
    parent = Path(f"/proc/{parent_of(keeper.jvm)}")
    [memory] = [x for x in (parent / "status").read_text().splitlines() if "VmRSS" in x]

    assert int(memory.split()[1]) < 20 * 1024
    session, terminal = (parent / "stat").read_text().rpartition(")")[2].split()[3:5]
    assert int(session) != os.getsid(0)
    assert terminal == "0"


# what lies in the place of a keeper's record, or listens at its port, is input
RECORDS = ["", "null", "[]", "{}", '{"port": "x", "secret": 1, "proof": 1, "folder": []}', "\x00"]


@pytest.mark.parametrize("record", RECORDS)
def test_a_record_without_sense_names_no_keeper(tmp_path: Path, record: str) -> None:
    (tmp_path / RECORD).write_text(record)

    assert stop_spark(tmp_path) == "No embedded Spark is ready"


GRANTED = b'{"granted": {"port": 1, "secret": "s", "jvm": 1, "since": 1.0}}\n'
ANSWERS = [b"HTTP/1.1 400 Bad Request\r\n", b"7\n", b"[1]\n", b"\xff\n", b"0" * 2**20]


@pytest.mark.parametrize("answer", [*ANSWERS, GRANTED, b'{"proof": "guessed"}\n' + GRANTED])
def test_another_program_at_the_port_of_a_keeper_that_was_killed_is_none(
    tmp_path: Path, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be another user's. It gets nothing but a secret that is worth nothing any more."""
    folder, received = tmp_path.stat(), list[bytes]()
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        given = {"port": stranger.getsockname()[1], "folder": [folder.st_dev, folder.st_ino]}
        (tmp_path / RECORD).write_text(json.dumps({**given, "secret": "s", "proof": "p"}))

        def serve() -> None:
            connection, _ = stranger.accept()
            with connection, suppress(ConnectionError):
                received.append(connection.recv(2**16))
                connection.sendall(answer)
                received.append(connection.recv(2**16))

        thread = threading.Thread(target=serve)
        thread.start()
        started = SimpleNamespace()
        monkeypatch.setattr(jvm, "_started", lambda *_: started)

        assert take(tmp_path, {}, {}, {}, tmp_path / "register") is started  # type: ignore[comparison-overlap]
        thread.join()
    assert b"".join(received) == b"s\n"


@pytest.mark.parametrize("is_listening", [True, False])
def test_a_jvm_that_does_not_answer_a_command_is_ended_and_another_one_started(
    tmp_path: Path, is_listening: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If others had taken all its descriptors once, Py4J accepts nobody any more."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setitem(GATEWAY, "port", server.getsockname()[1])
        if not is_listening:
            server.close()
        keeper = Keeper(tmp_path / "home")
        keeper.first.say(returned=60)
        monkeypatch.setattr(jvm, "_LONGEST_GREETING", 1)
        started = SimpleNamespace()
        monkeypatch.setattr(jvm, "_started", lambda *_: started)

        assert take(keeper.home, {}, {}, SAME, tmp_path / "register") is started  # type: ignore[comparison-overlap]

    keeper.wait_until_ended()


# a command whose code has forked a process, and which then ends without returning its lease
FORKING = """
import os, socket, sys, time
from dbt.adapters.openmirroring.spark.embedded.jvm import Lease

lease = Lease(socket.create_connection(("127.0.0.1", int(sys.argv[1]))))
if child := os.fork():
    print(child, flush=True)
    os._exit(0)
os.close(1)
time.sleep(60)
"""


def test_a_keeper_notices_the_end_of_a_command_whose_fork_lives_on() -> None:
    with socket.create_server(("127.0.0.1", 0)) as keeper:
        command = [sys.executable, "-c", FORKING, str(keeper.getsockname()[1])]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        connection, _ = keeper.accept()

    with connection:
        connection.settimeout(20)
        assert connection.recv(1) == b""
    os.kill(int(done.stdout), signal.SIGKILL)  # it is there
