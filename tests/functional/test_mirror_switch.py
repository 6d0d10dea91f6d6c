"""A node with `mirror: false` for a while is published again, as soon as it is mirrored again."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.functional.project import Project
from tests.variants import some

MEANWHILE = "was not mirrored meanwhile"

Write = Callable[[Project, bool, int], None]


def table(project: Project, mirror: bool, step: int) -> None:
    sql = f"select id, 'v{step}' as name from range({2 + step})"
    project.model(sql, unique_key="id", mirror=mirror)


def keyless(project: Project, mirror: bool, step: int) -> None:
    project.model(f"select id from range({2 + step})", mirror=mirror)


def incremental(project: Project, mirror: bool, step: int) -> None:
    sql = f"select id, 'v{step}' as name from range({step}, {2 + step})"
    project.model(sql, materialized="incremental", unique_key="id", mirror=mirror)


def appended(project: Project, mirror: bool, step: int) -> None:
    sql = f"select {step} as id, 'v{step}' as name"
    project.model(sql, materialized="incremental", mirror=mirror)


def seed(project: Project, mirror: bool, step: int) -> None:
    project.write("seeds/orders.csv", f"id,name\n1,v{step}\n")
    config = {"unique_key": "id", "mirror": mirror}
    project.write("seeds/p.yml", json.dumps({"seeds": [{"name": "orders", "config": config}]}))


def snapshot(project: Project, mirror: bool, step: int) -> None:
    project.model(f"select 1 as id, 'v{step}' as name", "raw", materialized="view")
    config = {"unique_key": "id", "strategy": "check", "check_cols": "all", "mirror": mirror}
    found = {"name": "orders", "relation": "ref('raw')", "config": config}
    project.write("snapshots/p.yml", json.dumps({"snapshots": [found]}))


NODES = {
    write.__name__: write for write in (incremental, table, appended, snapshot, seed, keyless)
}


def build(project: Project, *args: str) -> dict[str, Any]:
    return project.run(*args, command="build")


@pytest.mark.parametrize("kind", some(list(NODES), 4))
def test_changes_made_while_a_node_was_not_mirrored_are_published(
    project: Project, kind: str
) -> None:
    write, steps = NODES[kind], itertools.count()
    write(project, True, next(steps))
    build(project)
    for _ in range(2):
        write(project, False, next(steps))
        assert "publication" not in build(project)
    rows = project.relation()

    write(project, True, next(steps))
    published = build(project)

    assert (published["publication"], published["reason"]) == ("rebuild", MEANWHILE)
    if kind in ("incremental", "appended", "snapshot"):
        assert sum(project.relation().values()) > sum(rows.values()), "its history is kept"
    project.assert_mirrored()
    write(project, True, next(steps))
    assert MEANWHILE not in str(build(project).get("reason")), "only once"
    project.assert_mirrored()


@pytest.mark.parametrize("kind", some(["table", "appended"], 2))
@pytest.mark.parametrize("was_held", [False, True])
def test_a_held_node_catches_up_when_it_is_published(
    project: Project, kind: str, was_held: bool
) -> None:
    """Where the rows published last are still there, the difference is published."""
    write, steps = NODES[kind], itertools.count()
    write(project, True, next(steps))
    build(project)
    gate(project, was_held)
    write(project, True, next(steps))
    build(project)
    write(project, False, next(steps))
    build(project)
    gate(project, True)
    for _ in range(2):
        write(project, True, next(steps))
        build(project)
    mirror = project.mirror()
    assert mirror != project.relation()

    assert project.dbt("run-operation", "mirror_publish")

    journal = json.loads((project.folder() / "_journal.json").read_text())
    # a Delta table is changed in place, and would not know which version was published
    is_lost = not was_held or (kind == "appended" and project.file_format != "parquet")
    assert (journal["batch"]["reason"] == MEANWHILE) is is_lost
    gate(project, False)
    project.assert_mirrored()
    write(project, True, next(steps))
    assert MEANWHILE not in str(build(project).get("reason"))
    project.assert_mirrored()


def gate(project: Project, is_held: bool) -> None:
    """Let publications wait for `mirror_publish`, or not."""
    project.write_project(models={"+publish": "on_request" if is_held else "immediately"})


@pytest.mark.core
def test_without_a_run_in_between_nothing_has_to_be_caught_up(project: Project) -> None:
    incremental(project, True, 0)
    build(project)
    incremental(project, False, 0)
    incremental(project, True, 1)

    assert build(project)["publication"] == "changes"
    project.assert_mirrored()


@pytest.mark.variant
def test_a_table_folder_that_was_dropped_meanwhile_is_loaded_anew(project: Project) -> None:
    incremental(project, True, 0)
    build(project)
    incremental(project, False, 1)
    build(project)
    named = f"{{dry_run: false, table: {project.schema}.orders}}"
    assert project.dbt("run-operation", "mirror_drop_orphans", "--args", named)
    assert not project.folder().exists()

    incremental(project, True, 2)

    assert build(project)["publication"] == "initial"
    project.assert_mirrored()


def test_a_dry_run_tells_that_it_would_catch_up(project: Project) -> None:
    appended(project, True, 0)
    build(project)
    appended(project, False, 1)
    build(project)
    appended(project, True, 2)
    before = project.state()

    with project.dry_run():
        told = build(project)

    assert (told["publication"], told["reason"]) == ("rebuild", MEANWHILE)
    assert project.state() == before
    assert build(project)["rows_inserted"] == 3
    project.assert_mirrored()


def test_a_full_refresh_and_a_rebuild_on_request_publish_it_too(project: Project) -> None:
    for args in (["run", "--full-refresh"], ["run-operation", "mirror_rebuild"]):
        appended(project, True, 0)
        build(project)
        appended(project, False, 1)
        build(project)
        appended(project, True, 1)
        extra = ["--args", "{table: orders}"] if args[0] == "run-operation" else []
        assert project.dbt(*args, *extra)
        project.assert_mirrored()
        appended(project, True, 2)
        assert MEANWHILE not in str(build(project).get("reason"))
        project.assert_mirrored()


def test_a_run_that_was_killed_while_it_was_switched_off_can_be_repeated(
    project: Project,
) -> None:
    appended(project, True, 0)
    build(project)
    sql = "select raise_error('boom') as id, 'x' as name"
    project.model(sql, materialized="incremental", mirror=False)
    project.fail()
    appended(project, True, 1)

    assert build(project)["rows_inserted"] in (1, 2)
    project.assert_mirrored()
