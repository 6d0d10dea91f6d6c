"""The steps of a publication in their order, and the limits that hold it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import new_batch_id
from dbt.adapters.openmirroring.node.publish import keep_held
from dbt.adapters.openmirroring.spark.relation import BUILD_PROPERTY
from tests.unit.node.fake_warehouse import FakeAdapter
from tests.unit.node.faults import Fault, Killed
from tests.unit.node.world import AFTER, BEFORE, ORDERS, World, published_world

INCREMENTAL = {"materialized": "incremental"}
DELTA = {**INCREMENTAL, "file_format": "delta"}
HELD = {"publish": "on_request"}

BUILD = "mirror_create_table orders__next_ID"
COMMIT = ["mirror_write_files", "create _scratchPad/manifest.json"]
UNSTAGE = "delete _scratchPad/ID"
RECORD = "write orders/_journal.json"
COMPLETE = ["delete _scratchPad/manifest.json", UNSTAGE]
CATCH_UP = ["drop orders", "rename orders__next_ID to orders"]


def published(number: int) -> str:
    return f"rename to orders/{number:020}.parquet"


@pytest.mark.parametrize(
    ("config", "after", "full_refresh", "steps"),
    [
        pytest.param(
            {},
            AFTER,
            False,
            [BUILD, *COMMIT, published(2), RECORD, *CATCH_UP, *COMPLETE],
            id="changes",
        ),
        pytest.param({}, BEFORE, False, [BUILD, "drop orders__next_ID"], id="nothing"),
        pytest.param(
            {},
            AFTER,
            True,
            [
                *(BUILD, *COMMIT, "delete orders", "write orders/_metadata.json", published(1)),
                *(RECORD, *CATCH_UP, *COMPLETE),
            ],
            id="rebuild",
        ),
        pytest.param(
            INCREMENTAL,
            AFTER,
            False,
            [
                *("mirror_keep orders__new_rows_ID", BUILD, *COMMIT, published(2)),
                *(RECORD, *CATCH_UP, "drop orders__new_rows_ID", *COMPLETE),
            ],
            id="merge",
        ),
        pytest.param(
            DELTA,
            AFTER,
            False,
            [
                *(f"mirror_keep orders__{rows}_ID" for rows in ("new_rows", "before", "part")),
                *(*COMMIT, "mirror_merge_part", "mirror_mark orders", published(2)),
                RECORD,
                *(f"drop orders__{rows}_ID" for rows in ("new_rows", "before", "part")),
                *COMPLETE,
            ],
            id="in place",
        ),
    ],
)
def test_a_publication_has_its_steps_in_order(
    tmp_path: Path,
    config: dict[str, Any],
    after: tuple[Any, ...],
    full_refresh: bool,
    steps: list[str],
) -> None:
    world = published_world(tmp_path, **config)
    world.select(*after)

    world.run(full_refresh=full_refresh, recovers=False)

    assert world.changes == steps


def test_an_initial_load_writes_metadata_before_its_file(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.select(*BEFORE)

    response = world.run()

    assert world.changes == [
        *(BUILD, *COMMIT, "write orders/_metadata.json", published(1)),
        *(RECORD, "rename orders__next_ID to orders", *COMPLETE),
    ]
    assert (response.publication, response.rows_inserted) == ("initial", 3)
    world.assert_right(BEFORE)


def test_held_rows_are_built_first_and_published_later(tmp_path: Path) -> None:
    world = published_world(tmp_path, **HELD)

    assert world.run().publication == "held"

    assert world.changes == [
        *(BUILD, "write _scratchPad/held.json", "rename orders to orders__published_ID"),
        "rename orders__next_ID to orders",
    ]
    assert world.mirrored == list(BEFORE)
    assert world.rows == list(AFTER)

    world.publish_held()

    assert world.changes == [
        *(*COMMIT, published(2), RECORD, "drop orders__published_ID"),
        *("delete _scratchPad/held.json", *COMPLETE),
    ]
    world.assert_right(AFTER)


def test_a_rebuild_of_what_spark_has_computes_no_rows(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.spark.results.clear()

    response = world.rebuild()

    assert (response.publication, response.reason) == ("rebuild", "mirror_rebuild")
    world.assert_right(BEFORE)


def test_two_publications_follow_each_other(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    for rows in (AFTER, BEFORE, AFTER[:1], AFTER):
        world.select(*rows)
        world.run()
        world.assert_right(rows)

    assert len(world.files) == 5


def test_nothing_is_published_where_nothing_is_held(tmp_path: Path) -> None:
    world = published_world(tmp_path)

    assert world.publish_held() is None

    world.assert_right(BEFORE)


def test_the_publication_of_held_rows_finishes_an_interrupted_batch(tmp_path: Path) -> None:
    world = published_world(tmp_path, **HELD)
    world.run()
    with pytest.raises(Killed):
        world.publish_held(Fault(step=published(2)))

    response = world.publish_held(Fault())

    assert response
    assert response.publication == "changes"
    world.assert_right(AFTER)


def test_the_landing_zone_tells_why_rows_stay_held(tmp_path: Path) -> None:
    world = published_world(tmp_path, **HELD)
    world.run()

    keep_held(world.node(FakeAdapter(world.spark)), world.destination(), "because a test failed")

    record = world.zone.read("_scratchPad/shop.orders/held.json")
    assert record
    assert b"because a test failed" in record


@pytest.mark.parametrize("size", [10**9, None], ids=["large", "unknown size"])
def test_a_table_of_any_size_is_published(tmp_path: Path, size: int | None) -> None:
    world = published_world(tmp_path, target_file_size="1mb")
    world.spark.bytes, world.spark.is_small = size, False

    world.run()

    world.assert_right(AFTER)


def test_rows_that_are_taken_in_place_can_need_a_rebuild(tmp_path: Path) -> None:
    world = published_world(tmp_path, **DELTA)
    world.config["unique_key"] = "name"
    world.select((5, "b"), (6, "new"))

    response = world.run()

    assert response.publication == "rebuild"
    world.assert_right([(1, "a"), (3, "c"), (5, "b"), (6, "new")])


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


def test_a_corrected_model_replaces_the_rows_that_its_limit_has_held(tmp_path: Path) -> None:
    world = published_world(tmp_path, max_deleted=1)
    world.select()
    with pytest.raises(CompilationError, match="3 of 3 rows would be deleted"):
        world.run()

    world.select(*AFTER)
    world.run()

    world.assert_right(AFTER)


def test_a_limit_holds_rows_that_were_taken_in_place(tmp_path: Path) -> None:
    config = {**DELTA, "max_deleted": 0, "delete_when": "gone"}
    columns = {"id": "int", "gone": "int"}
    world = World(tmp_path, **config)
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

    with pytest.raises(CompilationError, match="1 of 3 rows would be deleted"):
        world.publish_held(tested=build)

    assert world.mirrored == list(BEFORE)
    world.publish_held()
    world.assert_right(BEFORE[:2])


def test_rows_of_another_build_than_the_tested_one_stay_held(tmp_path: Path) -> None:
    world = published_world(tmp_path, publish="after_tests")
    world.run()

    with pytest.raises(CompilationError, match="Another run has built"):
        world.publish_held(tested=new_batch_id())

    assert world.mirrored == list(BEFORE)


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
