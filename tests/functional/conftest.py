"""dbt projects to run, all on one Spark."""

from __future__ import annotations

import os
import time

# before Spark starts: rows come back to Python in the local time zone
os.environ["TZ"] = "UTC"
time.tzset()

from collections.abc import Iterator  # noqa: E402
from pathlib import Path  # noqa: E402

import pytest  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

from dbt.adapters.openmirroring import embedded_spark, service  # noqa: E402
from tests.fabric_server import Database, FabricServer  # noqa: E402
from tests.functional.project import Project  # noqa: E402
from tests.onelake_server import ITEM, WORKSPACE  # noqa: E402


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The embedded Spark, with a catalog in memory: every dbt run of this process finds it."""
    settings = {
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "2g",
        # a type that tables do not have otherwise
        "spark.sql.timeType.enabled": "true",
    }
    session = embedded_spark.start(tmp_path_factory.mktemp("spark"), settings)
    yield session
    session.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what the tests have counted."""
    counted = [
        f"{what}: {count}"
        for report in terminalreporter.getreports("passed")
        for what, count in report.user_properties
    ]
    if counted:
        terminalreporter.section("counted")
        terminalreporter.write_line("\n".join(counted))


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Iterator[Project]:
    created = Project(tmp_path, spark)
    yield created
    created.assert_replicated()
    spark.sql(f"drop schema if exists {created.schema} cascade")


@pytest.fixture
def fabric(monkeypatch: pytest.MonkeyPatch) -> FabricServer:
    """Fabric's REST API, and in it the mirrored database of the landing zone in OneLake."""
    server = FabricServer()
    server.workspace(WORKSPACE, Database(ITEM.partition(".")[0]))
    server.connect(monkeypatch)
    monkeypatch.setattr(service, "PAUSE", 0.01)
    return server
