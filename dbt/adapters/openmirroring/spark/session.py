"""A Spark session as dbt's connections want it."""

from __future__ import annotations

import logging
import re
import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.spark.connections import SparkConnectionWrapper
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame, Row, SparkSession

from dbt.adapters.openmirroring.spark import python_models
from dbt.adapters.openmirroring.spark.tasks import Tasks, follow_tasks

# A publication relies on these, whatever Spark it runs in. Spark reads them from the session: they
# cannot be options of the statement.
SESSION_SETTINGS = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.writeLegacyFormat": "false",
    # `describe` cuts off the type of a struct after so many fields, 25 by default
    "spark.sql.debug.maxToStringFields": "100000",
}


def silence_pyspark() -> None:
    """Keep PySpark from printing beside dbt.

    It prints every error a second time, as JSON with the JVM's stack, and warns at every start
    that pandas 3 is newer than it knows.
    """
    logging.getLogger("SQLQueryContextLogger").disabled = True
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)


# a query, after comments
_QUERY = re.compile(
    r"(?:\s|\(|/\*.*?\*/|--[^\n]*\n)*(?:select|with|values|from|table)\b",
    re.IGNORECASE | re.DOTALL,
)


class SessionHandle(SparkConnectionWrapper):
    """Statements of one node, in a session of its own: nothing leaks from one to the next.

    dbt-spark's handle asks the builder for the session, with all its settings, at every statement.
    """

    def cursor(self) -> SessionHandle:
        return self

    def execute(self, sql: str, bindings: list[Any] | None = None) -> None:
        if bindings:
            raise NotImplementedError("A Spark session has no bindings")
        self.run(sql.strip().rstrip(";"))

    @abstractmethod
    def run(self, sql: str) -> None:
        """Run one statement."""

    @abstractmethod
    def fetchall(self) -> list[Row]:
        """All rows of the last statement."""

    @abstractmethod
    def fetchmany(self, size: int) -> list[Row]:
        """The first rows of the last statement."""

    @abstractmethod
    def create_view(self, name: str, code: str, node: str) -> None:
        """Let Spark have the result of a Python model, as a temporary view.

        Args:
            name: of the view, quoted
            code: as dbt has compiled it
            node: for errors

        Raises:
            DbtRuntimeError: the model raises an error, or returns no DataFrame
        """

    def follow(self) -> Tasks:
        """How far Spark is with what this thread runs from now on, where it tells."""
        return lambda: None

    def run_to_end(self, sql: str) -> None:
        """Compute the rows of the last statement, if it is a query and nobody fetches them.

        A hook may be a query that is run for what it does, or for the error that it raises.
        """

    @property
    def is_driven_here(self) -> bool:
        """Spark's driver runs on this machine, so that they have the same files."""
        return False

    @property
    def is_local(self) -> bool:
        """Spark runs on this machine, and on no other."""
        return False

    def rollback(self) -> None:
        """Spark has no transactions."""


class PySparkHandle(SessionHandle):
    """A session that PySpark has in this process, or on a server of Spark Connect.

    Args:
        session: a new one
        settings: of this session
    """

    def __init__(self, session: SparkSession, settings: Mapping[str, str]) -> None:
        self.session = session
        for key, value in settings.items():
            self.session.conf.set(key, value)
        self._result: DataFrame | None = None

    def run(self, sql: str) -> None:
        self._result = self.session.sql(sql)

    def create_view(self, name: str, code: str, node: str) -> None:
        try:
            python_models.create_view(name, code, self.session, node)
        except python_models.PythonModelError as error:
            raise DbtRuntimeError(str(error)) from error

    def run_to_end(self, sql: str) -> None:
        if self._result is not None and _QUERY.match(sql):
            self._result.write.format("noop").mode("overwrite").save()

    def follow(self) -> Tasks:
        return follow_tasks(self.session)

    @property
    def is_driven_here(self) -> bool:
        # one that is asked through Spark Connect may be anywhere
        return isinstance(self.session, SparkSession)

    @property
    def is_local(self) -> bool:
        if not self.is_driven_here:
            return False
        return str(self.session.conf.get("spark.master", "")).startswith("local")

    @property
    def description(self) -> Sequence[tuple[Any, ...]]:
        fields = self._result.schema.fields if self._result is not None else []
        return [
            (field.name, field.dataType.simpleString(), None, None, None, None, field.nullable)
            for field in fields
        ]

    def fetchall(self) -> list[Row]:
        return self._result.collect() if self._result is not None else []

    def fetchmany(self, size: int) -> list[Row]:
        return self._result.take(size) if self._result is not None else []

    def cancel(self) -> None:
        self.session.interruptAll()

    def close(self) -> None:
        self._result = None
        if not self.is_driven_here:  # the server would keep the session for an hour
            self.session.stop()
