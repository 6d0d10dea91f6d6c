"""dbt's own tests for adapters, on the Spark of the other tests, with everything mirrored."""

from __future__ import annotations

import getpass
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.adapters.factory import reset_adapters
from dbt.tests.fixtures.project import *  # noqa: F403 - each version of dbt has others
from dbt.tests.fixtures.project import TestProjInfo
from pyspark.sql import SparkSession

from tests.functional import onelake
from tests.functional.project import mirrored_rows, relation_rows
from tests.onelake_server import OneLakeServer
from tests.spark_server import SparkServer

LANDING_ZONE = "mirror.MirroredDatabase/Files/LandingZone"


@pytest.fixture(scope="class")  # type: ignore[no-redef]
def dbt_profile_target(
    request: pytest.FixtureRequest, project_root: str, spark_server: SparkServer | None
) -> Iterator[dict[str, Any]]:
    # the adapter of another project, which a test may have left, would be taken for this one's
    reset_adapters()
    target: dict[str, Any] = {"type": "openmirroring", "landing_zone": LANDING_ZONE, "threads": 4}
    if spark_server:
        target |= spark_server.target(request.config.getoption("--method"))
    if not request.config.getoption("--onelake"):
        yield target
        return
    with pytest.MonkeyPatch.context() as monkeypatch:
        server = OneLakeServer()
        server.connect(monkeypatch)
        onelake.share(Path(project_root) / LANDING_ZONE, server, onelake.fabric(monkeypatch))
        yield target | onelake.TARGET
    assert not server.violations


@pytest.fixture(scope="class")  # type: ignore[no-redef]
def dbt_project_yml(
    project_root: str, project_config_update: dict[str, Any] | str | None, file_format: str
) -> dict[str, Any]:
    """The project of a test, with its tables in a format."""
    given = project_config_update
    config: dict[str, Any] = {
        "name": "test",
        "profile": "test",
        "flags": {"send_anonymous_usage_stats": False},
        **((yaml.safe_load(given) if isinstance(given, str) else given) or {}),
    }
    for kind in ("models", "seeds", "snapshots") if file_format != "parquet" else ():
        config[kind] = {"+file_format": file_format, **config.get(kind, {})}
    Path(project_root, "dbt_project.yml").write_text(yaml.safe_dump(config))
    return config


@pytest.fixture(scope="class")  # type: ignore[no-redef]
def profile_user(
    spark_server: SparkServer | None, file_format: str, dbt_profile_target: dict[str, Any]
) -> str | None:
    """Hive's catalog, which a server has, knows an owner: the profile's user, or the server's."""
    if file_format == "iceberg":
        pytest.skip(
            "Iceberg's tables have an owner and its views none; dbt's test has one for all"
        )
    return dbt_profile_target.get("user", getpass.getuser()) if spark_server else None


@pytest.fixture(scope="class", autouse=True)
def replica(
    request: pytest.FixtureRequest, spark: SparkSession, project: TestProjInfo
) -> Iterator[None]:
    """At the end, all that was published is in the mirror, as Spark has it."""
    # the project of another test may have set another
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield
    assert_replicated(request.cls, spark, project)


@pytest.fixture(autouse=True)
def mirror_of_what_is_there(spark: SparkSession, project: TestProjInfo) -> Iterator[None]:
    """The mirror of a schema that a test drops at its end goes too.

    This is set up before a fixture of the test's class, so it is torn down after it.
    """
    yield
    landing_zone = Path(project.project_root) / LANDING_ZONE
    for folder in landing_zone.glob("*.schema"):
        if not spark.catalog.databaseExists(f"`{folder.stem}`"):
            shutil.rmtree(folder)
            shutil.rmtree(landing_zone.parents[1] / "Tables" / folder.stem, ignore_errors=True)


@pytest.fixture(autouse=True)
def replica_before_clean_up(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    project: TestProjInfo,
    mirror_of_what_is_there: None,
) -> Iterator[None]:
    """A test that drops its schema at its end is compared before that."""
    clean_up = {"clean_up", "clear_test_schema"}.intersection(request.fixturenames)
    for name in clean_up:
        request.getfixturevalue(name)
    yield
    if clean_up:
        assert_replicated(request.cls, spark, project)


def assert_replicated(test: Any, spark: SparkSession, project: TestProjInfo) -> None:
    """All that a test has published is in the mirror, as Spark has it.

    Args:
        test: a class; it can name tables in `changed_by_hand`: those that it has written to with
            SQL of its own
    """
    changed_by_hand = getattr(test, "changed_by_hand", ())
    landing_zone = Path(project.project_root) / LANDING_ZONE
    for journal in landing_zone.glob("*.schema/*/_journal.json"):
        schema, table = journal.parent.parent.stem, journal.parent.name
        batch = json.loads(journal.read_text())["batch"]["id"]
        if table not in changed_by_hand and spark.catalog.tableExists(f"`{schema}`.`{table}`"):
            properties = spark.sql(f"show tblproperties `{schema}`.`{table}`").collect()
            if batch in [row["value"] for row in properties]:
                mirror = mirrored_rows(landing_zone, schema, table)
                assert mirror == relation_rows(spark, schema, table), table
