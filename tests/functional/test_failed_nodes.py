"""What a node has left that failed after its rows were in Spark: nobody can publish it."""

from __future__ import annotations

from typing import Any

import yaml

from tests.functional.project import Project

SQL = "select id, cast(v as string) as v from values (1, 'a'), (2, 'b') as t(id, v)"
CHANGED = SQL.replace("'b'", "'B'")
BREAKS = "insert into {{ this }} values (3, null)"

# post-hooks after which the node fails, and what its message says
CONTRACT = (BREAKS, "not_null (v) by 1 row")
KEY = ("insert into {{ this }} values (1, 'again')", "NULL or not unique")
HOOK = ("select raise_error('no')", "A post-hook failed")
INCREMENTAL = {"materialized": "incremental", "on_schema_change": "fail"}
NODES: dict[str, tuple[dict[str, Any], tuple[str, str]]] = {
    "a_table": ({}, CONTRACT),
    "new_rows": (INCREMENTAL, CONTRACT),
    "on_request": ({"publish": "on_request"}, CONTRACT),
    "with_a_key_twice": ({}, KEY),
    "new_rows_with_a_failing_hook": (INCREMENTAL, HOOK),
}


def write(project: Project, sql: str, name: str = "orders", **config: Any) -> None:
    columns = [
        {"name": "id", "data_type": "int"},
        {"name": "v", "data_type": "string", "constraints": [{"type": "not_null"}]},
    ]
    model = {"name": name, "columns": columns}
    project.write(f"models/{name}.yml", yaml.safe_dump({"models": [model]}))
    project.write(f"tests/{name}_ids.sql", f"select * from {{{{ ref('{name}') }}}} where id < 0")
    project.model(sql, name, unique_key="id", contract={"enforced": True}, **config)


def operate(project: Project, operation: str, table: str = "orders") -> bool:
    return project.dbt("run-operation", operation, "--args", f"{{table: {table}}}")


def test_rows_of_failed_nodes_cannot_be_published(project: Project) -> None:
    for name, (config, _) in NODES.items():
        write(project, SQL, name, **config)
    project.run()
    assert project.dbt("run-operation", "mirror_publish")
    before = {name: project.mirror(name) for name in NODES}
    for name, (config, (hook, _)) in NODES.items():
        assert sum(before[name].values()) == 2
        write(project, CHANGED, name, post_hook=hook, **config)

    project.fail()

    told = project.results()
    for name, (_, (_, message)) in NODES.items():
        assert message in told[name]["message"]
        assert not operate(project, "mirror_rebuild", name)
    assert not project.dbt("run-operation", "mirror_publish")
    for name in ("a_table", "new_rows"):
        assert not operate(project, "mirror_repair", name)
    assert project.dbt("test")
    assert {name: project.mirror(name) for name in NODES} == before
    # the way out: its next run publishes its rows
    for name, (config, why) in NODES.items():
        is_table = config == INCREMENTAL and why == CONTRACT
        write(project, CHANGED, name, **({} if is_table else config))
    project.run()
    assert project.dbt("test")
    assert operate(project, "mirror_publish", "on_request")
    for name in NODES:
        project.assert_mirrored(name)
        assert {dict(row)["v"] for row in project.mirror(name)} == {"str a", "str B"}


def test_rows_of_a_first_run_that_failed_cannot_be_published(project: Project) -> None:
    write(project, SQL, post_hook=BREAKS)
    project.fail()

    assert not operate(project, "mirror_publish")
    assert not operate(project, "mirror_rebuild")

    assert not project.files()
    write(project, SQL)
    project.run()
    project.assert_mirrored()


def test_held_rows_that_somebody_makes_break_the_contract_are_not_published(
    project: Project,
) -> None:
    write(project, SQL, publish="on_request")
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
