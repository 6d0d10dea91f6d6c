"""The Spark of users who have none: in this process, its tables in the dbt project."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from dbt.adapters.openmirroring.credentials import SESSION_SETTINGS
from dbt.adapters.openmirroring.spark.java import find_java_home
from dbt.adapters.openmirroring.spark.session import silence_pyspark
from dbt.adapters.openmirroring.spark.submit import launch_jvm

FOLDER = ".spark"

# Seconds to wait for another process. A JVM lives a little longer than the process that started it
# and was killed, which is nothing to tell.
_WAIT_FOR_PREVIOUS = 600.0
_TELL_AFTER = 5.0


def start(
    project: Path,
    settings: Mapping[str, str],
    java_options: Callable[[Path], Sequence[str]] = lambda _: (),
) -> SparkSession:
    """Start Spark in local mode, with warehouse and metastore in `.spark` of the dbt project.

    What Spark itself has to say goes to `.spark/spark.log`.

    Args:
        project: the dbt project's folder
        settings: `server_side_parameters` of the profile, over the defaults
        java_options: of its JVM, for the Java in a folder

    Raises:
        FailedToConnectError: no Java; or another process uses the same metastore, which can be
            opened by one process at a time
    """
    home = project / FOLDER
    home.mkdir(exist_ok=True)
    lock = _lock(home)
    scratch = home / "tmp"
    shutil.rmtree(scratch, ignore_errors=True)  # of a process that was killed
    scratch.mkdir()

    conf = {**defaults(home), **SESSION_SETTINGS, **settings}
    silence_pyspark()
    given = os.environ.get("SPARK_SUBMIT_OPTS", "")
    java_home = find_java_home(home / "java")
    environment = {
        "JAVA_HOME": str(java_home),
        "SPARK_SUBMIT_OPTS": " ".join([*map(shlex.quote, java_options(java_home)), given]),
        # its workers must have this version of Python; Spark would take what is on the PATH
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
    }
    with _environment(**environment), (home / "spark.log").open("wb") as log:
        try:
            # The JVM inherits the lock, and has it alone: the metastore is free when it is gone.
            streams = {"stdout": log, "stderr": log, "pass_fds": [lock]}
            gateway = launch_jvm(conf, scratch, streams)
            context = SparkContext(conf=SparkConf().setAll(list(conf.items())), gateway=gateway)
            return SparkSession(context)
        except Exception as error:
            raise FailedToConnectError(
                f"Spark did not start: {str(error).splitlines()[0]} Its log, {log.name}, says "
                "why. Check `server_side_parameters` in the profile."
            ) from error
        finally:
            os.close(lock)


def defaults(home: Path) -> dict[str, str]:
    """The embedded Spark's settings, before those of the profile; its files are in `home`."""
    cores = os.cpu_count() or 1
    return {
        "spark.app.name": "dbt-openmirroring",
        # Spark listens on ports, which every user of the machine could use; in local mode it makes
        # the secret itself
        "spark.authenticate": "true",
        "spark.master": "local[*]",
        "spark.driver.memory": f"{_driver_memory_mb()}m",
        "spark.driver.extraJavaOptions": (
            f'"-Djava.io.tmpdir={home}/tmp" "-Dderby.stream.error.file={home}/derby.log"'
        ),
        "spark.driver.host": "localhost",
        "spark.hadoop.hive.exec.scratchdir": f"{home}/tmp/hive",
        # lets Spark keep comments that are longer than the metastore's 256 characters
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={home}/metastore_db;create=true"
        ),
        # nobody reads `_SUCCESS`, and for each file Spark starts a process that sets its mode
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.local.dir": f"{home}/tmp",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.legacy.createHiveTableByDefault": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(max(8, 4 * cores)),
        "spark.sql.warehouse.dir": f"{home}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # as dbt-spark has it in every session: its projects rely on it
        "spark.sql.ansi.enabled": "false",
    }


def _driver_memory_mb() -> int:
    """Half of the machine: executors of the local mode are threads of the driver."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return max(1024, min(total // 2, 16 * 1024))


def _lock(home: Path) -> int:
    descriptor = os.open(home, os.O_RDONLY)
    started = time.monotonic()
    is_told = False
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            waited = time.monotonic() - started
            if waited > _TELL_AFTER and not is_told:
                is_told = True
                fire_event(Note(msg=f"Waiting for another process that uses the Spark in {home}"))
            if waited > _WAIT_FOR_PREVIOUS:
                os.close(descriptor)
                raise FailedToConnectError(
                    f"Another process has used the embedded Spark of this project ({home}) for "
                    f"more than {_WAIT_FOR_PREVIOUS:.0f} seconds, and only one can. Wait until it "
                    "has ended, or use a Spark that several processes can share (`method` in the "
                    "profile)."
                ) from None
            time.sleep(0.2)


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    """Have environment variables while Spark starts: it reads these only from there."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
