"""Python models, on the Spark that dbt runs on."""

from __future__ import annotations

from textwrap import dedent, indent
from typing import Any

import pytest

from tests.functional.project import Project

pytestmark = pytest.mark.pyspark("Thrift knows SQL only")


def python_model(project: Project, body: str, name: str = "orders", **config: Any) -> None:
    options = ", ".join(
        f"{key}={value!r}" for key, value in {"materialized": "table", **config}.items()
    )
    code = f"def model(dbt, session):\n    dbt.config({options})\n"
    project.write(f"models/{name}.py", code + indent(dedent(body).strip(), "    ") + "\n")


def rows(project: Project) -> list[tuple[Any, ...]]:
    found = project.sql(f"select * from {project.schema}.orders order by all")
    return [tuple(row) for row in found]


def test_a_spark_dataframe_of_what_the_model_refers_to_is_mirrored(project: Project) -> None:
    project.model("select id from range(3)", "numbers")
    project.write(
        "models/sources.yml",
        f"sources: [{{name: raw, schema: {project.schema}, tables: [{{name: extra}}]}}]",
    )
    project.sql(f"create schema {project.schema}")
    project.sql(f"create table {project.schema}.extra using parquet as select 7 as id")
    python_model(
        project,
        """
        from pyspark.sql import functions as f
        numbers = dbt.ref("numbers").union(dbt.source("raw", "extra"))
        return numbers.withColumn("name", f.lit(dbt.config.get("greeting")))
        """,
        unique_key="id",
        greeting="hello",
    )

    assert project.run()["publication"] == "initial"

    assert rows(project) == [(0, "hello"), (1, "hello"), (2, "hello"), (7, "hello")]
    project.assert_mirrored()
    assert project.run()["publication"] == "unchanged"


def test_a_pandas_dataframe_is_mirrored(project: Project) -> None:
    python_model(
        project,
        """
        import pandas
        return pandas.DataFrame({"id": [1, 2], "name": ["a", None]})
        """,
        unique_key="id",
    )

    project.run()

    assert rows(project) == [(1, "a"), (2, None)]
    project.assert_mirrored()


def test_an_incremental_python_model_reads_what_is_there(project: Project) -> None:
    python_model(
        project,
        """
        start = 0
        if dbt.is_incremental:
            start = session.sql(f"select max(id) + 1 from {dbt.this}").first()[0]
        return session.range(start, start + 2)
        """,
        materialized="incremental",
        unique_key="id",
    )
    project.run()

    assert project.run()["rows_inserted"] == 2

    assert rows(project) == [(0,), (1,), (2,), (3,)]
    project.assert_mirrored()


def test_an_error_shows_the_line_of_the_model_and_changes_nothing(project: Project) -> None:
    python_model(project, "return session.range(3)")
    project.run()
    before = project.state()
    python_model(project, "return session.range(3).crossJoin(1 / 0)")

    error = project.fail()

    assert "return session.range(3).crossJoin(1 / 0)" in error
    assert "ZeroDivisionError" in error
    assert project.state() == before
    python_model(project, "return 7")
    assert "must return a Spark or pandas DataFrame" in project.fail()
    assert project.state() == before
    project.assert_tidy()


def test_its_code_is_in_the_log_as_sql_would_be(project: Project) -> None:
    python_model(project, "return session.range(3)  # three rows")

    project.run()

    log = (project.path / "logs" / "dbt.log").read_text()
    assert "On model.shop.orders: " in log
    assert "return session.range(3)  # three rows" in log
    assert "Execution status: OK in" in log
