"""The user's own code around a build: what it changes is compared and published too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import SnapshotMismatchError
from dbt.adapters.openmirroring.node.materialize import materialize
from tests.unit.node.fake_rows import Row
from tests.unit.node.fake_warehouse import FakeAdapter, Table
from tests.unit.node.world import AFTER, BEFORE, MACRO, ORDERS, World, published_world

MERGED = ((1, "a"), (2, "changed"), (3, "c"), (4, "new"))
HOOK = (9, "hook")
REPLACED = ((7, "x"), (8, "y"), HOOK)

INCREMENTAL = {"materialized": "incremental"}
DELTA = {"file_format": "delta"}
TABLES = [
    pytest.param({}, id="table"),
    pytest.param(INCREMENTAL, id="incremental"),
    pytest.param(DELTA, id="Delta table"),
    pytest.param({**DELTA, **INCREMENTAL}, id="incremental Delta table"),
]


def result(config: dict[str, Any]) -> tuple[Row, ...]:
    """The rows of a run without hooks."""
    return MERGED if "materialized" in config else AFTER


def effect(world: World, statement: str, change: Callable[[], object]) -> str:
    """Let a statement of the user do something."""
    world.spark.effects[statement] = change
    return statement


def fail() -> None:
    raise DbtDatabaseError("no such function")


@pytest.mark.parametrize("config", TABLES)
def test_rows_of_a_post_hook_are_published(tmp_path: Path, config: dict[str, Any]) -> None:
    world = published_world(tmp_path, **config)
    world.post_hooks = [world.hook("insert into", HOOK)]

    world.run()

    world.assert_right([*result(config), HOOK])


@pytest.mark.parametrize("config", TABLES)
def test_a_failed_post_hook_leaves_the_mirror_as_it_was(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    world = published_world(tmp_path, **config)
    world.post_hooks = [effect(world, "call broken()", fail)]

    with pytest.raises(DbtRuntimeError, match="A post-hook failed: no such function"):
        world.run()

    assert world.mirrored == list(BEFORE)
    assert world.rows == list(result(config))
    world.post_hooks = []
    world.run()
    world.assert_right(result(config))


@pytest.mark.parametrize("config", TABLES)
def test_a_post_hook_that_drops_the_relation_publishes_nothing(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    world = published_world(tmp_path, **config)
    world.post_hooks = [effect(world, f"drop table {ORDERS}", world.spark.tables.clear)]

    with pytest.raises(CompilationError, match="A post-hook has dropped"):
        world.run()

    assert world.mirrored == list(BEFORE)


@pytest.mark.parametrize("config", TABLES)
def test_a_relation_that_a_post_hook_replaces_is_published(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    world = published_world(tmp_path, **config)
    world.post_hooks = [
        effect(world, f"create or replace table {ORDERS}", lambda: replaced(world))
    ]

    world.run()

    world.assert_right(REPLACED)


def replaced(world: World) -> None:
    """Drop the relation, and create another one with as many rows."""
    rows = replace(world.spark.table(ORDERS).rows, rows=REPLACED)
    world.spark.tables["orders"] = Table(world.spark.file_format, [("CREATE", rows)])


@pytest.mark.parametrize("config", TABLES)
def test_a_held_node_runs_its_post_hooks_when_it_is_built(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    world = published_world(tmp_path, **config)
    world.config["publish"] = "on_request"
    world.post_hooks = [world.hook("insert into", HOOK)]

    assert world.run().publication == "held"

    assert world.mirrored == list(BEFORE)
    assert world.rows == [*result(config), HOOK]
    world.publish_held()
    world.assert_right([*result(config), HOOK])


@pytest.mark.parametrize("config", TABLES)
def test_a_held_node_is_built_again_with_its_pre_hooks(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    world = published_world(tmp_path, **config)
    world.config["publish"] = "on_request"
    world.pre_hooks = [effect(world, "call other()", lambda: None)]

    for _ in range(2):
        assert world.run().publication == "held"
        assert world.mirrored == list(BEFORE)

    response = world.publish_held()
    assert response
    assert response.publication == "changes"
    world.assert_right(result(config))


@pytest.mark.parametrize("config", TABLES)
def test_rows_of_a_pre_hook_are_part_of_the_build(tmp_path: Path, config: dict[str, Any]) -> None:
    world = published_world(tmp_path, **config)
    world.pre_hooks = [world.hook("insert into", HOOK)]

    world.run()

    world.assert_right([*result(config), HOOK] if result(config) == MERGED else AFTER)


@pytest.mark.parametrize("config", TABLES)
def test_a_pre_hook_that_only_might_change_rows_changes_nothing(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    world = published_world(tmp_path, **config)
    world.pre_hooks = [effect(world, f"delete from {ORDERS} where false", lambda: None)]

    world.run()

    world.assert_right(result(config))


@pytest.mark.parametrize("statement", ["drop table", "create or replace table"])
@pytest.mark.parametrize("config", [{}, DELTA], ids=["table", "Delta table"])
def test_a_table_may_be_dropped_or_replaced_before_it_is_built(
    tmp_path: Path, config: dict[str, Any], statement: str
) -> None:
    world = published_world(tmp_path, **config)

    def change() -> None:
        if statement == "drop table":
            del world.spark.tables["orders"]
        else:
            replaced(world)

    world.pre_hooks = [effect(world, f"{statement} {ORDERS}", change)]
    response = world.run()

    assert response.publication == "changes"
    world.assert_right(AFTER)


@pytest.mark.parametrize("config", [{}, DELTA], ids=["table", "Delta table"])
def test_an_incremental_model_is_not_built_on_a_table_that_a_hook_has_dropped(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    world = published_world(tmp_path, **INCREMENTAL, **config)
    drop = effect(world, f"drop table {ORDERS}", lambda: world.spark.tables.pop("orders"))
    world.pre_hooks = [drop]

    with pytest.raises(CompilationError, match="A hook has dropped"):
        world.run()

    assert world.mirrored == list(BEFORE)


def test_a_hidden_change_before_a_build_is_found_in_the_versions_of_the_table(
    tmp_path: Path,
) -> None:
    world = published_world(tmp_path, **INCREMENTAL, **DELTA)
    world.hook("insert into", HOOK)
    (insert,) = world.spark.effects.values()
    world.pre_hooks = [effect(world, "call hidden()", insert)]

    world.run()

    world.assert_right([*MERGED, HOOK])


def test_a_hidden_change_before_a_build_is_found_by_the_number_of_rows(tmp_path: Path) -> None:
    world = published_world(tmp_path, **INCREMENTAL)
    world.hook("insert into", HOOK)
    (insert,) = world.spark.effects.values()
    world.pre_hooks = [effect(world, "call hidden()", insert)]

    with pytest.raises(SnapshotMismatchError, match="Spark has 4 rows"):
        world.run()

    assert world.mirrored == list(BEFORE)


def update(world: World) -> None:
    """Give the row 2 the name that the node will select for it."""
    table = world.spark.table(ORDERS)
    rows = tuple((2, "changed") if row[0] == 2 else row for row in table.rows.rows)
    table.change("UPDATE", replace(table.rows, rows=rows))


@pytest.mark.parametrize("config", [{}, DELTA], ids=["table", "Delta table"])
def test_a_table_may_be_changed_and_then_dropped_before_it_is_built(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    world = published_world(tmp_path, **config)
    drop = effect(world, f"drop table {ORDERS}", lambda: world.spark.tables.pop("orders"))
    world.pre_hooks = [effect(world, f"update {ORDERS}", lambda: update(world)), drop]

    world.run()

    world.assert_right(AFTER)


def test_a_hidden_change_does_not_count_as_published(tmp_path: Path) -> None:
    world = published_world(tmp_path, **DELTA)
    hidden = effect(world, "call hidden()", lambda: update(world))
    world.pre_hooks = [hidden, effect(world, f"delete from {ORDERS} where false", lambda: None)]

    world.run()

    world.assert_right(AFTER)


@pytest.mark.parametrize("is_changed", [False, True], ids=["hidden", "changed, then hidden"])
def test_a_hidden_replacement_before_a_build_leads_to_a_rebuild(
    tmp_path: Path, is_changed: bool
) -> None:
    world = published_world(tmp_path, **DELTA)
    if is_changed:
        world.pre_hooks = [world.hook("insert into", HOOK)]
    world.pre_hooks.append(effect(world, "call hidden()", lambda: replaced(world)))

    response = world.run()

    assert response.reason == "a hook has replaced the table in Spark"
    world.assert_right(AFTER)


@pytest.mark.parametrize("config", TABLES)
def test_a_first_run_may_have_pre_hooks(tmp_path: Path, config: dict[str, Any]) -> None:
    world = World(tmp_path, **config)
    world.select(*BEFORE)
    world.pre_hooks = [effect(world, f"drop table if exists {ORDERS}", lambda: None)]

    assert world.run().publication == "initial"

    world.assert_right(BEFORE)


def test_statements_of_sql_header_run_before_the_build(tmp_path: Path) -> None:
    ran: list[str] = []
    world = published_world(tmp_path)
    world.config["sql_header"] = "set a = 1; set b = 2;"
    effect(world, "set a = 1", lambda: ran.append("a"))
    effect(world, "set b = 2", lambda: ran.append("b"))

    world.run()

    assert ran == ["a", "b"]
    world.assert_right(AFTER)


@pytest.mark.parametrize("hooks", ["pre_hooks", "post_hooks"])
def test_a_table_of_the_user_may_have_a_name_like_that_of_published_rows(
    tmp_path: Path, hooks: str
) -> None:
    world = published_world(tmp_path)
    mine = world.spark.tables["orders__published"] = Table(
        "parquet", [("", world.spark.table(ORDERS).rows)]
    )
    setattr(world, hooks, [world.hook("insert into", HOOK)])

    world.run()

    assert world.spark.tables.pop("orders__published") is mine
    world.assert_right(AFTER if hooks == "pre_hooks" else [*AFTER, HOOK])


@pytest.mark.parametrize("config", TABLES)
@pytest.mark.parametrize("place", ["pre_hooks", "post_hooks"])
def test_statements_that_a_macro_in_a_hook_runs_belong_to_the_node(
    tmp_path: Path, config: dict[str, Any], place: str
) -> None:
    world = published_world(tmp_path, **config)
    hook = MACRO + world.hook("insert into", HOOK)
    world.spark.effects["select 1"] = lambda: None
    setattr(world, place, [hook])
    is_replaced = place == "pre_hooks" and "materialized" not in config
    expected = result(config) if is_replaced else [*result(config), HOOK]

    world.run()
    world.assert_right(expected)
    setattr(world, place, [])
    world.run()

    world.assert_right(result(config) if "materialized" not in config else expected)


@pytest.mark.parametrize("config", TABLES)
@pytest.mark.parametrize("place", ["pre_hooks", "post_hooks"])
def test_a_command_that_only_checks_sql_leaves_out_what_a_macro_in_a_hook_would_change(
    tmp_path: Path, config: dict[str, Any], place: str
) -> None:
    world = published_world(tmp_path, **config)
    setattr(world, place, [MACRO + world.hook("insert into", HOOK)])
    world.spark.effects["select 1"] = lambda: None
    world.empty = True

    materialize(world.node(FakeAdapter(world.spark)), world.destination())

    world.assert_right(BEFORE)
