"""A dry run says what the next run would publish, and changes nothing."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.functional.nodes import told, write_node
from tests.functional.project import Project

SAME = "select id, 'a' as name from range(5)"


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Nobody may write to a folder."""
    modes = {path: path.stat().st_mode for path in [folder, *folder.rglob("*")]}
    for path, mode in modes.items():
        path.chmod(mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    try:
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def dry(project: Project, *args: str, command: str = "run") -> dict[str, Any]:
    """Return the results of the nodes in a dry run of the project."""
    before, tables = project.state(), sorted(project.tables())
    with read_only(project.landing_zone), project.dry_run():
        success = project.dbt(command, *args)
    assert project.state() == before
    assert sorted(project.tables()) == tables
    results = project.results()
    assert success, [result["message"] for result in results.values()]
    return results


@pytest.fixture
def orders(project: Project) -> Project:
    project.model(SAME, unique_key="id")
    project.run()
    return project


HOOKS = dict.fromkeys(("pre_hook", "post_hook"), "drop table {{ this }}")
# of each table its next query and configuration, and what a dry run says
PUBLICATIONS: dict[str, tuple[str, dict[str, Any], str]] = {
    "orders": (SAME, {}, "would publish nothing"),
    "changed": (
        "select id, if(id = 2, 'b', 'a') as name from range(1, 8)",
        {},
        "would publish +3 ~1 -1",
    ),
    "rebuilt": ("select id from range(5)", {}, "would publish rebuild +5 · column dropped: name"),
    "new_rows": (
        "select id, 'b' as name from range(3, 7)",
        {"materialized": "incremental"},
        "would publish +2 ~2 -0",
    ),
    "hooked": (SAME, HOOKS, "would publish nothing"),
}


def test_every_kind_of_publication_is_reported_and_nothing_is_changed(project: Project) -> None:
    for name in PUBLICATIONS:
        project.model(SAME, name, unique_key="id")
    project.run()
    before = [project.relation(name) for name in PUBLICATIONS]
    for name, (sql, config, _) in PUBLICATIONS.items():
        project.model(sql, name, unique_key="id", **config)

    results = dry(project)
    (refreshed,) = dry(project, "--full-refresh", "--select", "orders").values()

    for name, (*_, message) in PUBLICATIONS.items():
        assert results[name]["message"] == message
    assert refreshed["message"] == "would publish rebuild +5 · --full-refresh"
    assert [project.relation(name) for name in PUBLICATIONS] == before


@pytest.mark.core
def test_nodes_downstream_and_tests_see_what_would_be(orders: Project) -> None:
    orders.model("select id, 'b' as name from range(2)", unique_key="id")
    orders.model("select * from {{ ref('orders') }}", "a_view", materialized="view")
    orders.model("select count(*) as n from {{ ref('a_view') }}", "counted", mirror=False)
    orders.write("tests/two.sql", "select * from {{ ref('counted') }} where n <> 2")

    results = dry(orders, command="build")

    assert results["two"]["status"] == "pass"
    assert results["counted"]["message"] == "dry run: built beside"


def test_a_node_that_a_dry_run_does_not_build_is_read_as_it_is(orders: Project) -> None:
    orders.model("select count(*) as n from {{ ref('orders') }}", "counted")

    message = dry(orders, "--select", "counted")["counted"]["message"]

    assert message == "would publish initial +1"


def test_no_operation_changes_anything_in_a_dry_run(orders: Project) -> None:
    orders.target["dry_run"] = True
    orders.write_project()

    assert not orders.dbt("run-operation", "mirror_rebuild", "--args", "{table: orders}")
    assert not orders.dbt("run-operation", "mirror_drop_orphans", "--args", "{dry_run: false}")


def test_seeds_and_snapshots_are_reported(project: Project) -> None:
    kinds = {"orders": "seed", "versions": "dbt snapshot"}
    for name, kind in kinds.items():
        write_node(project, kind, 0, name)
    assert project.dbt("build")
    for name, kind in kinds.items():
        write_node(project, kind, 1, name)

    results = dry(project, command="build")

    for name, kind in kinds.items():
        assert results[name]["message"] == f"would publish {told(kind, 1)}"
