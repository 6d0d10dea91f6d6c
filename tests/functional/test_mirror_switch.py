"""A node with `mirror: false` for a while is published again, as soon as it is mirrored again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.functional.nodes import named, write_node
from tests.functional.project import Project
from tests.variants import parts

MEANWHILE = "was not mirrored meanwhile"
KINDS = ("table", "append", "dbt snapshot", "merge", "seed", "keyless")


def build(project: Project, step: int, kinds: Mapping[str, str], **config: Any) -> dict[str, Any]:
    """Write nodes of a step, each of a kind, and run them. Return the response of each."""
    for name, kind in kinds.items():
        write_node(project, kind, step, name, **config)
    project.run("--select", *(f"+{name}" for name in kinds), command="build")
    return {name: project.responses()[name] for name in kinds}


def assert_caught_up_once(project: Project, step: int, kinds: Mapping[str, str]) -> None:
    for name in kinds:
        project.assert_mirrored(name)
    for name, response in build(project, step, kinds).items():
        assert MEANWHILE not in str(response.get("reason"))
        project.assert_mirrored(name)


@pytest.mark.parametrize("some_kinds", parts(KINDS, 3))
def test_changes_made_while_a_node_was_not_mirrored_are_published(
    project: Project, some_kinds: list[str]
) -> None:
    kinds = {named(kind): kind for kind in some_kinds}
    build(project, 0, kinds)
    for response in build(project, 1, kinds, mirror=False).values():
        assert "publication" not in response
    rows = {name: sum(project.relation(name).values()) for name in kinds}

    published = build(project, 2, kinds)

    for name in kinds:
        response = published[name]
        assert (response["publication"], response["reason"]) == ("rebuild", MEANWHILE)
        assert sum(project.relation(name).values()) > rows[name], "a history is kept"
    assert_caught_up_once(project, 3, kinds)


def test_a_held_node_catches_up_when_it_is_published(project: Project) -> None:
    """Where the rows published last are still there, the difference is published."""
    was_held = {"held_table": "table", "held_append": "append"}
    kinds = {"a_table": "table", "an_append": "append", **was_held}
    held = {"publish": "on_request"}
    build(project, 0, kinds)
    build(project, 1, was_held, **held)
    build(project, 2, kinds, mirror=False)
    for step in (3, 4):
        build(project, step, kinds, **held)
    for name in kinds:
        assert project.mirror(name) != project.relation(name)

    assert project.dbt("run-operation", "mirror_publish")

    for name, kind in kinds.items():
        journal = json.loads((project.folder(name) / "_journal.json").read_text())
        # a Delta table is changed in place, and would not know which version was published
        is_in_place = kind == "append" and project.file_format != "parquet"
        is_lost = name not in was_held or is_in_place
        assert (journal["batch"]["reason"] == MEANWHILE) is is_lost
    assert_caught_up_once(project, 5, kinds)


def test_each_way_to_publish_a_node_catches_up(project: Project) -> None:
    kinds = dict.fromkeys(("run", "refreshed", "rebuilt"), "append")
    build(project, 0, kinds)
    build(project, 1, kinds, mirror=False)
    for name in kinds:
        write_node(project, "append", 2, name)
    before = [project.state(name) for name in kinds]
    with project.dry_run():
        project.run()
    for response in project.responses().values():
        assert (response["publication"], response["reason"]) == ("rebuild", MEANWHILE)
    assert [project.state(name) for name in kinds] == before

    project.run("--select", "run")
    project.run("--full-refresh", "--select", "refreshed")
    assert project.dbt("run-operation", "mirror_rebuild", "--args", "{table: rebuilt}")

    assert_caught_up_once(project, 3, kinds)
