"""The embedded Spark, for users who have none. A child JVM of this process runs it.

Its tables are in a folder of the dbt project, or in `spark_folder` of the profile.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile

from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from py4j.java_gateway import JavaGateway
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from dbt.adapters.openmirroring.spark.embedded.java import find_java_home
from dbt.adapters.openmirroring.spark.embedded.place import SparkPlace, SparkPlaceError, is_at_home
from dbt.adapters.openmirroring.spark.embedded.submit import end_jvm, launch_jvm, spark_defaults
from dbt.adapters.openmirroring.spark.errors import explained, useful
from dbt.adapters.openmirroring.spark.session import SESSION_SETTINGS, silence_pyspark

# the folder of the embedded Spark's files, in the folder of the dbt project
FOLDER = ".spark"

# Seconds to wait for another process, and seconds before the user is told. The JVM of a killed
# process lives slightly longer than the process, and a message about that is not needed.
_WAIT_FOR_PREVIOUS = 600.0
_TELL_AFTER = 5.0

# where users set options of the JVM, besides Spark's file of defaults
_JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
_JAVA_VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")

# the limit of a container's memory, with version 2 and 1 of Linux's control groups
_MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


class SparkInUseError(FailedToConnectError):
    """Another process uses the embedded Spark of the project."""


@dataclass(frozen=True)
class SparkSetup:
    """The embedded Spark that a profile asks for.

    Args:
        project: the folder of the dbt project
        settings: `server_side_parameters` of the profile, which override the defaults
        folder: the folder of Spark's files; a relative path starts at the project
        prepared_start: whether to start from an image of the classes
    """

    project: Path
    settings: Mapping[str, str]
    folder: str = FOLDER
    prepared_start: bool = field(default=False, compare=False)

    @property
    def home(self) -> Path:
        """The folder of Spark's files, with links resolved.

        The metastore stores the paths of tables. Cosmos runs each task in a temporary folder with
        links to the project. With a path in that folder, the next task would find empty tables.
        """
        return (self.project / self.folder).resolve()


def check_system() -> None:
    """Check that the embedded Spark can run on this system.

    On Windows, Spark needs programs that it does not bring, and its JVM would inherit no lock.

    Raises:
        FailedToConnectError: if it cannot
    """
    if sys.platform == "win32":
        raise FailedToConnectError(
            "The embedded Spark does not run on Windows. Run dbt in WSL, or use a Spark server: "
            "set `method` in the profile to `livy`, `connect` or `thrift`."
        )


def start(
    setup: SparkSetup, java_home: Path | None = None, java_options: Sequence[str] = ()
) -> SparkSession:
    """Start Spark in local mode, with warehouse, metastore and log in a folder of its own.

    Args:
        java_home: the home of the Java to start; `java_home_for` finds it if not given
        java_options: additional options of the JVM

    Raises:
        FailedToConnectError: if there is no Java, Spark does not start, or its folder cannot be
            written
        SparkInUseError: if another process uses the metastore, which only one can open at a time
        SparkPlaceError: if metastore and warehouse do not belong together
    """
    java_home = java_home or java_home_for(setup)
    home = _writable(setup.home)
    conf = {**defaults(home), **setup.settings, **SESSION_SETTINGS}
    _refuse_noexec(home, conf)
    lock = _lock(home)
    try:
        return _start(home, lock, conf, java_home, java_options)
    finally:
        os.close(lock)


def _start(
    home: Path,
    lock: int,
    conf: Mapping[str, str],
    java_home: Path,
    java_options: Sequence[str],
) -> SparkSession:
    place = SparkPlace(home) if is_at_home(conf, defaults(home)) else None
    if place:
        place.check()
    scratch = home / "tmp"
    shutil.rmtree(scratch, ignore_errors=True)  # leftovers of a killed process
    scratch.mkdir(exist_ok=True)
    silence_pyspark()
    java_options = [*collector(conf), *java_options]
    if not _has_name():  # Java would take `?` for the user's home
        java_options = [f"-Duser.home={os.environ.get('HOME') or home}", *java_options]
    given = os.environ.get("SPARK_SUBMIT_OPTS", "")
    # Spark's workers need the same Python version; by default Spark uses the one on the PATH
    python = os.environ.get("PYSPARK_PYTHON", sys.executable)
    environment = {
        "JAVA_HOME": str(java_home),
        "SPARK_SUBMIT_OPTS": " ".join([*map(shlex.quote, java_options), given]),
        "PYSPARK_PYTHON": python,
    }
    with (home / "spark.log").open("wb") as log:
        gateway = None
        try:
            # The JVM inherits the lock and is then its only holder, so the metastore is free as
            # soon as the JVM has ended.
            streams = {"stdout": log, "stderr": log, "pass_fds": [lock]}
            gateway = launch_jvm(conf, scratch, environment, streams)
            if not _has_name():
                _log_in(gateway)
            former = place.relocate(gateway.jvm) if place else None
            context = SparkContext(conf=SparkConf().setAll(list(conf.items())), gateway=gateway)
            context.pythonExec = python
            session = SparkSession(context)
            session.sql("show databases").collect()  # starts the metastore
            if place:
                place.tie()
            if former:
                fire_event(Note(msg=f"Spark's tables were moved from {former} to {home}"))
            return session
        except SparkPlaceError:
            if gateway:
                end_jvm(gateway)
            raise
        except Exception as error:
            # a JVM error can be read only while the JVM runs
            text = useful(explained(error)) if isinstance(error, Py4JJavaError) else str(error)
            reason = ": ".join((text or type(error).__name__).splitlines())
            if gateway:
                end_jvm(gateway)
            raise FailedToConnectError(
                f"Spark did not start: {reason}. Its log, {log.name}, says why. Check "
                "`server_side_parameters` in the profile."
            ) from None


def java_home_for(setup: SparkSetup) -> Path:
    """Find the Java home for an embedded Spark.

    Raises:
        FailedToConnectError: if there is no Java, or only a version that is too old, or if the
            folder of Spark's files cannot be written
    """
    return find_java_home(_writable(setup.home) / "java")


def _writable(home: Path) -> Path:
    """Make the folder of Spark's files if it is missing, and check that it can be written."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=home):
            pass
        for path in (home / "spark.log", home / "metastore_db"):
            if path.exists() and not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, f"{path.name} belongs to another user")
    except OSError as error:
        raise FailedToConnectError(
            f"The embedded Spark cannot write to its folder, {home}: {error.strerror}. Set "
            "`spark_folder` in the profile to a folder that this user can write to and that "
            "lasts: Spark keeps its tables there."
        ) from None
    return home


def _has_name() -> bool:
    """Check whether the system knows the user of this process by name.

    In OpenShift, for example, each container has a user that nobody has entered there.
    """
    import pwd  # only on POSIX

    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True


def _log_in(gateway: JavaGateway) -> None:
    """Give the user of this process a name in Hadoop, which asks the system for it and fails."""
    users = gateway.jvm.org.apache.hadoop.security.UserGroupInformation
    users.setLoginUser(users.createRemoteUser(f"user{os.getuid()}"))


def _refuse_noexec(home: Path, settings: Mapping[str, str]) -> None:
    """Check that Spark can load the libraries that it unpacks into its folder.

    A folder in memory of a container (`--tmpfs`) forbids that. Spark would fail at its first file.
    """
    is_noexec = os.statvfs(home).f_flag & getattr(os, "ST_NOEXEC", 0)
    if is_noexec and f"-Djava.io.tmpdir={home}" in settings["spark.driver.extraJavaOptions"]:
        raise FailedToConnectError(
            f"The embedded Spark cannot load its libraries from its folder, {home}: this file "
            "system is mounted with `noexec`. Mount it with `exec`, or set `spark_folder` in the "
            "profile to a folder of another one."
        )


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
        "spark.driver.memory": f"{driver_memory_mb(physical, _MEMORY_LIMITS)}m",
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
    """Return the Java option for the garbage collector; none if the user has chosen one.

    Java's default, G1, collects beside the program, on cores that a local Spark needs itself. Java
    refuses to start with two collectors.

    Args:
        settings: the settings of Spark
    """
    chosen = [spark_defaults(), *(settings.get(name, "") for name in _JAVA_OPTIONS)]
    chosen += [os.environ.get(name, "") for name in _JAVA_VARIABLES]
    if any(re.search(r"-XX:\+Use\w+GC\b", options) for options in chosen):
        return []
    return ["-XX:+UseParallelGC"]


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
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _lock(home: Path) -> int:
    import fcntl  # only on POSIX

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
                raise SparkInUseError(
                    f"Another process has used the embedded Spark of this project ({home}) for "
                    f"more than {_WAIT_FOR_PREVIOUS:.0f} seconds, and only one can. Wait until it "
                    "has ended, or use a Spark that several processes can share (`method` in the "
                    "profile)."
                ) from None
            time.sleep(0.2)
