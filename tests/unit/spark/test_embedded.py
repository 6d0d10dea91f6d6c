"""Where the embedded Spark has its files, and what it takes of the machine."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

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


@pytest.mark.parametrize(("jars", "seconds"), [("rate.jar", 60), ("https://a.example/b.jar", 0)])
def test_a_spark_that_nobody_can_compare_with_the_next_one_ends_with_its_command(
    jars: str, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = SimpleNamespace(sparkContext=SimpleNamespace(environment={}))
    monkeypatch.setattr(embedded, "find_java_home", lambda _: tmp_path)
    monkeypatch.setattr(embedded, "take", lambda *_: None)
    monkeypatch.setattr(embedded, "_started", lambda *_: session)

    found = embedded.start(SparkSetup(tmp_path, {"spark.jars": jars}, idle_timeout=60))

    assert found.setup.idle_timeout == seconds


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (str(4 * GB), 2048),
        (f"{GB // 2}\n", 1024),
        (str(100 * GB), 8192),
        ("9223372036854771712", 8192),
        ("max\n", 8192),
    ],
)
def test_the_heap_is_half_of_what_the_container_may_use_and_at_most_16_gb(
    tmp_path: Path, limit: str, expected: int
) -> None:
    file = tmp_path / "memory.max"
    file.write_text(limit)

    assert driver_memory_mb(16 * GB, [tmp_path / "missing", file]) == expected
    assert driver_memory_mb(16 * GB, []) == 8192
    assert driver_memory_mb(256 * GB, []) == 16 * 1024


def test_shuffles_have_partitions_for_the_cores_that_the_process_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3, 5}, raising=False)

    assert defaults(tmp_path)["spark.sql.shuffle.partitions"] == "12"


OTHER = "-Xlog:gc -XX:+UseZGC"
IN_ENVIRONMENT = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


@pytest.mark.parametrize(
    ("settings", "environment", "file", "is_chosen"),
    [
        ({}, {}, "", False),
        ({"extra": "-XX:+UseStringDeduplication -Dx=UseZGC"}, {}, "", False),
        ({"default": OTHER}, {}, "", True),
        ({"extra": OTHER}, {}, "", True),
        *(({}, {name: OTHER}, "", True) for name in IN_ENVIRONMENT),
        ({}, {}, f"spark.driver.extraJavaOptions {OTHER}\n", True),
    ],
)
def test_no_core_is_left_to_a_collector_beside_spark_unless_the_user_has_chosen_one(
    settings: dict[str, str],
    environment: dict[str, str],
    file: str,
    is_chosen: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in IN_ENVIRONMENT:
        monkeypatch.setenv(name, environment.get(name, ""))
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text(file)

    found = collector({f"spark.driver.{k}JavaOptions": value for k, value in settings.items()})

    assert found[:1] == ([] if is_chosen else ["-XX:+UseParallelGC"])
