"""dbt's functions: in Spark's catalog before the models that use them."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.functional.project import Project

pytest.importorskip("dbt.task.function", reason="dbt-core has functions since 1.11")

ROWS = (
    "select id, {{ function('gross') }}(net) as price from values (1, 100), (2, 200) as t(id, net)"
)


@pytest.fixture(autouse=True)
def catalog_of_spark(file_format: str) -> None:
    if file_format == "iceberg":
        pytest.skip("Iceberg's catalogs have no functions")


def function(
    project: Project,
    body: str = "net * 1.2",
    name: str = "gross",
    language: str = "sql",
    **properties: Any,
) -> None:
    """Write a function of one argument, and its properties as in YAML."""
    described = {
        "name": name,
        "arguments": [{"name": "net", "data_type": "decimal(10, 2)"}],
        "returns": {"data_type": "decimal(10, 2)"},
        **properties,
    }
    project.write(f"functions/{name}.{language}", body)
    project.write(f"functions/{name}.yml", yaml.safe_dump({"functions": [described]}))


def prices(project: Project) -> list[str]:
    return [
        str(row["price"])
        for row in project.sql(f"select * from {project.schema}.orders order by id")
    ]


def is_there(project: Project) -> bool:
    found = project.sql(f"show user functions in {project.schema}")
    return any(row["function"].endswith(f"{project.schema}.gross") for row in found)


@pytest.mark.core
def test_a_function_is_there_before_the_model_that_uses_it(project: Project) -> None:
    function(project)
    project.model(ROWS, unique_key="id")

    project.run(command="build")

    assert is_there(project)
    assert prices(project) == ["120.00", "240.00"]
    project.assert_mirrored()


def test_a_changed_function_publishes_the_rows_that_it_changes(project: Project) -> None:
    function(project)
    project.model(ROWS, unique_key="id")
    project.run(command="build")

    function(project, "case when net > 100 then net * 1.5 else net * 1.2 end")
    response = project.run(command="build")

    assert (response["publication"], response["rows_updated"]) == ("changes", 1)
    assert prices(project) == ["120.00", "300.00"]
    project.assert_mirrored()


def test_functions_of_one_name_are_kept_apart_by_their_schema(project: Project) -> None:
    function(project)
    project.model(ROWS)
    project.run(command="build")
    first = project.schema

    project.name_schema(f"{first}_other")
    function(project, "net * 2")
    project.run(command="build")

    assert prices(project) == ["200.00", "400.00"]
    for schema, price in ((first, "120.00"), (project.schema, "200.00")):
        assert str(project.sql(f"select {schema}.gross(100)")[0][0]) == price


def test_a_function_may_be_in_a_schema_of_its_own(project: Project) -> None:
    function(project, config={"schema": "rules"})
    project.model(ROWS)

    project.run(command="build")

    assert not is_there(project)
    assert str(project.sql(f"select {project.schema}_rules.gross(100)")[0][0]) == "120.00"
    project.assert_mirrored()


def test_a_function_has_what_its_properties_say(project: Project) -> None:
    arguments = [
        {"name": "net", "data_type": "decimal(10, 2)"},
        {"name": "the tax`s rate", "data_type": "decimal(3, 2)", "default_value": 0.25},
        {"name": "currency", "data_type": "string", "default_value": "'EUR'"},
    ]
    function(
        project,
        "-- with tax\n"
        "select concat(cast(net * (1 + `the tax``s rate`) as int), currency) -- e.g. 5EUR",
        arguments=arguments,
        returns={"data_type": "string"},
        description="What the customer's account shows",
        config={"volatility": "deterministic", "persist_docs": {"relation": True}},
    )

    project.run(command="build")

    name = f"{project.schema}.gross"
    assert project.sql(f"select {name}(4), {name}(4, 0.5, 'USD')")[0] == ("5EUR", "6USD")
    described = "\n".join(row[0] for row in project.sql(f"describe function extended {name}"))
    assert "What the customer's account shows" in described


def test_a_function_may_select_from_a_model(project: Project) -> None:
    project.model("select 1 as id, 7 as price", name="prices")
    function(
        project,
        "select max(price) from {{ ref('prices') }} where id = net",
        returns={"data_type": "int"},
    )
    project.model("select 1 as id, {{ function('gross') }}(1) as price")

    project.run(command="build")

    assert prices(project) == ["7"]


@pytest.mark.parametrize(
    ("language", "properties", "told"),
    [
        (
            "py",
            {"config": {"runtime_version": "3.11", "entry_point": "gross"}},
            "A function in python cannot be created",
        ),
        ("sql", {"config": {"type": "aggregate"}}, "of type aggregate cannot be created"),
        ("sql", {"config": {"type": "table"}}, "of type table cannot be created"),
        ("sql", {"config": {"grants": {"select": ["me"]}}}, "`grants` cannot be applied"),
    ],
)
def test_functions_that_spark_cannot_store_are_refused(
    project: Project, language: str, properties: dict[str, Any], told: str
) -> None:
    body = {"py": "def gross(net):\n    return net", "sql": "net"}[language]
    function(project, body, language=language, **properties)
    project.model(ROWS)

    assert told in project.stop(command="build")
    assert project.tables() == []


def test_overloads_are_refused(project: Project) -> None:
    pytest.importorskip("dbt.artifacts.schemas.overload_results", reason="since dbt-core 1.12")
    arguments = [{"name": "net", "data_type": "int"}]
    function(project, overloads=[{"defined_in": "gross_of_int", "arguments": arguments}])
    project.write("functions/gross_of_int.sql", "net * 2")

    assert "`overloads` cannot be created" in project.stop(command="build")
