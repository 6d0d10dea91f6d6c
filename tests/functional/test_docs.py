"""Mirrored tables in the generated documentation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dbt.adapters.openmirroring.impl import OpenMirroringAdapter
from tests.functional.project import Project


@pytest.mark.core
@pytest.mark.usefixtures("manifest_file")
def test_the_catalog_tells_the_last_publication_of_mirrored_tables_and_of_selected_ones_only(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.model("select * from values (1, 'a'), (2, 'b') as t(id, name)", unique_key="id")
    project.model("select 1 as id", "plain", mirror=False)
    project.model("select 1 as id", "view", materialized="view")
    project.run()
    project.model("select * from values (1, 'A'), (3, 'c') as t(id, name)", unique_key="id")
    project.run()

    assert project.dbt("docs", "generate")

    content = json.loads((project.path / "target" / "catalog.json").read_text())
    nodes: dict[str, Any] = content["nodes"]
    assert content["errors"] is None
    shown = {
        stat["label"]: stat["value"]
        for name, stat in nodes["model.shop.orders"]["stats"].items()
        if name.startswith("mirror_")
    }
    assert shown.pop("Last publication").startswith("20")
    assert shown == {
        "Table folder": f"{project.schema}.schema/orders",
        "Key columns": "id",
        "Landing format": "parquet",
        "Last file": "00000000000000000002.parquet",
        "Rows": 2,
        "Kind of publication": "changes",
        "Rows new": 1,
        "Rows updated": 1,
        "Rows deleted": 1,
    }
    assert list(nodes["model.shop.orders"]["columns"]) == ["id", "name"]
    for other in ("plain", "view"):
        assert not [s for s in nodes[f"model.shop.{other}"]["stats"] if s.startswith("mirror_")]

    described: list[str] = []
    columns = OpenMirroringAdapter._get_columns_for_catalog

    def noted(adapter: OpenMirroringAdapter, relation: Any) -> Any:
        described.append(relation.identifier)
        return columns(adapter, relation)

    monkeypatch.setattr(OpenMirroringAdapter, "_get_columns_for_catalog", noted)

    assert project.dbt("docs", "generate", "--select", "orders", "view")

    content = json.loads((project.path / "target" / "catalog.json").read_text())
    types = {name: node["metadata"]["type"] for name, node in content["nodes"].items()}
    assert types == {"model.shop.orders": "table", "model.shop.view": "view"}
    assert sorted(described) == ["orders", "view"]


@pytest.mark.usefixtures("manifest_file")
def test_a_project_without_held_publications_has_no_hook_of_this_package(
    project: Project,
) -> None:
    project.model("select 1 as id")
    project.run()

    def hooks() -> list[str]:
        content = json.loads((project.path / "target" / "manifest.json").read_text())
        return [name for name in content["nodes"] if name.startswith("operation.")]

    assert hooks() == []

    project.model("select 1 as id", publish="after_tests")
    project.run()

    assert hooks() == ["operation.dbt_openmirroring.dbt_openmirroring-on-run-end-0"]


def test_descriptions_are_persisted_with_the_table_or_if_they_differ(project: Project) -> None:
    def describe(table: str, column: str) -> None:
        columns = [{"name": "id", "description": column}, {"name": "gone", "description": "x"}]
        model = {"name": "orders", "description": table, "columns": columns}
        project.write("models/orders.yml", json.dumps({"models": [model]}))

    def changes() -> int:
        return (project.path / "logs" / "dbt.log").read_text().count(" change column ")

    docs = {"relation": True, "columns": True}
    project.model("select 1 as id, {{ var('n', 2) }} as n", unique_key="id", persist_docs=docs)
    describe("It's a table", "the\n'key'")
    project.run()
    assert project.run()["publication"] == "unchanged"
    project.run("--vars", "n: 3")
    assert changes() == 0

    describe("Another \\ text", "what it was")
    assert project.run("--vars", "n: 3")["publication"] == "unchanged"

    assert changes() == 1
    rows = project.sql(f"describe extended {project.schema}.orders")
    described = {row.col_name: row for row in rows}
    assert described["id"].comment == "what it was"
    assert described["Comment"].data_type == "Another \\ text"
    project.assert_mirrored()


def test_a_documented_column_keeps_its_type(project: Project) -> None:
    project.sql(f"create schema if not exists {project.schema}")
    codes = f"{project.schema}.codes"
    project.sql(f"create table {codes} (code varchar(5), part char(3), id int) using parquet")
    project.sql(f"insert into {codes} values ('a', 'b', 1)")
    columns = [{"name": name, "description": f"{name}!"} for name in ("CODE", "part", "id")]
    model = {"name": "orders", "columns": columns}
    project.write("models/orders.yml", json.dumps({"models": [model]}))
    rows = "select code, part, id, id as n from {{ target.schema }}.codes"
    project.model(rows, unique_key="id", persist_docs={"columns": True})
    project.model(rows, "plain", unique_key="id")

    for publication in ("initial", "unchanged"):
        assert project.run()["publication"] == publication

        documented = project.sql(f"describe {project.schema}.orders")
        plain = project.sql(f"describe {project.schema}.plain")
        assert [row.comment for row in documented] == ["CODE!", "part!", "id!", None]
        assert [row.data_type for row in documented] == [row.data_type for row in plain]
        project.assert_mirrored()


def test_the_catalog_has_whole_types_and_does_without_what_cannot_be_read(
    project: Project,
) -> None:
    project.model("select 1 as id, named_struct('a', array(1)) as s", mirror=False)
    project.model("select * from {{ ref('orders') }}", "broken", materialized="view")
    project.run()
    project.sql(f"drop table {project.schema}.orders")
    project.sql(
        f"create table {project.schema}.orders using parquet as select named_struct('a', 1) as s"
    )

    assert project.dbt("docs", "generate")

    content = json.loads((project.path / "target" / "catalog.json").read_text())
    assert content["nodes"]["model.shop.orders"]["columns"]["s"]["type"] == "struct<a:int>"
