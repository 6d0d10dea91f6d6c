"""Spark is a server: dbt, in a process of its own, asks it through Spark Connect or Thrift.

The whole functional suite does so with `--method connect` and `--method thrift`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.functional.environments.servers import (
    assert_errors_have_no_stack_of_the_jvm,
    assert_runs_without_java,
    project_on,
)
from tests.functional.environments.test_progress import at_a_terminal
from tests.functional.processes.test_processes import call, dbt
from tests.functional.project import Project
from tests.spark_server import SparkServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    started = SparkServer(tmp_path_factory.mktemp("server"), {})
    yield started
    started.stop()


@pytest.mark.parametrize("method", ["connect", "thrift"])
def test_a_server_runs_a_project_without_java_on_the_machine_of_dbt(
    server: SparkServer, tmp_path: Path, method: str
) -> None:
    assert_runs_without_java(project_on(server, method, tmp_path))


@pytest.mark.skipif(pyspark.__version__ < "4", reason="PySpark 3.5 is not told of tasks")
def test_spark_connect_tells_the_tasks_of_a_long_node(server: SparkServer, tmp_path: Path) -> None:
    project = project_on(server, "connect", tmp_path)
    # the server tells every two seconds
    project.model("select count(*) as rows from range(0, 12000000000, 1, 24)")

    status, shown = at_a_terminal(project.path, "run")

    assert status == 0
    assert re.search(r"^orders: building, \d+ of \d+ tasks, ", shown, re.MULTILINE)


def test_spark_connect_runs_python_models(server: SparkServer, tmp_path: Path) -> None:
    project = project_on(server, "connect", tmp_path)
    project.write(
        "models/orders.py",
        "from pyspark.sql import functions as F\n\n"
        "def model(dbt, session):\n"
        "    dbt.config(unique_key='id')\n"
        "    return session.range(3).withColumn('name', F.upper(F.lit('x')))\n",
    )

    done = dbt(project.path, "run")

    assert done.returncode == 0, done.stdout
    assert len(project.mirror()) == 3


def test_a_notebook_with_a_session_of_spark_connect_is_told_what_to_set(
    server: SparkServer, tmp_path: Path
) -> None:
    project = Project(tmp_path)
    project.model("select * from range(3)")
    notebook = f"""
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote({server.url!r}).getOrCreate()
assert not dbtRunner().invoke(["run"]).success
"""

    done = call(sys.executable, "-c", notebook, cwd=project.path)

    assert done.returncode == 0, done.stderr
    assert "Set `method: connect` and `host` in the profile" in done.stdout


def test_python_models_do_not_go_through_thrift(server: SparkServer, tmp_path: Path) -> None:
    project = project_on(server, "thrift", tmp_path)
    project.write("models/orders.py", "def model(dbt, session):\n    return session.range(3)\n")

    done = dbt(project.path, "run")

    assert done.returncode == 1
    assert "Python models need `method: session`" in done.stdout


@pytest.mark.parametrize("method", ["connect", "thrift"])
def test_an_error_of_spark_is_reported_without_the_stack_of_its_jvm(
    server: SparkServer, tmp_path: Path, method: str
) -> None:
    assert_errors_have_no_stack_of_the_jvm(project_on(server, method, tmp_path))
