"""Python models: run where dbt runs, on the session of their node."""

from __future__ import annotations

import linecache
import traceback
import uuid
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.openmirroring.spark.relation import quoted


def create_view(name: str, code: str, session: SparkSession, node: str) -> None:
    """Let Spark have the result of a Python model, as a temporary view.

    Nothing is computed by this but what the model itself asks for.

    Args:
        name: of the view
        code: as dbt has compiled it: the model, and the objects that it is called with
        session: the `session` of the model
        node: for errors

    Raises:
        DbtRuntimeError: the model raises, or returns what is no DataFrame
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
        raise DbtRuntimeError(f"The Python model raised an error:\n{message}") from error
    # asked of the type: to Spark Connect any attribute of a DataFrame may be a column
    if hasattr(type(result), "to_spark"):  # of the pandas API on Spark
        result = result.spark.frame()
    if not hasattr(result, "createOrReplaceTempView"):
        try:
            result = session.createDataFrame(result)
        except Exception as error:
            raise DbtRuntimeError(
                f"The Python model must return a Spark or pandas DataFrame, not {type(result)}: "
                f"{error}"
            ) from error
    if result.sparkSession is not session:
        result = _brought_to(session, result)
    result.createOrReplaceTempView(quoted(name))


def _brought_to(session: SparkSession, rows: DataFrame) -> DataFrame:
    """Rows of another session; the pandas API on Spark, for one, takes the first that it finds."""
    name = f"openmirroring_{uuid.uuid4().hex}"
    rows.createGlobalTempView(name)
    try:
        return session.table(f"global_temp.{name}")
    finally:
        session.catalog.dropGlobalTempView(name)
