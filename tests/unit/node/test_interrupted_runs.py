"""Whatever goes wrong at whatever step of a run, the next run brings mirror and model together.

The state machine shows it for more histories, at some of their steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from tests.unit.node.fake_rows import Row
from tests.unit.node.faults import FAILS, KILLED, LOST, Fault, Killed
from tests.unit.node.world import COLUMNS, World

BEFORE = ((1, "a"), (2, "b"), (3, "c"), (4, "d"))
AFTER = ((1, "a"), (2, "changed"), (4, "d"), (5, "new"), (6, "new"))
APPENDED = ((5, "e"), (6, "f"))
UNKNOWN = (-1, "unknown")


@dataclass(frozen=True)
class History:
    """A node that was published, or not yet, and is run again.

    Args:
        is_new: whether it was not published yet
        after: the rows that the SQL of the node selects then
        expected: the rows of the relation after that
        again: what the run does
    """

    config: dict[str, Any] = field(default_factory=dict)
    is_new: bool = False
    after: tuple[Row, ...] = AFTER
    expected: tuple[Row, ...] = AFTER
    columns: dict[str, str] = field(default_factory=lambda: COLUMNS)
    prepare: Callable[[World], object] = id
    again: Callable[[World, Fault | None], object] = World.run

    def begin(self, folder: Path) -> World:
        """Publish the node."""
        folder.mkdir()
        world = World(folder, **self.config)
        if not self.is_new:
            world.select(*BEFORE)
            world.run()
            if world.config.get("publish"):
                world.publish_held()
            world.assert_right(BEFORE)
        return world

    def change(self, world: World) -> None:
        """Change the node, for the run that is interrupted."""
        world.select(*self.after, columns=self.columns)
        self.prepare(world)


def run_and_publish(world: World, fault: Fault | None) -> None:
    with suppress(CompilationError):  # says that too many rows would be deleted
        world.run(fault)
    world.publish_held(fault)


def add_post_hook(world: World) -> None:
    world.post_hooks.append(world.hook(*UNKNOWN))


def add_pre_hook(world: World) -> None:
    world.pre_hooks.append(world.hook(*UNKNOWN))


INCREMENTAL = {"materialized": "incremental"}
IN_PLACE = {**INCREMENTAL, "file_format": "delta"}
MERGED = (*BEFORE, *APPENDED)
HELD = {"publish": "on_request"}

HISTORIES = {
    "initial load": History(is_new=True),
    "changes": History(),
    "rows without a key are gone": History({"unique_key": None}),
    "column dropped": History(after=((1,), (2,)), expected=((1,), (2,)), columns={"id": "int"}),
    "held": History(HELD, again=run_and_publish),
    "merge": History(INCREMENTAL, after=APPENDED, expected=MERGED),
    "merge in place": History(IN_PLACE, after=APPENDED, expected=MERGED),
    "Delta table": History({"file_format": "delta"}),
    "post-hook": History(expected=(*AFTER, UNKNOWN), prepare=add_post_hook),
    "post-hook of rows in place": History(
        IN_PLACE, after=APPENDED, expected=(*MERGED, UNKNOWN), prepare=add_post_hook
    ),
    "pre-hook of rows in place": History(
        IN_PLACE, after=APPENDED, expected=(*MERGED, UNKNOWN), prepare=add_pre_hook
    ),
    "beyond the limit": History({"max_deleted": 0}, again=run_and_publish),
}

# the histories that are tried at each change, with every kind of fault
MAIN = ("changes", "held", "merge in place", "post-hook", "rows without a key are gone")


def marked(*parameters: str) -> Any:
    return pytest.param(*parameters, marks=[] if parameters[0] in MAIN else pytest.mark.slow)


def interrupted_runs(
    history: History, published: World, folder: Path, kind: str
) -> Iterator[tuple[World, bool]]:
    """Run a node again and again, in a world of its own, with a fault one step later each time.

    Yields:
        each world, and whether the run has succeeded; the last one had no fault
    """
    for point in count(1):
        world = published.copy(folder / str(point))
        history.change(world)
        fault = Fault(point, kind)
        is_done = False
        with suppress(Killed, DbtRuntimeError):
            history.again(world, fault)
            is_done = True
        print(f"{kind} at {point}: {world.steps[-1]}")  # pytest shows it if the test fails
        yield world, is_done
        if is_done and not fault.happened:
            assert point > 2
            return


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *(marked(name, KILLED) for name in HISTORIES),
        *((name, kind) for name in MAIN for kind in (FAILS, LOST)),
    ],
)
def test_the_next_run_brings_mirror_and_model_together(
    tmp_path: Path, name: str, kind: str
) -> None:
    history = HISTORIES[name]
    published = history.begin(tmp_path / "0")
    for world, is_done in interrupted_runs(history, published, tmp_path, kind):
        if is_done:  # perhaps with a scratch table that could not be dropped
            world.assert_published(history.expected)
        history.again(world, None)

        world.assert_right(history.expected)


@pytest.mark.parametrize("name", [marked(name) for name in HISTORIES])
def test_a_run_on_another_machine_brings_mirror_and_model_together(
    tmp_path: Path, name: str
) -> None:
    history = HISTORIES[name]
    published = history.begin(tmp_path / "0")
    for world, _ in interrupted_runs(history, published, tmp_path, KILLED):
        world.go_to_another_machine()
        history.again(world, None)

        world.assert_right(history.expected)


@pytest.mark.parametrize("materialized", ["table", "incremental"])
def test_a_node_that_is_not_mirrored_may_have_a_name_that_no_table_folder_can_have(
    tmp_path: Path, materialized: str
) -> None:
    config = {"mirror": False, "alias": "_orders", "materialized": materialized}
    published = World(tmp_path / "0", **config)
    (tmp_path / "0").mkdir()
    published.select(*BEFORE)
    published.run()
    for world, _ in interrupted_runs(History(), published, tmp_path, KILLED):
        with suppress(CompilationError):  # it was compiled before its table came back
            world.run()
        world.run()

        assert set(AFTER) <= set(world.rows)
        assert set(world.spark.tables) == {"_orders"}


@pytest.mark.parametrize("name", ["changes", "merge", "Delta table", "held"])
def test_a_restore_may_be_interrupted(tmp_path: Path, name: str) -> None:
    history = HISTORIES[name]
    published = history.begin(tmp_path / "0")
    published.go_to_another_machine()
    for world, _ in interrupted_runs(history, published, tmp_path, KILLED):
        history.again(world, None)

        world.assert_right(history.expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["changes", "held", "merge in place"])
def test_a_run_may_be_killed_while_it_finishes_what_another_one_has_committed(
    tmp_path: Path, name: str
) -> None:
    history = HISTORIES[name]
    published = history.begin(tmp_path / "0")
    committed = [
        once
        for once, _ in interrupted_runs(history, published, tmp_path, KILLED)
        if once.zone.read("_scratchPad/shop.orders/manifest.json")
    ]
    assert committed
    for number, once in enumerate(committed):
        folder = tmp_path / f"after {number}"
        for world, _ in interrupted_runs(history, once, folder, KILLED):
            history.again(world, None)

            world.assert_right(history.expected)
