"""Spark is behind Livy, and dbt in a process of its own.

The whole functional suite is run so with `--method livy`.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.functional.environments.servers import (
    assert_errors_have_no_stack_of_the_jvm,
    assert_runs_without_java,
    project_on,
)
from tests.functional.processes.test_processes import dbt
from tests.functional.project import Project, relation_rows
from tests.spark_server import SparkServer

# ends the Livy session that it runs in
DEADLY = """
import urllib.request

def model(dbt, session):
    dbt.config(unique_key="id")
    for number in range(100):
        request = urllib.request.Request(f"URL/sessions/{number}", method="DELETE")
        try:
            urllib.request.urlopen(request)
        except OSError:
            pass
    return session.range(3)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    started = SparkServer(tmp_path_factory.mktemp("server"), {}, with_livy=True)
    yield started
    started.stop()


@pytest.fixture
def project(server: SparkServer, tmp_path: Path) -> Project:
    return project_on(server, "livy", tmp_path)


@pytest.fixture
def spark(server: SparkServer) -> Iterator[SparkSession]:
    session = SparkSession.builder.remote(server.url).create()
    yield session
    session.stop()


def test_a_project_runs_without_java_on_the_machine_of_dbt(project: Project) -> None:
    assert_runs_without_java(project)


def test_a_node_whose_livy_session_dies_fails_and_the_others_go_on(project: Project) -> None:
    project.write("models/a.py", DEADLY.replace("URL", project.target["host"]))
    project.model("select * from range(3)", "b")
    project.target["threads"] = 1
    project.write_project()

    done = dbt(project.path, "run")

    assert done.returncode == 1
    results = project.results()
    assert "has ended" in results["a"]["message"]
    assert "it was not repeated" in results["a"]["message"]
    assert results["b"]["status"] == "success"
    assert not project.files("a")
    assert len(project.mirror("b")) == 3


def test_an_error_of_spark_is_reported_without_the_stack_of_its_jvm(project: Project) -> None:
    assert_errors_have_no_stack_of_the_jvm(project)


@pytest.mark.parametrize("is_kept", [False, True], ids=["ended", "kept"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "cancelled"])
def test_a_command_after_one_that_ended_while_four_statements_ran_does_not_meet_them(
    spark: SparkSession, project: Project, number: signal.Signals, is_kept: bool
) -> None:
    """A row that an earlier statement adds late would be in Spark only."""
    project.target |= {"threads": 4, "reuse_session": is_kept}
    project.write_project()
    names = [f"t{each}" for each in range(4)]
    program = str(Path(__file__).with_name("ended_on_livy.py"))
    for point in range(10):
        for name in names:
            project.model(
                f"select {point} as id, max(sha2(concat(id, '{point}'), 256)) as text "
                "from range(0, 500000, 1, 1)",
                name,
                materialized="incremental",
                incremental_strategy="append",
            )
        ended = subprocess.run(
            [sys.executable, program, str(int(number)), str(point), "run"],
            cwd=project.path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert ended.returncode != 0, f"{point}: {ended.stdout}"

        again = dbt(project.path, "run")

        assert again.returncode == 0, again.stdout
        for name in names:
            relation = relation_rows(spark, project.schema, name)
            assert project.mirror(name) == relation
            assert sum(relation.values()) <= 2 * (point + 1)
