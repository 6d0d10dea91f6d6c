"""What a command may leave in a JVM, though its Spark was stopped."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from py4j.java_gateway import JavaGateway, JavaObject
from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

# the name of the state at the start among the objects that the JVM keeps for Python
_AT_START = "dbt-openmirroring"

# seconds until tasks of a job that was cancelled have ended
_LONGEST_TASK = 2.0

# A shutdown of all databases of Derby. It can start again, which takes a tenth of a second.
_SHUT_DOWN = "jdbc:derby:;shutdown=true;deregister=false"


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
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    used, most = runtime.totalMemory() - runtime.freeMemory(), runtime.maxMemory()
    return bool(used < most / 2)


def _objects(gateway: JavaGateway) -> Any:
    """Return the Java object that keeps the objects which Python refers to."""
    server: Any = JavaObject("GATEWAY_SERVER", gateway._gateway_client)
    return server.getGateway()
