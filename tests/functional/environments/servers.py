"""Projects that run on a server."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq

from tests.functional.processes.test_processes import dbt
from tests.functional.project import Project, canonical
from tests.spark_server import SparkServer


def project_on(server: SparkServer, method: str, path: Path) -> Project:
    created = Project(path)
    created.target |= server.target(method)
    created.write_project()
    return created


def assert_runs_without_java(project: Project) -> None:
    """Load and change a seed and a model, with no Java on the machine of dbt."""
    project.write_project(seeds={"+unique_key": "id"})
    sql = "select *, timestamp'2026-01-01 00:00:00' as time from {{ ref('names') }}"
    project.model(sql, unique_key="id")

    for rows in ("1,${spark.master}\n2,\n3,c\n", "1,${spark.master}\n3,C\n"):
        project.write("seeds/names.csv", f"id,name\n{rows}")
        done = dbt(project.path, "build", JAVA_HOME="/nowhere", PATH="/usr/bin")
        assert (done.returncode, done.stderr) == (0, ""), done.stdout

    response = project.results()["orders"]["adapter_response"]
    assert (response["rows_updated"], response["rows_deleted"]) == (1, 1)
    time = datetime(2026, 1, 1)
    expected = ({"id": 1, "name": "${spark.master}"}, {"id": 3, "name": "C"})
    assert project.mirror() == Counter(canonical({**r, "time": time}.items()) for r in expected)
    landed = pq.ParquetFile(project.files()[0]).schema.column(2)
    assert landed.physical_type == "INT64", "settings reach Spark: this is not its default"
    assert not (project.path / ".spark").exists()


def assert_errors_have_no_stack_of_the_jvm(project: Project) -> None:
    """Run a model that Spark cannot analyse, and one that fails while it is built."""
    project.model("select nothing from range(1)")
    project.model("select raise_error('broken') as id from range(1)", "late")

    done = dbt(project.path, "run")

    assert done.returncode == 1
    told = {name: result["message"] for name, result in project.results().items()}
    assert told["orders"].count("[UNRESOLVED_COLUMN.WITH_SUGGESTION]") == 1
    assert "broken" in told["late"]
    assert "org.apache.spark" not in done.stdout
    assert done.stderr == ""
