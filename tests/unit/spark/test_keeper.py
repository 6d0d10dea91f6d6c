"""The keeper lends a JVM to one command at a time, and ends it. A program stands for the JVM."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.spark.embedded import keeper as program
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

    def end(self) -> None:
        """End the connection, as the end of a process does."""
        self._lines.close()
        self.connection.close()


class Keeper:
    """A keeper that a command has just started."""

    def __init__(self, home: Path, register: Path | None = None) -> None:
        home.mkdir(exist_ok=True)
        self.home = home
        ours, theirs = socket.socketpair()
        lock = os.open(home, os.O_RDONLY)
        fcntl.flock(lock, fcntl.LOCK_EX)
        descriptors = [theirs.fileno(), lock]
        command = [sys.executable, "-I", "-S", program.__file__, *map(str, descriptors)]
        subprocess.run(command, pass_fds=descriptors, start_new_session=True, check=True)
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

    def ask(self, other: Mapping[str, str] = {}) -> tuple[Client, Any]:
        """Ask for the JVM, as a command does. Return its answer."""
        client = Client(socket.create_connection(("127.0.0.1", self.record["port"])))
        given = {"secret": self.record["secret"], "pid": os.getpid()}
        return client, client.say(**given, inherited={**SAME, **other})

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


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    created = Keeper(tmp_path / "home")
    yield created
    (created.home / RECORD).unlink(missing_ok=True)
    created.first.end()
    created.wait_until_ended()


def test_the_next_command_gets_the_jvm_that_was_returned(keeper: Keeper) -> None:
    assert keeper.first.say(returned=60) == {"kept": True}

    _, answer = keeper.ask()

    assert answer["granted"].items() >= {**GATEWAY, "jvm": keeper.jvm}.items()
    assert is_alive(keeper.jvm)


def test_one_command_at_a_time_has_the_jvm_and_others_hear_which(keeper: Keeper) -> None:
    _, answer = keeper.ask()
    assert answer == {"busy": os.getpid()}
    keeper.first.say(returned=60)
    client, _ = keeper.ask()
    assert keeper.ask()[1] == {"busy": os.getpid()}

    client.say(returned=60)

    assert "granted" in keeper.ask()[1]


def test_the_folder_is_locked_only_while_a_command_has_the_jvm(keeper: Keeper) -> None:
    assert keeper.is_locked()
    keeper.first.say(returned=60)
    assert not keeper.is_locked()

    keeper.ask()

    assert keeper.is_locked()


def test_a_jvm_is_not_lent_while_somebody_else_has_locked_the_folder(keeper: Keeper) -> None:
    keeper.first.say(returned=60)
    descriptor = os.open(keeper.home, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    _, answer = keeper.ask()

    os.close(descriptor)
    assert answer == {"busy": 0}
    assert "granted" in keeper.ask()[1]


def test_the_jvm_of_a_command_that_ends_without_returning_it_is_killed(keeper: Keeper) -> None:
    keeper.first.end()

    keeper.wait_until_ended()


def test_the_jvm_of_a_later_command_that_is_killed_is_killed(keeper: Keeper) -> None:
    keeper.first.say(returned=60)
    client, _ = keeper.ask()

    client.end()

    keeper.wait_until_ended()


def test_the_jvm_ends_with_its_keeper_and_the_folder_is_locked_until_then(keeper: Keeper) -> None:
    status = Path(f"/proc/{keeper.jvm}/stat")
    if not status.exists():
        pytest.skip("only Linux names the parent of a process in a file")
    parent = int(status.read_text().rpartition(")")[2].split()[1])

    os.kill(parent, signal.SIGKILL)

    keeper.wait_until_ended()


def test_the_jvm_ends_after_the_idle_time(keeper: Keeper) -> None:
    keeper.first.say(returned=0.2)

    keeper.wait_until_ended()

    assert not (keeper.home / RECORD).exists()


def test_a_command_that_keeps_nothing_ends_the_jvm(keeper: Keeper) -> None:
    assert keeper.first.say(returned=0) == {"kept": False}

    keeper.wait_until_ended()


def test_a_jvm_that_has_inherited_something_else_is_ended_and_the_names_are_told(
    keeper: Keeper,
) -> None:
    keeper.first.say(returned=60)

    client, answer = keeper.ask({"variable A": "2", "variable B": "1"})

    assert answer == {"differs": ["variable A", "variable B"]}
    assert client.answer() is None, "it ends when the JVM has ended"
    keeper.wait_until_ended()


def test_a_jvm_in_use_is_not_ended_by_a_command_that_needs_another(keeper: Keeper) -> None:
    _, answer = keeper.ask({"variable A": "2"})

    assert answer == {"busy": os.getpid()}
    assert keeper.first.say(returned=60) == {"kept": True}


@pytest.mark.parametrize(
    "message",
    [b'{"secret": "guessed", "pid": 1, "inherited": {}}\n', b"[]\n", b"GET / HTTP/1\n\n"],
)
def test_who_does_not_know_the_secret_is_not_answered(keeper: Keeper, message: bytes) -> None:
    keeper.first.say(returned=60)
    client = Client(socket.create_connection(("127.0.0.1", keeper.record["port"])))

    client.connection.sendall(message)

    assert client.answer() is None
    assert "granted" in keeper.ask()[1]


def test_many_connections_of_others_do_not_keep_a_command_from_the_jvm(keeper: Keeper) -> None:
    keeper.first.say(returned=60)
    others = [socket.create_connection(("127.0.0.1", keeper.record["port"])) for _ in range(200)]

    for other in others:
        other.close()

    assert "granted" in keeper.ask()[1]


def test_only_the_user_can_read_the_secret(keeper: Keeper) -> None:
    assert (keeper.home / RECORD).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("change", ["the record is removed", "the folder is moved", "it is gone"])
def test_an_idle_jvm_ends_when_its_folder_is_another(keeper: Keeper, change: str) -> None:
    moved = keeper.home.with_name("moved")
    keeper.first.say(returned=60)
    match change:
        case "the record is removed":
            (keeper.home / RECORD).unlink()
        case "the folder is moved":
            keeper.home.rename(moved)
            keeper.home.mkdir()
        case _:
            for path in keeper.home.iterdir():
                path.unlink()
            keeper.home.rmdir()
            keeper.home.mkdir()

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


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_a_keeper_needs_less_than_20_mb_and_has_no_stream_of_its_command(keeper: Keeper) -> None:
    stat = Path(f"/proc/{keeper.jvm}/stat").read_text().rpartition(")")[2].split()
    parent = Path(f"/proc/{stat[1]}")
    [memory] = [x for x in (parent / "status").read_text().splitlines() if "VmRSS" in x]

    assert int(memory.split()[1]) < 20 * 1024
    session, terminal = (parent / "stat").read_text().rpartition(")")[2].split()[3:5]
    assert int(session) != os.getsid(0)
    assert terminal == "0"
