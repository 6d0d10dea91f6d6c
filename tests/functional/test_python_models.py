"""Python models, on the Spark that dbt runs on."""

from __future__ import annotations

import sys
from datetime import date, datetime
from decimal import Decimal
from textwrap import dedent, indent
from typing import Any

import pytest

from tests.functional.project import Project

pytestmark = pytest.mark.needs(pyspark="Thrift knows SQL only")


def python_model(project: Project, body: str, name: str = "orders", **config: Any) -> None:
    options = ", ".join(
        f"{key}={value!r}" for key, value in {"materialized": "table", **config}.items()
    )
    code = f"def model(dbt, session):\n    dbt.config({options})\n"
    project.write(f"models/{name}.py", code + indent(dedent(body).strip(), "    ") + "\n")


def rows(project: Project) -> list[tuple[Any, ...]]:
    found = project.sql(f"select * from {project.schema}.orders order by all")
    return [tuple(row) for row in found]


def types(project: Project) -> dict[str, str]:
    found = project.sql(f"describe {project.schema}.orders")
    return {name: type_ for name, type_, *_ in found}


@pytest.mark.core
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

    log = (project.path / "logs" / "dbt.log").read_text()
    for part in ("On model.shop.orders: ", 'dbt.ref("numbers").union(', "Execution status: OK in"):
        assert part in log, "as of a statement in SQL"
    assert rows(project) == [(0, "hello"), (1, "hello"), (2, "hello"), (7, "hello")]
    project.assert_mirrored()
    assert project.run()["publication"] == "unchanged"


@pytest.mark.core
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


@pytest.mark.core
def test_a_frame_of_pandas_has_the_same_types_and_rows_whatever_the_session_says(
    project: Project,
) -> None:
    python_model(
        project,
        """
        import datetime as dt
        import io
        import pandas as pd
        for name, value in {
            "spark.sql.session.timeZone": "America/New_York",
            "spark.sql.timestampType": "TIMESTAMP_NTZ",
            "spark.sql.ansi.enabled": "false",
            "spark.sql.execution.arrow.pyspark.enabled": "false",
            "spark.sql.execution.arrow.maxRecordsPerBatch": "-1",
            "spark.sql.execution.arrow.useLargeVarTypes": "true",
        }.items():
            session.conf.set(name, value)
        read = pd.read_csv(io.StringIO("id,name,amount\\n1,a,1.5\\n2,,\\n"))
        for name, values in {
            "category": pd.Series(["a", None], dtype="category"),
            "int": pd.Series([2**62 + 1, None], dtype="Int64"),
            "float": pd.Series([1.5, None], dtype="Float32"),
            "flag": pd.Series([True, None], dtype="boolean"),
            "object": pd.Series([False, None], dtype="object"),
            "large": pd.Series([2**64 - 1, None], dtype="UInt64"),
            "text": pd.Series(["b", pd.NA], dtype="string"),
            "day": pd.Series([dt.date(1400, 2, 28), None]),
            "moment": pd.Series([dt.datetime(2, 1, 1, 12), None], dtype="object"),
            "time": pd.to_datetime(pd.Series(["2026-01-02", None])),
            "zone": pd.to_datetime(pd.Series(["2026-01-02T00:00+01:00", None])),
            "bytes": pd.Series([b"a", None]),
            "none": None,
            "nan": float("nan"),
        }.items():
            read[name] = values
        return read
        """,
        unique_key="id",
    )

    project.run()

    project.assert_mirrored()
    assert types(project) == {
        "id": "bigint",
        "name": "string",
        "amount": "double",
        "category": "string",
        "int": "bigint",
        "float": "float",
        "flag": "boolean",
        "object": "boolean",
        "large": "decimal(20,0)",
        "text": "string",
        "day": "date",
        "moment": "timestamp",
        "time": "timestamp",
        "zone": "timestamp",
        "bytes": "binary",
        "none": "string",
        "nan": "double",
    }
    times = (datetime(2, 1, 1, 12), datetime(2026, 1, 2), datetime(2026, 1, 1, 23))
    values = ("a", 1.5, "a", 2**62 + 1, 1.5, True, False, Decimal(2**64 - 1), "b")
    first = (1, *values, date(1400, 2, 28), *times, b"a", None, None)
    assert rows(project) == [first, (2, *[None] * 16)]
    assert project.run()["publication"] == "unchanged"


@pytest.mark.needs(session="Spark Connect needs PyArrow, and Livy's driver is another process")
def test_without_pyarrow_a_frame_of_pandas_is_refused_and_one_of_spark_is_mirrored(
    project: Project,
) -> None:
    python_model(project, "import pandas\nreturn pandas.DataFrame({'id': [1]})")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)

        assert "or return a DataFrame of Spark" in project.fail()

        python_model(project, "return session.createDataFrame([(1, 'a')], ['id', 'name'])")
        project.run()
    assert rows(project) == [(1, "a")]
    project.assert_mirrored()


def test_a_value_that_does_not_fit_is_refused_with_its_column(project: Project) -> None:
    code = """
        import pandas as pd
        frame = pd.DataFrame({"id": [1, 2], "value": [1, "a"]})
        """
    python_model(project, f"{code}return frame")

    error = project.fail()

    assert "The column `value` of the Python model cannot be stored" in error
    assert '`.astype("string")`' in error
    assert not project.folder().exists()
    project.assert_tidy()
    python_model(project, f'{code}return frame.assign(value=frame.value.astype("string"))')
    project.run()
    assert rows(project) == [(1, "1"), (2, "a")]


def test_nested_values_and_arrow_tables_are_mirrored(project: Project) -> None:
    python_model(
        project,
        """
        import datetime as dt
        import pandas as pd
        import pyarrow as pa
        times = [[dt.datetime(2026, 1, 1)], None, [None], [dt.datetime(2026, 1, 2)]]
        texts = pa.array(["a", None, "b", "b"]).dictionary_encode()
        if not dbt.is_incremental:
            return pd.DataFrame(
                {
                    "id": [0],
                    "number": pd.Series([2**64 - 1], dtype="uint64"),
                    "times": [times[0]],
                    "parts": [{"a": 1, "b": "x"}],
                    "text": "z",
                }
            )
        table = pa.table(
            {
                "id": [1, 2, 3, 4],
                "number": pa.array([1, None, 3, 4], pa.uint64()),
                "times": pa.array(times, pa.large_list(pa.timestamp("ns"))),
                "parts": [{"a": 1, "b": None}, None, {"a": None, "b": "y"}, None],
                "text": texts,
            }
        )
        return table.slice(1)
        """,
        materialized="incremental",
        unique_key="id",
    )

    project.run()
    assert project.run()["rows_inserted"] == 3

    first, second = datetime(2026, 1, 1), datetime(2026, 1, 2)
    assert rows(project) == [
        (0, Decimal(2**64 - 1), [first], (1, "x"), "z"),
        (2, None, None, None, None),
        (3, Decimal(3), [None], (None, "y"), "b"),
        (4, Decimal(4), [second], None, "b"),
    ]
    project.assert_mirrored()


def test_an_incremental_model_reads_its_rows_and_keeps_the_type_of_a_column_without_values(
    project: Project,
) -> None:
    python_model(
        project,
        """
        import pandas as pd
        id = 1
        if dbt.is_incremental:
            id = session.sql(f"select max(id) + 1 from {dbt.this}").first()[0]
        return pd.DataFrame({"id": [id], "number": [7 if id == 1 else None]})
        """,
        materialized="incremental",
        unique_key="id",
    )
    for publication in ("initial", "changes", "changes"):
        assert project.run()["publication"] == publication

    assert types(project) == {"id": "bigint", "number": "bigint"}
    assert rows(project) == [(1, 7), (2, None), (3, None)]
    project.assert_mirrored()
