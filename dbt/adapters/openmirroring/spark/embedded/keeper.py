"""The keeper: a small process that is the parent of the embedded Spark's JVM.

It starts the JVM, lends it to one command at a time, and ends it. It is a program of its own that
imports neither dbt nor PySpark, so that it needs little memory while it waits.

The keeper and its clients send each other lines of JSON. A client asks for the JVM with `secret`,
`pid` and `inherited`, and has it from the answer `granted` until it sends `returned`. This is its
lease. If its process ends before, the JVM is killed, so that no statement of a dead command runs
on.

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

# the file with the port and the secret of the keeper, in the folder of Spark's files
RECORD = "keeper.json"

# A JVM is ended after so many commands, and after so many seconds if it does not end by itself.
# Java may write its archive of classes at its end.
_MOST_COMMANDS = 100
_LONGEST_END = 120.0

# seconds between two looks at what can end an idle JVM
_PAUSE = 0.25

# Bytes of a message, of which the environment is the largest part, and connections at a time.
# Other users of the machine can connect too, though they do not know the secret.
_LONGEST_MESSAGE = 2**22
_MOST_CONNECTIONS = 64


class _Client:
    """A connection to a process that has the lease, or asks for it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.pid = 0
        self._received = b""

    def messages(self) -> list[dict[str, Any]] | None:
        """Return what has arrived; None if the connection has ended."""
        try:
            received = self.connection.recv(2**16)
        except OSError:
            return None
        self._received += received
        if not received or len(self._received) > _LONGEST_MESSAGE:
            return None
        *lines, self._received = self._received.split(b"\n")
        try:
            found = [json.loads(line) for line in lines]
        except ValueError:
            return None
        return found if all(isinstance(message, dict) for message in found) else None

    def send(self, **message: Any) -> None:
        with suppress(OSError):  # its connection tells that it has ended
            self.connection.sendall(json.dumps(message).encode() + b"\n")


class Keeper:
    """The parent of a JVM.

    Args:
        first: the connection to the command that has started the keeper
        lock: a descriptor of the folder of Spark's files, which that command has locked
    """

    def __init__(self, first: socket.socket, lock: int) -> None:
        self._lock = lock
        self._holder: _Client | None = _Client(first)
        self._holder_process: int | None = None
        self._selector = selectors.DefaultSelector()
        self._selector.register(first, selectors.EVENT_READ, self._holder)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setblocking(False)
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._secret = os.urandom(32).hex()
        self._ready: dict[str, Any] = {}
        self._commands = 1
        self._ends_at = float("inf")

    def run(self) -> None:
        """Keep the JVM until it has to end."""
        assert self._holder
        while not (messages := self._holder.messages()):
            if messages is None:
                return
        [given] = messages
        self._record, self._inherited = Path(given["home"], RECORD), given["inherited"]
        self._register = Path(given["register"]) if given["register"] else None
        self._jvm = self._start(given)
        try:
            self._write_record()
            self._name_in_register()
            self._watch(given["pid"])
            self._holder.send(jvm=self._jvm.pid)
            while self._jvm.poll() is None and not self._must_end():
                for key, _ in self._selector.select(_PAUSE):
                    self._handle(key)
        finally:
            self._end()

    def _start(self, given: dict[str, Any]) -> subprocess.Popen[bytes]:
        with Path(given["log"]).open("wb") as log:
            return subprocess.Popen(
                given["command"],
                env=given["environment"],
                cwd=given["folder"],
                stdin=subprocess.PIPE,  # the JVM ends when this is closed
                stdout=log,
                stderr=log,
                pass_fds=[self._lock],
            )

    def _must_end(self) -> bool:
        """Check what ends a JVM that nobody uses."""
        if self._holder:
            return False
        return time.monotonic() > self._ends_at or not self._is_recorded() or self._is_replaced()

    def _handle(self, key: selectors.SelectorKey) -> None:
        if key.fileobj is self._listener:
            connection, _ = self._listener.accept()
            if len(self._selector.get_map()) > _MOST_CONNECTIONS:
                connection.close()
            else:
                self._selector.register(connection, selectors.EVENT_READ, _Client(connection))
            return
        client: _Client = key.data
        messages = None if key.fd == self._holder_process else client.messages()
        for message in messages or ():
            self._answer(client, message)
        if messages is None:
            if client is self._holder:
                self._jvm.kill()  # the command has ended without returning its lease
            self._forget(client)

    def _answer(self, client: _Client, message: dict[str, Any]) -> None:
        if client is self._holder:
            if "ready" in message:
                self._ready = {**message["ready"], "since": time.time(), "jvm": self._jvm.pid}
            elif "returned" in message:
                self._take_back(client, float(message["returned"]))
            return
        if message.get("secret") != self._secret:
            self._forget(client)
        elif self._holder:
            client.send(busy=self._holder.pid)
        elif differing := self._differing(message["inherited"]):
            client.send(differs=differing)
            self._ends_at = 0.0
        elif self._is_recorded() and self._has_locked():
            self._holder = client
            self._watch(message["pid"])
            self._commands += 1
            client.send(granted={**self._ready, "commands": self._commands})
        else:
            client.send(busy=0)

    def _take_back(self, client: _Client, seconds: float) -> None:
        """Take back the lease. The JVM is kept for so many seconds."""
        is_kept = seconds > 0 and self._commands < _MOST_COMMANDS
        self._ends_at = time.monotonic() + seconds if is_kept else 0.0
        self._unwatch()
        self._holder = None
        if is_kept:
            self._name_in_register()
            self._unlock()
        client.send(kept=is_kept)

    def _differing(self, inherited: dict[str, str]) -> list[str]:
        names = {**self._inherited, **inherited}
        return [name for name in names if self._inherited.get(name) != inherited.get(name)]

    def _unlock(self) -> None:
        import fcntl  # only on POSIX

        fcntl.flock(self._lock, fcntl.LOCK_UN)

    def _has_locked(self) -> bool:
        import fcntl  # only on POSIX

        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _watch(self, pid: int) -> None:
        """Watch the process that has the lease. A fork of it would keep the connection open."""
        assert self._holder
        self._holder.pid = pid
        if hasattr(os, "pidfd_open"):  # only on Linux
            try:
                self._holder_process = os.pidfd_open(pid)
            except OSError:
                return  # it has ended, and so has its connection
            self._selector.register(self._holder_process, selectors.EVENT_READ, self._holder)

    def _unwatch(self) -> None:
        if self._holder_process is not None:
            self._selector.unregister(self._holder_process)
            os.close(self._holder_process)
            self._holder_process = None

    def _forget(self, client: _Client) -> None:
        if client is self._holder:
            self._unwatch()
        if client.connection in self._selector.get_map():
            self._selector.unregister(client.connection)
            client.connection.close()

    def _write_record(self) -> None:
        new = self._record.with_name(f"{RECORD}.{os.getpid()}")
        folder = self._record.parent.stat()
        record = {
            "port": self._listener.getsockname()[1],
            "secret": self._secret,
            "folder": [folder.st_dev, folder.st_ino],
        }
        new.touch(0o600, exist_ok=False)
        new.write_text(json.dumps(record), encoding="utf-8")
        self._written = new.stat().st_ino
        new.replace(self._record)

    def _is_recorded(self) -> bool:
        """Check that the record is there, which is gone with its folder, or if another has it."""
        try:
            return self._record.stat().st_ino == self._written
        except OSError:
            return False

    def _name_in_register(self) -> None:
        """Record that this is the Spark which the user has used last on this machine."""
        if self._register is None:
            return
        new = self._register.with_name(f"{self._register.name}.{os.getpid()}")
        with suppress(OSError):  # then the user may have several idle ones
            new.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_text(self._named, encoding="utf-8")
            new.replace(self._register)

    def _is_replaced(self) -> bool:
        """Check whether the user has used the Spark of another project since."""
        if self._register is None:
            return False
        try:
            found = self._register.read_text(encoding="utf-8")
        except (OSError, ValueError):
            return False
        machine = self._named.partition("\n")[0]
        return found.partition("\n")[0] == machine and found != self._named

    @property
    def _named(self) -> str:
        return f"{self._inherited['machine']}\n{self._record.parent}"

    def _end(self) -> None:
        """End the JVM, and with it the keeper. Its clients see that their connection ends."""
        if self._is_recorded():
            self._record.unlink(missing_ok=True)
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
    Keeper(socket.socket(fileno=connection), lock).run()


if __name__ == "__main__":
    main()
