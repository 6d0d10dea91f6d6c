"""Runs that publish nothing: dry runs, `--empty`, and nodes that are not mirrored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.node.materialize import preview
from tests.unit.node.fake_rows import Row
from tests.unit.node.fake_warehouse import FakeAdapter, Table
from tests.unit.node.world import AFTER, BEFORE, World, publication_of, published_world

SWAP = "rename orders__next_ID to orders"


def dry_run(world: World, **named: Any) -> Any:
    world.dry_run = True
    try:
        return world.run(**named)
    finally:
        world.dry_run = False


@pytest.mark.parametrize(
    ("config", "after", "full_refresh", "message"),
    [
        pytest.param({}, AFTER, False, "would publish +1 ~1 -1", id="changes"),
        pytest.param({}, BEFORE, False, "would publish nothing", id="nothing"),
        pytest.param({}, AFTER, True, "would publish rebuild +3 · --full-refresh", id="rebuild"),
        pytest.param(
            {"publish": "after_tests"}, AFTER, False, "would publish +1 ~1 -1", id="held"
        ),
        pytest.param(
            {"materialized": "incremental"}, AFTER, False, "would publish +1 ~1 -0", id="merge"
        ),
        pytest.param({"mirror": False}, AFTER, False, "dry run: built beside", id="not mirrored"),
    ],
)
def test_a_dry_run_tells_what_would_be_published_and_changes_nothing(
    tmp_path: Path,
    config: dict[str, Any],
    after: tuple[Row, ...],
    full_refresh: bool,
    message: str,
) -> None:
    world = published_world(tmp_path, **config)
    world.select(*after)

    response = dry_run(world, full_refresh=full_refresh)

    assert str(response) == message
    assert world.rows == list(BEFORE)
    assert not [
        step for step in world.changes if not step.startswith(("mirror_", "drop orders__"))
    ]
    if "mirror" not in config:
        assert world.mirrored == list(BEFORE)


def test_a_dry_run_of_a_new_table_makes_no_landing_zone(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.select(*BEFORE)

    assert str(dry_run(world)) == "would publish initial +3"

    assert not (tmp_path / "zone").exists()


def test_nodes_downstream_read_the_relation_that_a_dry_run_has_built(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    adapter = FakeAdapter(world.spark)

    preview(world.node(adapter), world.destination())

    [built] = adapter.stand_ins.take_all()
    assert set(world.spark.tables) == {"orders", built.identifier}


def test_a_view_of_the_latest_version_of_a_python_model_runs_no_python(tmp_path: Path) -> None:
    world = World(tmp_path)
    node = world.node(FakeAdapter(world.spark))
    node.model["language"] = "python"
    node.is_view = True

    node.run_own_code(lambda _: False)


def test_a_dry_run_fails_where_a_run_would_hold_rows_or_finish_a_batch(tmp_path: Path) -> None:
    world = published_world(tmp_path, max_deleted=0)
    with pytest.raises(CompilationError, match="A run would hold these rows"):
        dry_run(world)

    world.config["max_deleted"] = None
    world.kill_before(publication_of(2))
    with pytest.raises(MirrorError, match="A dry run changes nothing"):
        dry_run(world)
    world.dry_run, world.spark.tables = True, {}
    with pytest.raises(MirrorError, match="A dry run changes nothing"):
        world.restore()

    assert world.mirrored == list(BEFORE)


def test_a_dry_run_drops_what_dry_runs_of_other_days_have_left(tmp_path: Path) -> None:
    world = published_world(tmp_path)
    rows = world.spark.table("`shop`.`orders`").rows
    for begun in ("20200101000000", "29990101000000"):
        world.spark.tables[f"orders__dry_run_{begun}deadbeef"] = Table("parquet", [("", rows)])

    dry_run(world)

    assert "orders__dry_run_20200101000000deadbeef" not in world.spark.tables
    assert "orders__dry_run_29990101000000deadbeef" in world.spark.tables


@pytest.mark.parametrize("attribute", ["dry_run", "empty"])
def test_a_run_that_publishes_nothing_does_not_finish_half_a_hold(
    tmp_path: Path, attribute: str
) -> None:
    world = published_world(tmp_path, publish="on_request")
    world.kill_before(SWAP)
    assert "orders" not in world.spark.tables

    setattr(world, attribute, True)
    with pytest.raises(CompilationError, match="while it held rows"):
        world.run()

    setattr(world, attribute, False)
    world.run()
    world.publish_held()
    world.assert_right(AFTER)


def test_an_empty_run_makes_a_relation_for_nodes_downstream_that_is_not_published(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.select()
    world.empty = True
    assert str(world.run()) == "SQL checked, nothing published"
    assert world.rows == []

    with pytest.raises(CompilationError, match="nothing to publish"):
        world.rebuild()

    world.empty = False
    world.select(*BEFORE)
    assert world.run().publication == "initial"
    world.assert_right(BEFORE)


@pytest.mark.parametrize(
    ("config", "rows"),
    [
        ({}, AFTER),
        ({"materialized": "incremental"}, ((1, "a"), (2, "changed"), (3, "c"), (4, "new"))),
        (
            {"materialized": "incremental", "file_format": "delta", "unique_key": None},
            (*BEFORE, *AFTER),
        ),
    ],
    ids=["table", "incremental", "append in place"],
)
def test_a_node_that_is_not_mirrored_stays_in_spark(
    tmp_path: Path, config: dict[str, Any], rows: tuple[Row, ...]
) -> None:
    world = published_world(tmp_path, mirror=False, **config)

    world.run()

    assert world.rows == sorted(rows, key=str)
    assert set(world.spark.tables) == {"orders"}
    assert not (tmp_path / "zone").exists()


def test_a_node_that_is_not_mirrored_finishes_the_swap_of_a_killed_run(tmp_path: Path) -> None:
    world = published_world(tmp_path, mirror=False)
    world.kill_before(SWAP.replace("next", "unmirrored"))

    world.run()

    assert world.rows == list(AFTER)
    assert set(world.spark.tables) == {"orders"}
