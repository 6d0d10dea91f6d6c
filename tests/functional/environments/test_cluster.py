"""Spark is a cluster: the data of a publication never comes to the machine of dbt."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.functional.processes.test_processes import dbt
from tests.functional.project import Project

ROWS = 200_000


def started(log: Path, *command: str) -> subprocess.Popen[bytes]:
    """A process of Spark's standalone mode."""
    folder = log.parent
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home)}
    with log.open("wb") as output:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), *command],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
        )


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """The URL of a cluster with two workers."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    package = "org.apache.spark.deploy"
    here = ("--host", "127.0.0.1", "--webui-port", "0")
    port = 20000 + os.getpid() % 10000
    url = f"spark://127.0.0.1:{port}"
    processes = [
        started(folder / "master", f"{package}.master.Master", *here, "--port", f"{port}")
    ]
    for worker in ("worker0", "worker1"):
        resources = ("--cores", "1", "--memory", "1g", "--work-dir", f"{folder}/{worker}-files")
        command = (f"{package}.worker.Worker", *here, *resources, url)
        processes.append(started(folder / worker, *command))
    try:
        end = time.monotonic() + 60
        while (folder / "master").read_text().count("Registering worker") < 2:
            assert time.monotonic() < end, "the workers did not find the master"
            time.sleep(0.2)
        yield url
    finally:
        for process in processes:
            process.terminate()
            process.wait()


def test_executors_do_the_work_and_no_row_comes_to_dbt(master: str, tmp_path: Path) -> None:
    project = Project(tmp_path / "shop")
    events = tmp_path / "events"
    events.mkdir()
    project.target["server_side_parameters"] = {
        "spark.master": master,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": f"file:{events}",
        "spark.sql.legacy.createHiveTableByDefault": "false",
        "spark.sql.warehouse.dir": f"{tmp_path}/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": (
            f"jdbc:derby:;databaseName={tmp_path}/metastore;create=true"
        ),
    }
    project.write_project()
    name = "sha2(cast(id as string), 512) as name"

    for step, expected in ((1, f"initial +{ROWS}"), (2, f"~{ROWS // 100}")):
        changed = f"if(id % 100 = 0, {step}, 0) as n"
        rows = f"select id, {changed}, {name} from range(0, {ROWS}, 1, 8)"
        project.model(rows, unique_key="id", target_file_size="4mb")
        done = dbt(tmp_path, "run", "--project-dir", "shop", "--profiles-dir", "shop")
        assert done.returncode == 0, done.stdout
        assert expected in project.results()["orders"]["message"]

    assert len(project.mirror()) == ROWS
    tasks = list(ended_tasks(events))
    executors = Counter(task["Task Info"]["Executor ID"] for task in tasks)
    assert set(executors) == {"0", "1"}, executors
    assert min(executors.values()) > len(tasks) / 10, executors
    # tasks have sent counts, sizes and names to the driver
    results = sum(task["Task Metrics"]["Result Size"] for task in tasks) / len(tasks)
    assert results < 20_000, results


def ended_tasks(folder: Path) -> Iterator[dict[str, Any]]:
    for path in folder.rglob("*"):
        if path.is_file() and re.match(r"events_|app-", path.name):
            for line in path.read_text().splitlines():
                event = json.loads(line)
                if event["Event"] == "SparkListenerTaskEnd":
                    yield event
