"""The right of a command to use the embedded Spark's JVM, which its keeper lends."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER
from py4j.protocol import Py4JError

from dbt.adapters.openmirroring.spark.embedded.keeper import RECORD
from dbt.adapters.openmirroring.spark.embedded.submit import connect_to_jvm, launch_jvm

logger = AdapterLogger("OpenMirroring")

# Seconds to wait for another process, and seconds before the user is told. The JVM of a killed
# process lives slightly longer than the process, and a message about that is not needed.
_WAIT_FOR_PREVIOUS = 600.0
_TELL_AFTER = 5.0

# seconds in which a keeper answers
_LONGEST_ANSWER = 150.0


class SparkInUseError(FailedToConnectError):
    """Another process uses the embedded Spark of the project."""


@dataclass(frozen=True)
class Launch:
    """What to start if no JVM is ready.

    Args:
        settings: the settings of Spark
        environment: the environment of the JVM
        log: the file for what the JVM prints
        scratch: a folder for files that exist while the JVM starts
        register: the file that names the Spark which the user has used last; None if the user has
            no folder for it
    """

    settings: Mapping[str, str]
    environment: Mapping[str, str]
    log: Path
    scratch: Path
    register: Path | None


class Lease:
    """A connection to a keeper, and the right to use its JVM once the keeper has granted it.

    The right ends with `give_back`, or with this process.

    Attributes:
        jvm: the id of the JVM's process
        since: when the JVM was started, in seconds since 1970; None if it was started for this
            lease
        gateway: the gateway of the JVM
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._connection.settimeout(_LONGEST_ANSWER)
        self._stream = connection.makefile("rb")
        self.jvm = 0
        self.since: float | None = None
        self.gateway: Any = None

    def send(self, **message: Any) -> None:
        with suppress(OSError):  # a keeper that has ended does not answer
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def answer(self) -> dict[str, Any]:
        """Wait for the next message.

        Raises:
            ConnectionError: if the keeper has ended, or if another program has its port now
        """
        try:
            return dict(json.loads(self._stream.readline()))
        except (TimeoutError, ValueError, TypeError) as error:
            raise ConnectionError from error

    def wait_for_end(self) -> None:
        """Wait until the keeper has ended, which ends with its JVM."""
        with suppress(ConnectionError):
            self.answer()

    def close(self) -> None:
        self._stream.close()
        self._connection.close()

    def poll(self) -> int | None:
        """Return a number if the keeper has ended, as `Popen` does for its process."""
        self._connection.setblocking(False)
        try:
            return None if self._connection.recv(1, socket.MSG_PEEK) else 1
        except BlockingIOError:
            return None
        except OSError:
            return 1
        finally:
            self._connection.settimeout(_LONGEST_ANSWER)

    def has_ended(self, seconds: float) -> bool:
        """Check whether the JVM has ended. Its keeper notices it within these seconds."""
        deadline = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def give_back(self, seconds: float) -> bool:
        """Return the JVM, which the next command may use within so many seconds.

        Args:
            seconds: 0 ends the JVM

        Returns:
            whether it is kept
        """
        if self.gateway:
            _disconnect(self.gateway)
        self.send(returned=seconds)
        with suppress(ConnectionError):
            return bool(self.answer()["kept"])
        return False


def take(home: Path, inherited: Mapping[str, str], launch: Launch) -> tuple[Lease, list[str]]:
    """Take the lease of the JVM that is ready, or start one. Wait for other processes.

    Args:
        home: the folder of Spark's files
        inherited: what the JVM inherits, by name. It is used again only if all of it is the same
        launch: what to start if no JVM is ready

    Returns:
        the lease, and the names of what made it necessary to end a JVM that was ready

    Raises:
        SparkInUseError: if another process uses Spark for too long
    """
    started, is_told, differing = time.monotonic(), False, list[str]()
    while True:
        found = _ask(home, inherited)
        if isinstance(found, Lease):
            return found, differing
        differing += found
        if (lock := _locked(home)) is not None:
            try:
                return _started(home, inherited, launch, lock), differing
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
    keeper = _keeper(home)
    if not keeper:
        return "No embedded Spark is ready"
    with suppress(ConnectionError):
        lease, secret = keeper
        lease.send(secret=secret, pid=os.getpid(), inherited={})  # fits no JVM
        answer = lease.answer()
        if answer.get("busy"):
            return f"The embedded Spark is in use by process {answer['busy']}. Nothing was ended"
        lease.wait_for_end()
    return "The embedded Spark was ended"


def _ask(home: Path, inherited: Mapping[str, str]) -> Lease | list[str]:
    """Ask the keeper for its JVM.

    Returns:
        the lease; or what is different, if the keeper has ended a JVM because of that
    """
    keeper = _keeper(home)
    if not keeper:
        return []
    lease, secret = keeper
    try:
        lease.send(secret=secret, pid=os.getpid(), inherited=dict(inherited))
        answer = lease.answer()
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


def _keeper(home: Path) -> tuple[Lease, str] | None:
    """Connect to the keeper of a folder.

    Returns:
        the connection and the secret; None if there is no keeper, or that of another folder
    """
    try:
        record = json.loads((home / RECORD).read_text(encoding="utf-8"))
        port, secret, folder = int(record["port"]), str(record["secret"]), record["folder"]
        found = home.stat()
        if folder != [found.st_dev, found.st_ino]:
            return None  # the record was copied
        return Lease(socket.create_connection(("127.0.0.1", port), _LONGEST_ANSWER)), secret
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def _locked(home: Path) -> int | None:
    """Lock the folder of Spark's files.

    Returns:
        a descriptor; None if another process has locked it
    """
    import fcntl  # only on POSIX

    descriptor = os.open(home, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _started(home: Path, inherited: Mapping[str, str], launch: Launch, lock: int) -> Lease:
    """Start a keeper, and by it the JVM."""
    for path in launch.scratch.iterdir():  # left by a JVM that was killed
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    ours, theirs = socket.socketpair()
    program = str(Path(__file__).with_name("keeper.py"))
    with theirs:
        descriptors = [theirs.fileno(), lock]
        subprocess.run(
            [sys.executable, "-I", "-S", program, *map(str, descriptors)],
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
            environment={**launch.environment, **added},
            folder=str(Path.cwd()),
            home=str(home),
            log=str(launch.log),
            register=str(launch.register or ""),
            inherited=dict(inherited),
            pid=os.getpid(),
        )
        lease.jvm = lease.answer()["jvm"]
        return lease

    try:
        gateway = lease.gateway = launch_jvm(launch.settings, launch.scratch, start)
        given = gateway.gateway_parameters  # for later commands
        lease.send(ready={"port": given.port, "secret": given.auth_token})
        return lease
    except BaseException:
        lease.close()  # which ends the JVM
        raise


def _disconnect(gateway: Any) -> None:
    """Close all connections to a JVM for good.

    Objects of user code may still refer to the JVM. When they are collected or used, they would
    connect again, and reach into the command that has the JVM by then.
    """
    client = gateway._gateway_client
    client.is_connected = False
    client.gateway_parameters.port = 0
    if hasattr(client, "finalizer_deque"):  # not if `PYSPARK_PIN_THREAD` is `false`
        client.finalizer_deque.appendleft(SHUTDOWN_FINALIZER_WORKER)
    gateway.close(keep_callback_server=True, close_callback_server_connections=True)
