"""The JVM of a Spark that this process starts: how settings reach it, and its end.

PySpark puts each of them on the command line of the JVM, which every user of the machine can read,
and some are secrets.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from py4j.java_gateway import JavaGateway
from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"

# seconds before a JVM that does not end is killed
_PATIENCE = 30.0

# whatever means something in a file of properties, and what is not ASCII
_SPECIAL = re.compile(r"[^\w.$/@*+,;()\[\]{}<>|&%'\"-]", re.ASCII)


def launch_jvm(
    settings: Mapping[str, str], folder: Path, popen: Mapping[str, Any] | None = None
) -> JavaGateway:
    """Start the JVM of a Spark.

    Only what Spark must put there is on its command line: memory, Java options and class path of
    the driver.

    Args:
        settings: of Spark
        folder: where a file has the settings until the JVM has read them
        popen: options of the process
    """
    with _submit_arguments(settings, folder):
        return launch_gateway(popen_kwargs=dict(popen or {}))


def end_jvm(gateway: JavaGateway, seconds: float = _PATIENCE) -> None:
    """End a JVM, which holds the metastore and its lock.

    Args:
        seconds: after these it is killed
    """
    if SparkContext._gateway is gateway:
        # otherwise the next Spark would start in the same JVM, with its static settings
        SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    # the JVM ends when its standard input does, which is how it notices that its parent is gone
    gateway.proc.stdin.close()
    try:
        gateway.proc.wait(seconds)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()


def launch_jvm_of_next_context(settings: Mapping[str, str]) -> None:
    """Start the JVM that PySpark would start with its next context, unless there is one."""
    if not SparkContext._gateway and "PYSPARK_GATEWAY_PORT" not in os.environ:
        with TemporaryDirectory() as folder:
            SparkContext._ensure_initialized(gateway=launch_jvm(settings, Path(folder)))


@contextmanager
def _submit_arguments(settings: Mapping[str, str], folder: Path) -> Iterator[None]:
    """Let spark-submit read settings from a file that nobody else can read."""
    path = folder / "spark.properties"
    given = os.environ.get(_ARGUMENTS)
    path.touch(0o600, exist_ok=False)
    try:
        path.write_text(f"{_spark_defaults()}\n\n{properties(settings)}", encoding="utf-8")
        file_option = f"--properties-file {shlex.quote(str(path))}"
        os.environ[_ARGUMENTS] = f"{file_option} {given or 'pyspark-shell'}"
        yield
    finally:
        path.unlink(missing_ok=True)
        if given is None:
            os.environ.pop(_ARGUMENTS, None)
        else:
            os.environ[_ARGUMENTS] = given


def _spark_defaults() -> str:
    """The installation's own settings: spark-submit leaves them out where it is given a file."""
    folder = os.environ.get("SPARK_CONF_DIR") or f"{_find_spark_home()}/conf"
    try:
        return (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def properties(settings: Mapping[str, str]) -> str:
    """Settings in the format of Java's `Properties`."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
