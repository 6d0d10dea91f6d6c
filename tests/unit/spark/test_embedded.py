"""Where the embedded Spark has its files, and how much of the machine it takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.spark.embedded import defaults, driver_memory_mb, home_of

GB = 2**30


def test_all_folders_with_links_to_one_spark_have_the_same_paths_of_tables(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".spark").mkdir(parents=True)
    tasks = [tmp_path / "first_task", tmp_path / "second_task"]
    for task in tasks:
        task.mkdir()
        (task / ".spark").symlink_to(project / ".spark")

    assert {home_of(folder) for folder in [project, *tasks]} == {project / ".spark"}


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
