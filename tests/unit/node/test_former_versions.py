"""What a run of version 1 of the records has left is finished, or published, by this version.

Each folder of `version_1` has the landing zone and the tables of Spark that such a run has left.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.unit.node.fake_rows import Row, Rows
from tests.unit.node.fake_warehouse import Table
from tests.unit.node.world import AFTER, BEFORE, ZONE, World

LEFT = Path(__file__).parent / "version_1"
HELD = {"publish": "on_request"}


def left(folder: Path, name: str, **config: str) -> World:
    """Return the node as a run of that version has left it."""
    shutil.copytree(LEFT / name / "zone", folder / ZONE)
    world = World(folder, **config)
    for table, found in json.loads((LEFT / name / "tables.json").read_text()).items():
        rows = Rows(found["columns"], tuple(tuple(row) for row in found["rows"]))
        properties = dict(found["properties"])
        world.spark.tables[table] = Table(found["format"], [("", rows)], properties)
    world.select(*AFTER)
    return world


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("committed", AFTER),
        ("held_committed", AFTER),
        ("held_marked", AFTER),
        ("repaired_marked", BEFORE),
    ],
)
def test_what_was_committed_is_finished_as_it_was_planned(
    tmp_path: Path, name: str, rows: tuple[Row, ...]
) -> None:
    world = left(tmp_path, name)

    world.recover()

    world.assert_right(rows)
    files = len(world.files)
    world.select(*rows)
    assert world.run().publication == "unchanged"
    assert len(world.files) == files


@pytest.mark.parametrize("builds_again", [False, True])
def test_held_rows_are_published(tmp_path: Path, builds_again: bool) -> None:
    world = left(tmp_path, "held", **HELD)

    if builds_again:
        world.run()
    world.publish_held()

    world.assert_right(AFTER)


def test_rows_that_a_killed_run_was_about_to_hold_are_built_again(tmp_path: Path) -> None:
    world = left(tmp_path, "held_half", **HELD)

    world.recover()
    assert world.rows == list(BEFORE)
    world.run()
    world.publish_held()

    world.assert_right(AFTER)


def test_rows_whose_run_has_not_ended_are_not_published_but_built_again(tmp_path: Path) -> None:
    world = left(tmp_path, "hooked")

    world.run()

    world.assert_right(AFTER)
