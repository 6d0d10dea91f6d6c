"""Nodes whose relations are one table for Spark are refused before anything is built."""

from __future__ import annotations

from tests.functional.project import Project

ROWS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"


def test_two_nodes_that_are_one_table_are_refused_by_name(project: Project) -> None:
    project.model(ROWS, unique_key="id")
    project.run()
    before = project.state()
    project.model(ROWS, "other", alias="Orders")

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
    (project.path / "models" / "other.sql").unlink()
    assert project.run()["publication"] == "unchanged"
