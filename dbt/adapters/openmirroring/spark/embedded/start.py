"""The embedded Spark, for users who have none: its start and its end, and who uses it.

Its tables are in a folder of the dbt project, or in `spark_folder` of the profile.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from platformdirs import user_cache_path
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.openmirroring.spark.embedded import windows
from dbt.adapters.openmirroring.spark.embedded.jvm import (
    Lease,
    SparkInUseError,
    is_at_rest,
    put_back,
    remember,
    take,
)
from dbt.adapters.openmirroring.spark.embedded.keeper import RECORD
from dbt.adapters.openmirroring.spark.embedded.place import (
    SparkPlaceError,
    begin_anew,
    check_place,
    is_at_home,
    tie,
)
from dbt.adapters.openmirroring.spark.embedded.settings import (
    archive_options,
    can_stay_ready,
    collector,
    defaults,
    find_java_home,
    inherited,
    variables,
)
from dbt.adapters.openmirroring.spark.embedded.windows import ChildJvm
from dbt.adapters.openmirroring.spark.errors import explained, useful
from dbt.adapters.openmirroring.spark.session import SESSION_SETTINGS, silence_pyspark
from dbt.adapters.openmirroring.text.errors import SparkError

logger = AdapterLogger("OpenMirroring")

# the folder of the embedded Spark's files, in the folder of the dbt project
FOLDER = ".spark"

# the seconds for which a command that has failed waits for the start of a Spark that was ready
_START_OF_READY_SPARK = 5.0


@dataclass(frozen=True)
class SparkSetup:
    """The embedded Spark that a profile asks for.

    Args:
        project: the folder of the dbt project
        settings: `server_side_parameters` of the profile, which override the defaults
        folder: the folder of Spark's files; a relative path starts at the project
        idle_timeout: the seconds for which the JVM stays ready after a command
    """

    project: Path
    settings: Mapping[str, str]
    folder: str = FOLDER
    idle_timeout: float = field(default=0, compare=False)

    @property
    def home(self) -> Path:
        """The folder of Spark's files, with links resolved.

        The metastore stores the paths of tables. Cosmos runs each task in a temporary folder with
        links to the project. With a path in that folder, the next task would find empty tables.
        """
        return (self.project / self.folder).resolve()


@dataclass(frozen=True)
class EmbeddedSpark:
    """An embedded Spark that this process uses.

    Args:
        session: the session from which each node gets a new one
        lease: the right to use the JVM
    """

    setup: SparkSetup
    java_home: Path
    session: SparkSession
    lease: Lease | ChildJvm

    @property
    def is_running(self) -> bool:
        return SparkContext._active_spark_context is self.session.sparkContext

    def described(self) -> Sequence[str]:
        """Return what it uses, and since when its JVM runs, for `dbt debug`."""
        process, since = f"(process {self.lease.jvm}", self.lease.since
        if since is None:
            differing = ", ".join(self.lease.differing)
            why = f"; the one that was ready differed in: {differing}" if differing else ""
            told = f"was started by this command {process}){why}"
        else:
            at = datetime.fromtimestamp(since).astimezone()
            told = f"was ready since {at:%H:%M:%S} {process}{_memory(self.lease.jvm)})"
        return f"has its files in {self.setup.home}", f"uses the Java in {self.java_home}", told

    def give_back(self) -> None:
        """Stop Spark, and return its JVM for the next command as it was at its start."""
        seconds = self.setup.idle_timeout
        try:
            stays_ready = bool(seconds) and is_at_rest(self.session.sparkContext)
            self.session.stop()
            if stays_ready:
                put_back(self.lease.gateway)
        # the JVM has ended, it cannot do what others do, or user code has changed what it must not
        except (Py4JError, PySparkException, OSError, AttributeError) as error:
            logger.debug(f"Spark's JVM does not stay ready: {error}")
            stays_ready = False
        _forget()
        if self.lease.give_back(seconds if stays_ready else 0) and self.lease.since is None:
            fire_event(
                Note(
                    msg=f"Spark stays ready for {seconds / 60:g} minutes, so that the next "
                    "command starts faster. `spark_idle_timeout: 0` in the profile ends it with "
                    "the command."
                )
            )


def start(setup: SparkSetup, makes_archive: bool = False) -> EmbeddedSpark:
    """Start Spark in local mode, with warehouse, metastore and log in a folder of its own.

    Its JVM may be one that an earlier command has left. `makes_archive` lets Java make an archive
    of classes even if this user starts Spark for the first time.

    Raises:
        FailedToConnectError: if there is no Java, Spark does not start, or its folder cannot be
            written
        SparkInUseError: if another process uses the metastore, which only one can open at a time
        SparkPlaceError: if metastore and warehouse do not belong together
    """
    home = setup.home
    _check_writable(home)
    java_home = find_java_home(home / "java")
    conf = {**defaults(home), **setup.settings, **SESSION_SETTINGS}
    if sys.platform == "win32":
        windows.check_folder(home)
    else:
        _refuse_noexec(home, conf)
    silence_pyspark()
    java_options = collector(conf)
    if not _has_name():  # Java would take `?` for the user's home
        java_options.insert(0, f"-Duser.home={os.environ.get('HOME') or home}")
    lasting, passing = variables()
    environment = {
        **lasting,
        "JAVA_HOME": str(java_home),
        "SPARK_SUBMIT_OPTS": _options(java_options),
        # Spark's workers need the same Python version; by default Spark uses the one on the PATH
        "PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable),
    }
    (home / "tmp").mkdir(exist_ok=True)
    register = _register(home)
    # To make an archive takes time. A machine that lives for one command would never use it.
    archive = []
    if (makes_archive or register.exists()) and sys.platform != "win32":
        with suppress(OSError):  # a cache folder that is out of reach
            archive = archive_options(java_home, register.with_name("java"))
    started_with = {**environment, "SPARK_SUBMIT_OPTS": _options([*java_options, *archive])}
    if sys.platform == "win32" or not can_stay_ready(conf):
        setup = replace(setup, idle_timeout=0)
    lease: Lease | ChildJvm | None = None
    try:
        if sys.platform == "win32":
            lease = windows.take(home, conf, started_with)
        else:
            given = inherited(home, conf, java_home, environment)
            lease = take(home, conf, started_with, given, register)
        session = _started(home, conf, lease)
        session.sparkContext.pythonExec = environment["PYSPARK_PYTHON"]
        session.sparkContext.environment.update(passing)
        return EmbeddedSpark(setup, java_home, session, lease)
    except Exception as error:
        # a JVM error can be read only while the JVM runs
        text = useful(explained(error)) if isinstance(error, Py4JJavaError) else str(error)
        if lease:
            _forget()
            lease.give_back(0)
        if isinstance(error, SparkInUseError | SparkPlaceError):
            raise
        reason = ": ".join((text or type(error).__name__).splitlines())
        raise SparkError(
            f"Spark did not start: {reason}. Its log, {home}/spark.log, says why. Check "
            "`server_side_parameters` in the profile.",
            code="OM604",
        ) from None
    except BaseException:  # Ctrl-C
        _forget()
        if lease:
            lease.close()  # which ends the JVM, also for a later command of this process
        raise


def _started(home: Path, conf: Mapping[str, str], lease: Lease | ChildJvm) -> SparkSession:
    """Start Spark in a JVM. Nobody has the metastore open."""
    _forget()
    # PySpark asks this JVM about an error of Java, from its first session in this process on
    SparkContext._ensure_initialized(gateway=lease.gateway)
    jvm = lease.gateway.jvm
    if lease.since is None:
        if not _has_name():  # Hadoop asks the system for it, and fails
            users = jvm.org.apache.hadoop.security.UserGroupInformation
            users.setLoginUser(users.createRemoteUser(f"user{os.getuid()}"))
        if sys.platform == "win32":
            windows.do_without_programs(jvm, home)
        remember(lease.gateway)
    begin_anew(home)
    is_tied = is_at_home(conf, defaults(home))
    if is_tied:
        check_place(home)
    context = SparkContext(conf=SparkConf().setAll(list(conf.items())), gateway=lease.gateway)
    session = SparkSession(context)
    session.sql("show databases").collect()  # starts the metastore
    if is_tied:
        tie(home)
    return session


class ProcessSpark:
    """The embedded Spark of this process, and the commands that use it.

    A process can have only one Spark, because PySpark stores it in a class attribute. So commands
    that run at the same time share it. Between commands the process has none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spark: EmbeddedSpark | None = None
        self._failed_early: WeakKeyDictionary[Any, Exception] = WeakKeyDictionary()
        self._commands: WeakSet[Any] = WeakSet()
        self._patience = 0.0

    @property
    def is_running(self) -> bool:
        """Whether this process runs an embedded Spark. Waits for one that is still starting."""
        with self._lock:
            return self._spark is not None and self._spark.is_running

    def start_early(self, command: object, setup: SparkSetup) -> None:
        """Start a Spark in the background. `session` waits for it.

        If the start fails, `session` raises the error for the same command. A later command starts
        Spark again.
        """
        self._commands.add(command)
        is_ready = (setup.home / RECORD).exists()
        self._patience = _START_OF_READY_SPARK if is_ready else 0.0

        def in_background() -> None:
            with self._lock:
                try:
                    self._fitting(setup)
                except Exception as error:
                    self._failed_early[command] = error
            self._give_back_unused()  # the command may have failed meanwhile

        # a daemon, because dbt may end before Spark has started and must not wait for it
        threading.Thread(target=in_background, name="embedded Spark", daemon=True).start()

    def wait_for_start(self, command: object) -> None:
        """Wait for the start that a command has begun in the background.

        dbt asks for the first session in other threads than the one that Ctrl-C interrupts, and
        would wait for them, and so for Spark, before it ends. `session` raises other errors of the
        start.

        Raises:
            FailedToConnectError: if the user interrupts the start
        """
        if command in self._commands:
            with _interruptible(), self._lock:
                pass

    def session(self, command: object, setup: SparkSetup) -> SparkSession:
        """Return the session of a Spark, which a command uses until it calls `release`.

        Other commands that run share it.

        Raises:
            FailedToConnectError: if Spark does not start, if the user interrupts the start, or if
                another command uses a Spark of another project or with other settings
        """
        with _interruptible(), self._lock:
            failed = self._failed_early.pop(command, None)
            if failed:
                raise failed
            spark = self._fitting(setup)
            self._commands.add(command)
            return spark.session

    def _fitting(self, setup: SparkSetup) -> EmbeddedSpark:
        spark = self._spark
        if spark and spark.is_running:
            if spark.setup == setup:
                return spark
            raise SparkError(
                "Another dbt command of this process uses the embedded Spark of "
                f"{spark.setup.project}, and a process can have one Spark at a time. Wait until "
                "that command has ended, or run this one in a process of its own.",
                code="OM602",
            )
        self._give_back()
        self._spark = start(setup)
        return self._spark

    def release(self, command: object) -> None:
        """Record that a command has ended. The last one returns the JVM.

        If a new JVM is still starting, this method does not wait: the command has failed before
        it used Spark. A JVM that was ready would be lost if the process ended now.
        """
        self._commands.discard(command)
        self._give_back_unused()

    def _give_back_unused(self) -> None:
        if not self._commands and self._lock.acquire(timeout=self._patience):
            try:
                if not self._commands:
                    self._give_back()
            finally:
                self._lock.release()

    def _give_back(self) -> None:
        spark, self._spark = self._spark, None
        if spark:
            spark.give_back()

    def check_alive(self, seconds: float) -> None:
        """Check that the JVM has not ended, which its keeper notices within some seconds.

        Raises:
            DbtDatabaseError: if it has
        """
        spark = self._spark
        if spark and spark.lease.has_ended(seconds):
            raise SparkError(
                "Spark has ended while it was in use: its process was stopped, or the "
                f"machine had no memory left. Its log is {spark.setup.home}/spark.log. Run again; "
                "the next run continues from what was published.",
                code="OM603",
            )

    def print_state(self) -> None:
        """Print for `dbt debug` what the embedded Spark uses, if this process has one."""
        if self._spark:
            for line in self._spark.described():
                fire_event(Note(msg=f"  Embedded Spark {line}"))


process_spark = ProcessSpark()


def prepare_spark(setup: SparkSetup) -> str:
    """Start and end Spark once, so that Java can write an archive of the classes it has loaded.

    Raises:
        FailedToConnectError: if Spark does not start
    """
    spark = start(replace(setup, idle_timeout=0), makes_archive=True)
    spark.give_back()
    spark.lease.wait_for_end()
    return f"The embedded Spark has started and ended with the Java in {spark.java_home}"


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the start of Spark with an error. dbt would print a stack trace."""
    try:
        yield
    except KeyboardInterrupt:
        raise FailedToConnectError(
            "Spark was interrupted while it started. Nothing was changed. The next command starts "
            "it again."
        ) from None


def _options(java_options: Sequence[str]) -> str:
    return " ".join([*map(shlex.quote, java_options), os.environ.get("SPARK_SUBMIT_OPTS", "")])


def _memory(process: int) -> str:
    """Return how much memory a process has, as a text that follows a comma."""
    with suppress(OSError):  # only Linux has the file
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{process}/status").read_text())
        return f", {int(found[1]) // 1024} MB" if found else ""
    return ""


def _forget() -> None:
    """Let PySpark forget its Spark, also one that could not be stopped because its JVM is gone."""
    SparkContext._active_spark_context = SparkContext._gateway = SparkContext._jvm = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None


def _register(home: Path) -> Path:
    """Return the file that names the Spark which the user has used last on this machine."""
    with suppress(RuntimeError):  # the user has no home folder
        folder = user_cache_path("dbt-openmirroring")
        if folder.is_absolute():  # older versions of platformdirs return one that begins with `~`
            return folder / "spark"
    return home / "cache" / "spark"


def _check_writable(home: Path) -> None:
    """Make the folder of Spark's files if it is missing, and check that it can be written."""
    try:
        home.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=home):
            pass
        for path in (home / "spark.log", home / "metastore_db"):
            if path.exists() and not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, f"{path.name} belongs to another user")
    except OSError as error:
        raise SparkError(
            f"The embedded Spark cannot write to its folder, {home}: {error.strerror}. Set "
            "`spark_folder` in the profile to a folder that this user can write to and that "
            "lasts: Spark keeps its tables there.",
            code="OM605",
        ) from None


def _has_name() -> bool:
    """Check whether the system knows the user of this process by name.

    In OpenShift, for example, each container has a user that nobody has entered there.
    """
    if sys.platform == "win32":
        return True
    import pwd  # only on POSIX

    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        return False
    return True


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
