"""The JVM of a Spark: started, lent to a command by its keeper, and put back for the next one."""

from __future__ import annotations

import json
import locale
import os
import re
import selectors
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, SimpleNamespace
from typing import Any, TypeVar
from weakref import WeakSet

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER
from py4j.java_gateway import JavaGateway, JavaObject
from py4j.protocol import (
    AUTH_COMMAND_NAME,
    END_COMMAND_PART,
    OUTPUT_VOID_COMMAND,
    Py4JError,
    Py4JJavaError,
)
from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

from dbt.adapters.openmirroring.disk.patience import patiently
from dbt.adapters.openmirroring.spark.embedded import keeper
from dbt.adapters.openmirroring.text.errors import SparkError

logger = AdapterLogger("OpenMirroring")

T = TypeVar("T")

# Seconds to wait for another process, and seconds before the user is told. The JVM of a killed
# process lives slightly longer than the process, and a message about that is not needed.
_WAIT_FOR_PREVIOUS = 600.0
_TELL_AFTER = 5.0

# seconds in which a keeper answers, and in which it or a JVM answers a greeting
_LONGEST_ANSWER = 150.0
_LONGEST_GREETING = 10.0

# characters with a special meaning in a properties file, and those that are not ASCII
_SPECIAL = re.compile(r"[^\w.$/@*+,;()\[\]{}<>|&%'\"-]", re.ASCII)

# the name of the state at the start among the objects that the JVM keeps for Python
_AT_START = "dbt-openmirroring"

# seconds until tasks of a job that was cancelled have ended
_LONGEST_TASK = 2.0

# A shutdown of all databases of Derby. It can start again, which takes a tenth of a second.
_SHUT_DOWN = "jdbc:derby:;shutdown=true;deregister=false"

# How much of the heap may be free while the JVM is idle, in percent: at least, and at most. With
# these, Java would collect all the time while a command runs.
_IDLE_HEAP = {"MinHeapFreeRatio": "5", "MaxHeapFreeRatio": "20"}

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


class SparkInUseError(SparkError):
    """Another process uses the embedded Spark of the project."""


class Lease:
    """A connection to a keeper, and the right to use its JVM once the keeper has granted it.

    The right ends with `give_back`, or with this process.

    Attributes:
        jvm: the id of the JVM's process
        since: when the JVM was started, in seconds since 1970; None if for this lease
        differing: the names of what has ended another JVM that was ready
    """

    def __init__(self, connection: socket.socket) -> None:
        connection.settimeout(_LONGEST_ANSWER)
        _connections.add(connection)
        self._connection = connection
        self.jvm = 0
        self.since: float | None = None
        self.gateway: Any = None
        self.differing: Sequence[str] = ()

    def send(self, **message: Any) -> None:
        with suppress(OSError):  # a keeper that has ended does not answer
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def ask(self, inherited: Mapping[str, str]) -> dict[str, Any]:
        """Ask for the JVM, and return the answer of the keeper."""
        self.send(pid=os.getpid(), inherited=dict(inherited))
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """Wait for the next message.

        Raises:
            ConnectionError: if the keeper has ended
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
        """Return the JVM, which the next command may use within so many seconds; 0 ends it.

        Returns:
            whether it stays ready
        """
        if self.gateway:
            disconnect(self.gateway)
        self.send(returned=seconds)
        with suppress(ConnectionError):
            return bool(self.answer()["stays_ready"])
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
        settings, environment: those of a JVM that is started
        inherited: what the JVM inherits, by name. It is used again only if all of it is the same
        register: the file that names the Spark which the user has used last

    Raises:
        SparkInUseError: if another process uses Spark for too long
    """
    differing = list[str]()

    def taken() -> Lease | None:
        nonlocal differing
        asked = _ask(home, inherited)
        if isinstance(asked, Lease):
            return asked
        differing = asked or differing
        lock = os.open(home, os.O_RDONLY)
        try:
            if keeper.has_locked(lock):
                lease = _started(home, settings, environment, inherited, register, lock)
                lease.differing = differing
                return lease
        finally:
            os.close(lock)
        return None

    return in_turn(home, taken)


def in_turn(home: Path, attempt: Callable[[], T | None]) -> T:
    """Make attempts to use the Spark in a folder until one succeeds, and return its result.

    Raises:
        SparkInUseError: if another process uses Spark for too long
    """
    started, is_told = time.monotonic(), False
    while not (result := attempt()):
        waited = time.monotonic() - started
        if waited > _TELL_AFTER and not is_told:
            is_told = True
            fire_event(Note(msg=f"Waiting for another process that uses the Spark in {home}"))
        if waited > _WAIT_FOR_PREVIOUS:
            raise SparkInUseError(
                f"Another process has used the embedded Spark of this project ({home}) for more "
                f"than {_WAIT_FOR_PREVIOUS:.0f} seconds, and only one process can use it. Wait "
                "until it has ended, or use a Spark that several processes can share (`method` in "
                "the profile).",
                code="OM601",
            )
        time.sleep(0.1)
    return result


def stop_spark(home: Path) -> str:
    """End the JVM that is ready for the next command, and return a line about it."""
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
    """Return the lease of a keeper's JVM; or what is different, if that has ended the JVM."""
    lease = _connected(home)
    if not lease:
        return []
    try:
        answer = lease.ask(inherited)
        if granted := answer.get("granted"):
            lease.jvm, lease.since = granted["jvm"], granted["since"]
            lease.gateway = connect_to_jvm(granted["port"], granted["secret"])
            if wake_up(lease.gateway):
                return lease
            answer = {"differs": ["memory"]}
            lease.give_back(0)
        if differing := answer.get("differs"):
            logger.debug(f"The Spark that is ready differs in: {', '.join(differing)}")
            lease.wait_for_end()
            return list(differing)
    except (OSError, Py4JError) as error:
        logger.debug(f"The Spark that was ready has ended: {error}")
    except BaseException:  # Ctrl-C
        lease.close()
        raise
    lease.close()
    return []


def _connected(home: Path) -> Lease | None:
    """Connect to the keeper of a folder. Return None if there is none, or that of another one."""
    try:
        record = json.loads((home / keeper.RECORD).read_text(encoding="utf-8"))
        found = home.stat()
        if record["folder"] != [found.st_dev, found.st_ino]:
            return None  # the record was copied
        # another user's program may have the port of a keeper that was killed
        proof = json.dumps({"proof": record["proof"]})
        return Lease(_greeted(int(record["port"]), f"{record['secret']}\n", f"{proof}\n"))
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return None


def _greeted(port: int, greeting: str, expected: str) -> socket.socket:
    """Connect to a port of this machine.

    Raises:
        OSError: if nobody listens
        ConnectionError: if who listens does not give the expected answer to a greeting
    """
    connection = socket.create_connection(("127.0.0.1", port), _LONGEST_GREETING)
    with suppress(OSError):
        connection.sendall(greeting.encode())
        # as a whole, so that nobody makes a command wait by one byte after the other
        if connection.recv(len(expected)) == expected.encode():
            return connection
    connection.close()
    raise ConnectionError(f"port {port} does not answer")


def _started(
    home: Path,
    settings: Mapping[str, str],
    environment: Mapping[str, str],
    inherited: Mapping[str, str],
    register: Path,
    lock: int,
) -> Lease:
    """Start a keeper, and by it the JVM."""
    clear(scratch := home / "tmp")
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


def clear(scratch: Path) -> None:
    """Remove what a JVM that was killed has left in a folder."""
    for path in scratch.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            patiently(path.unlink, missing_ok=True)


def launch_jvm(
    settings: Mapping[str, str], folder: Path, start: Callable[..., Any] = subprocess.Popen
) -> JavaGateway:
    """Start the JVM of a Spark.

    PySpark puts each setting on the command line, which every user of the machine can read. Some
    are secrets. So the command line has only what Spark must put there: memory, Java options and
    class path of the driver.

    Args:
        folder: the folder for a file with the settings, which exists until the JVM has read them
        start: starts the process, with the arguments of `subprocess.Popen`
    """
    file = folder / "spark.properties"
    file.touch(0o600, exist_ok=False)

    def launch(command: list[str], **options: Any) -> Any:
        # Java takes the encoding of file names from the locale, and no option of Java can change
        # it. In the locale `C`, a name with another letter than those of ASCII fails.
        is_posix = hasattr(locale, "nl_langinfo")
        if is_posix and locale.nl_langinfo(locale.CODESET) != "UTF-8":
            options["env"]["LC_ALL"] = "C.UTF-8"
        command[1:1] = ["--properties-file", str(file)]
        return start(command, **options)

    try:
        file.write_text(f"{spark_defaults()}\n\n{properties(settings)}", encoding="utf-8")
        # PySpark takes the variables and the options of spark-submit from `os.environ` only. This
        # thread must not change that, because other threads read it: dbt failed when a variable
        # was gone again. So PySpark's function runs with another `Popen`.
        others: dict[str, Any] = {"Popen": launch}
        if start is not subprocess.Popen:  # who starts it ends it, and not a program of Windows
            others["atexit"] = SimpleNamespace(register=lambda _: None)
        return _pyspark_gateway(**others)
    finally:
        file.unlink(missing_ok=True)


def launch_jvm_of_next_context(settings: Mapping[str, str]) -> None:
    """Start the JVM that PySpark would start with its next context, unless one runs already."""
    if not SparkContext._gateway and "PYSPARK_GATEWAY_PORT" not in os.environ:
        with TemporaryDirectory() as folder:
            SparkContext._ensure_initialized(gateway=launch_jvm(settings, Path(folder)))


def connect_to_jvm(port: int, secret: str) -> JavaGateway:
    """Connect to the JVM of a Spark, by the port and the secret of its gateway.

    Raises:
        OSError: if it does not answer
    """
    # PySpark would wait for ever. Py4J accepts nobody any more if others had all descriptors once.
    greeting = f"{AUTH_COMMAND_NAME}\n{secret}\n{END_COMMAND_PART}"
    _greeted(port, greeting, OUTPUT_VOID_COMMAND).close()
    variables = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    return _pyspark_gateway(os=SimpleNamespace(environ={**os.environ, **variables}))


def _pyspark_gateway(**others: Any) -> JavaGateway:
    """Run PySpark's `launch_gateway` with other global names."""
    function = FunctionType(launch_gateway.__code__, {**launch_gateway.__globals__, **others})
    gateway: JavaGateway = function(None, {})
    return gateway


def spark_defaults() -> str:
    """Return the installation's defaults, which spark-submit ignores if it is given a file."""
    folder = os.environ.get("SPARK_CONF_DIR") or f"{_find_spark_home()}/conf"
    try:
        return (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def properties(settings: Mapping[str, str]) -> str:
    """Return settings in the format of Java's `Properties`."""

    def escape(found: re.Match[str]) -> str:
        units = found[0].encode("utf-16-be").hex()
        return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))

    return "".join(
        f"{_SPECIAL.sub(escape, key)}={_SPECIAL.sub(escape, value)}\n"
        for key, value in settings.items()
    )


def is_at_rest(context: SparkContext) -> bool:
    """Check that no task of user code runs on, for example of a thread of a Python model."""
    deadline = time.monotonic() + _LONGEST_TASK
    tracker: Any = context._jsc.sc().statusTracker()
    while True:
        jobs = len(tracker.getActiveJobIds())
        if not jobs + sum(each.numRunningTasks() for each in tracker.getExecutorInfos()):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)


def remember(gateway: JavaGateway) -> None:
    """Let a JVM remember its state at the start, for `put_back`."""
    jvm: Any = gateway.jvm
    objects = _objects(gateway)
    state = jvm.java.util.HashMap()
    state["properties"] = jvm.java.lang.System.getProperties().clone()
    state["locale"] = jvm.java.util.Locale.getDefault()
    options = _options(jvm)
    state["heap"] = [str(options.getVMOption(name).getValue()) for name in _IDLE_HEAP]
    # without those of Python objects, whose names are `o` and a number
    names = [name for name in objects.getBindings().keySet() if not name.startswith("o")]
    state["names"] = [*names, _AT_START]
    objects.putObject(_AT_START, state)


def put_back(gateway: JavaGateway) -> None:
    """Put a JVM back into its state at the start, after its Spark was stopped.

    Derby closes the metastore, so that the folder can be copied, moved or restored. The JVM goes
    on to collect what is not needed, while nobody waits for it.

    Raises:
        Py4JError: if it cannot be put back
    """
    jvm: Any = gateway.jvm
    objects = _objects(gateway)
    state = objects.getObject(_AT_START)
    jvm.java.lang.System.setProperties(state["properties"].clone())
    jvm.java.util.TimeZone.setDefault(None)
    jvm.java.util.Locale.setDefault(state["locale"])
    # they have settings, for example credentials, of the sessions that have opened them
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()
    with suppress(Py4JJavaError):  # it confirms a shutdown by an exception
        jvm.java.sql.DriverManager.getConnection(_SHUT_DOWN)
    # a process that has ended does not tell which objects it needs no longer
    objects.getBindings().keySet().retainAll(state["names"])
    options = _options(jvm)
    for name, value in _IDLE_HEAP.items():
        options.setVMOption(name, value)
    class_of, invoke = jvm.java.lang.Class.forName, jvm.java.lang.invoke
    nothing = invoke.MethodType.methodType(jvm.java.lang.Void.TYPE)
    system = class_of("java.lang.System")
    collect = invoke.MethodHandles.publicLookup().findStatic(system, "gc", nothing)
    runnable = class_of("java.lang.Runnable")
    jvm.java.lang.Thread(invoke.MethodHandleProxies.asInterfaceInstance(runnable, collect)).start()


def wake_up(gateway: JavaGateway) -> bool:
    """Let the heap of an idle JVM become large again.

    Returns:
        whether at least half of its memory is free
    """
    jvm: Any = gateway.jvm
    options, heap = _options(jvm), _objects(gateway).getObject(_AT_START)["heap"]
    # the least one must never be above the other
    for name, value in reversed([*zip(_IDLE_HEAP, heap, strict=True)]):
        options.setVMOption(name, value)
    runtime = jvm.java.lang.Runtime.getRuntime()

    def is_half_free() -> bool:
        return bool(runtime.totalMemory() - runtime.freeMemory() < runtime.maxMemory() / 2)

    if not is_half_free():  # the one before may just have ended
        jvm.java.lang.System.gc()
    return is_half_free()


def _options(jvm: Any) -> Any:
    """Return the Java object that changes options of a JVM while it runs."""
    kind = jvm.java.lang.Class.forName("com.sun.management.HotSpotDiagnosticMXBean")
    return jvm.java.lang.management.ManagementFactory.getPlatformMXBean(kind)


def _objects(gateway: JavaGateway) -> Any:
    """Return the Java object that keeps the objects which Python refers to."""
    server: Any = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    return server.getGateway()


def disconnect(gateway: Any) -> None:
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
