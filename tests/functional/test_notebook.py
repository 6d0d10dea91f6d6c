"""The cells of the documentation, in a notebook of Fabric: with its session and its tokens."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.utils import parse_wheel_filename
from pyspark.sql import SparkSession

from tests.fabric_notebook import Notebook
from tests.fabric_server import FabricServer
from tests.functional.project import Project
from tests.onelake_server import ITEM, WORKSPACE, OneLakeServer

PAGE = Path(__file__).parents[2] / "docs" / "fabric.md"
HEADLINE = "## In a Fabric notebook"

pytestmark = pytest.mark.needs(session="a notebook has its session in the process of dbt")


def documented_cells() -> list[str]:
    """The cells of the section in the documentation."""
    section = PAGE.read_text().partition(f"\n{HEADLINE}\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


@pytest.mark.core
def test_three_cells_publish_a_project_and_leave_the_session_as_it_was(
    onelake: Project,
    server: OneLakeServer,
    fabric: FabricServer,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if onelake.file_format == "iceberg":
        pytest.skip("Iceberg's catalogs list temporary views in none but their own schemas")
    notebook = Notebook()
    notebook.enter(monkeypatch)
    server.token, fabric.token = notebook.token("storage"), notebook.token("pbi")
    onelake.model(
        "select * from mine",
        unique_key="id",
        pre_hook="create or replace temporary view mine as select 1 as id",
    )
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    spark.sql("select 'of the user' as id").createOrReplaceTempView("mine")
    before = state(spark)

    install, profile, run = documented_cells()
    profile = profile.replace("/lakehouse/default/Files/shop", str(onelake.path))
    profile = profile.replace("<workspace>/<item>.MirroredDatabase", f"{WORKSPACE}/{ITEM}")
    profile = profile.replace("schema: analytics", f"schema: {onelake.schema}")
    # Fabric's Spark has a driver for OneLake, and this one has none
    profile = profile.replace("threads: 4", "threads: 4\n      staging_location: staging")
    cells: dict[str, Any] = {"spark": spark}
    try:
        exec(profile, cells)
        exec(run, cells)

        assert state(spark) == before
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.catalog.dropTempView("mine")
    command, _, requirement = install.strip().partition(" install ")
    assert command == "%pip"
    name, version, *_ = parse_wheel_filename(Path(requirement).name)
    assert (name, str(version)) == ("dbt-openmirroring", metadata.version("dbt-openmirroring"))
    onelake.assert_mirrored()
    assert set(notebook.asked) == {"storage", "pbi"}
    assert server.requests
    assert fabric.requests


def state(spark: SparkSession) -> dict[str, Any]:
    """Return the parts of a session that a user sees."""
    return {
        "settings": {row.key: row.value for row in spark.sql("set").collect()},
        "schema": spark.catalog.currentDatabase(),
        "views": [(name, spark.table(name).collect()) for name in temporary_views(spark)],
        "active": SparkSession.getActiveSession() is spark,
    }


def temporary_views(spark: SparkSession) -> list[str]:
    return [row.viewName for row in spark.sql("show views").collect() if row.isTemporary]
