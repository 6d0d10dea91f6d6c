"""Between a killed run and the next one, somebody else changes a table, drops it, or loses files.

The next run succeeds with the right rows, or it is refused. Each way out that its message names
then ends well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from tests.unit.node.fake_rows import Rows
from tests.unit.node.fake_warehouse import Table
from tests.unit.node.faults import Fault, Killed
from tests.unit.node.world import (
    AFTER,
    BEFORE,
    COLUMNS,
    ORDERS,
    World,
    publication_of,
    published_world,
)

IN_PLACE = {"materialized": "incremental", "file_format": "delta"}
APPENDED = {**IN_PLACE, "unique_key": None}
HELD = {"publish": "on_request"}
MANIFEST = "_scratchPad/shop.orders/manifest.json"
HELD_RECORD = "_scratchPad/shop.orders/held.json"
MERGE, INSERT = "mirror_merge_part", "mirror_insert_part"
RECORD = "write orders/_journal.json"
NEW = (4, "new")

Hand = Callable[[World], object]


def update_a_row(world: World) -> None:
    table = world.spark.table(ORDERS)
    rows = tuple((1, "by hand") if row[0] == 1 else row for row in table.rows.rows)
    table.change("UPDATE", replace(table.rows, rows=rows))


def add_a_row(world: World) -> None:
    world.insert(-3, "by hand")


def drop_the_table(world: World) -> None:
    del world.spark.tables["orders"]


def replace_the_table(world: World) -> None:
    world.spark.tables["orders"] = Table("delta", [("CREATE", Rows(COLUMNS, ((9, "other"),)))])


def lose_staged_files(world: World) -> None:
    for file in Path(world.address).glob("_scratchPad/*/*/rows/*.parquet"):
        file.unlink()


# how a message names a way out, and the way
WAYS_OUT: dict[str, Callable[[World], object]] = {
    "mirror_restore": World.restore,
    "mirror_rebuild": World.rebuild,
    "`restore_baseline: true`": lambda world: setattr(world, "restores", True),
    "`on_foreign_changes: publish`": lambda world: world.config.update(
        on_foreign_changes="publish"
    ),
    "--full-refresh": lambda world: world.run(full_refresh=True),
    "manifest.json and run again": lambda world: world.zone.delete(MANIFEST),
}


def ended(world: World, folder: Path, run: Callable[[World], object] = World.run) -> list[World]:
    """Run the node. If it is refused, take each way out in a world of its own.

    Returns:
        the worlds in which a run has ended well
    """
    return [done for _, done in _ended(world, folder, run, 0)]


def _ended(
    world: World, folder: Path, run: Callable[[World], object], depth: int
) -> list[tuple[str, World]]:
    try:
        run(world)
    except DbtRuntimeError as error:
        message = str(error.msg)
    else:
        return [("", world)]
    ways = [way for way in WAYS_OUT if way in message]
    assert ways, message
    assert depth < 4, message
    found = []
    for number, way in enumerate(ways):
        place = folder / f"{depth}.{number}"
        place.mkdir(parents=True)
        other = world.copy(place)
        other.spark.results = dict(world.spark.results)
        WAYS_OUT[way](other)
        found += [(way, done) for _, done in _ended(other, place, run, depth + 1)]
    return found


def refused(world: World, run: Callable[[World], object] = World.run) -> str:
    with pytest.raises(DbtRuntimeError) as error:
        run(world)
    return str(error.value.msg)


@pytest.mark.parametrize("hand", [update_a_row, add_a_row])
@pytest.mark.parametrize("step", [MERGE, "mirror_mark orders", RECORD])
def test_a_row_that_somebody_changes_after_a_kill_is_refused_as_without_it(
    tmp_path: Path, hand: Hand, step: str
) -> None:
    """Given a Delta table that takes its changes in place."""
    world = published_world(tmp_path / "world", **IN_PLACE)
    world.select(NEW)
    world.kill_before(step)
    hand(world)

    message = refused(world)

    assert "Nothing was changed" in message
    for done in ended(world, tmp_path / "ways"):
        done.assert_published(done.rows)
        assert NEW in done.rows


@pytest.mark.parametrize("step", [INSERT, "mirror_mark orders", RECORD])
def test_rows_that_somebody_adds_are_not_taken_for_those_of_a_killed_append(
    tmp_path: Path, step: str
) -> None:
    """Given as many rows as the batch has."""
    world = published_world(tmp_path / "world", **APPENDED)
    world.select(NEW)
    world.kill_before(step)
    add_a_row(world)

    assert "Nothing was changed" in refused(world)

    for done in ended(world, tmp_path / "ways"):
        done.assert_published(done.rows)
        assert NEW in done.rows


@pytest.mark.parametrize("config", [IN_PLACE, APPENDED])
def test_a_table_takes_no_changes_whose_files_are_lost(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    world = published_world(tmp_path / "world", **config)
    world.select(NEW)
    world.kill_before(MERGE if config == IN_PLACE else INSERT)
    lose_staged_files(world)

    assert "manifest.json and run again" in refused(world)

    assert world.rows == list(BEFORE)
    for done in ended(world, tmp_path / "ways"):
        done.assert_published(done.rows)
        assert NEW in done.rows


@pytest.mark.parametrize("hand", [drop_the_table, replace_the_table])
@pytest.mark.parametrize("run", [World.run, World.recover, World.restore])
def test_a_batch_is_published_although_its_table_is_gone(
    tmp_path: Path, hand: Hand, run: Callable[[World], object]
) -> None:
    world = published_world(tmp_path / "world", **IN_PLACE)
    world.select(NEW)
    world.kill_before(MERGE)
    hand(world)

    for done in ended(world, tmp_path / "ways", run):
        for last in ended(done, tmp_path / "more ways"):
            last.assert_published(last.rows)
            assert NEW in last.rows


def lose_folders(world: World, *names: str) -> None:
    """Lose the folders of tables. A name ends with `*` for all that begin with it."""
    for found, table in world.spark.tables.items():
        table.is_lost |= any(fnmatch(found, name) for name in names)


IS_LOST = "/orders is gone, with all rows"


@pytest.mark.parametrize(
    ("file_format", "step"),
    [
        *(("delta", step) for step in (None, MERGE, "mirror_mark orders", RECORD)),
        *(("parquet", step) for step in (None, publication_of(2))),
    ],
)
def test_a_table_whose_folder_is_lost_is_never_read_and_a_full_refresh_replaces_it(
    tmp_path: Path, file_format: str, step: str | None
) -> None:
    world = published_world(tmp_path / "world", **{**IN_PLACE, "file_format": file_format})
    world.select(NEW)
    if step:
        world.kill_before(step)
    lose_folders(world, "orders*")
    world.recover()

    for run in (World.run, World.rebuild, World.repair):
        assert IS_LOST in refused(world, run)
    world.dry_run = True
    assert IS_LOST in refused(world)
    world.dry_run = False
    world.run(full_refresh=True)

    world.assert_right([NEW])


def test_the_build_of_a_batch_replaces_a_table_whose_folder_is_lost(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.kill_before(publication_of(2))
    lose_folders(world, "orders")

    world.run()

    world.assert_right(AFTER)


@pytest.mark.parametrize("lost", ["orders__part_*", "orders__new_rows_*"])
def test_a_table_takes_no_changes_whose_rows_are_lost(tmp_path: Path, lost: str) -> None:
    world = published_world(tmp_path / "world", **IN_PLACE)
    world.select(NEW)
    world.kill_before(MERGE)
    lose_folders(world, lost)
    world.recover()

    assert world.rows == list(BEFORE)
    for done in ended(world, tmp_path / "ways"):
        done.assert_published(done.rows)
        assert NEW in done.rows


@pytest.mark.parametrize("file_format", ["delta", "parquet"])
@pytest.mark.parametrize("step", [None, "rename orders__next_ID to orders"])
@pytest.mark.parametrize("lost", ["orders", "orders__published_*", "orders__next_*"])
def test_held_rows_and_those_beside_them_may_lose_their_folders(
    tmp_path: Path, file_format: str, step: str | None, lost: str
) -> None:
    world = published_world(tmp_path / "world", file_format=file_format, **HELD)
    if step:
        world.kill_before(step)
    else:
        world.run()
    lose_folders(world, lost)

    for done in ended(world, tmp_path / "ways"):
        done.publish_held()
        done.assert_right(AFTER)


def test_published_rows_take_the_place_of_a_copy_whose_folder_is_lost(tmp_path: Path) -> None:
    """Given a table that was restored, while a lost copy of its rows stands beside."""
    world = published_world(tmp_path, **HELD)
    world.run()
    lose_folders(world, "orders__published_*")
    drop_the_table(world)
    world.restore()
    assert world.rows == list(BEFORE)

    world.run()
    world.publish_held()

    world.assert_right(AFTER)


def test_a_table_that_is_not_mirrored_extends_no_lost_rows(tmp_path: Path) -> None:
    world = published_world(tmp_path, **IN_PLACE, mirror=False)
    world.select(NEW)
    lose_folders(world, "orders")

    assert IS_LOST in refused(world)
    world.dry_run = True
    assert IS_LOST in refused(world)
    world.dry_run = False
    world.run(full_refresh=True)

    assert world.rows == [NEW]


def test_a_full_refresh_needs_no_table_to_finish_a_batch(tmp_path: Path) -> None:
    world = published_world(tmp_path, **IN_PLACE)
    world.kill_before(MERGE)
    drop_the_table(world)
    world.recover()

    world.run(full_refresh=True)

    world.assert_right(AFTER)


@pytest.mark.parametrize("hand", [update_a_row, None])
def test_a_batch_that_another_machine_finishes_says_what_the_table_had_taken(
    tmp_path: Path, hand: Hand | None
) -> None:
    """Given a table that has taken the changes in place, and as many rows after the hand."""
    world = published_world(tmp_path / "world", **IN_PLACE)
    world.select(NEW)
    world.kill_before(RECORD)
    if hand:
        hand(world)
    elsewhere = world.twin()
    elsewhere.spark.tables = {}
    elsewhere.recover()

    if hand:
        assert "somebody else has written to the table" in refused(world)
    for done in ended(world, tmp_path / "ways"):
        done.assert_published(done.rows)
        assert NEW in done.rows


def test_the_only_copy_of_the_published_rows_stays_beside_a_lost_table(tmp_path: Path) -> None:
    """Given held rows that were committed, whose table and staged files are lost."""
    world = published_world(tmp_path / "world", **HELD)
    world.run()
    with pytest.raises(Killed):
        world.publish_held(Fault(step=publication_of(2)))
    drop_the_table(world)
    lose_staged_files(world)

    message = refused(world, World.recover)

    assert "Nothing was changed" in message
    assert [table.rows.rows for table in world.spark.tables.values()] == [BEFORE]
    world.zone.delete(MANIFEST)
    world.run()
    world.publish_held()
    world.assert_right(AFTER)


# More of them


def test_a_table_that_checked_sql_is_replaced_by_the_build_of_a_killed_run(
    tmp_path: Path,
) -> None:
    world = published_world(tmp_path)
    world.kill_before("rename orders__next_ID to orders")
    world.empty = True
    world.run()
    world.empty = False

    world.recover()

    world.assert_right(AFTER)


def test_a_restore_that_is_killed_in_its_swap_is_finished_by_the_next_run(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    replace_the_table(world)
    with pytest.raises(Killed):
        world.restore(Fault(step="rename orders__next_ID to orders"))

    world.run()

    world.assert_right(AFTER)


def test_held_rows_stay_held_if_the_run_that_replaces_them_is_killed(tmp_path: Path) -> None:
    """Given rows that were never published, so that nothing stands beside them."""
    world = World(tmp_path, **HELD)
    world.select(*BEFORE)
    world.run()
    world.select(*AFTER)
    world.kill_before("drop orders")

    message = refused(world, lambda world: world.publish_held(Fault()))

    assert "Run its node" in message
    world.run()
    world.publish_held()
    world.assert_right(AFTER)


def test_rows_that_are_not_mirrored_outlive_a_kill_before_they_are_mirrored(
    tmp_path: Path,
) -> None:
    world = World(tmp_path, materialized="incremental", mirror=False)
    world.select(*BEFORE)
    world.run()
    world.select(NEW)
    world.kill_before("rename orders__unmirrored_ID to orders")
    world.config["mirror"] = True

    world.run()

    world.assert_right([*BEFORE, NEW])


def test_a_table_that_was_rebuilt_is_not_rebuilt_again(tmp_path: Path) -> None:
    """Given a table that was not mirrored for a while."""
    world = published_world(tmp_path, file_format="delta")
    world.config["mirror"] = False
    world.run()
    world.config["mirror"] = True
    world.rebuild()

    assert world.run().publication == "unchanged"


def test_rows_of_a_failed_run_are_not_those_of_the_run_after_it_that_was_killed(
    tmp_path: Path,
) -> None:
    """Given rows that are held in place, and a run that is killed before it changes them."""
    world = published_world(tmp_path, **IN_PLACE, **HELD)
    world.post_hooks = ["a wrong statement"]
    with pytest.raises(DbtRuntimeError):
        world.run()
    world.post_hooks = []
    world.select(NEW)
    world.kill_before(MERGE)

    message = refused(world, lambda world: world.publish_held(Fault()))

    assert "Run its node" in message
    world.run()
    world.publish_held()
    assert world.mirrored == world.rows


# Publications


def test_rows_of_others_do_not_stay_beside_a_full_refresh_that_is_held(tmp_path: Path) -> None:
    """Given rows of others that are those of the model, and a lost record of the held rows."""
    world = published_world(tmp_path / "world", file_format="delta", **HELD)
    table = world.spark.table(ORDERS)
    table.change("UPDATE", replace(table.rows, rows=AFTER))
    world.run(full_refresh=True)
    world.zone.delete(HELD_RECORD)

    for done in ended(world, tmp_path / "ways"):
        done.publish_held()
        assert done.mirrored == done.rows


def test_rows_of_others_are_not_published_with_held_rows_that_were_the_same(
    tmp_path: Path,
) -> None:
    """Given a run that was killed after it had found no difference."""
    world = published_world(tmp_path / "world", file_format="delta", **HELD)
    world.select(*BEFORE[::-1])
    world.run()
    with pytest.raises(Killed):
        world.publish_held(Fault(step="delete _scratchPad/held.json"))
    update_a_row(world)

    world.publish_held(Fault())

    assert "somebody else has written to the table" in refused(world)
