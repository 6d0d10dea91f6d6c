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

    def __init__(self, answer: Callable[[str], list[tuple[str, ...]]]) -> None:
        self.conf: dict[str, str] = Settings()
        self._answer = answer

    def newSession(self) -> Spark:
        return Spark(self._answer)

    def table(self, name: str) -> Result:
        return self.sql(name)

    def sql(self, statement: str) -> Result:
        if statement == "times":
            return Times()
        if statement.startswith("setting "):
            return Result([(self.conf.get(statement.removeprefix("setting "), ""),)])
        return Result(self._answer(statement))


class Settings(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        self[key] = value


class Livy:
    """The server, what ran on it, and clients that do not sleep."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, in_fabric: bool = False) -> None:
        self.ran: list[str] = []
        self.slept: list[float] = []
        self.released = threading.Event()
        self.server = LivyServer(lambda: {"spark": Spark(self._answer), "sc": self}, in_fabric)
        slept = self.slept

        class Transport(RequestsTransport):  # type: ignore[misc] # it is imported lazily
            def sleep(self, duration: float) -> None:
                slept.append(duration)

        monkeypatch.setattr(azure_requests, "RequestsTransport", Transport)

    def client(self, **settings: Any) -> LivyClient:
        return LivyClient(servers.LivyServer(self.server.url, **settings), None)

    def _answer(self, statement: str) -> list[tuple[str, ...]]:
        self.ran.append(statement)
        if statement == "wait":
            self.released.wait()
        if statement == "fail":
            raise ValueError("[SOME_CLASS] It failed. SQLSTATE: 42000;\n'Project [*]\n")
        return [(statement,)]

    # of the SparkContext

    def setJobGroup(self, _group: str, _text: str) -> None:
        self.released.clear()

    def cancelJobGroup(self, _group: str) -> None:
        self.released.set()
