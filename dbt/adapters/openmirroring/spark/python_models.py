"""Python models, and their DataFrames of pandas and tables of Arrow with the types that they have.

Spark's own conversion depends on its version and on settings of the session. For example, it can
make a text of a missing text, and doubles of nullable integers.

The driver of a Livy session also runs the source of this module. So it imports nothing but
PySpark, and pandas and PyArrow only where they are needed.
"""

from __future__ import annotations

import datetime as dt
import linecache
import sys
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

# Decimals of Python have no precision in common. Spark infers this type as well.
_DECIMAL = t.DecimalType(38, 18)

# types of Arrow and what holds their values in Spark; a column without any value is text
_HELD_AS = {
    "null": "string",
    "uint8": "int16",
    "uint16": "int32",
    "uint32": "int64",
    "halffloat": "float",
    "large_string": "string",
    "string_view": "string",
    "large_binary": "binary",
    "binary_view": "binary",
    "date64[ms]": "date32",
}

# settings that PySpark follows even if it gets the types
_SETTINGS = {
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
}


class PythonModelError(Exception):
    """A Python model raised an error, or returned no DataFrame that Spark can store."""


def create_view(name: str, code: str, session: SparkSession, node: str) -> None:
    """Run a Python model and register its result as a temporary view.

    Spark computes only what the model itself requests.

    Args:
        name: the name of the view, quoted
        code: the code that dbt has compiled: the model and its arguments

    Raises:
        PythonModelError: if the model raises an error, or returns no DataFrame
    """
    file = f"<{node}>"
    # so that tracebacks show the lines of the model
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"__name__": node, "spark": session}
    try:
        exec(compile(code, file, "exec"), scope)
        result = scope["model"](scope["dbtObj"](session.table), session)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = traceback.format_list([frame for frame in frames if frame.filename == file])
        message = "".join([*own, f"{type(error).__name__}: {error}"])
        raise PythonModelError(f"The Python model raised an error:\n{message}") from error
    # check the type, because in Spark Connect any attribute of a DataFrame may be a column
    if hasattr(type(result), "to_spark"):  # a DataFrame of the pandas API on Spark
        result = result.spark.frame()
    if not hasattr(result, "createOrReplaceTempView"):
        try:
            result = spark_frame(result, session)
        except Exception as error:
            raise PythonModelError(str(error)) from error
    if result.sparkSession is not session:
        result = _brought_to(session, result)
    result.createOrReplaceTempView(name)


def _brought_to(session: SparkSession, rows: DataFrame) -> DataFrame:
    """Return rows of another session as a DataFrame of this session.

    The pandas API on Spark, for example, uses the first session that it finds.
    """
    name = f"openmirroring_{uuid.uuid4().hex}"
    rows.createGlobalTempView(name)
    try:
        return session.table(f"global_temp.{name}")
    finally:
        session.catalog.dropGlobalTempView(name)


def spark_frame(frame: Any, session: SparkSession) -> DataFrame:
    """Return a DataFrame of pandas, or what exports an Arrow stream, as a DataFrame of Spark.

    Its types are those of the frame, whatever the session's settings are. Missing values are NULL.
    Times without a time zone are read as UTC. What else Spark can convert is left to Spark.

    Raises:
        PythonModelError: if a column has a type or a value that Spark cannot store, or PyArrow is
            not installed
    """
    pandas = sys.modules.get("pandas")  # imported by whoever has made such a frame
    if pandas and isinstance(frame, pandas.DataFrame):
        names = _checked([str(name) for name in frame.columns])
        series = [frame.iloc[:, number] for number in range(len(names))]
        series = [s.sparse.to_dense() if hasattr(s, "sparse") else s for s in series]
        _require_arrow("a DataFrame of pandas")
        return _from_arrow(names, _each(_arrow_values, names, series), session)
    if hasattr(type(frame), "__arrow_c_stream__"):
        _require_arrow("an Arrow table")
        import pyarrow as pa

        table = pa.table(frame)
        return _from_arrow(_checked(table.column_names), table.columns, session)
    try:
        return session.createDataFrame(frame)
    except Exception as error:
        raise PythonModelError(
            "The Python model must return a Spark or pandas DataFrame, or an Arrow table, not "
            f"{type(frame)}: {error}"
        ) from error


def _require_arrow(returned: str) -> None:
    """Raise an error if PyArrow is not installed in a version that PySpark can use."""
    from pyspark.sql.pandas.utils import require_minimum_pyarrow_version

    try:
        require_minimum_pyarrow_version()
    except Exception as error:  # PySpark's is an ImportError only from version 4 on
        raise PythonModelError(
            f"The Python model has returned {returned}, which needs pyarrow: {error}\n"
            "Install pyarrow where dbt runs, with Livy where the session runs, or return a "
            "DataFrame of Spark: `session.createDataFrame(rows, columns)`."
        ) from error


def _checked(names: list[str]) -> list[str]:
    """Return the names of the columns if they are those of a table."""
    if not names:
        raise PythonModelError("The DataFrame of the Python model has no columns.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PythonModelError(
            f"The DataFrame of the Python model has more than one column `{twice}`."
        )
    return names


def _each(convert: Callable[[Any], Any], names: list[str], columns: Iterable[Any]) -> list[Any]:
    """Convert every column. An error names the column that cannot be converted."""
    converted = []
    for name, column in zip(names, columns):  # noqa: B905 - Python 3.9
        try:
            converted.append(convert(column))
        except Exception as error:  # PyArrow's and PySpark's errors have no common class
            raise PythonModelError(
                f"The column `{name}` of the Python model cannot be stored: {error}\n"
                f'Convert it in the model. In pandas, `.astype("string")` makes text of it.'
            ) from error
    return converted


def _from_arrow(names: list[str], columns: Iterable[Any], session: SparkSession) -> DataFrame:
    import pyarrow as pa

    has_times = session.conf.get("spark.sql.timeType.enabled", "false") == "true"
    columns = _each(_held, names, columns)
    types = _each(lambda column: _spark_type(column.type, has_times), names, columns)
    schema = t.StructType(list(map(t.StructField, names, types)))
    table = pa.table(columns, names=names)
    if not table.num_rows:
        return session.createDataFrame([], schema)
    with _settings(session):
        if not pyspark.__version__.startswith("3."):
            return session.createDataFrame(table, schema)
        # PySpark 3.5 takes no tables, and not all nested values of pandas
        if not any(map(pa.types.is_nested, table.schema.types)):
            return session.createDataFrame(_pandas_frame(table), schema)
        values = (column.to_pylist(maps_as_pydicts="strict") for column in table.columns)
        return session.createDataFrame(list(zip(*values)), schema)  # noqa: B905 - Python 3.9


def _spark_type(type_: Any, has_times: bool) -> t.DataType:
    """Return the type of Spark, which may have no times of day."""
    from pyspark.sql.pandas.types import from_arrow_type

    found = from_arrow_type(type_)
    if "time(" in found.simpleString() and not has_times:
        raise ValueError("This Spark has no type for times of day.")
    return found


@contextmanager
def _settings(session: SparkSession) -> Iterator[None]:
    """Settings of the session that are in effect for a while."""
    if "connect" in type(session).__module__:  # follows none of them, and warns
        yield
        return
    former = {name: session.conf.get(name, None) for name in _SETTINGS}
    try:
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, before in former.items():
            session.conf.unset(name) if before is None else session.conf.set(name, before)


def _pandas_frame(table: Any) -> Any:
    """Return a table as a DataFrame of pandas whose types do not depend on NULLs."""
    import pandas as pd

    types = {f"int{bits}": pd.api.types.pandas_dtype(f"Int{bits}") for bits in (8, 16, 32, 64)}
    types |= {"bool": pd.BooleanDtype(), "float": pd.Float32Dtype(), "double": pd.Float64Dtype()}
    # nanoseconds do not reach all years
    return table.to_pandas(types_mapper=lambda of: types.get(str(of)), timestamp_as_object=True)


def _arrow_values(series: Any) -> Any:
    import pyarrow as pa

    if hasattr(series.dtype, "categories"):
        codes = series.cat.codes.to_numpy()
        return _arrow_values(series.cat.categories.to_series()).take(
            pa.array(codes, mask=codes < 0)
        )
    if series.dtype != object:
        return pa.array(series, from_pandas=True)
    present = series.dropna()
    if Decimal in set(map(type, present)):  # with integers, Arrow infers too few digits
        type_ = pa.decimal128(_DECIMAL.precision, _DECIMAL.scale)
    else:
        type_ = pa.infer_type(present.to_numpy(), from_pandas=True)
        _check_alike(present, type_)
    return pa.array(series, _held_type(type_, inferred=True), from_pandas=True)


def _check_alike(values: Iterable[Any], type_: Any) -> None:
    """Refuse values of types that Arrow would make one type of, such as dates and times."""
    from pyarrow import types

    if types.is_list(type_):
        lists = [value for value in values if hasattr(value, "__iter__")]
        _check_alike((part for value in lists for part in value), type_.value_type)
    elif types.is_struct(type_):
        structs = [value for value in values if isinstance(value, dict)]
        for field in type_:
            _check_alike((value.get(field.name) for value in structs), field.type)
    else:
        for kind in set(map(type, values)):
            is_flag = kind.__name__ in ("bool", "bool_")  # of Python and of NumPy
            is_time = issubclass(kind, dt.datetime) and kind.__name__ != "NaTType"
            if (
                (is_flag and not types.is_boolean(type_))
                or (is_time and types.is_date(type_))
                or (issubclass(kind, str) and types.is_binary(type_))
                or (issubclass(kind, (bytes, bytearray)) and types.is_string(type_))
            ):
                raise ValueError(f"{kind.__name__} is among values of the type {type_}.")


def _held(column: Any) -> Any:
    """Return a column of Arrow with a type that Spark has."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # a time has microseconds in Spark
    options = pc.CastOptions(_held_type(column.type), allow_time_truncate=True)
    held = pc.cast(column, options=options)
    if pa.types.is_nested(held.type):  # PySpark cannot convert all slices
        held = held.take(pa.array(range(len(held)), pa.int64()))
    return held


def _held_type(type_: Any, inferred: bool = False) -> Any:
    """Return the type of Arrow in which Spark can hold the values of a type.

    A type that was inferred from some values does not depend on their digits.
    """
    import pyarrow as pa
    from pyarrow import types

    def field(old: Any) -> Any:
        return old.with_type(_held_type(old.type, inferred)).with_nullable(True)

    if types.is_uint64(type_):
        return pa.decimal128(20, 0)
    if str(type_) in _HELD_AS:
        return pa.type_for_alias(_HELD_AS[str(type_)])
    if types.is_fixed_size_binary(type_):
        return pa.binary()
    if types.is_timestamp(type_):
        return pa.timestamp("us", "UTC")
    if types.is_time(type_):
        return pa.time64("ns")
    if types.is_duration(type_):
        return pa.duration("us")
    if types.is_decimal(type_):
        if inferred:
            return pa.decimal128(_DECIMAL.precision, _DECIMAL.scale)
        # PyArrow does not check a cast to fewer digits
        digits, scale = type_.precision - min(type_.scale, 0), max(type_.scale, 0)
        if digits > 38 or scale > digits:
            raise ValueError(f"{type_} is no decimal of Spark, which has up to 38 digits.")
        return pa.decimal128(digits, scale)
    if types.is_dictionary(type_):
        return _held_type(type_.value_type, inferred)
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return pa.list_(field(type_.value_field))
    if types.is_map(type_):
        return pa.map_(*(_held_type(part, inferred) for part in (type_.key_type, type_.item_type)))
    if types.is_struct(type_):
        names = {part.name for part in type_}
        if not names or len(names) < type_.num_fields:
            raise ValueError(f"{type_} has no field, or two of the same name.")
        return pa.struct([field(part) for part in type_])
    return type_
