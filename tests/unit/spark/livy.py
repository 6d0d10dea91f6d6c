"""A Livy whose sessions have no Spark, but what the code that is sent needs of one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from azure.core.pipeline.transport import RequestsTransport
from pyspark.sql import Row
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from dbt.adapters.openmirroring.rest import azure_requests
from dbt.adapters.openmirroring.spark import servers
from dbt.adapters.openmirroring.spark.livy.client import LivyClient
from dbt.adapters.openmirroring.types.crossing import selection
from tests.livy_server import LivyServer


class Result:
    def __init__(self, rows: list[tuple[str, ...]]) -> None:
        width = len(rows[0]) if rows else 0
        self.schema = StructType([StructField(f"c{n}", StringType()) for n in range(width)])
        self._rows = rows

    def collect(self) -> list[Row]:
        return [Row(*row) for row in self._rows]


class Times(Result):
    """A column of a timestamp, which is the text of what was selected."""

    def __init__(self) -> None:
        super().__init__([])
        self.schema = StructType([StructField("at", TimestampType())])

    def toDF(self, *names: str) -> Times:
        assert names == ("c0",)
        return self

    def selectExpr(self, *sql: str) -> Result:
        assert sql == (selection(["timestamp"])["c0"],)
        return Result([("2024-10-27 02:30:00|1729992600000000|false",)])


class Spark:
    """In place of a SparkSession.

    Args:
        answer: what a statement returns; it may raise
    """

    def __init__(self, answer: Callable[[str, str], list[tuple[str, ...]]], context: Livy) -> None:
        self.conf: dict[str, str] = Settings()
        self.sparkContext = context
        self._answer = answer

    def newSession(self) -> Spark:
        return Spark(self._answer, self.sparkContext)

    def table(self, name: str) -> Result:
        return self.sql(name)

    def sql(self, statement: str) -> Result:
        if statement == "times":
            return Times()
        if statement.startswith("setting "):
            return Result([(self.conf.get(statement.removeprefix("setting "), ""),)])
        return Result(self._answer(statement, self.conf.get("spark.jobGroup.id", "")))


class Settings(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        self.pop(key, None)


class Livy:
    """The server, what ran on it, and clients that do not sleep.

    A statement `wait` runs until it is cancelled, or all are released.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, in_fabric: bool = False) -> None:
        self.ran: list[str] = []
        self.running: list[str] = []
        self.slept: list[float] = []
        self.released = threading.Event()
        self.cancelled: set[str] = set()
        self.server = LivyServer(
            lambda: {"spark": Spark(self._answer, self), "sc": self}, in_fabric
        )
        slept = self.slept

        class Transport(RequestsTransport):  # type: ignore[misc] # it is imported lazily
            def sleep(self, duration: float) -> None:
                slept.append(duration)

        monkeypatch.setattr(azure_requests, "RequestsTransport", Transport)

    def client(self, **settings: Any) -> LivyClient:
        return LivyClient(servers.LivyServer(self.server.url, **settings), None)

    def _answer(self, statement: str, group: str) -> list[tuple[str, ...]]:
        self.ran.append(statement)
        if statement == "wait":
            self.running.append(group)
            try:
                while not self.released.wait(0.01):
                    if group in self.cancelled:
                        raise ValueError("Job cancelled")
            finally:
                self.running.remove(group)
        if statement == "fail":
            raise ValueError("[SOME_CLASS] It failed. SQLSTATE: 42000;\n'Project [*]\n")
        return [(statement,)]

    # of the SparkContext

    def setJobGroup(self, _group: str, _text: str) -> None:
        pass

    def cancelJobGroup(self, group: str) -> None:
        self.cancelled.add(group)
