"""The keeper: a small process that is the parent of the embedded Spark's JVM.

It starts the JVM, lends it to one command at a time, and ends it. It is a program of its own that
imports neither dbt nor PySpark, so that it needs little memory while it waits.

Every user of the machine can connect to the port of the keeper, and take it once the keeper has
ended. So a client first sends the `secret` of the record, and reads its `proof`: only the user can
read the record.

After that, they send each other lines of JSON. A client asks for the JVM with `pid` and
`inherited`, and has it from the answer `granted` until it sends `returned`. This is its lease. If
its connection ends before, the JVM is killed, so that no statement of a dead command runs on.

The JVM and the keeper share one lock on the folder of Spark's files. It is held during a lease,
and if the keeper is killed, until the JVM has ended too.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

# the file with the port of the keeper and what both sides know, in the folder of Spark's files
RECORD = "keeper.json"

# files of the metastore, in the same folder, which are others if another one takes its place
_METASTORE = ("metastore_db/service.properties", "metastore_db/openmirroring.json")

# A JVM is ended after so many commands, and after so many seconds if it does not end by itself.
# Java may write its archive of classes at its end.
_MOST_COMMANDS = 100
_LONGEST_END = 120.0

# seconds between two looks at what can end an idle JVM
_PAUSE = 0.25

# Clients that have not sent the secret: for so many seconds, and so many at the same time.
_LONGEST_GREETING = 1.0
_MOST_STRANGERS = 32


def has_locked(descriptor: int) -> bool:
    """Lock a folder. Return False if another process has locked it."""
    import fcntl  # only on POSIX

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class _Client:
    """A connection to a process that has the lease, or asks for it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.pid = 0
        self._received = b""

    def receive(self) -> None:
        """Receive what has arrived, or raise ConnectionError if the connection has ended."""
        try:
            received = self.connection.recv(2**16)
        except OSError as error:
            raise ConnectionError from error
        if not received:
            raise ConnectionError
        self._received += received

    def has_greeted(self, secret: str) -> bool:
        """Return whether the first line has arrived, or raise ConnectionError if it is another."""
        greeting = f"{secret}\n".encode()
        if not greeting.startswith(self._received[: len(greeting)]):
            raise ConnectionError
        if len(self._received) < len(greeting):
            return False
        self._received = self._received[len(greeting) :]
        return True

    def messages(self) -> list[dict[str, Any]]:
        """Return the messages that have arrived, or raise ConnectionError if they are none."""
        *lines, self._received = self._received.split(b"\n")
        try:
            return [dict(json.loads(line)) for line in lines]
        except (ValueError, TypeError, RecursionError) as error:
            raise ConnectionError from error

    def send(self, **message: Any) -> None:
        with suppress(OSError):  # its connection tells that it has ended
            self.connection.sendall(json.dumps(message).encode() + b"\n")


class Keeper:
    """The parent of a JVM, which it starts.

    Args:
        first: the command that has started the keeper
        given: its message: what to start, and what the JVM inherits
        lock: a descriptor of the folder of Spark's files, which that command has locked
    """

    def __init__(self, first: _Client, given: dict[str, Any], lock: int) -> None:
        self._lock = lock
        self._home = Path(given["home"])
        self._register = Path(given["register"])
        self._inherited: dict[str, str] = given["inherited"]
        self._secret, self._proof = os.urandom(32).hex(), os.urandom(32).hex()
        self._strangers: dict[_Client, float] = {}  # the oldest first, and when they must go
        self._ready: dict[str, Any] = {}
        self._commands = 1
        self._ends_at = float("inf")
        self._written = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(first.connection, selectors.EVENT_READ, first)
        self._holder: _Client | None = first
        first.pid = given["pid"]
        with (self._home / "spark.log").open("wb") as log:
            self._jvm = subprocess.Popen(
                given["command"],
                env=given["environment"],
                cwd=given["folder"],
                stdin=subprocess.PIPE,  # the JVM ends when this is closed
                stdout=log,
                stderr=log,
                pass_fds=[lock],
            )

    def run(self) -> None:
        """Keep the JVM until it has to end."""
        try:
            self._write_record()
            self._name_in_register()
            assert self._holder
            self._holder.send(jvm=self._jvm.pid)
            while self._jvm.poll() is None and not self._must_end():
                now = time.monotonic()  # who has sent the secret by now is heard first
                for key, _ in self._selector.select(_PAUSE):
                    if key.data:
                        self._handle(key.data)
                    else:
                        self._accept()
                self._turn_strangers_away(now)
        finally:
            self._end()

    def _must_end(self) -> bool:
        """Check what ends a JVM that nobody uses."""
        if self._holder:
            return False
        return time.monotonic() > self._ends_at or not self._is_recorded() or self._is_replaced()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # no descriptor is left until strangers have gone
            time.sleep(0.01)
            return
        connection.settimeout(_LONGEST_GREETING)  # who does not read stops nobody
        client = _Client(connection)
        self._strangers[client] = time.monotonic() + _LONGEST_GREETING
        self._selector.register(connection, selectors.EVENT_READ, client)

    def _turn_strangers_away(self, now: float) -> None:
        """Disconnect those that had not greeted in time, and the oldest of too many."""
        for client, deadline in list(self._strangers.items()):
            if now > deadline or len(self._strangers) > _MOST_STRANGERS:
                self._disconnect(client)

    def _handle(self, client: _Client) -> None:
        try:
            client.receive()
            if client in self._strangers:
                if not client.has_greeted(self._secret):
                    return
                del self._strangers[client]
                client.send(proof=self._proof)
            for message in client.messages():
                self._answer(client, message)
        except (ConnectionError, KeyError, ValueError, TypeError):
            self._disconnect(client)

    def _disconnect(self, client: _Client) -> None:
        if client is self._holder:
            self._jvm.kill()  # the command has ended without returning its lease
        self._strangers.pop(client, None)
        self._selector.unregister(client.connection)
        client.connection.close()

    def _answer(self, client: _Client, message: dict[str, Any]) -> None:
        if client is self._holder:
            if "ready" in message:
                self._ready = {**message["ready"], "since": time.time(), "jvm": self._jvm.pid}
            else:
                self._take_back(client, float(message["returned"]))
        elif self._holder:
            client.send(busy=self._holder.pid)
        elif (other := self._seen(message["inherited"])) != self._inherited:
            mine = self._inherited
            names = [name for name in {**mine, **other} if mine.get(name) != other.get(name)]
            client.send(differs=names)
            self._ends_at = 0.0
        elif self._is_recorded() and has_locked(self._lock):
            self._holder, client.pid = client, message["pid"]
            self._commands += 1
            client.send(granted=self._ready)
        else:
            client.send(busy=0)

    def _take_back(self, client: _Client, seconds: float) -> None:
        """Take back the lease. The JVM stays ready for so many seconds."""
        import fcntl  # only on POSIX

        stays_ready = seconds > 0 and self._commands < _MOST_COMMANDS
        self._ends_at = time.monotonic() + seconds if stays_ready else 0.0
        self._holder = None
        if stays_ready:
            self._inherited = self._seen(self._inherited)
            self._name_in_register()
            fcntl.flock(self._lock, fcntl.LOCK_UN)
        client.send(stays_ready=stays_ready)

    def _seen(self, inherited: dict[str, str]) -> dict[str, str]:
        """Return what a JVM inherits, with the metastore that is there now.

        Hive remembers in a JVM that it has made its tables, so another metastore would lack them.
        """
        found = []
        for name in _METASTORE:
            with suppress(OSError):
                state = (self._home / name).stat()
                found.append((state.st_ino, state.st_mtime_ns))
        return {**inherited, "metastore": str(found)}

    def _write_record(self) -> None:
        new = self._home / f"{RECORD}.{os.getpid()}"
        folder = self._home.stat()
        record = {
            "port": self._listener.getsockname()[1],
            "secret": self._secret,
            "proof": self._proof,
            "folder": [folder.st_dev, folder.st_ino],
        }
        new.unlink(missing_ok=True)  # of a killed keeper; in containers, ids return
        new.touch(0o600, exist_ok=False)
        new.write_text(json.dumps(record), encoding="utf-8")
        self._written = new.stat().st_ino
        new.replace(self._home / RECORD)

    def _is_recorded(self) -> bool:
        """Check that the record is there, which is gone with its folder, or if another has it."""
        try:
            return (self._home / RECORD).stat().st_ino == self._written
        except OSError:
            return False

    def _name_in_register(self) -> None:
        """Record that this is the Spark which the user has used last on this machine."""
        new = self._register.with_name(f"{self._register.name}.{os.getpid()}")
        with suppress(OSError):  # then the user may have several idle ones
            new.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_bytes(os.fsencode(f"{self._inherited['machine']}\n{self._home}"))
            new.replace(self._register)

    def _is_replaced(self) -> bool:
        """Check whether the user has used the Spark of another project since."""
        try:
            machine, _, home = os.fsdecode(self._register.read_bytes()).partition("\n")
        except OSError:
            return False
        return machine == self._inherited["machine"] and home != str(self._home)

    def _end(self) -> None:
        """End the JVM, and with it the keeper. Its clients see that their connection ends."""
        if self._is_recorded():
            (self._home / RECORD).unlink(missing_ok=True)
        self._listener.close()
        assert self._jvm.stdin
        self._jvm.stdin.close()
        try:
            self._jvm.wait(_LONGEST_END)
        except subprocess.TimeoutExpired:
            self._jvm.kill()
            self._jvm.wait()


def main() -> None:
    """Run the keeper. Its arguments are the descriptors of its first client and of the lock."""
    if os.fork():
        return  # so that nobody waits for the keeper
    connection, lock = map(int, sys.argv[1:])
    first = _Client(socket.socket(fileno=connection))
    while not (messages := first.messages()):
        first.receive()
    Keeper(first, messages[0], lock).run()


if __name__ == "__main__":
    main()
