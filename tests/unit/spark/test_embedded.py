"""Where the embedded Spark has its files, and what it takes of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from dbt.adapters.exceptions.connection import FailedToConnectError

from dbt.adapters.openmirroring.spark.embedded import start as embedded
from dbt.adapters.openmirroring.spark.embedded.settings import (
    collector,
    defaults,
    driver_memory_mb,
)
from dbt.adapters.openmirroring.spark.embedded.start import SparkSetup

GB = 2**30


def test_all_folders_with_links_to_one_spark_have_the_same_paths_of_tables(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".spark").mkdir(parents=True)
    tasks = [tmp_path / "first_task", tmp_path / "second_task"]
    for task in tasks:
        task.mkdir()
        (task / ".spark").symlink_to(project / ".spark")

    assert {SparkSetup(folder, {}).home for folder in [project, *tasks]} == {project / ".spark"}


@pytest.mark.parametrize("folder", ["/var/spark", "../spark"])
def test_the_folder_of_spark_may_be_outside_of_the_project(tmp_path: Path, folder: str) -> None:
    assert SparkSetup(tmp_path / "shop", {}, folder).home == (tmp_path / "shop" / folder).resolve()


def test_a_folder_that_cannot_be_written_is_refused_with_the_setting_for_another(
    tmp_path: Path,
) -> None:
    (tmp_path / ".spark").write_text("in the way")

    with pytest.raises(FailedToConnectError) as error:
        embedded.start(SparkSetup(tmp_path, {}))

    assert f"cannot write to its folder, {tmp_path}/.spark: " in str(error.value)
    assert "`spark_folder`" in str(error.value)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (str(4 * GB), 2048),
        (f"{GB // 2}\n", 1024),
        (str(100 * GB), 8192),
        ("9223372036854771712", 8192),
        ("max\n", 8192),
        (None, 8192),
    ],
)
def test_the_heap_is_half_of_what_the_container_may_use(
    tmp_path: Path, limit: str | None, expected: int
) -> None:
    file = tmp_path / "memory.max"
    if limit is not None:
        file.write_text(limit)

    assert driver_memory_mb(16 * GB, [tmp_path / "missing", file]) == expected


def test_the_heap_is_at_most_16_gb() -> None:
    assert driver_memory_mb(256 * GB, []) == 16 * 1024


def test_shuffles_have_partitions_for_the_cores_that_the_process_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)

    assert defaults(tmp_path)["spark.sql.shuffle.partitions"] == "12"


OTHER_COLLECTOR = "-Xlog:gc -XX:+UseZGC"


@pytest.fixture
def _no_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who has set no option of Java."""
    for name in ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))


@pytest.mark.usefixtures("_no_choice")
@pytest.mark.parametrize("options", ["", "-XX:+UseStringDeduplication -Dx=UseZGC"])
def test_no_core_is_left_to_a_collector_that_runs_beside_spark(options: str) -> None:
    assert collector({"spark.driver.extraJavaOptions": options})[0] == "-XX:+UseParallelGC"


@pytest.mark.usefixtures("_no_choice")
@pytest.mark.parametrize(
    "name", ["spark.driver.defaultJavaOptions", "spark.driver.extraJavaOptions"]
)
def test_a_collector_in_the_profile_is_the_only_one(name: str) -> None:
    assert collector({name: OTHER_COLLECTOR}) == []


@pytest.mark.usefixtures("_no_choice")
@pytest.mark.parametrize(
    "name", ["SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"]
)
def test_a_collector_in_the_environment_is_the_only_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, OTHER_COLLECTOR)

    assert collector({}) == []


@pytest.mark.usefixtures("_no_choice")
def test_a_collector_in_the_defaults_of_spark_is_the_only_one(tmp_path: Path) -> None:
    defaults_file = tmp_path / "spark-defaults.conf"
    defaults_file.write_text(f"spark.driver.extraJavaOptions {OTHER_COLLECTOR}\n")

    assert collector({}) == []
