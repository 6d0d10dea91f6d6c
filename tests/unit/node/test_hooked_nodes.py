"""The user's own code around a build: what it changes is compared and published too.

The state machine shows hooks that insert rows. These do more, or what they do is hidden.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtDatabaseError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.batch import new_batch_id
from dbt.adapters.openmirroring.landing_zone.errors import SnapshotMismatchError
from dbt.adapters.openmirroring.node.materialize import materialize
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import table_beside
from dbt.adapters.openmirroring.protocol.facts import NEXT
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.text.errors import RefusedError
from tests.unit.node.fake_rows import Row, Rows
from tests.unit.node.fake_warehouse import FakeAdapter, LocalWarehouse, Table
from tests.unit.node.world import AFTER, BEFORE, COLUMNS, MACRO, ORDERS, World, published_world

MERGED = ((1, "a"), (2, "changed"), (3, "c"), (4, "new"))
HOOK = (9, "hook")
REPLACED = ((7, "x"), (8, "y"), HOOK)

INCREMENTAL = {"materialized": "incremental"}
DELTA = {"file_format": "delta"}
MERGING = {**DELTA, **INCREMENTAL}
TABLES: dict[str, dict[str, str]] = {
    "table": {},
    "incremental": INCREMENTAL,
    "Delta table": DELTA,
    "incremental Delta table": MERGING,
}
each_table = pytest.mark.parametrize("config", TABLES.values(), ids=TABLES)
GONE = "a hook has replaced the table in Spark"


def result(config: dict[str, Any]) -> tuple[Row, ...]:
    """The rows of a run without hooks."""
    return MERGED if "materialized" in config else AFTER


# What a statement of the user does


def drop(world: World) -> None:
    del world.spark.tables["orders"]


def replaced(world: World) -> None:
    """Drop the relation, and create another one with as many rows."""
    rows = replace(world.spark.table(ORDERS).rows, rows=REPLACED)
    world.spark.tables["orders"] = Table(world.spark.file_format, [("CREATE", rows)])


def rename(world: World) -> None:
    world.spark.tables["orders_before"] = world.spark.tables.pop("orders")


def update(world: World) -> None:
    """Give the row 2 the name that the node will select for it."""
    table = world.spark.table(ORDERS)
    rows = tuple((2, "changed") if row[0] == 2 else row for row in table.rows.rows)
    table.change("UPDATE", replace(table.rows, rows=rows))


def insert(world: World) -> None:
    world.insert(*HOOK)


def nothing(world: World) -> None:
    pass


def fail(world: World) -> None:
    raise DbtDatabaseError("no such function")


DROP, REPLACE = f"drop table {ORDERS}", f"create or replace table {ORDERS}"
RENAME = f"alter table {ORDERS} rename to orders_before"
UPDATE, INSERT = f"update {ORDERS}", f"insert into {ORDERS}"
NOTHING = f"delete from {ORDERS} where false"
HIDDEN = "call hidden()"


def hooked_world(folder: Path, config: dict[str, Any], **hooks: Any) -> World:
    """A published node whose next run has hooks: statements, and what they do."""
    world = published_world(folder, **config)
    add_hooks(world, **hooks)
    return world


def add_hooks(world: World, **hooks: Any) -> None:
    for place, statements in hooks.items():
        for sql, change in statements.items():
            world.spark.effects[sql] = partial(change, world)
        setattr(world, place, list(statements))


@each_table
def test_a_failed_post_hook_leaves_the_mirror_as_it_was(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    world = hooked_world(tmp_path, config, post_hooks={"call broken()": fail})

    with pytest.raises(DbtRuntimeError, match="A post-hook failed: no such function"):
        world.run()

    assert world.mirrored == list(BEFORE)
    assert world.rows == list(result(config))
    world.post_hooks = []
    world.run()
    world.assert_right(result(config))


@pytest.mark.parametrize(
    ("config", "place", "hooks", "error", "message"),
    [
        *(
            (config, "post_hooks", {DROP: drop}, CompilationError, "A post-hook has dropped")
            for config in TABLES.values()
        ),
        (INCREMENTAL, "pre_hooks", {DROP: drop}, CompilationError, "A hook has dropped"),
        (MERGING, "pre_hooks", {DROP: drop}, CompilationError, "A hook has dropped"),
        # without versions, the number of rows tells of a hidden change
        (INCREMENTAL, "pre_hooks", {HIDDEN: insert}, SnapshotMismatchError, "Spark has 4 rows"),
    ],
)
def test_a_run_whose_hooks_take_its_rows_away_publishes_nothing(
    tmp_path: Path,
    config: dict[str, Any],
    place: str,
    hooks: dict[str, Any],
    error: type[DbtRuntimeError],
    message: str,
) -> None:
    world = hooked_world(tmp_path, config, **{place: hooks})

    with pytest.raises(error, match=message):
        world.run()

    assert world.mirrored == list(BEFORE)


@pytest.mark.parametrize(
    ("config", "place", "hooks", "reason", "rows"),
    [
        *(
            (config, "post_hooks", {REPLACE: replaced}, None, REPLACED)
            for config in ({}, INCREMENTAL, DELTA)
        ),
        *(
            (config, "pre_hooks", hooks, None, AFTER)
            for config in ({}, DELTA)
            for hooks in ({DROP: drop}, {REPLACE: replaced}, {UPDATE: update, DROP: drop})
        ),
        *(
            (config, "pre_hooks", {NOTHING: nothing}, None, result(config))
            for config in TABLES.values()
        ),
        (MERGING, "post_hooks", {REPLACE: replaced}, GONE, REPLACED),
        # versions tell of a hidden change, which does not count as published
        (MERGING, "pre_hooks", {HIDDEN: insert}, None, (*MERGED, HOOK)),
        (DELTA, "pre_hooks", {HIDDEN: update, NOTHING: nothing}, None, AFTER),
        (DELTA, "pre_hooks", {HIDDEN: replaced}, GONE, AFTER),
        (DELTA, "pre_hooks", {INSERT: insert, HIDDEN: replaced}, GONE, AFTER),
    ],
)
def test_hooks_may_change_or_replace_the_relation(
    tmp_path: Path,
    config: dict[str, Any],
    place: str,
    hooks: dict[str, Any],
    reason: str | None,
    rows: tuple[Row, ...],
) -> None:
    world = hooked_world(tmp_path, config, **{place: hooks})

    response = world.run()

    assert (response.publication, response.reason) == ("rebuild" if reason else "changes", reason)
    world.assert_right(rows)


@each_table
@pytest.mark.parametrize("publish", [{}, {"publish": "on_request"}], ids=["at once", "held"])
@pytest.mark.parametrize("hooks", [{DROP: drop}, {RENAME: rename}, {UPDATE: update}])
def test_a_full_refresh_needs_nothing_of_what_code_before_it_has_dropped_or_changed(
    tmp_path: Path, config: dict[str, Any], publish: dict[str, str], hooks: dict[str, Any]
) -> None:
    world = hooked_world(tmp_path, {**config, **publish}, pre_hooks=hooks)

    world.run(full_refresh=True)
    if publish:
        world.publish_held()

    world.spark.tables.pop("orders_before", None)
    world.assert_right(AFTER)


@each_table
@pytest.mark.parametrize("is_held", [False, True], ids=["never published", "held"])
@pytest.mark.parametrize("hooks", [{DROP: drop}, {RENAME: rename}])
def test_code_may_drop_rows_that_were_not_published_if_the_node_does_not_extend_them(
    tmp_path: Path, config: dict[str, Any], is_held: bool, hooks: dict[str, Any]
) -> None:
    if is_held:
        world = published_world(tmp_path, **config, publish="on_request")
        world.run()
    else:
        world = World(tmp_path, **config)
        world.spark.create(ORDERS, Rows(COLUMNS, BEFORE), {}, world.spark.file_format)
        world.select(*AFTER)
    add_hooks(world, pre_hooks=hooks)

    if "materialized" in config:
        with pytest.raises(RefusedError, match="A hook has dropped"):
            world.run()
        add_hooks(world, pre_hooks={})
    world.run(full_refresh="materialized" in config)
    world.publish_held()

    world.spark.tables.pop("orders_before", None)
    world.assert_right(AFTER)


@each_table
@pytest.mark.parametrize("hooks", [{DROP: drop}, {RENAME: rename}])
@pytest.mark.parametrize("is_local", [True, False], ids=["here", "on another machine"])
def test_code_may_drop_a_table_that_is_not_mirrored_if_the_node_does_not_extend_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    config: dict[str, Any],
    hooks: dict[str, Any],
    is_local: bool,
) -> None:
    monkeypatch.setattr(LocalWarehouse, "is_local", is_local)
    world = World(tmp_path, **config, mirror=False)
    world.select(*BEFORE)
    world.run()
    world.select(*AFTER)
    add_hooks(world, pre_hooks=hooks)

    if "materialized" in config:
        with pytest.raises(CompilationError, match="compiled"):
            world.run()
        add_hooks(world, pre_hooks={})
    world.run()

    assert world.spark.table(ORDERS).rows.rows == AFTER


def test_a_node_whose_table_was_dropped_leaves_what_another_has_renamed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = published_world(tmp_path)
    other = ORDERS.incorporate(path={"identifier": "other"})
    following = table_beside(other, NEXT, new_batch_id())
    world.spark.tables[str(following.identifier)] = world.spark.table(ORDERS)
    adapter = FakeAdapter(world.spark)
    warehouse = LocalWarehouse(adapter, {})  # type: ignore[arg-type]
    list_relations = adapter.list_relations_without_caching

    def listed_before_the_rename(schema: object) -> list[OpenMirroringRelation]:
        found = list_relations(schema)
        adapter.rename_relation(following, other)
        return found

    monkeypatch.setattr(adapter, "list_relations_without_caching", listed_before_the_rename)
    drop(world)

    warehouse.list_again(ORDERS)

    assert [found.identifier for found in warehouse.beside(ORDERS)] == ["other"]


def test_a_table_with_as_many_versions_is_not_taken_for_the_one_that_was_published(
    tmp_path: Path,
) -> None:
    others = ((6, "w"), *REPLACED)

    def replace_alike(world: World) -> None:
        found = world.spark.table(ORDERS)
        rows = replace(found.rows, rows=others)
        world.spark.tables["orders"] = Table("delta", [("WRITE", rows)] * len(found.versions))

    world = hooked_world(tmp_path, MERGING, pre_hooks={HIDDEN: replace_alike})
    world.pre_hooks = []
    world.run()
    assert len(world.rows) == len(others)
    world.pre_hooks = [HIDDEN]

    response = world.run()

    assert response.reason == GONE
    world.assert_right((*others, *AFTER))


def test_a_held_delta_table_is_built_again_with_its_pre_hooks(tmp_path: Path) -> None:
    world = hooked_world(tmp_path, DELTA, pre_hooks={"call other()": nothing})
    world.config["publish"] = "on_request"

    for _ in range(2):
        assert world.run().publication == "held"
        assert world.mirrored == list(BEFORE)

    response = world.publish_held()
    assert response
    assert response.publication == "changes"
    world.assert_right(AFTER)


def test_statements_of_sql_header_run_before_the_build(tmp_path: Path) -> None:
    ran: list[str] = []
    world = published_world(tmp_path)
    world.config["sql_header"] = "set a = 1; set b = 2;"
    world.spark.effects["set a = 1"] = lambda: ran.append("a")
    world.spark.effects["set b = 2"] = lambda: ran.append("b")

    world.run()

    assert ran == ["a", "b"]
    world.assert_right(AFTER)


@pytest.mark.parametrize("place", ["pre_hooks", "post_hooks"])
@each_table
def test_statements_that_a_macro_in_a_hook_runs_belong_to_the_node(
    tmp_path: Path, config: dict[str, Any], place: str
) -> None:
    world = hooked_world(tmp_path, config, **{place: {INSERT: insert, "select 1": nothing}})
    setattr(world, place, [MACRO + INSERT])
    is_replaced = place == "pre_hooks" and "materialized" not in config
    expected = result(config) if is_replaced else [*result(config), HOOK]

    world.run()
    world.assert_right(expected)
    setattr(world, place, [])
    world.run()

    world.assert_right(result(config) if "materialized" not in config else expected)


@pytest.mark.parametrize("place", ["pre_hooks", "post_hooks"])
@each_table
def test_a_command_that_only_checks_sql_leaves_out_what_a_macro_in_a_hook_would_change(
    tmp_path: Path, config: dict[str, Any], place: str
) -> None:
    world = hooked_world(tmp_path, config, **{place: {INSERT: insert, "select 1": nothing}})
    setattr(world, place, [MACRO + INSERT])
    world.empty = True

    materialize(world.node(FakeAdapter(world.spark)), world.destination())

    world.assert_right(BEFORE)


@pytest.mark.parametrize("hooks", [{DROP: drop}, {UPDATE: update}, {NOTHING: nothing}])
def test_a_hook_may_change_a_table_whose_full_refresh_is_held(
    tmp_path: Path, hooks: dict[str, Any]
) -> None:
    """Given that the record of the held rows is lost after that."""
    world = hooked_world(tmp_path, {**DELTA, "publish": "on_request"}, pre_hooks=hooks)
    world.run(full_refresh=True)
    beside = [table.rows.rows for name, table in world.spark.tables.items() if name != "orders"]
    world.zone.delete("_scratchPad/shop.orders/held.json")

    assert beside == ([BEFORE] if hooks == {NOTHING: nothing} else [])
    if beside:
        world.pre_hooks = []
        world.run()
        world.publish_held()
        world.assert_right(AFTER)
    else:
        with pytest.raises(SnapshotMismatchError):
            world.run()
