"""A Spark session as dbt's connections want it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.spark.connections import SparkConnectionWrapper
from pyspark.sql import DataFrame, Row, SparkSession


class SessionHandle(SparkConnectionWrapper):
    """Statements of one node, in a session of its own: nothing leaks from one to the next.

    dbt-spark's handle asks the builder for the session, with all its settings, at every statement.

    Args:
        spark: whose catalog is shared
        settings: of the new session
    """

    def __init__(self, spark: SparkSession, settings: Mapping[str, str]) -> None:
        self.session = spark.newSession()
        for key, value in settings.items():
            self.session.conf.set(key, value)
        self._result: DataFrame | None = None

    def cursor(self) -> SessionHandle:
        return self

    def execute(self, sql: str, bindings: list[Any] | None = None) -> None:
        if bindings:
            raise NotImplementedError("A Spark session has no bindings")
        self._result = self.session.sql(sql.strip().rstrip(";"))

    @property
    def is_local(self) -> bool:
        """Spark runs on this machine, and on no other."""
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

    def rollback(self) -> None:
        """Spark has no transactions."""
