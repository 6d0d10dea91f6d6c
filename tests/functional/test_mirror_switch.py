"""A node with `mirror: false` for a while is published again, as soon as it is mirrored again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.functional.nodes import write_node
from tests.functional.project import Project
from tests.variants import some

MEANWHILE = "was not mirrored meanwhile"


def build(project: Project, kind: str, step: int, *args: str, **config: Any) -> dict[str, Any]:
    """Write the node of a step, and run it."""
    write_node(project, kind, step, **config)
    return project.run(*args, command="build")


@pytest.mark.parametrize(
    "kind", some(["merge", "table", "append", "dbt snapshot", "seed", "keyless"], 4)
)
def test_changes_made_while_a_node_was_not_mirrored_are_published(
    project: Project, kind: str
) -> None:
    build(project, kind, 0)
    for step in (1, 2):
        assert "publication" not in build(project, kind, step, mirror=False)
    rows = sum(project.relation().values())

    published = build(project, kind, 3)

    assert (published["publication"], published["reason"]) == ("rebuild", MEANWHILE)
    assert sum(project.relation().values()) > rows, "a history is kept"
    project.assert_mirrored()
    assert MEANWHILE not in str(build(project, kind, 4).get("reason")), "only once"
    project.assert_mirrored()


@pytest.mark.parametrize("kind", some(["table", "append"], 2))
@pytest.mark.parametrize("was_held", [False, True])
def test_a_held_node_catches_up_when_it_is_published(
    project: Project, kind: str, was_held: bool
) -> None:
    """Where the rows published last are still there, the difference is published."""
    held = {"publish": "on_request"}
    build(project, kind, 0)
    build(project, kind, 1, **(held if was_held else {}))
    build(project, kind, 2, mirror=False)
    for step in (3, 4):
        build(project, kind, step, **held)
    assert project.mirror() != project.relation()

    assert project.dbt("run-operation", "mirror_publish")

    journal = json.loads((project.folder() / "_journal.json").read_text())
    # a Delta table is changed in place, and would not know which version was published
    is_lost = not was_held or (kind == "append" and project.file_format != "parquet")
    assert (journal["batch"]["reason"] == MEANWHILE) is is_lost
    project.assert_mirrored()
    assert MEANWHILE not in str(build(project, kind, 5).get("reason"))
    project.assert_mirrored()


@pytest.mark.parametrize("way", ["run", "run --full-refresh", "mirror_rebuild"])
def test_each_way_to_publish_a_node_catches_up(project: Project, way: str) -> None:
    build(project, "append", 0)
    build(project, "append", 1, mirror=False)
    write_node(project, "append", 2)
    before = project.state()
    with project.dry_run():
        told = project.run()
    assert (told["publication"], told["reason"]) == ("rebuild", MEANWHILE)
    assert project.state() == before

    if way == "mirror_rebuild":
        assert project.dbt("run-operation", way, "--args", "{table: orders}")
    else:
        assert project.dbt(*way.split())

    project.assert_mirrored()
    assert MEANWHILE not in str(build(project, "append", 3).get("reason"))
    project.assert_mirrored()


def test_a_run_that_was_killed_while_it_was_switched_off_can_be_repeated(
    project: Project,
) -> None:
    build(project, "append", 0)
    sql = "select raise_error('boom') as id, 'x' as name"
    project.model(sql, materialized="incremental", mirror=False)
    project.fail()

    assert build(project, "append", 1)["rows_inserted"] in (1, 3)
    project.assert_mirrored()
