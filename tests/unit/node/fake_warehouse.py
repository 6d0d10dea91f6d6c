"""A Spark in memory, which knows the statements of the package by the macros that write them.

A macro's SQL is a text such as `mirror_keep orders #7`, which stands for the call. The fake makes
the call when this text is executed, or when it is a query in another call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import agate
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.relation import RelationType
from dbt_common.exceptions import DbtDatabaseError

from dbt.adapters.openmirroring.node.progress import Progress
from dbt.adapters.openmirroring.node.user_code import UserCode
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import (
    OpenMirroringColumn,
    OpenMirroringRelation,
    StandIns,
)
from tests.unit.macros.rendered import warehouse as rendered
from tests.unit.macros.test_macros import arguments_of
from tests.unit.node.fake_macros import Macros
from tests.unit.node.fake_rows import Rows, answer

SCHEMA = "shop"

# carries out a step of a run, or does not
Around = Callable[[str, Callable[[], Any]], Any]

_CALL = re.compile(r"\(?(mirror_\w+(?: [^#]+)? #\d+)\)?")
_TABLE = re.compile(r"(?:select \* from )?`\w+`\.`(\w+)`(?: version as of (\d+))?")


@dataclass
class Table:
    """A table.

    Args:
        versions: what made each version, with the rows that it has; the last one is the table
        oldest: the number of the first version whose files are still there
        is_lost: whether its folder is gone
    """

    format: str
    versions: list[tuple[str, Rows]]
    properties: dict[str, str] = field(default_factory=dict)
    oldest: int = 0
    is_lost: bool = False

    @property
    def rows(self) -> Rows:
        rows = self.versions[-1][1]
        return replace(rows, rows=()) if self.is_lost else rows

    def change(self, operation: str, rows: Rows | None = None) -> None:
        self.versions.append((operation, rows or self.rows))

    def vacuum(self) -> None:
        """Remove the files of earlier versions, which the table needs no more."""
        self.change("VACUUM END")
        needed = [rows is self.rows for _, rows in self.versions]
        self.oldest = max(
            (n + 1 for n, is_needed in enumerate(needed) if not is_needed), default=0
        )

    def version(self, number: int) -> Rows:
        """The rows of an earlier version."""
        if number < self.oldest:
            raise DbtDatabaseError(f"The files of version {number} are gone (FILE_NOT_FOUND)")
        return self.versions[number][1]


def identifier(name: object) -> str:
    found = _TABLE.fullmatch(str(name))
    assert found, f"{name} is not a table"
    return found[1].lower()


@cache
def _mapping() -> Warehouse:
    """The package's own macros that return a word."""
    return rendered()


@cache
def _arguments_of(macro: str) -> tuple[set[str], set[str]]:
    return arguments_of(f"openmirroring__{macro}")


class FakeSpark:
    """Tables that outlive a run, and the statements of its runs.

    Args:
        around: carries out a statement, or fails instead of it
        folder: has the folders of all tables

    Attributes:
        results: what the SQL of a model selects when it runs
        effects: what a user's statement does
        file_format: the format of a table without `file_format`
        bytes: the size of each table; None if nobody knows it
        is_small: whether tables are small enough to compare them in one task
        refuses: called before rows are changed in place
    """

    def __init__(self, around: Around, folder: Path) -> None:
        self.tables: dict[str, Table] = {}
        self.results: dict[str, Callable[[], Rows]] = {}
        self.effects: dict[str, Callable[[], object]] = {}
        self.file_format = "parquet"
        self.bytes: int | None = 1000
        self.is_small = True
        self.refuses: Callable[[], None] = lambda: None
        self._around = around
        self._folder = folder
        self._calls: dict[str, Callable[[], Any]] = {}
        self._macros = Macros(self)

    def call(self, macro: str, arguments: Mapping[str, Any]) -> Any:
        """What a macro returns."""
        if macro == "mirror_is_small" and not self.is_small:
            return False
        if macro == "mirror_is_small" or macro.startswith("mirror_on_"):
            return _mapping().ask(macro, **arguments)
        required, optional = _arguments_of(macro)
        assert required <= arguments.keys() <= required | optional, f"{macro} has other arguments"
        given = SimpleNamespace(**{**dict.fromkeys(optional), **arguments})
        table = getattr(arguments.get("table"), "identifier", "")
        name = f"{macro}{table and ' '}{table} #{len(self._calls)}"
        self._calls[name] = lambda: getattr(self._macros, macro)(given)
        return name

    def execute(self, sql: str) -> Rows | None:
        """Carry out a statement."""
        found: Rows | None = self._around(sql, lambda: self._carry_out(sql))
        return found

    def location(self, name: str) -> Path:
        return self._folder / name

    def make_folders(self) -> None:
        """Let the tables that there are have folders, and no others."""
        self._folder.mkdir(parents=True, exist_ok=True)
        needed = {self.location(name) for name, found in self.tables.items() if not found.is_lost}
        there = set(self._folder.iterdir())
        for folder in there - needed:
            folder.rmdir()
        for folder in needed - there:
            folder.mkdir()

    def _carry_out(self, sql: str) -> Rows | None:
        if sql in self.effects:
            self.effects[sql]()
            self.make_folders()
            return None
        if sql == "set spark.sql.sources.default":
            return answer(("key", "value"), (sql, "parquet"))
        if sql.startswith("describe query "):
            columns = self.select(sql.removeprefix("describe query ")).columns
            return answer(("col_name", "data_type"), *columns.items())
        for prefix, described in (
            ("describe table extended ", self._described),
            ("show tblproperties ", self._properties),
        ):
            if sql.startswith(prefix):
                return described(sql.removeprefix(prefix))
        found = _CALL.fullmatch(sql)
        return self._calls[found[1]]() if found else self.select(sql)

    def select(self, sql: object) -> Rows:
        """The rows of a query or a table."""
        text = str(sql)
        call = _CALL.fullmatch(text)
        if call:
            rows: Rows = self._calls[call[1]]()
            return rows
        if text in self.results:
            return self.results[text]()
        found = _TABLE.fullmatch(text)
        if not found:
            raise DbtDatabaseError(f"Spark does not understand {text!r}")
        table = self.table(text)
        return table.version(int(found[2])) if found[2] else table.rows

    def table(self, name: object) -> Table:
        if identifier(name) not in self.tables:
            raise DbtDatabaseError(f"Spark has no table {name}")
        table = self.tables[identifier(name)]
        if table.is_lost and table.format == "delta":
            raise DbtDatabaseError("DELTA_PATH_DOES_NOT_EXIST")
        return table

    def create(
        self, name: object, rows: Rows, properties: Mapping[str, str], file_format: str
    ) -> None:
        if identifier(name) in self.tables:
            raise DbtDatabaseError(f"Spark has a table {name} already")
        created = Table(file_format, [("CREATE TABLE AS SELECT", rows)], dict(properties))
        self.tables[identifier(name)] = created
        self.make_folders()

    def drop(self, name: object) -> None:
        def carry_out() -> None:
            self.tables.pop(identifier(name), None)
            self.make_folders()

        self._around(f"drop {name}", carry_out)

    def rename(self, name: object, to: object) -> None:
        def carry_out() -> None:
            table = self.table(name)
            if identifier(to) in self.tables:
                raise DbtDatabaseError(f"Spark has a table {to} already")
            self.tables[identifier(to)] = table
            del self.tables[identifier(name)]
            self.make_folders()

        self._around(f"rename {name} to {to}", carry_out)

    def _described(self, name: str) -> Rows:
        table = self.table(name)
        details = (
            ("", "", ""),
            ("# Detailed Table Information", "", ""),
            ("Provider", table.format, ""),
            ("Location", f"file:{self.location(identifier(name))}", ""),
            ("Statistics", "" if self.bytes is None else f"{self.bytes} bytes", ""),
        )
        columns = [(name, dtype, "") for name, dtype in table.rows.columns.items()]
        return answer(("col_name", "data_type", "comment"), *columns, *details)

    def _properties(self, name: str) -> Rows:
        return answer(("key", "value"), *self.table(name).properties.items())


class LocalWarehouse(Warehouse):
    """A warehouse all of whose Spark runs on this machine."""

    is_local = True


class Anything(agate.DataType):  # type: ignore[misc]
    """A column whose values stay as they are."""

    def cast(self, value: Any) -> Any:
        return value


class FakeAdapter:
    """What a warehouse uses of the adapter and of its connections, for one run.

    As in dbt, relations are listed once, and then known from a cache. Marks of a Delta table are
    not listed.
    """

    def __init__(self, spark: FakeSpark) -> None:
        self.spark = spark
        self.progress = Progress(None)
        self.user_code = UserCode()
        self.checked: dict[tuple[str, str], OpenMirroringRelation] = {}
        self.stand_ins = StandIns()
        self.connections = self  # no more is needed of them
        self.embedded_warehouse: Path | None = None
        self._relations = {
            found.place[1]: found for found in self.list_relations_without_caching(None)
        }

    # Macros and statements

    def dispatch(self, macro: str, package: str) -> Callable[..., Any]:
        assert package == "dbt"
        return lambda **arguments: self.spark.call(macro, arguments)

    def execute(self, sql: str, **_: bool) -> tuple[AdapterResponse, agate.Table]:
        rows = (self.user_code.allows(sql) and self.spark.execute(sql)) or answer(())
        names = list(rows.columns)
        found = agate.Table(rows.rows, names, [Anything()] * len(names))
        return AdapterResponse(_message="OK"), found

    # Relations

    def list_relations_without_caching(self, _: object) -> list[OpenMirroringRelation]:
        """List the relations again, without those that `--empty` has made."""
        listed = list(self._listed())
        self.checked = {found.place: found for found in listed if found.is_checked}
        return [found for found in listed if not found.is_checked]

    def _listed(self) -> Iterator[OpenMirroringRelation]:
        self.spark.make_folders()
        for name, table in self.spark.tables.items():
            is_delta = table.format == "delta"
            marks = ", ".join(f"{mark}={value}" for mark, value in table.properties.items())
            location = f"Location: file:{self.spark.location(name)}\n"
            yield OpenMirroringRelation.create(
                schema=SCHEMA,
                identifier=name,
                type=RelationType.Table,
                is_delta=is_delta,
                information=f"{location}Table Properties: [{'' if is_delta else marks}]",
            )

    def get_relation(
        self, database: None, schema: str, identifier: str
    ) -> OpenMirroringRelation | None:
        return self._relations.get(identifier.lower())

    def list_relations(self, database: None, schema: str) -> list[OpenMirroringRelation]:
        return list(self._relations.values())

    def cache_added(self, relation: OpenMirroringRelation) -> None:
        self._relations[relation.place[1]] = relation

    def cache_dropped(self, relation: OpenMirroringRelation) -> None:
        self._relations.pop(relation.place[1], None)

    def create_schema(self, relation: OpenMirroringRelation) -> None:
        pass

    def drop_relation(self, relation: OpenMirroringRelation) -> None:
        self.cache_dropped(relation)
        self.spark.drop(relation)

    def rename_relation(self, before: OpenMirroringRelation, to: OpenMirroringRelation) -> None:
        known = self._relations.pop(before.place[1])
        self._relations[to.place[1]] = known.incorporate(path={"identifier": to.identifier})
        self.spark.rename(before, to)

    def get_columns_in_relation(
        self, relation: OpenMirroringRelation
    ) -> list[OpenMirroringColumn]:
        columns = self.spark.table(relation).rows.columns
        return [OpenMirroringColumn(name, dtype) for name, dtype in columns.items()]

    # Connections

    def own_session(self) -> AbstractContextManager[None]:
        return nullcontext()

    users_session = own_session

    def refresh(self, name: str) -> None:
        pass

    def has_metastore(self) -> bool:
        return True

    def spark_major(self) -> int:
        return 4

    def get_thread_connection(self) -> SimpleNamespace:
        return SimpleNamespace(name="test", handle=None)
