"""Running Python models in the Spark session of their node.

The driver of a Livy session also runs the source of this module. So it imports nothing but
PySpark.
"""

from __future__ import annotations

import linecache
import traceback
import uuid
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession


class PythonModelError(Exception):
    """A Python model raised an error, or returned no DataFrame."""


def create_view(
    name: str,
    code: str,
    session: SparkSession,
    node: str,
    spark_frame: Callable[[Any, SparkSession], DataFrame],
) -> None:
    """Run a Python model and register its result as a temporary view.

    Spark computes only what the model itself requests.

    Args:
        name: the name of the view, quoted
        code: the code that dbt has compiled: the model and its arguments
        session: the Spark session of the model
        node: the name of the node, for errors
        spark_frame: the function of `frames.py`

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
