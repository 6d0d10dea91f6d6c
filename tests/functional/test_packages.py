"""What packages for dbt-spark write is taken as dbt-spark takes it."""

from __future__ import annotations

import pytest

from tests.functional.project import Project

# a source that belongs to a database, but not in Spark
SOURCES = """
sources:
  - name: shop
    schema: "{{ target.schema }}"
    database: "{% if target.type != 'spark' %}{{ var('shop', target.database) }}{% endif %}"
    tables: [{name: numbers}]
  - name: other
    schema: "{{ target.schema }}"
    database: "{{ var('other', target.database) }}"
    tables: [{name: numbers}]
"""


@pytest.mark.core
def test_a_package_finds_its_sources_and_takes_its_branch_for_spark(project: Project) -> None:
    project.write("models/sources.yml", SOURCES)
    project.write("seeds/numbers.csv", "id\n1\n2\n")
    project.model(
        "select id, 'a' as name"
        "{% if target.type in ('bigquery', 'snowflake') %} not for Spark {% endif %}"
        " from {{ source('shop', 'numbers') }} join {{ source('other', 'numbers') }} using (id)",
        partition_by="BRANCH",
        file_format="",
        options="",
        clustered_by="",
        buckets="",
        compression="",
        publish="",
        max_deleted="",
    )
    orders = project.path / "models" / "orders.sql"
    branch = "{'field': 'id', 'data_type': 'int64'} if target.type not in ['spark'] else ['id']"
    orders.write_text(orders.read_text().replace("'BRANCH'", branch))

    project.run(command="seed")
    project.run()

    project.assert_mirrored()
    project.assert_mirrored("numbers")
