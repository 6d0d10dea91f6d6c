"""What a JVM of the embedded Spark inherits from the command that starts it.

A later command uses the JVM only if it would have passed on the same.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import pyspark

from dbt.adapters.openmirroring.__version__ import version
from dbt.adapters.openmirroring.spark.embedded.submit import spark_defaults

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

# variables with a folder of configuration that the JVM reads when it starts
_FOLDERS = ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR", "HIVE_CONF_DIR")

# Paths of files that a text names and that a JVM reads when it starts, or keeps open; not those of
# logs, which change all the time.
_FILE = re.compile(
    r"/[^\s,;:=\"'\0]+\.(?:jar|zip|egg|whl|py|tgz|gz|xml|properties|conf|ya?ml|keytab|jks|p12|pem|crt)"
    r"(?=[\s,;:=\"']|$)|/[^\s,;:=\"'\0]+/\*(?=[\s,;:=\"']|$)"
)

# the limits of a container, with version 2 and 1 of Linux's control groups
MEMORY_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_CPU_LIMITS = (Path("/sys/fs/cgroup/cpu.max"), Path("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"))


def variables() -> tuple[dict[str, str], dict[str, str]]:
    """Return the variables of this process: those of the JVM, and those of each command."""
    lasting, passing = dict[str, str](), dict[str, str]()
    for name, value in os.environ.items():
        (passing if _PASSING.fullmatch(name) else lasting)[name] = value
    return lasting, passing


def inherited(
    home: Path, settings: Mapping[str, str], java_home: Path, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return what the JVM inherits, each as a digest under its name for users.

    Args:
        home: the folder of Spark's files
        settings: the settings of Spark
        java_home: the home of the Java
        environment: the variables of the JVM
    """
    home_of_pyspark = Path(pyspark.__file__).parent
    configuration = [Path(os.environ[name]) for name in _FOLDERS if name in os.environ]
    texts = [spark_defaults(), *settings.values(), *environment.values()]
    found = {
        "machine": _machine(),
        "user": [os.getuid(), os.getgid(), os.getgroups()],
        "limits": _limits(),
        "working directory": [Path.cwd(), *_states([Path.cwd()], with_times=False)],
        "folder of Spark": [home, *_states([home, home / "tmp"], with_times=False)],
        "Java": [java_home, *_states([java_home / "release", java_home / "lib" / "modules"])],
        "Python": [sys.executable, sys.version],
        "PySpark": [pyspark.__version__, home_of_pyspark, *_states([home_of_pyspark / "jars"])],
        "dbt-openmirroring": [version, *_states([Path(__file__).with_name("keeper.py")])],
        "Spark's file of defaults": spark_defaults(),
        "files of settings": _states([*_files_in(configuration), *_files_of(texts)]),
        **{f"setting {name}": value for name, value in settings.items()},
        **{f"variable {name}": value for name, value in environment.items()},
    }
    return {
        name: hashlib.blake2b(
            repr(value).encode(errors="surrogateescape"), digest_size=16
        ).hexdigest()
        for name, value in found.items()
    }


def _machine() -> list[str]:
    """Return what makes a process reach the same files, ports and processes as this one."""
    found = [platform.node()]
    for name in ("mnt", "net", "pid"):  # only on Linux
        with suppress(OSError):
            found.append(str(Path(f"/proc/self/ns/{name}").readlink()))
    with suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text())
    return found


def _limits() -> list[object]:
    import resource  # only on POSIX

    names = sorted(name for name in dir(resource) if name.startswith("RLIMIT_"))
    found: list[object] = [resource.getrlimit(getattr(resource, name)) for name in names]
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        found.append(sorted(os.sched_getaffinity(0)))
    umask = os.umask(0o077)  # the only way to read it is to set it
    os.umask(umask)
    found += [umask, os.getpriority(os.PRIO_PROCESS, 0)]
    for path in (*MEMORY_LIMITS, *_CPU_LIMITS):
        with suppress(OSError):
            found.append(path.read_text())
    return found


def _states(paths: Iterable[Path], with_times: bool = True) -> list[object]:
    """Return what changes when something else takes the place of a file."""
    found: list[object] = []
    for path in paths:
        with suppress(OSError):
            state = path.stat()
            times = (state.st_size, state.st_mtime_ns) if with_times else ()
            found.append((str(path), state.st_dev, state.st_ino, *times))
    return found


def _files_of(texts: Iterable[str]) -> list[Path]:
    """Return the files that texts name, for example jars in settings."""
    named = [Path(path) for text in texts for path in _FILE.findall(text)]
    return [
        found
        for path in sorted(set(named))
        for found in (sorted(path.parent.glob("*.jar")) if path.name == "*" else [path])
    ]


def _files_in(folders: Iterable[Path]) -> list[Path]:
    return [path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]
