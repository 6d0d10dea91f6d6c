"""The steps of a publication in their order, and the limits that hold it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import new_batch_id
from dbt.adapters.openmirroring.spark.relation import BUILD_PROPERTY
from tests.unit.node.faults import Fault, Killed
from tests.unit.node.world import AFTER, BEFORE, ORDERS, World, publication_of, published_world

DELTA = {"materialized": "incremental", "file_format": "delta"}
HELD = {"publish": "on_request"}

BUILD = "mirror_create_table orders__next_ID"
COMMIT = ["mirror_write_files", "create _scratchPad/manifest.json"]
RECORD = "write orders/_journal.json"
MARK = "write _published/shop/shop.orders"
COMPLETE = ["delete _scratchPad/manifest.json", "delete _scratchPad/ID"]
RENAME = "rename orders__next_ID to orders"
CATCH_UP = ["drop orders", RENAME]
# the tables of rows that a table takes in place
PARTS = [f"orders__{rows}_ID" for rows in ("new_rows", "before", "part")]


@pytest.mark.parametrize(
    ("config", "full_refresh", "steps"),
    [
        ({}, False, [BUILD, *COMMIT, publication_of(2), RECORD, *CATCH_UP, *COMPLETE]),
        (
            *({}, True),
            [
                *(BUILD, *COMMIT, "delete orders", "write orders/_metadata.json"),
                *(publication_of(1), MARK, RECORD, *CATCH_UP, *COMPLETE),
            ],
        ),
        (
            *(DELTA, False),
            [
                *(f"mirror_keep {table}" for table in PARTS),
                *(*COMMIT, "mirror_merge_part", "mirror_mark orders", publication_of(2), RECORD),
                *(f"drop {table}" for table in PARTS),
                *COMPLETE,
            ],
        ),
    ],
    ids=["changes", "rebuild", "in place"],
)
def test_a_publication_has_its_steps_in_order(
    tmp_path: Path, config: dict[str, Any], full_refresh: bool, steps: list[str]
) -> None:
    world = published_world(tmp_path, **config)

    world.run(full_refresh=full_refresh, recovers=False)

    assert world.changes == steps


def test_held_rows_are_built_first_and_published_later(tmp_path: Path) -> None:
    world = published_world(tmp_path, **HELD)

    assert world.run().publication == "held"

    assert world.changes == [
        *(BUILD, "write _scratchPad/held.json", "rename orders to orders__published_ID", RENAME)
    ]
    assert (world.mirrored, world.rows) == (list(BEFORE), list(AFTER))

    world.publish_held()

    assert world.changes == [
        *(*COMMIT, publication_of(2), RECORD, "drop orders__published_ID"),
        *("delete _scratchPad/held.json", *COMPLETE),
    ]
    world.assert_right(AFTER)
    assert world.publish_held() is None


def test_the_publication_of_held_rows_finishes_an_interrupted_batch(tmp_path: Path) -> None:
    world = published_world(tmp_path, **HELD)
    world.run()
    with pytest.raises(Killed):
        world.publish_held(Fault(step=publication_of(2)))

    response = world.publish_held(Fault())

    assert response
    assert response.publication == "changes"
    assert any("which an earlier run had left" in text for text in world.told)
    world.assert_right(AFTER)


def test_a_rebuild_of_what_spark_has_computes_no_rows(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.spark.results.clear()

    response = world.rebuild()

    assert (response.publication, response.reason) == ("rebuild", "mirror_rebuild")
    world.assert_right(BEFORE)


@pytest.mark.parametrize("size", [10**9, None], ids=["large", "unknown size"])
def test_a_table_of_any_size_is_published(tmp_path: Path, size: int | None) -> None:
    world = published_world(tmp_path, target_file_size="1mb")
    world.spark.bytes, world.spark.is_small = size, False

    world.run()

    world.assert_right(AFTER)


# Limits


def test_a_publication_beyond_its_limit_is_held_until_it_is_asked_for(tmp_path: Path) -> None:
    world = published_world(tmp_path, max_deleted=1)
    world.select(*BEFORE[:1])

    with pytest.raises(CompilationError, match="2 of 3 rows would be deleted"):
        world.run()

    assert (world.mirrored, world.rows) == (list(BEFORE), list(BEFORE[:1]))
    assert [name for name in world.spark.tables if name.startswith("orders__published_")]
    assert world.publish_held() is not None
    world.assert_right(BEFORE[:1])


def test_a_limit_holds_rows_that_were_taken_in_place(tmp_path: Path) -> None:
    world = World(tmp_path, **DELTA, max_deleted=0, delete_when="gone")
    columns = {"id": "int", "gone": "int"}
    world.select((1, 0), (2, 0), columns=columns)
    world.run()

    world.select((1, 1), (3, 0), columns=columns)
    with pytest.raises(CompilationError, match="1 of 2 rows would be deleted"):
        world.run()

    assert (world.mirrored, world.rows) == ([(1, 0), (2, 0)], [(2, 0), (3, 0)])
    world.publish_held()
    world.assert_right([(2, 0), (3, 0)])


def test_tested_rows_beyond_the_limit_stay_held(tmp_path: Path) -> None:
    world = published_world(tmp_path, publish="after_tests", max_deleted="10%")
    world.select(*BEFORE[:2])
    world.run()
    build = world.spark.table(ORDERS).properties[BUILD_PROPERTY]

    with pytest.raises(CompilationError, match="Another run has built"):
        world.publish_held(tested=new_batch_id())
    with pytest.raises(CompilationError, match="1 of 3 rows would be deleted"):
        world.publish_held(tested=build)

    assert world.mirrored == list(BEFORE)
    world.publish_held()
    world.assert_right(BEFORE[:2])


@pytest.mark.parametrize(
    ("limit", "finding"), [(None, "Spark has no rows"), (1, "3 of 3 rows would be deleted")]
)
def test_a_rebuild_does_not_empty_the_mirror(
    tmp_path: Path, limit: int | None, finding: str
) -> None:
    world = published_world(tmp_path, max_deleted=limit)
    table = world.spark.table(ORDERS)
    table.change("rows are lost", replace(table.rows, rows=()))

    with pytest.raises(CompilationError, match=finding):
        world.rebuild()

    assert world.mirrored == list(BEFORE)
