"""`mirror_repair` publishes the difference between the mirrored table and the snapshot."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import (
    MirroredTableMismatchError,
    SnapshotMismatchError,
)
from tests.unit.node.fake_rows import Row, read_file
from tests.unit.node.faults import FAILS, KILLED, LOST, Fault, Killed, WatchedDestination
from tests.unit.node.world import BEFORE, COLUMNS, ORDERS, World, published_world

KEYLESS = {"unique_key": None}
DELTA = {"file_format": "delta"}
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
        is_done = False
        with suppress(Killed, DbtRuntimeError):
            world.repair(fault)
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


@pytest.mark.parametrize(
    ("config", "stray", "told", "rows"),
    [
        (KEYLESS, [(1, "a")], "+2 ~0 -0", [(2, "b"), (3, "c")]),
        # a row that is there twice
        ({}, [*BEFORE, (1, "a")], "+0 ~1 -0", [(1, "a", 1)]),
    ],
)
def test_a_table_gets_the_rows_that_it_lacks_or_has_twice(
    tmp_path: Path, config: dict[str, Any], stray: list[Row], told: str, rows: list[Row]
) -> None:
    world = published_world(tmp_path, **config)
    world.stray = stray

    assert str(world.repair()) == f"{told} · #2 · mirror_repair"

    assert sorted(read_file(world.files[1]).rows) == rows
    assert world.journal.batch.table_rows == len(BEFORE)


def hold_rows(world: World) -> None:
    world.config["publish"] = "on_request"
    world.run()


def change_landing_format(world: World) -> None:
    world.config["landing_format"] = "csv"


def change_in_spark(world: World) -> None:
    table = world.spark.table(ORDERS)
    table.change("WRITE", replace(table.rows, rows=((1, "z"),)))


def add_a_column(world: World) -> None:
    world.stray_columns = {**COLUMNS, "more": "string"}


def forget_the_key_of_a_row(world: World) -> None:
    world.stray = [*BEFORE, (None, "a")]


@pytest.mark.parametrize(
    ("config", "change", "error", "message"),
    [
        (KEYLESS, id, CompilationError, "has 2 rows that were not published, and lacks 2"),
        ({"max_deleted": 0}, id, CompilationError, "max_deleted"),
        ({}, forget_the_key_of_a_row, CompilationError, "1 rows without a key"),
        ({}, change_landing_format, CompilationError, r"published as parquet.*Run its node"),
        ({}, hold_rows, CompilationError, "has held rows"),
        (DELTA, change_in_spark, SnapshotMismatchError, "somebody else has written"),
        ({}, change_in_spark, SnapshotMismatchError, "1 rows of .*, but 3 were published"),
        ({}, add_a_column, MirroredTableMismatchError, "mirror_rebuild"),
    ],
)
def test_a_table_that_no_change_set_can_make_equal_is_refused(
    tmp_path: Path,
    config: dict[str, Any],
    change: Any,
    error: type[DbtRuntimeError],
    message: str,
) -> None:
    world = published_world(tmp_path, **config)
    world.stray = FOREIGN
    change(world)

    with pytest.raises(error, match=message):
        world.repair()

    assert len(world.files) == 1


def test_a_table_that_its_destination_refuses_is_not_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise CompilationError("The service replicates nothing")

    world = published_world(tmp_path)
    world.stray = FOREIGN
    monkeypatch.setattr(WatchedDestination, "check_table", refuse)

    with pytest.raises(CompilationError, match="replicates nothing"):
        world.repair()

    assert len(world.files) == 1


def test_a_table_that_was_never_published_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CompilationError, match="was not published yet"):
        World(tmp_path).repair()
