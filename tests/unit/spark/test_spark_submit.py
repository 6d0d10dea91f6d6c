"""How settings reach the JVM of a Spark; what that reads is in `functional/test_spark.py`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.spark import submit as spark_submit


def test_nobody_else_reads_the_settings_on_their_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.a theirs\nspark.b theirs")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages a:b:1 pyspark-shell")
    path = tmp_path / "spark.properties"
    before = os.umask(0)
    try:
        with spark_submit._submit_arguments({"spark.b": "ours"}, tmp_path):
            assert path.stat().st_mode & 0o777 == 0o600
            lines = path.read_text().split("\n")
            assert lines == ["spark.a theirs", "spark.b theirs", "", "spark.b=ours", ""]
            assert os.environ["PYSPARK_SUBMIT_ARGS"] == (
                f"--properties-file {path} --packages a:b:1 pyspark-shell"
            )
    finally:
        os.umask(before)

    assert not path.exists()
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--packages a:b:1 pyspark-shell"
