"""Sources without `loaded_at_field`: dbt asks when their rows were last written."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
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


def freshness(project: Project, source: str) -> Any:
    """dbt's result for a source."""
    arguments = project.arguments("source", "freshness", "--select", f"source:raw.{source}")
    outcome: Any = dbtRunner().invoke(arguments).result
    [result] = outcome.results
    return result


@pytest.mark.core
def test_a_source_is_as_fresh_as_its_last_rows(project: Project) -> None:
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    project.write("models/sources.yml", SOURCES)
    project.model("select 1 as id", "loaded")
    project.run()

    result = freshness(project, "loaded")

    assert result.status == "pass"
    assert before <= result.max_loaded_at <= datetime.now(timezone.utc)


def test_a_view_has_no_time_of_its_own(project: Project) -> None:
    project.write("models/sources.yml", SOURCES)
    project.model("select 1 as id", "seen", materialized="view")
    project.run()

    result = freshness(project, "seen")

    assert result.status == "runtime error"
    assert "Set `loaded_at_field` or `loaded_at_query` for this source" in result.message
