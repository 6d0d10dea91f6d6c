"""The types of frames. No Spark is needed to know them."""

from __future__ import annotations

import datetime as dt
import sys
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from dbt.adapters.openmirroring.spark.python_models import PythonModelError, spark_frame

UTC = dt.timezone.utc
LARGE = Decimal("12345678901234567890.123456789012345678")
JANUARY = dt.datetime(2026, 1, 1, tzinfo=UTC)
IN_BERLIN = pd.Timestamp(JANUARY).tz_convert("Europe/Berlin")
LAST = dt.datetime(9999, 12, 31)
NOON = dt.datetime(2026, 1, 1, 12)
DATES = pd.to_datetime(["2026-01-01", None])
SPANS = [dt.timedelta(seconds=1), None]


class Conf(dict[str, str]):
    """Settings of a session."""

    set = dict.__setitem__
    unset = dict.__delitem__


class Session:
    """Gets what PySpark would get."""

    def __init__(self) -> None:
        self.conf = Conf({"spark.sql.execution.arrow.maxRecordsPerBatch": "-1"})

    def createDataFrame(self, data: Any, schema: StructType) -> Session:
        if isinstance(data, pd.DataFrame):  # PySpark 3.5
            data = pa.Table.from_pandas(data)
        if isinstance(data, pa.Table):
            columns = [column.to_pylist(maps_as_pydicts="strict") for column in data.columns]
            data = list(zip(*columns, strict=True))
        self.rows = data
        self.types = {field.name: field.dataType.simpleString() for field in schema}
        return self


def framed(data: Any) -> Session:
    """Return what PySpark gets for a frame."""
    result: Any = spark_frame(data, Session())  # type: ignore[arg-type]
    found: Session = result
    return found


def refused() -> Any:
    told = "The column `value` of the Python model cannot be stored"
    return pytest.raises(PythonModelError, match=told)


def convert(values: Any) -> tuple[str, list[Any]]:
    """Return the type and the values of a column."""
    series = values if isinstance(values, pd.Series) else pd.Series(values, dtype=object)
    result = framed(pd.DataFrame({"value": series}))
    return result.types["value"], [row[0] for row in result.rows]


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        ([1, 2.5], "double", [1.0, 2.5]),
        ([1, float("nan")], "bigint", [1, None]),
        ([np.int8(1), 2], "bigint", [1, 2]),
        ([np.float64(0.5), None], "double", [0.5, None]),
        ([Decimal("1.5"), 100], "decimal(38,18)", [Decimal("1.5"), Decimal(100)]),
        ([100, Decimal("NaN")], "bigint", [100, None]),
        ([LARGE], "decimal(38,18)", [LARGE]),
        ([True, None], "boolean", [True, None]),
        ([pd.NA, "a"], "string", [None, "a"]),
        ([float("nan"), "a"], "string", [None, "a"]),
        ([pd.NaT, "a"], "string", [None, "a"]),
        ([None, float("nan"), pd.NA, pd.NaT], "string", [None] * 4),
        ([], "string", []),
        ([pd.NaT, dt.date(1, 1, 1)], "date", [None, dt.date(1, 1, 1)]),
        ([IN_BERLIN, LAST], "timestamp", [JANUARY, LAST.replace(tzinfo=UTC)]),
        ([b"a", None], "binary", [b"a", None]),
        (pd.Series([0.5, None], dtype="float16"), "float", [0.5, None]),
        (pd.Series([0, 0, 1]).astype("Sparse[int64]"), "bigint", [0, 0, 1]),
        (pd.Series(["a", None], dtype="string[pyarrow]"), "string", ["a", None]),
        (pd.Series([2, None], dtype=pd.ArrowDtype(pa.uint8())), "smallint", [2, None]),
        (pd.Series([None, None], dtype=object).astype("category"), "string", [None, None]),
        (pd.Series([LARGE, None], dtype="category"), "decimal(38,18)", [LARGE, None]),
        (pd.Series(DATES, dtype="category"), "timestamp", [JANUARY, None]),
    ],
)
def test_the_type_of_a_column_comes_from_pandas(values: Any, type_: str, expected: Any) -> None:
    assert convert(values) == (type_, expected)


@pytest.mark.parametrize(
    "values",
    [
        *([1, "a"], ["a", 1], [b"a", "a"], ["a", b"a"], ["a\ud800"]),
        *([1.5, True], [1, True], [1, np.True_], [True, 1]),
        *([dt.date(2026, 1, 1), NOON], [NOON, dt.date(2026, 1, 1)]),
        *([2**63, -1], [2**53 + 1, 0.5], [1j]),
        *([Decimal(10) ** 20], [Decimal(10) ** -19], [Decimal("Infinity")]),
        *([Decimal(1), "1"], [Decimal(1), 0.5]),
        *([[1], "a"], [[dt.date(2026, 1, 1), NOON]]),
        *([{"a": b"a"}, {"a": "a"}], [{"a": 1}, {"a": "a"}], [{}], [object()]),
        pd.Series(pd.period_range("2026-01", periods=2, freq="M")),
        pd.cut(pd.Series([1, 2, None]), 2),
        pd.Series([1, "a"], dtype="category"),
        pd.Series([1.5], dtype="longdouble"),
    ],
)
def test_a_value_that_fits_no_type_is_refused_with_its_column(values: Any) -> None:
    with refused():
        convert(values)


@pytest.mark.parametrize(
    "values",
    [
        [1, "a", None],
        [dt.date(2026, 1, 1), NOON, pd.NaT],
        pd.Series(pd.period_range("2026-01", periods=2, freq="M")),
        pd.cut(pd.Series([1, 2, None]), 2),
        pd.to_timedelta(pd.Series(["1s", None])),
    ],
)
def test_the_way_out_makes_text(values: Any) -> None:
    series = values if isinstance(values, pd.Series) else pd.Series(values, dtype=object)

    type_, converted = convert(series.astype("string"))

    assert type_ == "string"
    assert [value is None for value in converted] == list(series.isna())


@pytest.mark.parametrize(
    ("frame", "told"),
    [
        (pd.DataFrame({"id": [1]}), "has returned a DataFrame of pandas, which needs pyarrow: "),
        (pa.table({"id": [1]}), "has returned an Arrow table, which needs pyarrow: "),
    ],
)
def test_frames_need_pyarrow(frame: Any, told: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(PythonModelError, match=told):
        framed(frame)


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        (SPANS, "interval day to second", SPANS),
        (pd.to_timedelta(pd.Series(SPANS)), "interval day to second", SPANS),
        ([[1, None], None], "array<bigint>", [[1, None], None]),
        ([np.array([0.5, np.nan]), None], "array<double>", [[0.5, None], None]),
        ([[], None], "array<string>", [[], None]),
        (
            [{"a": 1, "b": Decimal(1)}, {"a": None, "c": [JANUARY.replace(tzinfo=None)]}],
            "struct<a:bigint,b:decimal(38,18),c:array<timestamp>>",
            [{"a": 1, "b": 1, "c": None}, {"a": None, "b": None, "c": [JANUARY]}],
        ),
    ],
)
def test_time_spans_and_nested_values_have_the_types_that_arrow_infers(
    values: Any, type_: str, expected: list[Any]
) -> None:
    assert convert(values) == (type_, expected)


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (pa.null(), None, "string"),
        (pa.uint8(), 255, "smallint"),
        (pa.uint16(), 65535, "int"),
        (pa.uint32(), 2**32 - 1, "bigint"),
        (pa.uint64(), 2**64 - 1, "decimal(20,0)"),
        (pa.float16(), 0.5, "float"),
        (pa.float64(), float("inf"), "double"),
        (pa.large_string(), "a", "string"),
        (pa.string_view(), "a", "string"),
        (pa.large_binary(), b"a", "binary"),
        (pa.binary(1), b"a", "binary"),
        (pa.date64(), dt.date(2026, 1, 1), "date"),
        (pa.timestamp("ns"), JANUARY, "timestamp"),
        (pa.timestamp("s", "Europe/Berlin"), JANUARY, "timestamp"),
        (pa.duration("s"), dt.timedelta(1), "interval day to second"),
        (pa.decimal128(10, 2), Decimal("1.50"), "decimal(10,2)"),
        (pa.decimal256(38, 2), Decimal("1.50"), "decimal(38,2)"),
        (pa.decimal128(3, -2), Decimal(100), "decimal(5,0)"),
        (pa.large_list(pa.uint64()), [2**64 - 1], "array<decimal(20,0)>"),
        (pa.list_(pa.int8(), 2), [1, 2], "array<tinyint>"),
        (pa.map_(pa.string(), pa.uint8()), {"a": 1}, "map<string,smallint>"),
        (pa.struct([("a", pa.null())]), {"a": None}, "struct<a:string>"),
    ],
)
def test_the_types_of_arrow_are_those_of_the_columns(
    type_: pa.DataType, value: Any, expected: str
) -> None:
    values = pa.array([list(value.items()) if pa.types.is_map(type_) else value, None], type_)

    result = framed(pa.table({"value": values}))

    assert result.types == {"value": expected}
    assert result.rows == [(value,), (None,)]


@pytest.mark.parametrize(
    "type_",
    [
        *(pa.list_view(pa.int8()), pa.month_day_nano_interval(), pa.uuid(), pa.time32("s")),
        *(pa.decimal128(3, 4), pa.decimal256(39, 0)),
        *(pa.struct([]), pa.struct([("a", pa.int8()), ("a", pa.int8())])),
    ],
)
def test_a_type_that_spark_does_not_have_is_refused(type_: pa.DataType) -> None:
    table = pa.table({"id": [1], "value": pa.nulls(1, type_)})

    with refused():
        framed(table)


def test_any_object_that_exports_an_arrow_stream_is_a_frame() -> None:
    class Exported:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            table = pa.table({"name": pa.array(["a", None]).dictionary_encode()})
            return table.__arrow_c_stream__(requested_schema)

    result = framed(Exported())

    assert result.types == {"name": "string"}
    assert result.rows == [("a",), (None,)]


def test_names_are_those_of_the_frame() -> None:
    frame = pd.DataFrame([[1, 2]], columns=["a", 2026], index=pd.Index([7], name="left out"))

    assert list(framed(frame).types) == ["a", "2026"]
    for unusable, told in (
        (pd.DataFrame([[1, 2]], columns=["2", 2]), "has more than one column `2`"),
        (pa.table([[1], [2]], ["a", "a"]), "has more than one column `a`"),
        (pd.DataFrame(index=[1]), "has no columns"),
    ):
        with pytest.raises(PythonModelError, match=told):
            framed(unusable)


def test_the_settings_of_the_session_are_set_back() -> None:
    assert framed(pd.DataFrame({"id": [1]})).conf == Session().conf
