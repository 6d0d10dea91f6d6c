"""Nodes whose relations are one table for Spark are refused before anything is built."""

from __future__ import annotations

import pytest

from tests.functional.project import Project
from tests.variants import some

ROWS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"

OTHER = {
    "table": ("models/other.sql", f"{{{{ config(materialized='table', alias='Orders') }}}}{ROWS}"),
    "view": ("models/other.sql", f"{{{{ config(materialized='view', alias='ORDERS') }}}}{ROWS}"),
    "unmirrored": (
        "models/other.sql",
        f"{{{{ config(materialized='table', alias='Orders', mirror=false) }}}}{ROWS}",
    ),
    "seed": ("seeds/ORDERS.csv", "id,name\n1,a\n"),
    "snapshot": (
        "snapshots/other.yml",
        "snapshots: [{name: oRDERS, relation: \"source('raw', 'orders')\", "
        "config: {unique_key: id, strategy: check, check_cols: all}}]",
    ),
}


@pytest.mark.parametrize("kind", some(list(OTHER)))
def test_two_nodes_that_are_one_table_are_refused_by_name(project: Project, kind: str) -> None:
    project.model(ROWS, unique_key="id")
    project.run()
    before = project.state()
    project.write("models/raw.yml", "sources: [{name: raw, tables: [{name: orders}]}]")
    project.write(*OTHER[kind])

    for command, *args in (
        ("run",),
        ("run", "--full-refresh", "--empty"),
        ("run", "--no-populate-cache", "--select", "orders"),
        ("parse",),
    ):
        error = project.stop(*args, command=command)
        assert f"model.shop.orders ({project.schema}.orders)" in error
        assert "one table for Spark" in error
        assert "another `alias`" in error
    with project.dry_run():
        assert "one table for Spark" in project.stop()

    assert project.state() == before
    next(project.path.glob(OTHER[kind][0])).unlink()
    assert project.run()["publication"] == "unchanged"


def test_other_nodes_may_have_the_name(project: Project) -> None:
    """In another schema, without a relation, or of no mirrored table: these are left to dbt."""
    project.model(ROWS, unique_key="id")
    project.model(ROWS, "other", alias="Orders", schema="archive")
    project.model(ROWS, "disabled", alias="ORDERS", enabled=False)
    project.model(ROWS, "inlined", alias="oRDERS", materialized="ephemeral")
    project.model(ROWS, "local", mirror=False)
    project.model(ROWS, "view", alias="LOCAL", materialized="view")

    project.run("--exclude", "view")

    project.assert_mirrored()
