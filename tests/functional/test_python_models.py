"""Python models, on the Spark that dbt runs on."""

from __future__ import annotations

import sys
from datetime import date, datetime
from decimal import Decimal
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

    assert rows(project) == [(0, "hello"), (1, "hello"), (2, "hello"), (7, "hello")]
    project.assert_mirrored()
    assert project.run()["publication"] == "unchanged"


@pytest.mark.core
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


def test_the_code_of_a_python_model_is_in_the_log_as_sql_would_be(project: Project) -> None:
    python_model(project, "return session.range(3)  # three rows")

    project.run()

    log = (project.path / "logs" / "dbt.log").read_text()
    assert "On model.shop.orders: " in log
    assert "return session.range(3)  # three rows" in log
    assert "Execution status: OK in" in log


@pytest.fixture(params=["pyarrow", "no pyarrow"])
def arrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyArrow is installed, or it is not."""
    if request.param == "no pyarrow":
        if request.config.getoption("--method") != "session":
            pytest.skip("Spark Connect needs PyArrow, and the driver of Livy is another process")
        monkeypatch.setitem(sys.modules, "pyarrow", None)


def publish(project: Project, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, str], Any]:
    """Run the project. Return the types of the table, its rows, and check the mirror."""
    project.run()
    monkeypatch.undo()  # the replicator needs PyArrow
    project.assert_mirrored()
    found = {name: type_ for name, type_, *_ in project.sql(f"describe {project.schema}.orders")}
    return found, rows(project)


@pytest.mark.usefixtures("arrow")
def test_missing_values_of_pandas_are_null(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    python_model(
        project,
        """
        import io
        import pandas as pd
        read = pd.read_csv(io.StringIO("id,name,amount\\n1,a,1.5\\n2,,\\n"))
        for name, values in {
            "category": pd.Series(["a", None], dtype="category"),
            "numbers": pd.Series([7, None]).astype("category"),
            "int": pd.Series([2**62 + 1, None], dtype="Int64"),
            "float": pd.Series([1.5, None], dtype="Float32"),
            "flag": pd.Series([True, None], dtype="boolean"),
            "object": pd.Series([False, None], dtype="object"),
            "large": pd.Series([2**64 - 1, None], dtype="UInt64"),
            "text": pd.Series(["b", pd.NA], dtype="string"),
            "mixed": pd.Series(["b", float("nan")]),
            "time": pd.to_datetime(pd.Series(["2026-01-02", None])),
            "zone": pd.to_datetime(pd.Series(["2026-01-02T00:00+01:00", None])),
            "none": None,
            "nan": float("nan"),
        }.items():
            read[name] = values
        return read
        """,
        unique_key="id",
    )

    types, found = publish(project, monkeypatch)

    assert types == {
        "id": "bigint",
        "name": "string",
        "amount": "double",
        "category": "string",
        "numbers": "double",
        "int": "bigint",
        "float": "float",
        "flag": "boolean",
        "object": "boolean",
        "large": "decimal(20,0)",
        "text": "string",
        "mixed": "string",
        "time": "timestamp",
        "zone": "timestamp",
        "none": "string",
        "nan": "double",
    }
    time, zone = datetime(2026, 1, 2), datetime(2026, 1, 1, 23)
    large = Decimal(2**64 - 1)
    first = (1, "a", 1.5, "a", 7.0, 2**62 + 1, 1.5, True, False, large, "b", "b", time, zone)
    assert found == [(*first, None, None), (2, *[None] * 15)]
    assert project.run()["publication"] == "unchanged"


@pytest.mark.usefixtures("arrow")
def test_the_types_of_pandas_are_those_of_the_columns(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    python_model(
        project,
        """
        import datetime as dt
        from decimal import Decimal
        import pandas as pd
        frame = pd.DataFrame({"id": [1]}, index=pd.Index([7], name="left out"))
        for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"):
            frame[name] = pd.Series([2 ** int(name.lstrip("uint")) // 2 - 1], [7], name)
        for name, value in {
            "date": dt.date(1400, 2, 28),
            "datetime": dt.datetime(2, 1, 1, 12),
            "decimal": Decimal("1.50"),
            "bytes": b"a",
            2026: True,
            "sparse": pd.arrays.SparseArray([0.5]),
            "single": pd.Series([0.5], [7], "float32"),
            "half": pd.Series([0.5], [7], "float16"),
        }.items():
            frame[name] = value
        return frame
        """,
    )

    types, found = publish(project, monkeypatch)

    assert types == {
        "id": "bigint",
        "int8": "tinyint",
        "int16": "smallint",
        "int32": "int",
        "uint8": "smallint",
        "uint16": "int",
        "uint32": "bigint",
        "uint64": "decimal(20,0)",
        "date": "date",
        "datetime": "timestamp",
        "decimal": "decimal(38,18)",
        "bytes": "binary",
        "2026": "boolean",
        "sparse": "double",
        "single": "float",
        "half": "float",
    }
    numbers = [2 ** (bits - 1) - 1 for bits in (8, 16, 32, 8, 16, 32, 64)]
    others = [date(1400, 2, 28), datetime(2, 1, 1, 12), Decimal("1.50"), b"a", True, 0.5, 0.5, 0.5]
    assert found == [(1, *numbers, *others)]


@pytest.mark.usefixtures("arrow")
def test_a_frame_without_rows_keeps_its_columns(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    python_model(
        project,
        """
        import pandas as pd
        frame = pd.DataFrame({"id": [1], "day": pd.to_datetime(["2026-01-01"]), "name": ["a"]})
        return frame[frame.id > 1]
        """,
        unique_key="id",
    )

    types, found = publish(project, monkeypatch)

    assert types == {"id": "bigint", "day": "timestamp", "name": "string"}
    assert found == []


@pytest.mark.usefixtures("arrow")
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


def test_a_timedelta_is_refused_as_an_interval_is(project: Project) -> None:
    python_model(
        project,
        """
        import pandas as pd
        return pd.DataFrame({"id": [1, 2], "wait": pd.to_timedelta(["1s", None])})
        """,
    )

    assert "The column `wait` has the type interval day to second" in project.fail()

    project.assert_tidy()


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


@pytest.mark.usefixtures("arrow")
def test_settings_of_the_session_do_not_change_a_frame(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    python_model(
        project,
        """
        import datetime as dt
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
        frame = pd.DataFrame({"id": pd.Series([1, None], dtype="Int64"), "name": ["a", None]})
        frame["day"] = pd.to_datetime(pd.Series(["2026-01-01 12:00", None]))
        frame["zone"] = frame["day"].dt.tz_localize("Europe/Berlin")
        frame["object"] = pd.Series([dt.datetime(2026, 1, 1, 12), None], dtype="object")
        return frame
        """,
    )

    types, found = publish(project, monkeypatch)

    times = {"day": "timestamp", "zone": "timestamp", "object": "timestamp"}
    assert types == {"id": "bigint", "name": "string", **times}
    noon, eleven = datetime(2026, 1, 1, 12), datetime(2026, 1, 1, 11)
    assert found == [(None,) * 5, (1, "a", noon, eleven, noon)]


@pytest.mark.usefixtures("arrow")
def test_a_column_without_values_keeps_the_type_of_an_incremental_model(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    python_model(
        project,
        """
        import pandas as pd
        id = 2 if dbt.is_incremental else 1
        return pd.DataFrame({"id": [id], "number": [None if id == 2 else 7]})
        """,
        materialized="incremental",
        unique_key="id",
    )
    project.run()

    types, found = publish(project, monkeypatch)

    assert types == {"id": "bigint", "number": "bigint"}
    assert found == [(1, 7), (2, None)]
