"""How fresh sources are: by their values, or by when their rows were last written."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from dbt.cli.main import dbtRunner

from tests.functional.project import Project

SOURCES = """
sources:
  - name: raw
    schema: "{{ target.schema }}"
    config:
      freshness: {warn_after: {count: 1, period: hour}}
    tables: [{name: loaded}, {name: seen}]
"""

SALES = """
sources:
  - name: sales
    schema: "{{ target.schema }}"
    config:
      freshness: {warn_after: {count: 26, period: hour}}
    tables:
      - name: orders
      - name: customers
        config: {loaded_at_query: "select max(ordered_at) from {{ target.schema }}.orders"}
"""


def freshness(project: Project, source: str, of: str = "raw") -> Any:
    """dbt's result for a source."""
    arguments = project.arguments("source", "freshness", "--select", f"source:{of}.{source}")
    outcome: Any = dbtRunner().invoke(arguments).result
    [result] = outcome.results
    return result


def test_a_source_is_as_fresh_as_its_last_rows_and_a_view_has_no_time(project: Project) -> None:
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    project.write("models/sources.yml", SOURCES)
    project.model("select 1 as id", "loaded")
    project.model("select 1 as id", "seen", materialized="view")
    project.run()

    loaded, seen = freshness(project, "loaded"), freshness(project, "seen")

    assert loaded.status == "pass"
    assert before <= loaded.max_loaded_at <= datetime.now(timezone.utc)
    assert seen.status == "runtime error"
    assert "Set `loaded_at_field` or `loaded_at_query` for this source" in seen.message


def test_a_mirrored_table_is_as_fresh_as_its_rows_in_spark(
    project: Project,
) -> None:
    # dbt takes a time without an offset for one in UTC
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": "Europe/Berlin"}
    project.write_project()
    project.write("models/sales.yml", SALES.replace("{{ target.schema }}", project.schema))
    old = "select 1 as id, timestamp'2024-05-01 12:00:00' as ordered_at"
    project.model(old, "orders", unique_key="id")
    project.model("select 1 as id", "customers", unique_key="id")
    project.run()

    by_value, by_file = (
        freshness(project, "customers", "sales"),
        freshness(project, "orders", "sales"),
    )

    assert (by_value.status, by_file.status) == ("warn", "pass")
    assert by_value.max_loaded_at == datetime(2024, 5, 1, 10, tzinfo=timezone.utc)

    # rows that are held are in Spark, and not in the mirror
    new = old.replace("2024", "2025")
    project.model(new, "orders", unique_key="id", publish="on_request")
    project.run("--select", "orders")

    assert freshness(project, "orders", "sales").max_loaded_at > by_file.max_loaded_at
    assert freshness(project, "customers", "sales").max_loaded_at.year == 2025
    assert len(project.files("orders")) == 1
