"""What a node has left that failed after its rows were in Spark: nobody can publish it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.functional.project import Project

SQL = "select id, cast(v as string) as v from values (1, 'a'), (2, 'b') as t(id, v)"
CHANGED = SQL.replace("'b'", "'B'")
BREAKS = "insert into {{ this }} values (3, null)"

# post-hooks after which the node fails, and what its message says
FAILS = {
    "a contract": (BREAKS, "not_null (v) by 1 row"),
    "a key": ("insert into {{ this }} values (1, 'again')", "NULL or not unique"),
    "a hook": ("select raise_error('no')", "A post-hook failed"),
}
MODELS: dict[str, dict[str, Any]] = {
    "table": {"materialized": "table"},
    "incremental": {"materialized": "incremental", "on_schema_change": "fail"},
    "on request": {"materialized": "table", "publish": "on_request"},
    "after tests": {"materialized": "table", "publish": "after_tests"},
    "limited": {"materialized": "table", "max_deleted": 0},
}


def orders(project: Project, sql: str, **config: Any) -> None:
    columns = [
        {"name": "id", "data_type": "int"},
        {"name": "v", "data_type": "string", "constraints": [{"type": "not_null"}]},
    ]
    model = {"name": "orders", "columns": columns}
    project.write("models/orders.yml", yaml.safe_dump({"models": [model]}))
    project.write("tests/ids.sql", "select * from {{ ref('orders') }} where id < 0")
    project.model(sql, unique_key="id", contract={"enforced": True}, **config)


def operate(project: Project, operation: str) -> bool:
    return project.dbt("run-operation", operation, "--args", "{table: orders}")


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        *((kind, "a contract") for kind in MODELS),
        *(("table", why) for why in ("a key", "a hook")),
        ("incremental", "a hook"),
    ],
)
def test_rows_of_a_failed_node_cannot_be_published(project: Project, kind: str, why: str) -> None:
    config = MODELS[kind]
    hook, message = FAILS[why]
    orders(project, SQL, **config)
    project.run()
    operate(project, "mirror_publish")
    before = project.mirror()
    assert sum(before.values()) == 2
    orders(project, CHANGED, post_hook=hook, **config)

    assert message in project.fail()

    for operation in ("mirror_publish", "mirror_rebuild", "mirror_repair"):
        assert not operate(project, operation)
    assert project.dbt("test")
    assert project.mirror() == before
    # the way out: its next run publishes its rows
    if kind == "incremental" and why != "a hook":
        orders(project, CHANGED, materialized="table")
    else:
        orders(project, CHANGED, **config)
    project.run()
    assert project.dbt("test")
    if kind == "on request":
        assert operate(project, "mirror_publish")
    project.assert_mirrored()
    assert {dict(row)["v"] for row in project.mirror()} == {"str a", "str B"}


def test_rows_of_a_first_run_that_failed_cannot_be_published(project: Project) -> None:
    orders(project, SQL, post_hook=BREAKS)
    project.fail()

    assert not operate(project, "mirror_publish")
    assert not operate(project, "mirror_rebuild")

    assert not project.files()
    orders(project, SQL)
    project.run()
    project.assert_mirrored()


def test_held_rows_that_somebody_makes_break_the_contract_are_not_published(
    project: Project,
) -> None:
    orders(project, SQL, publish="on_request")
    project.run()
    project.sql(f"insert into {project.schema}.orders values (3, null)")

    assert not operate(project, "mirror_publish")

    assert not project.files()
    project.run()
    assert operate(project, "mirror_publish")
    project.assert_mirrored()


def test_an_error_of_rows_that_are_fetched_is_one_of_the_database(project: Project) -> None:
    query = "select raise_error('boom') from range(3)"
    project.model(f'{{% if execute %}}{{% do run_query("{query}") %}}{{% endif %}}select 1 as id')

    message = project.fail()

    assert message.startswith("Database Error")
    assert "boom" in message
    assert "JVM stacktrace" not in message
