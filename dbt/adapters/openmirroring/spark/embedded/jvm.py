"""The JVM of a Spark: starting it, connecting to it, and putting it back for the next command."""

from __future__ import annotations

import locale
import os
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, SimpleNamespace
from typing import Any

from py4j.clientserver import SHUTDOWN_FINALIZER_WORKER
from py4j.java_gateway import JavaGateway, JavaObject
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

# characters with a special meaning in a properties file, and those that are not ASCII
_SPECIAL = re.compile(r"[^\w.$/@*+,;()\[\]{}<>|&%'\"-]", re.ASCII)

# the name of the state at the start among the objects that the JVM keeps for Python
_AT_START = "dbt-openmirroring"

# seconds until tasks of a job that was cancelled have ended
_LONGEST_TASK = 2.0

# A shutdown of all databases of Derby. It can start again, which takes a tenth of a second.
_SHUT_DOWN = "jdbc:derby:;shutdown=true;deregister=false"


def launch_jvm(
    settings: Mapping[str, str], folder: Path, start: Callable[..., Any] = subprocess.Popen
) -> JavaGateway:
    """Start the JVM of a Spark.

    PySpark puts each setting on the command line, which every user of the machine can read. Some
    are secrets. So the command line has only what Spark must put there: memory, Java options and
    class path of the driver.

    Args:
        settings: the settings of Spark
        folder: the folder for a file with the settings, which exists until the JVM has read them
        start: starts the process, with the arguments of `subprocess.Popen`
    """
    file = folder / "spark.properties"
    file.touch(0o600, exist_ok=False)

    def launch(command: list[str], **options: Any) -> Any:
        # Java takes the encoding of file names from the locale, and no option of Java can change
        # it. In the locale `C`, a name with another letter than those of ASCII fails.
        if locale.nl_langinfo(locale.CODESET) != "UTF-8":
            options["env"]["LC_ALL"] = "C.UTF-8"
        command[1:1] = ["--properties-file", str(file)]
        return start(command, **options)

    try:
        file.write_text(f"{spark_defaults()}\n\n{properties(settings)}", encoding="utf-8")
        # PySpark takes the variables and the options of spark-submit from `os.environ` only. This
        # thread must not change that, because other threads read it: dbt failed when a variable
        # was gone again. So PySpark's function runs with another `Popen`.
        return _pyspark_gateway(Popen=launch)
    finally:
        file.unlink(missing_ok=True)


def launch_jvm_of_next_context(settings: Mapping[str, str]) -> None:
    """Start the JVM that PySpark would start with its next context, unless one runs already."""
    if not SparkContext._gateway and "PYSPARK_GATEWAY_PORT" not in os.environ:
        with TemporaryDirectory() as folder:
            SparkContext._ensure_initialized(gateway=launch_jvm(settings, Path(folder)))


def connect_to_jvm(port: int, secret: str) -> JavaGateway:
    """Connect to the JVM of a Spark, by the port and the secret of its gateway."""
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
    # without those of Python objects, whose names are `o` and a number
    names = [name for name in objects.getBindings().keySet() if not name.startswith("o")]
    state["names"] = [*names, _AT_START]
    objects.putObject(_AT_START, state)


def put_back(gateway: JavaGateway) -> bool:
    """Put a JVM back into its state at the start, after its Spark was stopped.

    Derby closes the metastore, so that the folder can be copied, moved or restored.

    Returns:
        whether at least half of its memory is free

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
    _give_memory_back(jvm)
    runtime = jvm.java.lang.Runtime.getRuntime()
    used, most = runtime.totalMemory() - runtime.freeMemory(), runtime.maxMemory()
    return bool(used < most / 2)


# The parallel collector lets the heap become smaller in steps, one in each collection; at most so
# many, and none after one that has not helped.
_COLLECTIONS = 6

# how much of the heap may be free when the JVM is idle, in percent: at least, and at most
_FREE_WHILE_IDLE = {"MinHeapFreeRatio": "5", "MaxHeapFreeRatio": "20"}


def _give_memory_back(jvm: Any) -> None:
    """Collect, and let the heap become small.

    A small heap is for an idle Spark alone: while a command runs, Java would collect all the time.
    """
    beans = jvm.java.lang.management.ManagementFactory
    kind = jvm.java.lang.Class.forName("com.sun.management.HotSpotDiagnosticMXBean")
    options = beans.getPlatformMXBean(kind)
    before = {name: options.getVMOption(name).getValue() for name in _FREE_WHILE_IDLE}
    for name, value in _FREE_WHILE_IDLE.items():
        options.setVMOption(name, value)
    try:
        runtime = jvm.java.lang.Runtime.getRuntime()
        size = runtime.totalMemory()
        for _ in range(_COLLECTIONS):
            jvm.java.lang.System.gc()
            former, size = size, runtime.totalMemory()
            if size >= former:
                break
    finally:
        # the least one must never be above the other
        for name in reversed(before):
            options.setVMOption(name, before[name])


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
