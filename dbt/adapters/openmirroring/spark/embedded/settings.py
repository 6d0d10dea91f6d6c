"""The default settings of the embedded Spark, for its folder and this machine."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from dbt.adapters.openmirroring.spark.embedded.inherited import MEMORY_LIMITS
from dbt.adapters.openmirroring.spark.embedded.submit import spark_defaults

# The collector gives memory back to the machine when it is asked to collect, at the end of a
# command.
_COLLECTOR = (
    "-XX:+UseParallelGC",
    "-XX:+UseAdaptiveSizePolicyWithSystemGC",
    "-XX:MinHeapSize=64m",
    "-XX:MinHeapFreeRatio=5",
    "-XX:MaxHeapFreeRatio=20",
)

# where users set options of the JVM, besides Spark's file of defaults
_JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
_JAVA_VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


def defaults(home: Path) -> dict[str, str]:
    """Return the default settings of the embedded Spark. The profile can override them.

    Args:
        home: the folder of the embedded Spark's files
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "spark.app.name": "dbt-openmirroring",
        # Every user of the machine can reach the ports that Spark listens on. In local mode Spark
        # generates the secret itself.
        "spark.authenticate": "true",
        "spark.master": "local[*]",
        "spark.driver.memory": f"{driver_memory_mb(physical, MEMORY_LIMITS)}m",
        "spark.driver.extraJavaOptions": (
            f'"-Djava.io.tmpdir={home}/tmp" "-Dderby.stream.error.file={home}/derby.log"'
        ),
        "spark.driver.host": "localhost",
        "spark.hadoop.hive.exec.scratchdir": f"{home}/tmp/hive",
        # lets Spark keep comments that are longer than the metastore's 256 characters
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
        # The metastore tries ten times to store such a comment before it stores the rest. It would
        # wait two seconds before each.
        "spark.hadoop.hive.hmshandler.retry.interval": "10ms",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={home}/metastore_db;create=true"
        ),
        # nobody reads `_SUCCESS`, and Spark starts a process to set the mode of each file
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.local.dir": f"{home}/tmp",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.legacy.createHiveTableByDefault": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(max(8, 4 * _cores())),
        "spark.sql.warehouse.dir": f"{home}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # dbt-spark sets this in every session, and its projects rely on it
        "spark.sql.ansi.enabled": "false",
    }


def collector(settings: Mapping[str, str]) -> list[str]:
    """Return the Java options for the garbage collector; none if the user has chosen one.

    Java's default, G1, collects beside the program, on cores that a local Spark needs itself. Java
    refuses to start with two collectors.

    Args:
        settings: the settings of Spark
    """
    chosen = [spark_defaults(), *(settings.get(name, "") for name in _JAVA_OPTIONS)]
    chosen += [os.environ.get(name, "") for name in _JAVA_VARIABLES]
    if any(re.search(r"-XX:\+Use\w+GC\b", options) for options in chosen):
        return []
    return list(_COLLECTOR)


def driver_memory_mb(physical: int, limits: Iterable[Path]) -> int:
    """Return half of the memory that this process may use, from 1 to 16 GB.

    In local mode the executors are threads of the driver.

    Args:
        physical: the bytes of the machine's memory
        limits: files with the bytes that a container may use; they may be missing or say `max`
    """
    usable = physical
    for limit in limits:
        with suppress(OSError, ValueError):
            usable = min(usable, int(limit.read_text()))
    return max(1024, min(usable // 2**20 // 2, 16 * 1024))


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
