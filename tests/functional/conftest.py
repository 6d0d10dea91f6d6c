"""dbt projects to run, all on one Spark."""

from __future__ import annotations

import os
import shutil
import time

# before Spark starts: rows come back to Python in the local time zone
os.environ["TZ"] = "UTC"
time.tzset()

from collections.abc import Callable, Iterator  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import dbt.parser.manifest  # noqa: E402
import dbt.task.runnable  # noqa: E402
import pytest  # noqa: E402
from dbt_common.behavior_flags import BehaviorFlagRendered  # noqa: E402
from dbt_common.tests import enable_test_caching  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

from dbt.adapters.openmirroring.spark.embedded import start as embedded_spark  # noqa: E402
from tests.fabric_server import FabricServer  # noqa: E402
from tests.functional import onelake as in_onelake  # noqa: E402
from tests.functional.project import Project  # noqa: E402
from tests.onelake_server import OneLakeServer  # noqa: E402
from tests.spark_formats import format_settings  # noqa: E402
from tests.spark_server import SparkServer  # noqa: E402

# dbt parses a macro once in this process, and not with each other value of a variable
enable_test_caching()

# of projects, so that dbt has to parse its macros only once
SCHEMA = "test_shop"

SECRET = "s3cret"

SETTINGS = {
    "spark.hadoop.fs.s3a.secret.key": SECRET,
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.memory": "2g",
    # a publication does not follow these
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    "spark.sql.parquet.writeLegacyFormat": "true",
    # Most statements are run only a few times, so compiling them well is not worth it. The code of
    # so many statements does not fit in the usual cache.
    "spark.driver.extraJavaOptions": (
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m "
        "-XX:+UseSerialGC -XX:MetaspaceSize=256m"
    ),
    # a type that tables do not have otherwise
    "spark.sql.timeType.enabled": "true",
}

# what a test can need: an option, and its values with which the test makes sense
NEEDS: dict[str, tuple[Any, ...]] = {
    "local": ("--onelake", False),
    "session": ("--method", "session"),
    "pyspark": ("--method", "session", "connect", "livy"),
    "parquet": ("--file-format", "parquet"),
}

# generating and compiling Java takes longer than interpreting an expression for a few rows
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="session", autouse=True)
def _cache_of_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A folder of this process: a Spark that starts ends idle ones that the folder names."""
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session", autouse=True)
def _flags_without_source() -> Iterator[None]:
    """In each command dbt reads the code of all callers, to tell where its flags are declared."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(BehaviorFlagRendered, "_default_source", lambda _: "dbt")
        yield


@pytest.fixture(scope="session")
def file_format(request: pytest.FixtureRequest) -> str:
    """Of the tables in Spark."""
    return str(request.config.getoption("--file-format"))


@pytest.fixture(scope="session")
def spark_server(
    request: pytest.FixtureRequest, file_format: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkServer | None]:
    """The server that dbt connects with; None if it finds the embedded Spark in its process."""
    method = request.config.getoption("--method")
    if method == "session":
        yield None
        return
    folder = tmp_path_factory.mktemp("server")
    settings = SETTINGS | format_settings(file_format, folder)
    server = SparkServer(folder, settings, with_livy=method == "livy")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def spark(
    request: pytest.FixtureRequest,
    spark_server: SparkServer | None,
    file_format: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SparkSession]:
    """The Spark of all projects: embedded with a catalog in memory, or that of a server."""
    if spark_server:
        session = SparkSession.builder.remote(spark_server.url).create()
    else:
        folder = tmp_path_factory.mktemp("formats")
        settings = {**SETTINGS, "spark.sql.catalogImplementation": "in-memory"}
        settings |= format_settings(file_format, folder)
        if request.config.getoption("--interpreted"):
            settings |= INTERPRETED
        setup = embedded_spark.SparkSetup(tmp_path_factory.mktemp("spark"), settings)
        embedded = embedded_spark.start(setup)  # its JVM ends with this object
        session = embedded.session
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


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("needs"):
        for what, reason in marker.kwargs.items():
            option, *fitting = NEEDS[what]
            if item.config.getoption(option) not in fitting:
                pytest.skip(reason)


@pytest.fixture(scope="session")
def new_project(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    spark_server: SparkServer | None,
    file_format: str,
) -> Callable[[Path], Project]:
    """A project in a folder, on the Spark of all projects."""

    def create(path: Path) -> Project:
        created = Project(path, spark, file_format)
        if spark_server:
            created.target |= spark_server.target(request.config.getoption("--method"))
            created.write_project()
        return created

    return create


@pytest.fixture(scope="session")
def parsed_macros(
    new_project: Callable[[Path], Project], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return dbt's file of a parsed project, here of one that has nothing of its own."""
    project = new_project(tmp_path_factory.mktemp("parsed"))
    project.name_schema(SCHEMA)
    assert project.dbt("parse")
    return project.path / "target" / "partial_parse.msgpack"


@pytest.fixture
def manifest_file() -> None:
    """Let dbt write manifest.json, which other tests do without."""


@pytest.fixture
def project(
    request: pytest.FixtureRequest,
    new_project: Callable[[Path], Project],
    parsed_macros: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Project]:
    if "manifest_file" not in request.fixturenames:
        # each command writes it twice, and hardly a test reads it
        for module in (dbt.parser.manifest, dbt.task.runnable):
            monkeypatch.setattr(module, "write_manifest", lambda *_, **__: None)
    created = new_project(tmp_path)
    created.name_schema(SCHEMA)
    (tmp_path / "target").mkdir()
    shutil.copy(parsed_macros, tmp_path / "target")
    if request.config.getoption("--onelake"):
        server, fabric = (request.getfixturevalue(name) for name in ("server", "fabric"))
        in_onelake.publish_to_onelake(created, server, fabric)
    yield created
    try:
        created.assert_replicated()
    finally:
        created.drop_schemas(f"{SCHEMA}*")


@pytest.fixture(params=["small", pytest.param("large", marks=pytest.mark.slow)])
def each_size(request: pytest.FixtureRequest, project: Project) -> None:
    """Tables are taken for small ones, as they are, or for large ones."""
    if request.param == "large":
        project.take_tables_for_large()


@pytest.fixture
def fabric(monkeypatch: pytest.MonkeyPatch) -> FabricServer:
    """Fabric's REST API, and in it the mirrored database of the landing zone in OneLake."""
    return in_onelake.fabric(monkeypatch)


@pytest.fixture
def onelake(project: Project, server: OneLakeServer, fabric: FabricServer) -> Project:
    """The project, with its landing zone in OneLake."""
    in_onelake.publish_to_onelake(project, server, fabric)
    return project
