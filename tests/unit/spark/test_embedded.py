"""Where the embedded Spark has its files."""

from __future__ import annotations

from pathlib import Path

from dbt.adapters.openmirroring.spark.embedded import home_of


def test_all_folders_with_links_to_one_spark_have_the_same_paths_of_tables(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".spark").mkdir(parents=True)
    tasks = [tmp_path / "first_task", tmp_path / "second_task"]
    for task in tasks:
        task.mkdir()
        (task / ".spark").symlink_to(project / ".spark")

    assert {home_of(folder) for folder in [project, *tasks]} == {project / ".spark"}
