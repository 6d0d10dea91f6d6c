"""Whatever happens to a node, in whatever order, mirror and relation come together again.

The rules are commands, accidents and changes by users and others. The machine knows of each run
what it would make of a relation. It sees rows, files, messages and the names of tables, and no
record of the package. A run that fails may have done all of its work, a part of it, or nothing.
So the machine keeps all relations that there may be, until the next run that succeeds shows which
one it was.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import CompilationError, DbtRuntimeError
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from dbt.adapters.openmirroring.landing_zone.errors import (
    SnapshotMismatchError,
    StagedFilesLostError,
)
from tests.unit.node.fake_rows import Row, Rows
from tests.unit.node.fake_warehouse import Table
from tests.unit.node.faults import FAILS, KILLED, LOST, Fault, Killed, Pause
from tests.unit.node.world import (
    AFTER,
    BEFORE,
    ORDERS,
    ZONE,
    World,
    numbered,
    publication_of,
    published_world,
    typed,
)

# examples, and steps of each: `STATE_MACHINE=400x50` for a long run
EXAMPLES, STEPS = map(int, os.environ.get("STATE_MACHINE", "40x20").split("x"))

FOLDER = "shop.schema/orders"
HELD = {"publish": "on_request"}
IN_PLACE = {"materialized": "incremental", "file_format": "delta"}
COLUMNS = {
    "as at first": {"id": "int", "name": "string"},
    "in another order": {"name": "string", "id": "int"},
    "added": {"id": "int", "name": "string", "n": "int"},
    "retyped": {"id": "int", "name": "string", "n": "string"},
    "key retyped": {"id": "bigint", "name": "string"},
    "dropped": {"id": "int"},
}
# strategies of incremental models
KINDS = ("default", "append", "merge", "delete+insert")
# the rows that hooks and others add, and the number of the first one that the node itself adds
PRE_HOOK, POST_HOOK, OTHERS, COUNTED = (-1, "pre-hook"), (-2, "post-hook"), (-3, "others"), 100
HOOK = (9, "hook")


@dataclass(frozen=True)
class Relation:
    """The rows of a relation, whatever the order of its rows and columns is.

    Args:
        columns: names and types, by name
        rows: with the values in this order
    """

    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]

    @classmethod
    def of(cls, columns: Mapping[str, str], rows: Iterable[Row]) -> Relation:
        names = sorted(columns)
        found = Rows(columns, tuple(rows)).of(names)
        return cls(tuple((name, columns[name]) for name in names), tuple(sorted(found, key=repr)))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    def having(self, number: int, name: str) -> Relation:
        """The relation after an insert of a row, if none has its number yet."""
        row = numbered(dict(self.columns), number, name)
        place = self.names.index("id")
        if any(each[place] == row[place] for each in self.rows):
            return self
        return Relation.of(dict(self.columns), [*self.rows, row])

    def extended(self, new: Relation, keys: tuple[str, ...]) -> Relation:
        """The relation after new rows have replaced those with the same keys.

        It takes the columns and types of the new rows.
        """
        types = dict(new.columns)
        kept = []
        for row in self.rows:
            values = dict(zip(self.names, row, strict=True))
            kept.append(tuple(typed(values.get(name), types[name]) for name in new.names))
        if keys:
            replaced = set(Rows(types, new.rows).of(keys))
            kept = list(Rows(types, tuple(kept)).where(lambda k: k not in replaced, keys).rows)
        return Relation.of(types, [*kept, *new.rows])


@dataclass(frozen=True)
class Run:
    """A run: the node as its author has written it, and the rows that its SQL selects.

    Args:
        selected: the rows
        is_full: whether the run has `--full-refresh`
    """

    config: Mapping[str, Any]
    selected: Relation
    has_pre_hook: bool
    has_post_hook: bool
    is_full: bool = False

    @property
    def keys(self) -> tuple[str, ...]:
        if self.config.get("incremental_strategy") == "append":
            return ()
        found = self.config.get("unique_key") or ()
        return (found,) if isinstance(found, str) else tuple(found)

    @property
    def is_held(self) -> bool:
        return bool(self.config.get("publish"))

    def stages(self, before: Relation | None) -> list[Relation | None]:
        """What the run makes of a relation; the last one is the relation when it has ended."""
        found = [before]
        if before and self.has_pre_hook:
            found.append(before.having(*PRE_HOOK))
        is_extended = self.config["materialized"] == "incremental" and not self.is_full
        extended = found[-1] if is_extended else None
        built = extended.extended(self.selected, self.keys) if extended else self.selected
        found.append(built)
        if self.has_post_hook:
            found.append(built.having(*POST_HOOK))
        return found


def every(run: Run, relations: Iterable[Relation | None]) -> list[Relation | None]:
    """What a run may have made of some relations when it ends, or fails."""
    return [stage for each in relations for stage in run.stages(each)]


def once(relations: Iterable[Relation | None]) -> tuple[Relation | None, ...]:
    return tuple(dict.fromkeys(relations))


# which of the ways out that a message names is tried
choices = st.integers(0, 3)
# where a command fails; most of them do not
faults = st.builds(
    Fault, st.sampled_from([0, 0, *range(1, 40)]), st.sampled_from([KILLED, FAILS, LOST])
)

# how a message names a way out; the first ones are what a user would try first
WAYS_OUT = {
    "set another `unique_key`": "unique_key",
    "Set `incremental_strategy: merge`": "incremental_strategy",
    "`on_foreign_changes: publish`": "on_foreign_changes",
    "mirror_restore": "restore",
    "`restore_baseline: true`": "restore_baseline",
    "mirror_rebuild": "rebuild",
    "mirror_publish": "publish_held",
    "set another `max_deleted`": "max_deleted",
    "delete the manifest and the folder": "delete the folder",
    "manifest.json and run again": "delete the manifest",
    "--full-refresh": "full refresh",
    "un it again": "run",
    "un its node": "run",
    "run again": "run",
}
# the value of an option that is a way out
WAYS_OF_OPTIONS = {
    "unique_key": None,
    "incremental_strategy": "merge",
    "on_foreign_changes": "publish",
    "max_deleted": None,
}
MANIFEST = "_scratchPad/shop.orders/manifest.json"


class NodeHistory(RuleBasedStateMachine):
    """The history of a node.

    Attributes:
        relations: the relations that Spark may have
        mirrors: the rows that the mirrored table may have
        is_settled: whether the last run has ended well, so that there is one of each
        is_held: whether rows are held
        is_clean: whether nothing has kept the last run from dropping its scratch tables
        elsewhere: the tables of another machine, and the relations that it may have
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="machine"))
        self.world = World(self.folder / "world")
        (self.folder / "world").mkdir()
        self.columns = COLUMNS["as at first"]
        self.rows: dict[int, tuple[str, int]] = {1: ("a", 1), 2: ("b", 2)}
        self.is_counted = False
        self.runs = 0
        self.failures = 0
        self.relations: tuple[Relation | None, ...] = (None,)
        self.mirrors: tuple[Relation | None, ...] = (None,)
        self.is_settled = True
        self.is_held = False
        self.is_clean = True
        self.elsewhere: tuple[dict[str, Table], tuple[Relation | None, ...]] = ({}, (None,))
        self.seen: list[tuple[str, int, int]] = []
        self.zone, self.backup = self.folder / "world" / ZONE, self.folder / "backup"
        self.zone.mkdir(parents=True)
        self.backed_up: (
            tuple[dict[str, Table], tuple[Relation | None, ...], tuple[Relation | None, ...]]
            | None
        ) = None

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    # The node

    @initialize(
        kind=st.sampled_from([None, *KINDS]),
        file_format=st.sampled_from(["parquet", "delta"]),
        keys=st.sampled_from([None, "id"]),
    )
    def begin(self, kind: str | None, file_format: str, keys: Any) -> None:
        self.change_materialization(kind, file_format)
        self.world.config["unique_key"] = keys
        self.settle()

    @rule(
        rows=st.dictionaries(
            st.integers(1, 6), st.tuples(st.sampled_from("abc"), st.integers(1, 2)), max_size=6
        )
    )
    def change_rows(self, rows: dict[int, tuple[str, int]]) -> None:
        self.rows = rows

    @rule(columns=st.sampled_from(list(COLUMNS)))
    def change_columns(self, columns: str) -> None:
        self.columns = COLUMNS[columns]

    @rule()
    def select_a_row_more_in_each_run(self) -> None:
        self.is_counted = not self.is_counted

    @rule(
        options=st.fixed_dictionaries(
            {},
            optional={
                "unique_key": st.sampled_from([None, "id", ["id", "name"]]),
                "publish": st.sampled_from([None, "on_request", "after_tests"]),
                "max_deleted": st.sampled_from([None, 0, "50%"]),
                "on_foreign_changes": st.sampled_from(["fail", "publish"]),
            },
        )
    )
    def change_options(self, options: dict[str, Any]) -> None:
        self.world.config.update(options)

    @rule(
        kind=st.sampled_from([None, *KINDS]),
        file_format=st.sampled_from(["parquet", "delta"]),
    )
    def change_materialization(self, kind: str | None, file_format: str) -> None:
        config = self.world.config
        config["materialized"] = "incremental" if kind else "table"
        config["file_format"] = file_format
        config.pop("incremental_strategy", None)
        if kind and kind != "default":
            config["incremental_strategy"] = kind

    @rule(pre=st.booleans(), post=st.booleans())
    def change_hooks(self, pre: bool, post: bool) -> None:
        self.world.pre_hooks = [self.world.hook(*PRE_HOOK)] if pre else []
        self.world.post_hooks = [self.world.hook(*POST_HOOK)] if post else []

    def prepared(self, world: World, is_full: bool = False) -> Run:
        """Let a world have the node, and return what its next run does."""
        self.runs += 1
        config = world.config
        config["on_schema_change"] = "sync_all_columns"
        keys = config.get("unique_key") or []
        keys = [
            name for name in ([keys] if isinstance(keys, str) else keys) if name in self.columns
        ]
        config["unique_key"] = keys or None
        if not keys and config.get("incremental_strategy") == "delete+insert":
            del config["incremental_strategy"]
        world.spark.file_format = config.get("file_format", "parquet")
        rows = [{"id": number, "name": name, "n": n} for number, (name, n) in self.rows.items()]
        if self.is_counted:
            rows.append({"id": COUNTED + self.runs, "name": "counted", "n": self.runs})
        selected = tuple(
            tuple(typed(row[name], dtype) for name, dtype in self.columns.items()) for row in rows
        )
        world.select(*selected, columns=self.columns)
        for row in (PRE_HOOK, POST_HOOK):
            world.hook(*row)
        return Run(
            dict(config),
            Relation.of(self.columns, selected),
            bool(world.pre_hooks),
            bool(world.post_hooks),
            is_full,
        )

    # Runs

    @rule(choice=choices)
    def run_twice(self, choice: int) -> None:
        """A run that nothing disturbs succeeds, or says what to do; then nothing is to publish."""
        self.settle(choice)
        if self.is_counted or self.appends:
            return
        if self.world.pre_hooks:  # the first run may have had no relation to insert into
            self.settle(choice)
        files = self.files
        response = self.run()
        assert not isinstance(response, BaseException), response
        assert self.files == files, response
        assert self.is_held or response.publication == "unchanged"

    @rule(choice=choices, is_full=st.booleans())
    def run_once(self, choice: int, is_full: bool) -> None:
        self.settle(choice, is_full)

    @precondition(lambda self: self.failures < 3)
    @rule(
        point=st.integers(1, 45),
        kind=st.sampled_from([KILLED, FAILS, LOST]),
        is_full=st.sampled_from([False, False, True]),
    )
    def run_and_fail(self, point: int, kind: str, is_full: bool) -> None:
        self.run(Fault(point, kind), is_full)

    @property
    def appends(self) -> bool:
        config = self.world.config
        is_keyed = bool(config.get("unique_key"))
        strategy = config.get("incremental_strategy", "merge" if is_keyed else "append")
        return config["materialized"] == "incremental" and (strategy == "append" or not is_keyed)

    @property
    def bases(self) -> tuple[Relation | None, ...]:
        """The relations that the next run may find, or restore."""
        if self.world.restores and None in self.relations:
            return once([*self.relations, *self.mirrors])
        return self.relations

    @property
    def rebuilt(self) -> tuple[Relation | None, ...]:
        """The relations that may be rebuilt: that of held rows may leave the published ones."""
        return once([*self.relations, *(self.mirrors if None in self.relations else ())])

    def run(self, fault: Fault | None = None, is_full: bool = False) -> Any:
        """Run the node. Return its response, or the error."""
        run = self.prepared(self.world, is_full)
        finals = [run.stages(base)[-1] for base in self.bases]
        files = self.files
        try:
            response = self.world.run(fault, is_full)
        except (Killed, DbtRuntimeError) as error:
            self.failures += 1
            self.relations = once([*self.relations, *every(run, self.bases)])
            if not run.is_held:
                self.mirrors = once([*self.mirrors, *finals])
            self.is_settled = self.is_clean = False
            return error
        relation = self.relation
        assert relation in finals
        is_held = response.publication == "held"
        if is_held and self.is_settled:
            assert self.files == files
        self.succeeded(is_held)
        self.is_clean = not (fault and fault.happened)
        return response

    def succeeded(self, is_held: bool = False) -> None:
        relation, mirror = self.relation, self.mirror
        if is_held:
            assert mirror in self.mirrors
        else:
            assert mirror == relation
        self.relations, self.mirrors = (relation,), (mirror,)
        self.is_settled, self.is_held, self.failures = True, is_held, 0

    def settle(self, choice: int = 0, is_full: bool = False) -> None:
        """Run the node without a disturbance, and do what its errors say."""
        tried = []
        found = self.run(is_full=is_full)
        while isinstance(found, BaseException):
            assert isinstance(found, DbtRuntimeError)
            message = str(found.msg)
            ways = [way for text, way in WAYS_OUT.items() if text in message]
            if self.world.restores and "restore_baseline" in ways:
                ways.remove("restore_baseline")
            # its author says that it is right; a run alone does not help
            if "Correct the model" in message or "delete the manifest" in ways:
                ways.remove("run")
            tried.append(message)
            assert ways, message
            assert len(tried) < 5, tried
            found = self.take(ways[choice % len(ways)])

    # What messages say

    def take(self, way: str) -> Any:
        """Do what a message says, and run again. Return what the run returns."""
        if way in ("restore", "rebuild", "publish_held"):
            return self.take_command(way)
        if way in WAYS_OF_OPTIONS:
            self.world.config[way] = WAYS_OF_OPTIONS[way]
        elif way == "restore_baseline":
            self.world.restores = True
        elif way == "delete the manifest":
            self.world.zone.delete(MANIFEST)
        elif way == "delete the folder":
            self.world.zone.delete("_scratchPad/shop.orders")
            self.world.zone.delete(FOLDER)
            self.mirrors = (None,)
        return self.run(is_full=way in ("full refresh", "delete the folder"))

    def take_command(self, command: str) -> Any:
        self.prepared(self.world)
        possible = self.mirrors if command == "restore" else self.rebuilt
        try:
            getattr(self.world, command)()
        except DbtRuntimeError as error:
            return error
        assert self.relation in possible
        self.succeeded()
        # a further run may select rows that are held again
        return None if command == "publish_held" else self.run()

    # Other commands

    @rule(fault=faults, passed=st.sampled_from([None, True, False]))
    def publish_held_rows(self, fault: Fault, passed: bool | None) -> None:
        """Run `mirror_publish`, or end the tests of the last build."""
        self.prepared(self.world)
        build = self.world.builds.get("model.shop.orders")
        if not (self.is_held and build):
            passed = None
        was_held = self.is_settled and self.is_held
        files = self.files
        if passed is False:
            error = self.command(self.world.keep_held, fault)
            assert self.files == files or not self.is_settled
        elif passed:
            error = self.command(self.world.publish_held, fault, tested=build)
        else:
            error = self.command(self.world.publish_held, fault)
            is_allowed = fault.happened or "removed old versions" in error
            assert is_allowed or not error or not was_held, error
        if passed is not False and not error and was_held:
            self.succeeded()
        self.is_clean = self.is_clean and not fault.happened

    @rule(fault=faults)
    def rebuild_from_spark(self, fault: Fault) -> None:
        self.prepared(self.world)
        if not self.command(self.world.rebuild, fault):
            assert self.relation in self.rebuilt
            self.succeeded()
        self.is_clean = not fault.happened

    @rule()
    def finish_what_was_left(self) -> None:
        """Run `mirror_recover`."""
        self.prepared(self.world)
        is_settled = self.is_settled
        if not self.command(self.world.recover):
            assert self.relation in self.relations or not is_settled
            assert self.mirror in self.mirrors
            self.is_settled = is_settled

    @rule(fault=faults)
    def restore_from_the_mirror(self, fault: Fault) -> None:
        self.prepared(self.world)
        mirrors = self.mirrors
        if self.command(self.world.restore, fault) or self.mirror is None:
            self.relations = once([*self.relations, *mirrors])
            return
        assert self.mirror in mirrors
        if self.relation == self.mirror:
            self.relations = self.mirrors = (self.mirror,)

    @precondition(lambda self: self.is_settled and not self.is_held and self.mirror)
    @rule()
    def repair_a_mirror_that_is_right(self) -> None:
        files = self.files
        self.prepared(self.world)
        self.world.repair()
        assert self.files == files

    def command(self, run: Callable[..., object], *arguments: Any, **named: Any) -> str:
        """Run a command that computes no rows. Return its error; nothing if it has succeeded."""
        try:
            run(*arguments, **named)
        except (Killed, DbtRuntimeError) as error:
            self.failures += 1
            self.mirrors = once([*self.mirrors, *self.relations])
            self.is_settled = self.is_clean = False
            return str(error) or "killed"
        if not self.is_settled:
            self.mirrors = once([*self.mirrors, *self.relations])
        return ""

    @rule()
    def dry_run(self) -> None:
        """A dry run changes nothing, and foretells what a run does."""
        self.prepared(self.world)
        tables, files = deepcopy(self.world.spark.tables), self.files
        self.world.dry_run = True
        try:
            foretold = self.world.run()
        except DbtRuntimeError:
            return
        finally:
            self.world.dry_run = False
            found = self.world.spark.tables
            # the command drops what it has built, and what it has restored
            self.world.spark.tables = {name: found[name] for name in tables}
            assert self.world.spark.tables == tables
            assert self.files == files
        has_hooks = self.world.pre_hooks or self.world.post_hooks
        if has_hooks or self.is_counted or self.is_held or self.world.config.get("publish"):
            return
        done = self.run()
        assert not isinstance(done, BaseException), done
        for name in ("rows_inserted", "rows_updated", "rows_deleted", "publication"):
            assert getattr(foretold, name) == getattr(done, name)

    @rule()
    def check_sql_only(self) -> None:
        """Run with `--empty`."""
        self.prepared(self.world)
        before, files, was_settled = self.relation, self.files, self.is_settled
        self.relations = self.bases
        self.world.empty = True
        try:
            self.world.run()
        except DbtRuntimeError:
            pass
        finally:
            self.world.empty = False
        assert self.files == files or not was_settled
        if was_settled and before:
            assert self.relation == before
        else:  # the next run replaces what this one has made
            self.is_settled = False

    # Two at once

    @precondition(lambda self: self.failures < 1)
    @rule(
        point=st.integers(1, 70),
        expires=st.booleans(),
        is_elsewhere=st.booleans(),
        is_full=st.sampled_from([False, False, True]),
    )
    def run_two_at_once(
        self, point: int, expires: bool, is_elsewhere: bool, is_full: bool
    ) -> None:
        """A second run begins, and ends, while the first one runs.

        Args:
            expires: the first one sleeps for so long that its claim on the table expires
            is_elsewhere: the second one is on the other machine
        """
        first, twin = self.prepared(self.world, is_full), self.world.twin()
        twin.pre_hooks, twin.post_hooks = self.world.pre_hooks, self.world.post_hooks
        found = self.bases
        if is_elsewhere:
            twin.spark.tables, relations = self.elsewhere
            twin.restores = True
            found = once([*found, *relations, *self.mirrors])
        second = self.prepared(twin)
        ended = []

        def meanwhile() -> None:
            if expires:
                self.world.claim.expire()
            with suppress(DbtRuntimeError):
                ended.append(twin.run())

        is_first_done = False
        with suppress(DbtRuntimeError):
            self.world.run(Pause(point, meanwhile=meanwhile), is_full)
            is_first_done = True

        begun = once([*found, *every(first, found)])
        if ended:
            # whatever the first one does then, the rows of the second one are published
            begun = once(second.stages(each)[-1] for each in begun)
        else:
            begun = once([*begun, *every(second, begun)])
        if is_first_done and not ended:
            begun = once([*(first.stages(each)[-1] for each in begun), *begun])
        else:
            begun = once([*begun, *every(first, begun)])
        self.relations = once([*self.relations, *begun, None])
        if is_elsewhere:
            self.elsewhere = (twin.spark.tables, once([*relations, *begun, None]))
        if not first.is_held:
            self.mirrors = begun if ended or is_first_done else once([*self.mirrors, *begun])
        self.is_settled = self.is_clean = False
        self.failures += 1

    # Others, and accidents

    @precondition(lambda self: "orders" in self.world.spark.tables)
    @rule()
    def somebody_else_adds_a_row(self) -> None:
        self.world.insert(*OTHERS)
        changed = [found and found.having(*OTHERS) for found in self.relations]
        self.relations = once([*self.relations, *changed])
        self.is_settled = False

    @precondition(lambda self: "orders" in self.world.spark.tables)
    @rule(is_replaced=st.booleans())
    def somebody_else_drops_the_table(self, is_replaced: bool) -> None:
        table = self.world.spark.tables.pop("orders")
        self.relations = once([None, *self.relations])
        if is_replaced:
            row = numbered(table.rows.columns, *OTHERS)
            rows = replace(table.rows, rows=(row,))
            self.world.spark.tables["orders"] = Table(table.format, [("CREATE", rows)])
            self.relations = once([self.relation, *self.relations])
        self.is_settled = False

    @rule()
    def lose_staged_files(self) -> None:
        for file in self.zone.glob("_scratchPad/*/*/rows/*.parquet"):
            file.unlink()
            self.is_settled = False

    @rule()
    def remove_old_versions(self) -> None:
        """Run VACUUM on each table."""
        for table in self.world.spark.tables.values():
            if table.format == "delta":
                table.vacuum()

    @rule()
    def go_to_the_other_machine(self) -> None:
        world = self.world
        # a run that was killed within its swap has left none
        relations = self.relations if self.relation else once([None, *self.relations])
        here = world.spark.tables, relations
        world.spark.tables, self.relations = self.elsewhere
        self.elsewhere = here
        world.restores = True
        self.is_settled = False

    @rule()
    def lose_spark(self) -> None:
        self.world.spark.tables = {}
        self.relations = (None,)
        self.is_settled = False

    @rule()
    def lose_the_table_folder(self) -> None:
        self.world.zone.delete(FOLDER)
        self.mirrors = (None,) if self.is_settled else once([None, *self.mirrors])
        self.is_settled = False

    @rule()
    def make_a_backup(self) -> None:
        shutil.rmtree(self.backup, ignore_errors=True)
        shutil.copytree(self.zone, self.backup)
        tables = deepcopy(self.world.spark.tables)
        self.backed_up = tables, self.relations, self.mirrors

    @precondition(lambda self: self.backed_up)
    @rule(spark=st.booleans(), zone=st.booleans())
    def bring_a_backup_back(self, spark: bool, zone: bool) -> None:
        assert self.backed_up
        tables, relations, mirrors = self.backed_up
        if spark:
            self.world.spark.tables = deepcopy(tables)
            self.relations = relations
        if zone:
            shutil.rmtree(self.zone)
            shutil.copytree(self.backup, self.zone)
            self.mirrors, self.seen = mirrors, []  # a copy may have the numbers of removed files
        self.is_settled = False

    # What there is

    @property
    def relation(self) -> Relation | None:
        """The rows that Spark has."""
        table = self.world.spark.tables.get("orders")
        return Relation.of(table.rows.columns, table.rows.rows) if table else None

    @property
    def files(self) -> list[tuple[str, int, int]]:
        """The published files, as the file system knows them."""
        found = [(file.name, file.stat()) for file in self.world.files]
        return [(name, stat.st_ino, stat.st_mtime_ns) for name, stat in found]

    @property
    def mirror(self) -> Relation | None:
        """The rows that the service would have."""
        if not self.world.zone.read(f"{FOLDER}/_journal.json"):
            return None
        columns = {c.name: c.type for c in self.world.journal.batch.definition.columns}
        return Relation.of(columns, self.world.mirrored)

    @invariant()
    def files_are_numbered_and_stay(self) -> None:
        files = self.files
        assert [int(Path(name).stem) for name, *_ in files] == list(range(1, len(files) + 1))
        is_same_folder = self.seen and files and self.seen[0] == files[0]
        if is_same_folder:
            assert files[: len(self.seen)] == self.seen
        self.seen = files

    @invariant()
    def nothing_is_left(self) -> None:
        if not self.is_settled:
            return
        assert self.relation in self.relations
        assert self.mirror in self.mirrors
        if self.is_held or not self.is_clean or self.relation is None:
            return
        assert set(self.world.spark.tables) == {"orders"}
        assert self.world.zone.list("_scratchPad") == []


def test_mirror_and_relation_come_together_in_any_history() -> None:
    run_state_machine_as_test(
        NodeHistory,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            derandomize=not os.environ.get("STATE_MACHINE"),
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
        ),
    )


# What the machine has found


@pytest.mark.parametrize("kind", ["pre-hook", "post-hook", "held"])
def test_rows_of_others_are_refused_before_they_are_kept_as_published(
    tmp_path: Path, kind: str
) -> None:
    """Given a Spark elsewhere, whose Parquet tables have no version and no files to look at."""
    world = published_world(tmp_path, **HELD if kind == "held" else {})
    world.insert(*OTHERS)
    insert = world.hook(*HOOK)
    world.pre_hooks = [insert] if kind == "pre-hook" else []
    world.post_hooks = [insert] if kind == "post-hook" else []
    tables = set(world.spark.tables)

    with pytest.raises(SnapshotMismatchError, match="`on_foreign_changes: publish`"):
        world.run()

    assert world.rows == sorted([*BEFORE, OTHERS])
    assert set(world.spark.tables) == tables
    world.config["on_foreign_changes"] = "publish"
    world.run()
    if kind == "held":
        world.publish_held()
    world.assert_right([*AFTER, HOOK] if kind == "post-hook" else AFTER)


def test_a_node_with_hooks_goes_on_with_rows_that_a_full_refresh_has_held(tmp_path: Path) -> None:
    world = published_world(tmp_path, **HELD)
    world.post_hooks = [world.hook(*HOOK)]
    world.go_to_another_machine()
    world.run(full_refresh=True)

    assert world.run().publication == "held"

    world.publish_held()
    world.assert_right([*AFTER, HOOK])


def test_a_dry_run_foretells_the_rebuild_of_rows_that_a_limit_has_held(tmp_path: Path) -> None:
    world = published_world(tmp_path, max_deleted=0)
    world.select((1, "a"))
    with pytest.raises(CompilationError, match="`max_deleted` is 0"):
        world.run(full_refresh=True)
    world.select(*BEFORE, (4, "new"))

    world.dry_run = True
    foretold = world.run()
    world.dry_run = False

    assert foretold.publication == world.run().publication == "rebuild"


def test_a_restored_table_that_others_change_is_not_taken_for_the_published_one(
    tmp_path: Path,
) -> None:
    """Given a write that gives the restored table the number of versions of the lost one."""
    world = published_world(tmp_path, **IN_PLACE)
    world.run()
    last = world.journal.batch.id
    world.go_to_another_machine()
    world.restore()
    table = world.spark.table(ORDERS)
    while world.journal.snapshot_state != f"version:{len(table.versions) - 1}":
        table.change("UPDATE", replace(table.rows, rows=tuple((n, "x") for n, _ in world.rows)))
    world.select((9, "new"))

    with pytest.raises(SnapshotMismatchError, match="somebody else has written"):
        world.run()

    assert world.journal.batch.id == last


def test_a_full_refresh_that_is_held_replaces_a_batch_that_nobody_can_finish(
    tmp_path: Path,
) -> None:
    world = published_world(tmp_path)
    world.kill_before(publication_of(2))
    for file in (tmp_path / ZONE / "_scratchPad").glob("*/*/rows/*.parquet"):
        file.unlink()
    world.config.update(HELD)
    with pytest.raises(StagedFilesLostError, match="--full-refresh"):
        world.run()

    world.run(full_refresh=True)
    world.publish_held()

    world.assert_right(AFTER)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_full_refresh_with_hooks_replaces_a_batch_that_nobody_can_finish(
    tmp_path: Path, is_first: bool
) -> None:
    world = World(tmp_path) if is_first else published_world(tmp_path)
    world.select(*AFTER)
    world.kill_before(publication_of(1 if is_first else 2))
    for file in (tmp_path / ZONE / "_scratchPad").glob("*/*/rows/*.parquet"):
        file.unlink()
    world.post_hooks = [world.hook(*HOOK)]

    world.run(full_refresh=True)

    world.assert_right([*AFTER, HOOK])


def test_a_manifest_that_is_deleted_takes_no_rows_with_it(tmp_path: Path) -> None:
    """Given a run that was killed in its swap, and a table folder that was lost with its files."""
    world = published_world(tmp_path, materialized="incremental")
    world.zone.delete(FOLDER)
    world.select((4, "new"))
    world.kill_before("rename orders__next_ID to orders")
    world.zone.delete(FOLDER)
    with pytest.raises(StagedFilesLostError, match=r"manifest\.json and run again"):
        world.run()

    world.zone.delete(MANIFEST)
    world.run()

    world.assert_right([*BEFORE, (4, "new")])


@pytest.mark.parametrize("is_killed", [True, False])
def test_a_version_that_was_removed_while_it_was_needed_is_named(
    tmp_path: Path, is_killed: bool
) -> None:
    """Given rows that are held in place, or a run with hooks that was killed."""
    world = published_world(tmp_path, **IN_PLACE, **({} if is_killed else HELD))
    if is_killed:
        world.pre_hooks = [world.hook(*HOOK)]
        world.kill_before("mirror_keep orders__new_rows_ID")
    else:
        world.run()
    world.spark.table(ORDERS).vacuum()

    with pytest.raises(SnapshotMismatchError, match=r"removed old versions.*--full-refresh"):
        _ = world.run() if is_killed else world.publish_held()

    world.run(full_refresh=True)
    world.publish_held()
    world.assert_right(AFTER)


def test_a_version_that_was_removed_is_named_by_a_run_that_appends_a_published_key(
    tmp_path: Path,
) -> None:
    world = published_world(tmp_path, **IN_PLACE, **HELD)
    world.run()
    world.spark.table(ORDERS).vacuum()
    world.config["incremental_strategy"] = "append"

    with pytest.raises(SnapshotMismatchError, match=r"removed old versions.*--full-refresh"):
        world.run()

    world.run(full_refresh=True)
    world.publish_held()
    world.assert_right(AFTER)


def test_rows_that_were_published_to_a_lost_folder_do_not_stay_beside(tmp_path: Path) -> None:
    world = published_world(tmp_path, **HELD)
    world.run()
    world.zone.delete(FOLDER)

    world.rebuild()

    world.assert_published(AFTER)
    assert set(world.spark.tables) == {"orders"}
