"""`mirror_repair` publishes the difference between the mirrored table and the snapshot."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import (
    MirroredTableMismatchError,
    SnapshotMismatchError,
)
from tests.unit.node.fake_rows import Row, read_file
from tests.unit.node.faults import FAILS, KILLED, LOST, Fault, Killed
from tests.unit.node.world import BEFORE, COLUMNS, ORDERS, World, published_world

FOREIGN = [(1, "a"), (2, "changed by hand"), (9, "added by hand")]


def mirrored_after(world: World, stray: list[Row]) -> list[Row]:
    """The stray rows, after the files that were published last."""
    rows = {row[0]: row for row in stray}
    for file in world.files[1:]:
        for key, name, marker in read_file(file).rows:
            if marker == 2:
                del rows[key]
            else:
                assert (key in rows) == (marker == 1)
                rows[key] = (key, name)
    return sorted(rows.values())


@pytest.mark.parametrize("file_format", ["parquet", "delta"])
@pytest.mark.parametrize("is_small", [True, False])
def test_only_rows_that_differ_are_published(
    tmp_path: Path, file_format: str, is_small: bool
) -> None:
    world = published_world(tmp_path, file_format=file_format)
    world.spark.is_small = is_small
    world.stray = FOREIGN

    response = world.repair()

    assert str(response) == "+1 ~1 -1 · #2 · mirror_repair"
    assert mirrored_after(world, FOREIGN) == list(BEFORE)
    assert world.journal.batch.table_rows == len(BEFORE)
    world.stray = None
    world.select(*BEFORE)
    assert str(world.run()).startswith("unchanged")


def test_an_equal_table_needs_no_file(tmp_path: Path) -> None:
    world = published_world(tmp_path)

    assert str(world.repair()).startswith("unchanged")

    assert len(world.files) == 1


@pytest.mark.parametrize("kind", [KILLED, FAILS, LOST])
@pytest.mark.parametrize("is_lost", [False, True])
def test_a_repair_may_be_interrupted(tmp_path: Path, kind: str, is_lost: bool) -> None:
    """Given a lost machine, the next run there restores the snapshot."""
    (tmp_path / "0").mkdir()
    published = published_world(tmp_path / "0")
    for point in count(1):
        world = published.copy(tmp_path / str(point))
        world.select(*BEFORE)
        world.stray = FOREIGN
        fault = Fault(point, kind)

        try:
            world.repair(fault)
        except (Killed, DbtRuntimeError):
            is_done = False
        else:
            is_done = True
        world.recover()
        world.stray = mirrored_after(world, FOREIGN)
        if is_lost and world.stray == list(BEFORE):
            world.go_to_another_machine()
            world.run()
        world.repair()

        assert mirrored_after(world, FOREIGN) == list(BEFORE)
        assert set(world.spark.tables) == {"orders"}
        world.assert_zone_in_order()
        world.stray = list(BEFORE)
        assert str(world.run()).startswith("unchanged")
        if is_done and not fault.happened:
            break
    assert point > 3


def test_a_table_without_a_key_gets_the_rows_that_it_lacks(tmp_path: Path) -> None:
    world = published_world(tmp_path, unique_key=None)
    world.stray = [(1, "a")]

    assert str(world.repair()) == "+2 ~0 -0 · #2 · mirror_repair"

    assert sorted(read_file(world.files[1]).rows) == [(2, "b"), (3, "c")]


def test_without_a_key_no_row_can_be_deleted(tmp_path: Path) -> None:
    world = published_world(tmp_path, unique_key=None)
    world.stray = FOREIGN

    with pytest.raises(CompilationError, match="has 2 rows that were not published, and lacks 2"):
        world.repair()

    assert len(world.files) == 1


def test_a_row_that_is_there_twice_is_put_right(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.stray = [*BEFORE, (1, "a")]

    assert str(world.repair()) == "+0 ~1 -0 · #2 · mirror_repair"

    assert world.journal.batch.table_rows == len(BEFORE)


def test_a_row_without_a_key_is_refused(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.stray = [*BEFORE, (None, "a")]

    with pytest.raises(CompilationError, match="1 rows without a key"):
        world.repair()


def test_a_table_that_was_never_published_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)

    with pytest.raises(CompilationError, match="was not published yet"):
        world.repair()


def test_another_landing_format_than_the_published_one_is_refused(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.stray = FOREIGN
    world.config["landing_format"] = "csv"

    with pytest.raises(CompilationError, match=r"published as parquet(.|\n)*Run its node"):
        world.repair()

    assert len(world.files) == 1


def test_held_rows_are_refused(tmp_path: Path) -> None:
    world = published_world(tmp_path, publish="on_request")
    world.run()

    with pytest.raises(CompilationError, match="has held rows"):
        world.repair()


def test_rows_that_others_have_changed_in_spark_are_not_published(tmp_path: Path) -> None:
    world = published_world(tmp_path, file_format="delta")
    rows = world.spark.table(ORDERS).rows
    world.spark.table(ORDERS).change("WRITE", type(rows)(COLUMNS, ((1, "z"),)))

    with pytest.raises(SnapshotMismatchError, match="somebody else has written"):
        world.repair()


def test_a_limit_of_deletions_holds(tmp_path: Path) -> None:
    world = published_world(tmp_path, max_deleted=0)
    world.stray = FOREIGN

    with pytest.raises(CompilationError, match="max_deleted"):
        world.repair()

    assert len(world.files) == 1


def test_a_table_with_other_columns_is_refused(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.stray_columns = {**COLUMNS, "more": "string"}

    with pytest.raises(MirroredTableMismatchError, match="mirror_rebuild"):
        world.repair()
