"""The right of a command to use the embedded Spark's JVM, which its keeper lends."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from py4j.protocol import Py4JError

from dbt.adapters.openmirroring.spark.embedded import keeper
from dbt.adapters.openmirroring.spark.embedded.jvm import connect_to_jvm, disconnect, launch_jvm

logger = AdapterLogger("OpenMirroring")

# Seconds to wait for another process, and seconds before the user is told. The JVM of a killed
# process lives slightly longer than the process, and a message about that is not needed.
_WAIT_FOR_PREVIOUS = 600.0
_TELL_AFTER = 5.0

# seconds in which a keeper answers
_LONGEST_ANSWER = 150.0

# the connections to keepers of this process
_connections: WeakSet[socket.socket] = WeakSet()


def _close_all() -> None:
    """Close the connections of a parent in a child that code of the user has forked.

    A keeper knows by the end of its connection that a command has ended.
    """
    for connection in _connections:
        connection.close()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_close_all)


class SparkInUseError(FailedToConnectError):
    """Another process uses the embedded Spark of the project."""


class Lease:
    """A connection to a keeper, and the right to use its JVM once the keeper has granted it.

    The right ends with `give_back`, or with this process.

    Attributes:
        jvm: the id of the JVM's process
        since: when the JVM was started, in seconds since 1970; None if it was started for this
            lease
        gateway: the gateway of the JVM
        differing: the names of what has ended another JVM that was ready
    """

    def __init__(self, connection: socket.socket, secret: str = "") -> None:
        connection.settimeout(_LONGEST_ANSWER)
        _connections.add(connection)
        self._connection = connection
        self._secret = secret
        self.jvm = 0
        self.since: float | None = None
        self.gateway: Any = None
        self.differing: Sequence[str] = ()

    def send(self, **message: Any) -> None:
        with suppress(OSError):  # a keeper that has ended does not answer
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def ask(self, inherited: Mapping[str, str]) -> dict[str, Any]:
        """Ask for the JVM, and return the answer of the keeper."""
        self.send(secret=self._secret, pid=os.getpid(), inherited=dict(inherited))
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Wait for the next message.

        Raises:
            ConnectionError: if the keeper has ended, or if another program has its port now
        """
        try:
            with self._connection.makefile("rb") as stream:
                return dict(json.loads(stream.readline()))
        except (OSError, ValueError, TypeError) as error:
            raise ConnectionError from error

    def wait_for_end(self) -> None:
        """Wait until the keeper has ended, which ends with its JVM."""
        with suppress(ConnectionError):
            self.answer()

    def close(self) -> None:
        self._connection.close()

    def poll(self) -> bool:
        """Return whether the keeper has ended. PySpark asks it as a process of its own."""
        return self.has_ended(0)

    def has_ended(self, seconds: float) -> bool:
        """Check whether the JVM has ended. Its keeper notices it within these seconds."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection, selectors.EVENT_READ)
            return bool(selector.select(seconds))  # the keeper sends nothing that nobody asked for

    def give_back(self, seconds: float) -> bool:
        """Return the JVM, which the next command may use within so many seconds.

        Args:
            seconds: 0 ends the JVM

        Returns:
            whether it is kept
        """
        if self.gateway:
            disconnect(self.gateway)
        self.send(returned=seconds)
        with suppress(ConnectionError):
            return bool(self.answer()["kept"])
        return False


def take(
    home: Path,
    settings: Mapping[str, str],
    environment: Mapping[str, str],
    inherited: Mapping[str, str],
    register: Path,
) -> Lease:
    """Take the lease of the JVM that is ready, or start one. Wait for other processes.

    Args:
        home: the folder of Spark's files
        settings, environment: the settings of Spark and the variables of a JVM that is started
        inherited: what the JVM inherits, by name. It is used again only if all of it is the same
        register: the file that names the Spark which the user has used last

    Raises:
        SparkInUseError: if another process uses Spark for too long
    """
    started, is_told, differing = time.monotonic(), False, list[str]()
    while True:
        found = _ask(home, inherited)
        if isinstance(found, Lease):
            return found
        differing = found or differing
        lock = os.open(home, os.O_RDONLY)
        try:
            if keeper.has_locked(lock):
                lease = _started(home, settings, environment, inherited, register, lock)
                lease.differing = differing
                return lease
        finally:
            os.close(lock)
        waited = time.monotonic() - started
        if waited > _TELL_AFTER and not is_told:
            is_told = True
            fire_event(Note(msg=f"Waiting for another process that uses the Spark in {home}"))
        if waited > _WAIT_FOR_PREVIOUS:
            raise SparkInUseError(
                f"Another process has used the embedded Spark of this project ({home}) for more "
                f"than {_WAIT_FOR_PREVIOUS:.0f} seconds, and only one can. Wait until it has "
                "ended, or use a Spark that several processes can share (`method` in the profile)."
            )
        time.sleep(0.1)


def stop_spark(home: Path) -> str:
    """End the JVM that is ready for the next command.

    Returns:
        a line about it
    """
    lease = _connected(home)
    if not lease:
        return "No embedded Spark is ready"
    with suppress(ConnectionError):
        answer = lease.ask({})  # fits no JVM
        if answer.get("busy"):
            return f"The embedded Spark is in use by process {answer['busy']}. Nothing was ended"
        lease.wait_for_end()
    return "The embedded Spark was ended"


def _ask(home: Path, inherited: Mapping[str, str]) -> Lease | list[str]:
    """Ask the keeper for its JVM.

    Returns:
        the lease; or what is different, if the keeper has ended a JVM because of that
    """
    lease = _connected(home)
    if not lease:
        return []
    try:
        answer = lease.ask(inherited)
        if granted := answer.get("granted"):
            lease.jvm, lease.since = granted["jvm"], granted["since"]
            lease.gateway = connect_to_jvm(granted["port"], granted["secret"])
            return lease
        if differing := answer.get("differs"):
            logger.debug(f"The Spark that is ready differs in: {', '.join(differing)}")
            lease.wait_for_end()
            return list(differing)
    except (ConnectionError, Py4JError) as error:
        logger.debug(f"The Spark that was ready has ended: {error}")
    lease.close()
    return []


def _connected(home: Path) -> Lease | None:
    """Connect to the keeper of a folder. Return None if there is none, or that of another one."""
    try:
        record = json.loads((home / keeper.RECORD).read_text(encoding="utf-8"))
        port, secret, folder = int(record["port"]), str(record["secret"]), record["folder"]
        found = home.stat()
        if folder != [found.st_dev, found.st_ino]:
            return None  # the record was copied
        return Lease(socket.create_connection(("127.0.0.1", port), _LONGEST_ANSWER), secret)
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def _started(
    home: Path,
    settings: Mapping[str, str],
    environment: Mapping[str, str],
    inherited: Mapping[str, str],
    register: Path,
    lock: int,
) -> Lease:
    """Start a keeper, and by it the JVM."""
    scratch = home / "tmp"
    for path in scratch.iterdir():  # left by a JVM that was killed
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    ours, theirs = socket.socketpair()
    with theirs:
        descriptors = [theirs.fileno(), lock]
        subprocess.run(
            [sys.executable, "-I", "-S", keeper.__file__, *map(str, descriptors)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            pass_fds=descriptors,
            start_new_session=True,
            check=True,
        )
    lease = Lease(ours)

    def start(command: Sequence[str], env: Mapping[str, str], **_: Any) -> Lease:
        added = {name: value for name, value in env.items() if os.environ.get(name) != value}
        lease.send(
            command=command,
            environment={**environment, **added},
            folder=str(Path.cwd()),
            home=str(home),
            register=str(register),
            inherited=dict(inherited),
            pid=os.getpid(),
        )
        lease.jvm = lease.answer()["jvm"]
        return lease

    try:
        gateway = lease.gateway = launch_jvm(settings, scratch, start)
        given = gateway.gateway_parameters  # for later commands
        lease.send(ready={"port": given.port, "secret": given.auth_token})
        return lease
    except BaseException:
        lease.close()  # which ends the JVM
        raise
