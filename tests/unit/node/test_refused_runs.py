"""What a run leaves that is refused, or that comes after an interrupted one."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.batch import new_batch_id
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    MirrorError,
    SnapshotMismatchError,
)
from tests.unit.node.fake_rows import Rows
from tests.unit.node.world import (
    AFTER,
    BEFORE,
    COLUMNS,
    ORDERS,
    World,
    publication_of,
    published_world,
)

MANIFEST = "_scratchPad/shop.orders/manifest.json"
JOURNAL = "shop.schema/orders/_journal.json"

INCREMENTAL = {"materialized": "incremental"}
DELTA = {**INCREMENTAL, "file_format": "delta"}


# What is refused


@pytest.mark.parametrize(
    "rows", [((1, "a"), (1, "b")), ((None, "a"), (2, "b"))], ids=["repeated", "null"]
)
@pytest.mark.parametrize("config", [{}, {"publish": "on_request"}], ids=["published", "held"])
@pytest.mark.parametrize("is_small", [True, False])
def test_rows_whose_keys_cannot_be_published_are_refused(
    tmp_path: Path, config: dict[str, Any], rows: tuple[Any, ...], is_small: bool
) -> None:
    world = published_world(tmp_path, **config)
    world.spark.is_small = is_small
    world.select(*rows)

    with pytest.raises(DbtRuntimeError, match="so nothing was published"):
        world.run()

    world.assert_right(BEFORE)


@pytest.mark.parametrize(
    ("strategy", "message"),
    [
        ("merge", "Several new rows have the same key"),
        ("delete+insert", "so nothing was published"),
    ],
)
def test_new_rows_with_the_same_key_are_refused(
    tmp_path: Path, strategy: str, message: str
) -> None:
    world = published_world(tmp_path, **INCREMENTAL, incremental_strategy=strategy)
    world.select((9, "a"), (9, "b"))

    with pytest.raises(DbtRuntimeError, match=message):
        world.run()

    world.assert_right(BEFORE)


MAPS = {"id": "map<string,int>", "name": "string"}
LATER: dict[str, tuple[dict[str, Any], str]] = {
    **{
        option: ({option: ["name", "`nme`"]}, f"`{option}` names 'nme', and neither the model nor")
        for option in ("merge_update_columns", "merge_exclude_columns")
    },
    **{
        strategy: (
            {"incremental_strategy": strategy},
            "`unique_key` is `id` of the type map<string,int>, and Spark cannot compare such "
            "values. Nothing was changed. Select to_json(`id`) under a name, and set that.",
        )
        for strategy in ("append", "merge", "delete+insert")
    },
}


@pytest.mark.parametrize("name", LATER)
@pytest.mark.parametrize("mirror", [True, False])
def test_what_a_later_run_would_fail_with_is_refused_in_the_first(
    tmp_path: Path, name: str, mirror: bool
) -> None:
    config, message = LATER[name]
    world = World(tmp_path, **INCREMENTAL, **config, mirror=mirror)
    world.select(columns=MAPS if "strategy" in str(config) else COLUMNS)

    with pytest.raises(CompilationError, match=re.escape(message)):
        world.run()

    assert world.spark.tables == {}
    assert world.files == []


@pytest.mark.parametrize("option", ["merge_update_columns", "merge_exclude_columns"])
def test_a_column_of_a_merge_may_be_that_of_the_table_or_of_the_model(
    tmp_path: Path, option: str
) -> None:
    world = published_world(tmp_path, **INCREMENTAL, on_schema_change="append_new_columns")
    world.select((9, "new"), columns={"id": "int", "city": "string"})
    world.config[option] = ["NAME", "city"]

    world.run()

    world.assert_right([*((*row, None) for row in BEFORE), (9, None, "new")])


def test_a_rebuild_can_be_refused(tmp_path: Path) -> None:
    world = published_world(tmp_path, on_breaking_change="fail")
    world.select((1,), columns={"id": "int"})

    with pytest.raises(CompilationError, match="needs a rebuild"):
        world.run()

    world.assert_right(BEFORE)


@pytest.mark.parametrize("config", [DELTA, {**DELTA, "unique_key": None}])
def test_rows_that_spark_refuses_to_store_are_not_published(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    world = published_world(tmp_path, **config)
    world.select((9, "new"))

    def refuse() -> None:
        raise DbtDatabaseError("a CHECK constraint")

    world.spark.refuses = refuse
    with pytest.raises(DbtDatabaseError, match="CHECK"):
        world.run()

    world.assert_right(BEFORE)
    world.spark.refuses = lambda: None
    world.run()
    world.assert_right([*BEFORE, (9, "new")])


def test_a_table_that_others_have_only_optimized_is_as_published(tmp_path: Path) -> None:
    world = published_world(tmp_path, file_format="delta")
    world.spark.table(ORDERS).change("OPTIMIZE")

    world.run()

    world.assert_right(AFTER)


def test_a_column_that_others_have_added_is_not_taken_for_published(tmp_path: Path) -> None:
    world = published_world(tmp_path, file_format="delta")
    table = world.spark.table(ORDERS)
    columns = {**table.rows.columns, "n": "int"}
    table.change("ADD COLUMNS", Rows(columns, tuple((*row, None) for row in BEFORE)))
    table.change("UPDATE", Rows(columns, tuple((*row, 1) for row in BEFORE)))
    rows = ((1, "a", 1), (2, "changed", 1))
    world.select(*rows, columns=columns)

    response = world.run()

    assert (response.rows_updated, response.rows_deleted) == (2, 1)
    world.assert_right(rows)


def test_lost_metadata_is_written_again(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    metadata = "shop.schema/orders/_metadata.json"
    before = world.zone.read(metadata)
    world.zone.write(metadata, b"{}")

    world.run()

    assert world.zone.read(metadata) == before
    assert any("written again" in text for text in world.told)
    world.assert_right(AFTER)


def test_a_table_whose_folder_is_gone_is_loaded_anew_and_says_so(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.zone.delete("shop.schema/orders")

    response = world.run()

    assert (response.publication, response.reason) == ("initial", "the table folder was gone")
    world.assert_right(AFTER)


def test_a_lost_snapshot_is_not_replaced_in_silence(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.spark.tables.clear()

    with pytest.raises(SnapshotMismatchError, match="no baseline"):
        world.run()

    assert world.mirrored == list(BEFORE)


def test_a_node_that_was_not_mirrored_meanwhile_is_rebuilt(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.config["mirror"] = False
    world.run()
    assert world.mirrored == list(BEFORE)

    world.config["mirror"] = True
    response = world.run()

    assert response.reason == "was not mirrored meanwhile"
    world.assert_right(AFTER)


# Other runs


def test_a_table_is_not_restored_while_another_run_publishes_it(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.go_to_another_machine()
    with world.zone.lock("_scratchPad/shop.orders"):
        with pytest.raises(ConcurrentPublicationError, match="Another run holds"):
            world.run()

        assert not world.spark.tables
    world.run()
    world.assert_right(AFTER)


def test_a_run_that_has_lost_a_race_publishes_nothing(tmp_path: Path) -> None:
    world = published_world(tmp_path)

    def publish_on_another_machine() -> None:
        other = replace(world.journal.batch, id=new_batch_id())
        world.zone.write(JOURNAL, replace(world.journal, batch=other).to_json())

    world.pre_hooks = ["call other()"]
    world.spark.effects["call other()"] = publish_on_another_machine
    with pytest.raises(ConcurrentPublicationError, match="Another run has published"):
        world.run()

    assert (world.mirrored, world.rows) == (list(BEFORE), list(BEFORE))
    assert set(world.spark.tables) == {"orders"}
    world.assert_zone_in_order()


# Interrupted batches


def test_a_damaged_manifest_stops_the_run_and_changes_nothing(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    world.zone.write(MANIFEST, b"{")

    with pytest.raises(MirrorError, match=r"manifest\.json"):
        world.run()

    assert (world.mirrored, world.rows) == (list(BEFORE), list(BEFORE))
    world.zone.delete(MANIFEST)
    world.run()
    world.assert_right(AFTER)


@pytest.mark.parametrize("config", [{}, DELTA], ids=["swap", "in place"])
def test_a_batch_whose_rows_spark_has_lost_is_published_from_its_files(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    world = published_world(tmp_path, **config)
    world.kill_before("mirror_merge_part" if config else publication_of(2))
    for name in set(world.spark.tables) - {"orders"}:
        del world.spark.tables[name]

    with pytest.raises(SnapshotMismatchError, match="Somebody else has published this table"):
        world.run()

    assert world.mirrored != list(BEFORE), "the files of the batch have its rows"
    world.run(full_refresh=True)
    world.assert_right(AFTER)


def test_sql_that_was_compiled_before_a_batch_was_finished_is_refused(tmp_path: Path) -> None:
    world = published_world(tmp_path, **INCREMENTAL)
    world.select((4, "d"))
    world.kill_before(publication_of(2))

    with pytest.raises(CompilationError, match="run it again"):
        world.run(recovers=False)

    world.run()
    world.assert_right([*BEFORE, (4, "d")])
