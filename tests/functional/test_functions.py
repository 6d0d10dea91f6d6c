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


def test_a_function_is_there_before_its_model_and_a_change_of_it_publishes_rows(
    project: Project,
) -> None:
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
    project.model(ROWS, unique_key="id")
    project.run(command="build")
    assert prices(project) == ["125EUR", "250EUR"]
    project.assert_mirrored()
    name = f"{project.schema}.gross"
    assert project.sql(f"select {name}(4, 0.5, 'USD')")[0] == ("6USD",)
    described = "\n".join(row[0] for row in project.sql(f"describe function extended {name}"))
    assert "What the customer's account shows" in described

    body = "if(net > 100, '300EUR', '125EUR')"
    function(project, body, returns={"data_type": "string"})
    response = project.run(command="build")

    assert (response["publication"], response["rows_updated"]) == ("changes", 1)
    assert prices(project) == ["125EUR", "300EUR"]
    project.assert_mirrored()


def test_functions_of_one_name_are_kept_apart_by_their_schema(project: Project) -> None:
    function(project)
    project.model(ROWS)
    project.run(command="build")

    function(project, "net * 2", config={"schema": "rules"})
    project.run(command="build")

    assert prices(project) == ["200.00", "400.00"]
    for schema, price in ((project.schema, "120.00"), (f"{project.schema}_rules", "200.00")):
        assert str(project.sql(f"select {schema}.gross(100)")[0][0]) == price


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


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (
        "py",
        {"config": {"runtime_version": "3.11", "entry_point": "gross"}},
        "A function in python cannot be created",
    ),
    ("sql", {"config": {"type": "aggregate"}}, "of type aggregate cannot be created"),
    ("sql", {"config": {"type": "table"}}, "of type table cannot be created"),
    ("sql", {"config": {"grants": {"select": ["me"]}}}, "`grants` cannot be applied"),
]


def test_functions_that_spark_cannot_store_are_refused(project: Project) -> None:
    body = {"py": "def gross(net):\n    return net", "sql": "net"}
    for number, (language, properties, _) in enumerate(REFUSED):
        function(project, body[language], f"f{number}", language, **properties)
    project.model("select 1 as id")

    error = project.stop(command="build")

    for number, (_, _, told) in enumerate(REFUSED):
        assert told in error.partition(f"function.shop.f{number} ")[2]
    assert project.tables() == []


def test_overloads_are_refused(project: Project) -> None:
    pytest.importorskip("dbt.artifacts.schemas.overload_results", reason="since dbt-core 1.12")
    arguments = [{"name": "net", "data_type": "int"}]
    function(project, overloads=[{"defined_in": "gross_of_int", "arguments": arguments}])
    project.write("functions/gross_of_int.sql", "net * 2")

    assert "`overloads` cannot be created" in project.stop(command="build")
