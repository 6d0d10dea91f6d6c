"""Starting the JVM of a Spark, and connecting to it.

PySpark puts each setting on the command line of the JVM, which every user of the machine can read.
Some settings are secrets, so this module passes them in a file.
"""

from __future__ import annotations

import locale
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FunctionType, SimpleNamespace
from typing import Any

from py4j.java_gateway import JavaGateway
from pyspark import SparkContext
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway

# characters with a special meaning in a properties file, and those that are not ASCII
_SPECIAL = re.compile(r"[^\w.$/@*+,;()\[\]{}<>|&%'\"-]", re.ASCII)


def launch_jvm(
    settings: Mapping[str, str], folder: Path, start: Callable[..., Any] = subprocess.Popen
) -> JavaGateway:
    """Start the JVM of a Spark.

    Its command line has only what Spark must put there: memory, Java options and class path of
    the driver.

    Args:
        settings: the settings of Spark
        folder: the folder for a file with the settings, which exists until the JVM has read them
        start: starts the process, with the arguments of `subprocess.Popen`
    """
    with _settings_file(settings, folder) as file:

        def launch(command: list[str], **options: Any) -> Any:
            options["env"].update(_utf8_locale())
            command[1:1] = ["--properties-file", str(file)]
            return start(command, **options)

        # PySpark takes the variables and the options of spark-submit from `os.environ` only. This
        # thread must not change that, because other threads read it: dbt failed when a variable
        # was gone again. So PySpark's function runs with another `Popen`.
        return _pyspark_gateway(Popen=launch)


def connect_to_jvm(port: int, secret: str) -> JavaGateway:
    """Connect to the JVM of a Spark, which another process has started.

    Args:
        port: the port of its gateway
        secret: the secret of its gateway
    """
    variables = {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
    return _pyspark_gateway(os=SimpleNamespace(environ={**os.environ, **variables}))


def _pyspark_gateway(**others: Any) -> JavaGateway:
    """Run PySpark's `launch_gateway` with other global names."""
    function = FunctionType(launch_gateway.__code__, {**launch_gateway.__globals__, **others})
    gateway: JavaGateway = function(None, {})
    return gateway


def launch_jvm_of_next_context(settings: Mapping[str, str]) -> None:
    """Start the JVM that PySpark would start with its next context, unless one runs already."""
    if not SparkContext._gateway and "PYSPARK_GATEWAY_PORT" not in os.environ:
        with TemporaryDirectory() as folder:
            SparkContext._ensure_initialized(gateway=launch_jvm(settings, Path(folder)))


def _utf8_locale() -> dict[str, str]:
    """Return the variable that lets Java read and write names in UTF-8; none if it does already.

    Java takes the encoding of file names from the locale, and no option of Java can change it. In
    the locale `C`, a name with another letter than those of ASCII fails.
    """
    if locale.nl_langinfo(locale.CODESET) == "UTF-8":
        return {}
    return {"LC_ALL": "C.UTF-8"}


@contextmanager
def _settings_file(settings: Mapping[str, str], folder: Path) -> Iterator[Path]:
    """Write settings for spark-submit to a file that no other user can read."""
    path = folder / "spark.properties"
    path.touch(0o600, exist_ok=False)
    try:
        path.write_text(f"{spark_defaults()}\n\n{properties(settings)}", encoding="utf-8")
        yield path
    finally:
        path.unlink(missing_ok=True)


def spark_defaults() -> str:
    """Return the installation's defaults, which spark-submit ignores if it is given a file."""
    folder = os.environ.get("SPARK_CONF_DIR") or f"{_find_spark_home()}/conf"
    try:
        return (Path(folder) / "spark-defaults.conf").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def properties(settings: Mapping[str, str]) -> str:
    """Return settings in the format of Java's `Properties`."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(text: str) -> str:
    return _SPECIAL.sub(lambda found: _escape(found[0]), text)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be").hex()
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))
