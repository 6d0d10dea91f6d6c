"""Python models: run on the session of their node.

Livy's driver runs the source of this module. So it imports nothing but PySpark.
"""

from __future__ import annotations

import linecache
import traceback
import uuid
from typing import Any

from pyspark.sql import DataFrame, SparkSession


class PythonModelError(Exception):
    """A Python model raised an error, or returned no DataFrame."""


def create_view(name: str, code: str, session: SparkSession, node: str) -> None:
    """Let Spark have the result of a Python model, as a temporary view.

    Nothing is computed by this but what the model itself asks for.

    Args:
        name: of the view, quoted
        code: as dbt has compiled it: the model, and the objects that it is called with
        session: the `session` of the model
        node: for errors

    Raises:
        PythonModelError: the model raises, or returns no DataFrame
    """
    file = f"<{node}>"
    # so that tracebacks show the lines
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
    # asked of the type: to Spark Connect any attribute of a DataFrame may be a column
    if hasattr(type(result), "to_spark"):  # of the pandas API on Spark
        result = result.spark.frame()
    if not hasattr(result, "createOrReplaceTempView"):
        try:
            result = session.createDataFrame(result)
        except Exception as error:
            raise PythonModelError(
                f"The Python model must return a Spark or pandas DataFrame, not {type(result)}: "
                f"{error}"
            ) from error
    if result.sparkSession is not session:
        result = _brought_to(session, result)
    result.createOrReplaceTempView(name)


def _brought_to(session: SparkSession, rows: DataFrame) -> DataFrame:
    """Rows of another session; the pandas API on Spark, for one, takes the first that it finds."""
    name = f"openmirroring_{uuid.uuid4().hex}"
    rows.createGlobalTempView(name)
    try:
        return session.table(f"global_temp.{name}")
    finally:
        session.catalog.dropGlobalTempView(name)
