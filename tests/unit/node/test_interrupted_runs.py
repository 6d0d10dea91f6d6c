"""Whatever goes wrong at whatever step of a run, the next run brings mirror and model together."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from tests.unit.node.fake_rows import Row
from tests.unit.node.faults import FAILS, KILLED, LOST, Fault, Killed
from tests.unit.node.world import COLUMNS, ORDERS, World

BEFORE = ((1, "a"), (2, "b"), (3, "c"), (4, "d"))
AFTER = ((1, "a"), (2, "changed"), (4, "d"), (5, "new"), (6, "new"))
APPENDED = ((5, "e"), (6, "f"))
WIDER = tuple((*row, 1) for row in AFTER)
UNKNOWN = (-1, "unknown")


@dataclass(frozen=True)
class History:
    """A node that was published, or not yet, and is run again.

    Args:
        before: the rows that were published; None for a node that was not
        after: the rows that the SQL of the node selects then
        expected: the rows of the relation after that
        again: what the run does
    """

    config: dict[str, Any] = field(default_factory=dict)
    before: tuple[Row, ...] | None = BEFORE
    after: tuple[Row, ...] = AFTER
    expected: tuple[Row, ...] = AFTER
    columns: dict[str, str] = field(default_factory=lambda: COLUMNS)
    prepare: Callable[[World], object] = id
    again: Callable[[World, Fault | None], object] = World.run

    def begin(self, folder: Path) -> World:
        """Publish the node."""
        folder.mkdir()
        world = World(folder, **self.config)
        if self.before is not None:
            world.select(*self.before)
            world.run()
            if world.config.get("publish"):
                world.publish_held()
            world.assert_right(self.before)
        return world

    def change(self, world: World) -> None:
        """Change the node, for the run that is interrupted."""
        world.select(*self.after, columns=self.columns)
        self.prepare(world)


def build_and_publish(world: World, fault: Fault | None) -> None:
    world.run(fault)
    world.publish_held(fault)


def run_and_publish(world: World, fault: Fault | None) -> None:
    with suppress(CompilationError):  # says that too many rows would be deleted
        world.run(fault)
    world.publish_held(fault)


def run_in_full(world: World, fault: Fault | None) -> None:
    world.run(fault, full_refresh=True)


def add_post_hook(world: World) -> None:
    world.post_hooks.append(world.hook("insert into", UNKNOWN))


def add_pre_hook(world: World) -> None:
    world.pre_hooks.append(world.hook("insert into", UNKNOWN))


def drop_before(world: World) -> None:
    drop = f"drop table if exists {ORDERS}"
    world.spark.effects[drop] = lambda: world.spark.tables.pop("orders", None)
    world.pre_hooks.append(drop)


def change_by_hand(world: World) -> None:
    """Let somebody else add a row to the relation."""
    rows = world.spark.table(ORDERS).rows
    world.spark.table(ORDERS).change("WRITE", replace(rows, rows=(*rows.rows, UNKNOWN)))


def compare_as_large(world: World) -> None:
    world.spark.is_small = False


INCREMENTAL = {"materialized": "incremental"}
IN_PLACE = {**INCREMENTAL, "file_format": "delta"}
MERGED = ((1, "a"), (2, "b"), (3, "c"), (4, "d"), *APPENDED)
HELD = {"publish": "on_request"}
FOREIGN = {"on_foreign_changes": "publish"}

HISTORIES = {
    "initial load": History(before=None),
    "empty initial load": History(before=None, after=(), expected=()),
    "changes": History(),
    "changes of a large table": History(prepare=compare_as_large),
    "nothing changed": History(after=BEFORE, expected=BEFORE),
    "rows without a key": History(
        {"unique_key": None}, after=(*BEFORE, *APPENDED), expected=(*BEFORE, *APPENDED)
    ),
    "rows without a key are gone": History({"unique_key": None}),
    "column added": History(after=WIDER, expected=WIDER, columns={**COLUMNS, "n": "int"}),
    "column dropped": History(after=((1,), (2,)), expected=((1,), (2,)), columns={"id": "int"}),
    "full refresh": History(again=run_in_full),
    "rebuild of what Spark has": History(expected=BEFORE, again=World.rebuild),
    "held": History(HELD, again=build_and_publish),
    "held from the first": History(HELD, before=None, again=build_and_publish),
    "held rebuild": History(
        HELD, after=((1,),), expected=((1,),), columns={"id": "int"}, again=build_and_publish
    ),
    "merge": History(INCREMENTAL, after=APPENDED, expected=MERGED),
    "merge in place": History(IN_PLACE, after=APPENDED, expected=MERGED),
    "merge in place that updates": History(
        IN_PLACE,
        after=((2, "changed"), (9, "new")),
        expected=((1, "a"), (2, "changed"), (3, "c"), (4, "d"), (9, "new")),
    ),
    "append in place": History(
        {**IN_PLACE, "unique_key": None},
        expected=MERGED,
        prepare=lambda world: world.select_new(*APPENDED),
    ),
    "held merge in place": History(
        {**IN_PLACE, **HELD},
        after=APPENDED,
        expected=MERGED,
        again=build_and_publish,
    ),
    "Delta table": History({"file_format": "delta"}),
    "post-hook": History(expected=(*AFTER, UNKNOWN), prepare=add_post_hook),
    "post-hook of a first run": History(
        before=None, expected=(*AFTER, UNKNOWN), prepare=add_post_hook
    ),
    "post-hook of rows in place": History(
        IN_PLACE, after=APPENDED, expected=(*MERGED, UNKNOWN), prepare=add_post_hook
    ),
    "pre-hook": History(prepare=add_pre_hook),
    "pre-hook of a Delta table": History({"file_format": "delta"}, prepare=add_pre_hook),
    "pre-hook of rows in place": History(
        IN_PLACE, after=APPENDED, expected=(*MERGED, UNKNOWN), prepare=add_pre_hook
    ),
    "dropped before": History(prepare=drop_before),
    "changed by others": History(FOREIGN, prepare=change_by_hand),
    "changed by others, and as it was": History(
        FOREIGN, after=BEFORE, expected=BEFORE, prepare=change_by_hand
    ),
    "Delta table changed by others": History(
        {**FOREIGN, "file_format": "delta"}, prepare=change_by_hand
    ),
    "merge into rows changed by others": History(
        {**INCREMENTAL, **FOREIGN},
        after=APPENDED,
        expected=(*MERGED, UNKNOWN),
        prepare=change_by_hand,
    ),
    "merge in place into rows changed by others": History(
        {**IN_PLACE, **FOREIGN},
        after=APPENDED,
        expected=(*MERGED, UNKNOWN),
        prepare=change_by_hand,
    ),
    "held merge into rows changed by others": History(
        {**IN_PLACE, **FOREIGN, **HELD},
        after=APPENDED,
        expected=(*MERGED, UNKNOWN),
        prepare=change_by_hand,
        again=build_and_publish,
    ),
    "beyond the limit": History({"max_deleted": 0}, again=run_and_publish),
}


# the histories that `make test` tries, with every kind of fault
MAIN = ("changes", "held", "merge in place", "post-hook", "rows without a key are gone")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(
            *(name, kind),
            marks=[] if name in MAIN else pytest.mark.more if kind == KILLED else pytest.mark.slow,
        )
        for name in HISTORIES
        for kind in (KILLED, FAILS, LOST)
    ],
)
def test_the_next_run_brings_mirror_and_model_together(
    tmp_path: Path, name: str, kind: str
) -> None:
    history = HISTORIES[name]
    published = history.begin(tmp_path / "0")
    for point in count(1):
        world = published.copy(tmp_path / str(point))
        history.change(world)
        fault = Fault(point, kind)

        is_done = interrupted(history, world, fault)
        print(f"{kind} at {point}: {world.steps[-1]}")  # pytest shows it if the test fails
        if is_done:  # perhaps with a scratch table that could not be dropped
            world.assert_published(history.expected)
        history.again(world, None)

        world.assert_right(history.expected)
        if not fault.happened:
            assert is_done
            break
    assert point >= 3


# they publish rows that only the lost Spark had
OF_SPARK = ("rebuild of what Spark has", *(name for name in HISTORIES if "into rows" in name))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in MAIN else pytest.mark.more)
        for name in HISTORIES
        if name not in OF_SPARK
    ],
)
def test_a_run_on_another_machine_brings_mirror_and_model_together(
    tmp_path: Path, name: str
) -> None:
    history = HISTORIES[name]
    published = history.begin(tmp_path / "0")
    for point in count(1):
        world = published.copy(tmp_path / str(point))
        history.change(world)

        is_done = interrupted(history, world, Fault(point))
        print(f"killed at {point}: {world.steps[-1]}")
        world.go_to_another_machine()
        history.again(world, None)

        world.assert_right(history.expected)
        if is_done:
            break
    assert point >= 3


@pytest.mark.parametrize("name", ["changes", "merge", "Delta table", "held", "empty initial load"])
@pytest.mark.parametrize(
    "kind", [KILLED, *(pytest.param(kind, marks=pytest.mark.more) for kind in (FAILS, LOST))]
)
def test_a_restore_may_be_interrupted(tmp_path: Path, name: str, kind: str) -> None:
    history = HISTORIES[name]
    published = history.begin(tmp_path / "0")
    published.go_to_another_machine()
    for point in count(1):
        world = published.copy(tmp_path / str(point))
        history.change(world)
        fault = Fault(point, kind)

        is_done = interrupted(history, world, fault)
        print(f"{kind} at {point}: {world.steps[-1]}")
        history.again(world, None)

        world.assert_right(history.expected)
        if is_done and not fault.happened:
            break
    assert point >= 3


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("name", MAIN)
def test_a_run_may_be_killed_while_it_finishes_another_one(tmp_path: Path, name: str) -> None:
    history = HISTORIES[name]
    published = history.begin(tmp_path / "0")
    folders = map(str, count(1))
    for first in count(1):
        once = published.copy(tmp_path / next(folders))
        history.change(once)
        if interrupted(history, once, Fault(first)):
            break
        for second in count(1):
            world = once.copy(tmp_path / next(folders))
            history.change(world)

            is_done = interrupted(history, world, Fault(second))
            print(f"killed at {first}, then at {second}: {world.steps[-1]}")
            history.again(world, None)

            world.assert_right(history.expected)
            if is_done:
                break


def interrupted(history: History, world: World, fault: Fault) -> bool:
    """Run a node with a fault. Return whether the run succeeds."""
    try:
        history.again(world, fault)
    except (Killed, DbtRuntimeError):
        return False
    return True
