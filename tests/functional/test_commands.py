"""dbt's commands and switches, on mirrored tables."""

from __future__ import annotations

import shutil
from typing import Any

import pytest
import yaml

from tests.functional.project import Project


def statuses(project: Project) -> dict[str, str]:
    return {name: result["status"] for name, result in project.results().items()}


def published(project: Project) -> set[str]:
    """The table folders that have data files, without the schema that the test was given."""
    files = project.landing_zone.glob("*.schema/*/*.parquet")
    return {
        f"{file.parent.parent.name.removeprefix(project.schema)}/{file.parent.name}"
        for file in files
    }


def test_a_retry_publishes_what_failed_and_what_was_skipped(project: Project) -> None:
    project.model("select 1 as id", "good", unique_key="id")
    project.model("select nothing as id", "bad", unique_key="id")
    project.model("select * from {{ ref('bad') }}", "after", unique_key="id")
    project.fail()
    assert statuses(project) == {"good": "success", "bad": "error", "after": "skipped"}
    assert published(project) == {".schema/good"}

    project.model("select 2 as id", "bad", unique_key="id")
    project.run(command="retry")

    assert statuses(project) == {"bad": "success", "after": "success"}
    assert len(project.files("good")) == 1
    for table in ("good", "bad", "after"):
        project.assert_mirrored(table)


@pytest.mark.core
def test_with_fail_fast_no_table_is_left_half_published(project: Project) -> None:
    project.model("select nothing as id", "bad")
    for number in range(4):
        project.model(f"select {number} as id", f"other_{number}", unique_key="id")

    project.fail("--fail-fast")
    if project.target.get("method") != "thrift":  # its server may not have stopped yet
        project.assert_tidy()

    project.model("select 1 as id", "bad")
    project.run()
    for table in ("bad", *(f"other_{number}" for number in range(4))):
        assert len(project.files(table)) == 1
        project.assert_mirrored(table)


@pytest.mark.manifest_file
@pytest.mark.core
def test_with_defer_a_model_reads_what_another_target_has(project: Project) -> None:
    project.model("select 1 as id, 'production' as origin", "customers", unique_key="id")
    project.model("select * from {{ ref('customers') }}", unique_key="id")
    project.run("--select", "customers")
    shutil.copytree(project.path / "target", project.path / "production")
    project.target["schema"] = f"{project.schema}_dev"
    project.write_project()

    project.run("--select", "orders", "--defer", "--state", str(project.path / "production"))

    assert published(project) == {".schema/customers", "_dev.schema/orders"}
    production, project.schema = project.schema, f"{project.schema}_dev"
    assert dict(*project.relation()) == {"id": "int 1", "origin": "str production"}
    project.assert_mirrored()
    project.schema = production


def test_folders_have_the_names_that_dbt_gives_to_relations(project: Project) -> None:
    project.model("select 1 as id", unique_key="id", schema="marts", alias="Sales_Orders")

    project.run()

    assert published(project) == {"_marts.schema/Sales_Orders"}


def test_a_project_may_name_its_schemas_itself(project: Project) -> None:
    project.write(
        "macros/names.sql",
        "{% macro generate_schema_name(name, node) %}"
        "{{ target.schema ~ ('__' ~ name if name else '') }}{% endmacro %}",
    )
    project.model("select 1 as id", unique_key="id", schema="marts")

    project.run()

    assert published(project) == {"__marts.schema/orders"}


def test_a_build_stops_at_a_unit_test_that_fails(project: Project) -> None:
    project.model("select 1 as id, 2 as price", "prices", unique_key="id")
    project.model("select id, price * 2 as price from {{ ref('prices') }}", unique_key="id")
    write_unit_test(project, expected=5)
    project.fail(command="build")
    assert project.results()["prices"]["status"] == "success"
    assert published(project) == {".schema/prices"}

    write_unit_test(project, expected=4)
    project.run(command="build")

    assert published(project) == {".schema/prices", ".schema/orders"}
    project.assert_mirrored()


def write_unit_test(project: Project, expected: int) -> None:
    unit_test: dict[str, Any] = {
        "name": "orders_doubles",
        "model": "orders",
        "given": [{"input": "ref('prices')", "rows": [{"id": 1, "price": 2}]}],
        "expect": {"rows": [{"id": 1, "price": expected}]},
    }
    project.write("models/tests.yml", yaml.safe_dump({"unit_tests": [unit_test]}))


@pytest.mark.core
def test_tags_select_what_is_published(project: Project) -> None:
    project.model("select 1 as id", "daily", unique_key="id", tags=["daily"])
    project.model("select 1 as id", "weekly", unique_key="id", tags=["weekly"])

    project.run("--select", "tag:daily")

    assert published(project) == {".schema/daily"}
