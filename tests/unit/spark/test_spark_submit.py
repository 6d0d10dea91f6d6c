"""How settings reach the JVM of a Spark; what that reads is in `functional/test_spark.py`."""

from __future__ import annotations

import locale
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from dbt.adapters.exceptions.connection import FailedToConnectError
from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError

from dbt.adapters.openmirroring.spark.embedded import jvm
from dbt.adapters.openmirroring.spark.embedded import start as embedded
from dbt.adapters.openmirroring.spark.embedded.start import SparkSetup

# stands for Spark's program: it notes what it gets, and ends without a JVM
SPARK_SUBMIT = """\
#!/bin/sh
cd "$(dirname "$0")"
printf '%s\\n' "$@" > arguments
env > environment
stat -c %a "$2" > mode || stat -f %Lp "$2" > mode
cat "$2" > settings
sleep 0.3
exit 1
"""


@pytest.fixture
def received(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which Spark's program notes what it gets."""
    folder = tmp_path / "spark" / "bin"
    folder.mkdir(parents=True)
    program = folder / "spark-submit"
    program.write_text(SPARK_SUBMIT)
    program.chmod(0o755)
    monkeypatch.setenv("SPARK_HOME", str(folder.parent))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages a:b:1 pyspark-shell")
    return folder


def test_nobody_else_reads_the_settings_on_their_way(
    received: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.a theirs\nspark.b theirs")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    path = tmp_path / "spark.properties"
    before = os.umask(0)
    try:
        with pytest.raises(PySparkRuntimeError):
            jvm.launch_jvm({"spark.b": "ours"}, tmp_path)
    finally:
        os.umask(before)

    assert (received / "mode").read_text() == "600\n"
    lines = (received / "settings").read_text().split("\n")
    assert lines == ["spark.a theirs", "spark.b theirs", "", "spark.b=ours", ""]
    assert (received / "arguments").read_text().split("\n") == [
        *("--properties-file", str(path), "--packages", "a:b:1", "pyspark-shell", "")
    ]
    assert not path.exists()


def test_a_system_that_names_no_encoding_starts_a_spark_too(
    received: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows, for a cluster that the profile names."""
    monkeypatch.delattr(locale, "nl_langinfo")

    with pytest.raises(PySparkRuntimeError):
        jvm.launch_jvm({}, tmp_path)

    assert (received / "arguments").exists()


def test_a_start_that_fails_leaves_the_spark_and_the_environment_of_this_process_as_they_are(
    received: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other threads find the environment unchanged also while Spark starts."""
    gateway = object()
    monkeypatch.setattr(SparkContext, "_gateway", gateway)
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Dx=y")
    before, changed = dict(os.environ), []
    with ThreadPoolExecutor(1) as threads:
        start = threads.submit(embedded.start, SparkSetup(tmp_path, {}))
        while not start.done():
            if dict(os.environ) != before:
                changed.append(dict(os.environ))

    with pytest.raises(FailedToConnectError, match="Spark did not start"):
        start.result()
    assert SparkContext._gateway is gateway
    assert changed == []
    environment = (received / "environment").read_text().split("\n")
    assert any("-Dx=y" in line for line in environment if line.startswith("SPARK_SUBMIT_OPTS="))
