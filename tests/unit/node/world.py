"""One node, its runs, and what they leave: a Spark in memory and a real local landing zone.

Each step of a run, which is a statement or an operation of the storage, can go wrong.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.landing_zone.errors import LandingZoneUnavailableError
from dbt.adapters.openmirroring.landing_zone.layout import ROW_MARKER
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.materialize import materialize
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.publish import (
    keep_held,
    publish_held,
    rebuild,
    recover_node,
)
from dbt.adapters.openmirroring.node.repair import repair, restore
from dbt.adapters.openmirroring.node.response import MirrorResponse
from dbt.adapters.openmirroring.spark.relation import (
    BUILD_PROPERTY,
    RESTORED_PROPERTY,
    VERSION_PROPERTY,
    ZONE_PROPERTY,
    OpenMirroringRelation,
)
from tests.unit.node.fake_rows import Row, Rows, read_file
from tests.unit.node.fake_warehouse import SCHEMA, FakeAdapter, FakeSpark, LocalWarehouse
from tests.unit.node.faults import (
    READING,
    Claim,
    Fault,
    Killed,
    MirroredRows,
    WatchedDestination,
)

SQL = "select * from source"
ZONE = "zone/Files/LandingZone"
# the beginning of a hook whose macro runs the rest of it
MACRO = "macro: "
RECOVERED = "openmirroring.recovered_by"
OTHER_PROPERTIES = (RESTORED_PROPERTY, VERSION_PROPERTY, ZONE_PROPERTY)
BEFORE = ((1, "a"), (2, "b"), (3, "c"))
AFTER = ((1, "a"), (2, "changed"), (4, "new"))
ORDERS = OpenMirroringRelation.create(schema=SCHEMA, identifier="orders")
COLUMNS = {"id": "int", "name": "string"}


def typed(value: Any, dtype: str) -> Any:
    if value is None:
        return None
    return str(value) if dtype == "string" else int(value)


def numbered(columns: Mapping[str, str], number: int, name: str) -> Row:
    """A row that others than the node's own rows have."""
    values: dict[str, Any] = {"id": number, "name": name}
    return tuple(typed(values.get(column), dtype) for column, dtype in columns.items())


class World:
    """A node, with what outlives its runs.

    Args:
        folder: an empty folder
        config: the configuration of the node

    Attributes:
        steps: what the runs have done, in short
        told: what the runs have told and warned of
        claim: of the last command on its tables
        address: the landing zone as the profile spells it
        builds: the ids of the held builds, by the unique id of the node
    """

    def __init__(self, folder: Path, **config: Any) -> None:
        self.config: dict[str, Any] = {"materialized": "table", "unique_key": "id", **config}
        name = config.get("alias", "orders")
        self.relation = OpenMirroringRelation.create(schema=SCHEMA, identifier=name)
        self.spark = FakeSpark(self._statement, folder / "warehouse")
        self.spark.file_format = config.get("file_format", "parquet")
        self.zone = LocalStorage(folder / ZONE)
        self.address = str(folder / ZONE)
        self.pre_hooks: list[str] = []
        self.post_hooks: list[str] = []
        self.steps: list[str] = []
        self.told: list[str] = []
        self.dry_run = False
        self.restores = False
        self.empty = False
        self.stray: list[Row] | None = None
        """The rows of the mirrored table, if somebody else has changed it."""
        self.stray_columns: dict[str, str] = {}
        self.claim = Claim()
        self.builds: dict[str, str] = {}
        self._folder = folder
        self._fault = Fault()

    def copy(self, folder: Path) -> World:
        """Return a world with the same tables and files, in another empty folder."""
        copied = World(folder, **self.config)
        copied.spark.tables = deepcopy(self.spark.tables)
        copied.restores = self.restores
        shutil.copytree(self._folder, folder, dirs_exist_ok=True)
        return copied

    def twin(self) -> World:
        """Return another process with the same Spark and the same landing zone."""
        twin = World(self._folder, **self.config)
        twin.spark.tables = self.spark.tables
        twin.spark.file_format = self.spark.file_format
        twin.restores = self.restores
        return twin

    # What changes between runs

    def select(self, *rows: Row, columns: Mapping[str, str] = COLUMNS) -> None:
        """Let the SQL of the node select other rows."""
        self.spark.results[SQL] = lambda: Rows(columns, rows)

    def insert(self, number: int, name: str) -> None:
        """Let somebody add a row to the relation, if there is one and no row has this number."""
        table = self.spark.tables.get("orders")
        if table is None:
            return
        columns, rows = table.rows.columns, table.rows.rows
        row = numbered(columns, number, name)
        place = list(columns).index("id")
        if all(each[place] != row[place] for each in rows):
            table.change("WRITE", replace(table.rows, rows=(*rows, row)))

    def hook(self, number: int, name: str) -> str:
        """Return a user's statement that adds a row to the relation."""
        sql = f"insert into {ORDERS} select {number}"
        self.spark.effects[sql] = lambda: self.insert(number, name)
        return sql

    def go_to_another_machine(self) -> None:
        """Leave Spark's tables behind. Runs bring back what they need."""
        self.spark.tables = {}
        self.restores = True

    # Runs

    def run(
        self, fault: Fault | None = None, full_refresh: bool = False, recovers: bool = True
    ) -> MirrorResponse:
        """Run the node as a command of dbt does.

        Args:
            recovers: the command first finishes what is committed, before it compiles the node
        """
        self._fault = fault or Fault()
        adapter = FakeAdapter(self.spark)
        is_incremental = self.config["materialized"] == "incremental" and not full_refresh
        if is_incremental and recovers and not self.dry_run and self.config.get("mirror", True):
            recover_node(self.node(adapter), self.destination())
        if self.restores and not full_refresh:
            restore(self.node(adapter), self.destination())
        responses: list[MirrorResponse] = []
        materialize(self.node(adapter, full_refresh, responses), self.destination())
        return responses[0]

    def kill_before(self, step: str) -> None:
        """Run the node, and kill the process before a step."""
        with pytest.raises(Killed):
            self.run(Fault(step=step))

    def publish_held(self, fault: Fault | None = None, **named: Any) -> MirrorResponse | None:
        """Run `mirror_publish`."""
        self._fault = fault or self._fault
        node = self.node(FakeAdapter(self.spark))
        return publish_held(node, self.destination(), lambda: None, **named)

    def rebuild(self, fault: Fault | None = None) -> MirrorResponse:
        """Run `mirror_rebuild`."""
        self._fault = fault or Fault()
        return rebuild(self.node(FakeAdapter(self.spark)), self.destination())

    def recover(self) -> None:
        """Finish what an earlier run has left, as the start of a command does."""
        self._fault = Fault()
        recover_node(self.node(FakeAdapter(self.spark)), self.destination())

    def repair(self, fault: Fault | None = None) -> MirrorResponse:
        """Run `mirror_repair`."""
        self._fault = fault or Fault()
        return repair(self.node(FakeAdapter(self.spark)), self.destination())

    def restore(self, fault: Fault | None = None) -> None:
        """Run `mirror_restore`."""
        self._fault = fault or Fault()
        restore(self.node(FakeAdapter(self.spark)), self.destination(), replaces=True)

    def keep_held(self, fault: Fault | None = None) -> None:
        """Record that the tests of held rows have failed."""
        self._fault = fault or Fault()
        node = self.node(FakeAdapter(self.spark))
        keep_held(node, self.destination(), "because tests failed")

    def destination(self) -> Destination:
        target = Target(
            landing_zone=self.address,
            dry_run=self.dry_run,
            restore_baseline=self.restores,
        )
        self.claim = Claim()
        around = (self._operation, self._replica, self.claim)
        destination = WatchedDestination(target, self._folder, *around)
        destination.builds = self.builds
        return destination

    def _replica(self) -> MirroredRows:
        definition = self.journal.batch.definition
        columns = {column.name: column.landed_type for column in definition.columns}
        rows = self.mirrored if self.stray is None else self.stray
        found = Rows(self.stray_columns or columns, tuple(rows))
        return MirroredRows.having(found, definition.key_columns)

    def node(
        self,
        adapter: FakeAdapter,
        full_refresh: bool = False,
        responses: list[MirrorResponse] | None = None,
    ) -> Node:
        def exists() -> bool:
            found = adapter.get_relation(None, SCHEMA, str(self.relation.identifier))
            return found is not None and found.is_table

        def render(hook: str) -> str:
            if not hook.startswith(MACRO):
                return hook
            adapter.execute(hook.removeprefix(MACRO))
            return "select 1"

        def store(_: str, response: Any) -> None:
            if responses is not None:
                responses.append(response)

        context = {
            "adapter": adapter,
            "model": {
                "unique_id": "model.shop.orders",
                "alias": self.relation.identifier,
                "language": "sql",
                "depends_on": {"nodes": []},
                "config": self.config,
            },
            "this": self.relation,
            "project_name": "shop",
            "invocation_id": "1",
            "target": {"name": "local"},
            "graph": {"nodes": {}},
            "invocation_args_dict": {"empty": self.empty},
            "compiled_code": SQL,
            "pre_hooks": [{"sql": sql, "transaction": True} for sql in self.pre_hooks],
            "post_hooks": [{"sql": sql, "transaction": True} for sql in self.post_hooks],
            "render": render,
            "write": lambda _: None,
            "is_incremental": lambda: (
                self.config["materialized"] == "incremental" and exists() and not full_refresh
            ),
            "should_full_refresh": lambda: full_refresh,
            "persist_docs": lambda *_: None,
            "store_result": store,
            "log": lambda text, info: self.told.append(text),
            "exceptions": {"warn": self.told.append},
        }
        return Node(context, LocalWarehouse(adapter, context))  # type: ignore[arg-type]

    # Steps

    def _statement(self, sql: str, carry_out: Callable[[], Any]) -> Any:
        return self._fault.around(carry_out, self._noted(sql), DbtDatabaseError)

    def _operation(self, step: str, carry_out: Callable[[], Any]) -> Any:
        return self._fault.around(carry_out, self._noted(step), LandingZoneUnavailableError)

    def _noted(self, step: str) -> str:
        short = re.sub(r"\d{14}[0-9a-f]{8}", "ID", step)
        short = re.sub(r" #\d+|`shop`\.|`|shop\.schema/|^\(|\)$", "", short)
        self.steps.append(short.replace("_scratchPad/shop.orders", "_scratchPad"))
        return self.steps[-1]

    # What there is

    @property
    def changes(self) -> list[str]:
        """The steps that have changed something, since this was asked last."""
        steps, self.steps = self.steps, []
        return [step for step in steps if not step.startswith(READING)]

    @property
    def rows(self) -> list[Row]:
        """The rows of the relation."""
        return sorted(self.spark.table(self.relation).rows.rows, key=str)

    @property
    def journal(self) -> Journal:
        content = self.zone.read("shop.schema/orders/_journal.json")
        assert content
        return Journal.from_json(content, "_journal.json")

    @property
    def files(self) -> list[Path]:
        """The published files, in their order."""
        return sorted((self._folder / ZONE / "shop.schema" / "orders").glob("*.parquet"))

    @property
    def mirrored(self) -> list[Row]:
        """The rows that the service would have after it has applied all files."""
        keys = self.journal.batch.definition.key_columns
        columns = [column.name for column in self.journal.batch.definition.columns]
        rows: dict[Any, Row] = {}
        for file in self.files:
            found = read_file(file)
            is_marked = ROW_MARKER in found.columns
            names = [name for name in columns if name in found.columns]
            values = [dict(zip(names, row, strict=True)) for row in found.of(names)]
            markers = [m for (m,) in found.of([ROW_MARKER])] if is_marked else [0] * len(values)
            for row, marker in zip(values, markers, strict=True):
                key = tuple(row[name] for name in keys) if keys else len(rows)
                known = rows.pop(key, None)
                if marker == 2:
                    assert known, f"{file.name} deletes {key}, which is not there"
                    continue
                assert (known is None) == (marker == 0) or marker == 4
                rows[key] = tuple(row.get(name) for name in columns)
        return sorted(rows.values(), key=str)

    def assert_right(self, expected: Sequence[Row]) -> None:
        """Mirror, relation and expected rows are the same, and nothing else is left."""
        self.assert_published(expected)
        assert set(self.spark.tables) == {"orders"}
        self.assert_zone_in_order()
        marks = self.spark.table(ORDERS).properties
        assert {mark: marks[mark] for mark in marks.keys() - {RECOVERED, *OTHER_PROPERTIES}} == {
            BUILD_PROPERTY: self.journal.batch.build
        }

    def assert_published(self, expected: Sequence[Row]) -> None:
        """Mirror, relation and expected rows are the same."""
        assert self.rows == sorted(expected, key=str)
        assert self.mirrored == self.rows

    def assert_zone_in_order(self) -> None:
        """The numbers of the files are consecutive, and the scratch pad is empty."""
        numbers = [int(file.stem) for file in self.files]
        assert numbers == list(range(1, len(numbers) + 1))
        assert self.journal.batch.last_file == len(numbers)
        assert self.journal.batch.table_rows == len(self.rows)
        assert self.zone.list("_scratchPad") == []


def publication_of(number: int) -> str:
    """The step that publishes a file."""
    return f"rename to orders/{number:020}.parquet"


def published_world(folder: Path, *rows: Row, **config: Any) -> World:
    """Return a node that was published, and selects other rows now.

    Args:
        rows: the published rows, if they are not BEFORE
    """
    world = World(folder, **config)
    world.select(*(rows or BEFORE))
    world.run()
    if config.get("publish"):
        world.publish_held()
    if world.config.get("mirror", True):
        world.assert_right(rows or BEFORE)
    assert world.changes
    world.select(*AFTER)
    return world
