"""Spark's tables for a node, through dbt's connection and cache, with SQL from macros."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.openmirroring.dbt_core.project import Context
from dbt.adapters.openmirroring.landing_zone.batch import BATCH_ID
from dbt.adapters.openmirroring.protocol.facts import Marks
from dbt.adapters.openmirroring.spark.relation import (
    BUILD_PROPERTY,
    RESTORED_PROPERTY,
    UNMIRRORED_PROPERTY,
    VERSION_PROPERTY,
    OpenMirroringColumn,
    OpenMirroringRelation,
)
from dbt.adapters.openmirroring.spark.session import SessionHandle, Tasks
from dbt.adapters.openmirroring.spark.table import TableDescription, local_path

if TYPE_CHECKING:
    import agate

    from dbt.adapters.openmirroring.impl import OpenMirroringAdapter

logger = AdapterLogger("OpenMirroring")

Told = TypeVar("Told")


class Warehouse:
    """Spark's tables, for the dbt context of a node or a macro."""

    def __init__(self, adapter: OpenMirroringAdapter, context: Context) -> None:
        self.adapter = adapter
        self._context = context

    def follow(self) -> Tasks:
        """Return a function that reports Spark's progress with this thread's next statements."""
        return self.handle.follow() if self.handle else lambda: None

    # Sessions

    def users_session(self) -> AbstractContextManager[None]:
        """Run code of the user inside of the adapter's own session."""
        return self.adapter.connections.users_session()

    @contextmanager
    def users_code(self, allows: Callable[[str], bool]) -> Iterator[None]:
        """Run code of the user in its session.

        Args:
            allows: is asked before each statement, and returns False to leave it out. What it
                runs itself runs apart
        """

        def allows_apart(statement: str) -> bool:
            with self.adapter.connections.own_session():
                return allows(statement)

        with self.users_session(), self.adapter.user_code.asks(allows_apart):
            yield

    # Macros

    def ask(self, macro: str, /, **arguments: Any) -> Any:
        """Return what a macro of the adapter, or the project's own in its place, returns."""
        return self._context["adapter"].dispatch(macro, "dbt")(**arguments)

    def sql(self, macro: str, /, **arguments: Any) -> str:
        """Return the SQL that a macro writes."""
        return str(self.ask(macro, **arguments)).strip()

    # Statements

    def execute(self, sql: str) -> None:
        self.adapter.execute(sql)

    def build(self, *statements: str) -> AdapterResponse:
        """Run statements of which the last computes rows. dbt writes them to `target`."""
        self._context["write"](";\n\n".join(statements))
        *before, sql = statements
        for statement in before:
            self.execute(statement)
        response: AdapterResponse = self.adapter.execute(sql, auto_begin=True)[0]
        return response

    def query(self, sql: str) -> agate.Table:
        _, table = self.adapter.execute(sql, fetch=True)
        return table

    def run(self, macro: str, /, **arguments: Any) -> None:
        """Execute the statement that a macro writes."""
        self.execute(self.sql(macro, **arguments))

    def read(self, macro: str, /, **arguments: Any) -> agate.Table:
        """Return the rows of the query that a macro writes."""
        return self.query(self.sql(macro, **arguments))

    def count(self, macro: str, /, **arguments: Any) -> int:
        """Return the only value of the query that a macro writes, as an integer."""
        return int(self.read(macro, **arguments).rows[0][0])

    def count_rows(self, table: OpenMirroringRelation) -> int:
        return self.count("mirror_count_rows", table=table)

    # Relations

    def found(self, relation: OpenMirroringRelation) -> OpenMirroringRelation | None:
        """Return a relation as in dbt's cache; None if it does not exist."""
        place: Any = (relation.database, relation.schema, relation.identifier)
        return cast("OpenMirroringRelation | None", self.adapter.get_relation(*place))

    def beside(self, relation: OpenMirroringRelation) -> list[OpenMirroringRelation]:
        """Return all relations in the schema of a relation."""
        found = self.adapter.list_relations(relation.database, str(relation.schema))
        return cast("list[OpenMirroringRelation]", found)

    def list_again(self, relation: OpenMirroringRelation) -> None:
        """List a relation again, and what stands beside it, because dbt's list is outdated.

        Without an identifier, all relations of the schema are. With one, those of other nodes stay
        as they are known, because these may change them after they were listed here.
        """
        listed = self.adapter.list_relations_without_caching(relation.without_identifier())
        name = re.escape(relation.identifier) if relation.identifier else ".*"
        is_its = re.compile(rf"{name}(__[a-z_]+_{BATCH_ID})?", re.IGNORECASE).fullmatch
        for known in self.beside(relation):
            if is_its(str(known.identifier)):
                self.adapter.cache_dropped(known)
        for found in listed:
            if is_its(str(found.identifier)):
                self.adapter.cache_added(found)

    def drop(self, relation: OpenMirroringRelation) -> None:
        self.adapter.drop_relation(relation)

    def drop_if_there(self, relation: OpenMirroringRelation) -> None:
        """Drop a relation if it exists. Only log an error, so that it hides no earlier one."""
        try:
            if self.found(relation):
                self.drop(relation)
        except DbtRuntimeError as error:
            logger.debug(f"{relation} could not be dropped: {error}")

    def replaced(self, relation: OpenMirroringRelation) -> None:
        """Make the user's session see the new rows of a relation."""
        self.adapter.connections.refresh(relation.render())

    def columns(self, relation: OpenMirroringRelation) -> list[OpenMirroringColumn]:
        found = self.adapter.get_columns_in_relation(relation)
        return cast("list[OpenMirroringColumn]", found)

    def columns_of(self, query: str) -> list[OpenMirroringColumn]:
        """Return the columns of a query, which is not run."""
        rows = self.query(f"describe query {query}").rows
        return [OpenMirroringColumn(str(row[0]), str(row[1])) for row in rows]

    def describe(self, relation: OpenMirroringRelation) -> TableDescription:
        rows = self.query(f"describe table extended {relation}").rows
        return TableDescription.parse(relation, rows)

    def description(self, target: OpenMirroringRelation) -> TableDescription | None:
        """Describe the table of a node, if it is there with its folder."""
        found = self.found(target)
        if found is None or not found.is_table or self.lost_folder(found):
            return None
        return self.unless_dropped(found, self.describe)

    def unless_dropped(
        self, table: OpenMirroringRelation, ask: Callable[[OpenMirroringRelation], Told]
    ) -> Told | None:
        """Return what Spark tells of a table; None if it was dropped since dbt listed it."""
        try:
            return ask(table)
        except DbtDatabaseError:
            self.list_again(table)
            if self.found(table):
                raise
            return None

    def known_bytes(
        self, relation: OpenMirroringRelation, description: TableDescription
    ) -> int | None:
        """Return the size of a table in storage; None if only reading its rows would tell."""
        if description.layout.format == "iceberg":
            return self.count("mirror_iceberg_bytes", table=relation)
        return description.bytes

    def is_small(
        self, relation: OpenMirroringRelation, description: TableDescription, rows: int = 0
    ) -> bool:
        """Check whether a table is known to be small enough for one task.

        Args:
            rows: number of rows of another table in the same query; 0 without one
        """
        size = self.known_bytes(relation, description)
        return self.ask("mirror_is_small", bytes=size, rows=rows) is True

    def properties(self, relation: OpenMirroringRelation) -> dict[str, str]:
        rows = self.query(f"show tblproperties {relation}").rows
        return {str(row[0]): str(row[1]) for row in rows}

    def mark(self, relation: OpenMirroringRelation, properties: Mapping[str, str]) -> None:
        """Set properties of a table."""
        self.run("mirror_mark", table=relation, properties=properties)
        found = self.found(relation)
        if found and found.information:  # dbt's list has the properties of before
            self.cache(replace(found, information=None))

    def unmark(self, relation: OpenMirroringRelation, names: Collection[str]) -> None:
        """Remove properties of a table. Names that it does not have are ignored."""
        self.run("mirror_unmark", table=relation, names=names)

    def lost_folder(self, table: OpenMirroringRelation | None) -> Path | None:
        """Return the folder of a table, if it was on this machine and is gone with all rows.

        Spark reads such a table as one without rows. Of a Delta table, it tells nothing at all.
        """
        folder = _missing_folder(table.location) if table and table.is_table else None
        if table is None or folder is None or not self.is_local:
            return None
        try:
            # the list may be of before the table was renamed
            return _missing_folder(self.describe(table).location)
        except DbtDatabaseError:
            # or of before it was dropped
            self.list_again(table)
            return folder if self.found(table) else None

    def marks(self, snapshot: OpenMirroringRelation | None) -> Marks:
        """Return the marks of a snapshot; empty marks for a view, or if nothing can be read."""
        if snapshot is None or snapshot.is_view or self.lost_folder(snapshot):
            return Marks()
        if snapshot.build:  # dbt's list lacks the properties of formats with versions
            return Marks(snapshot.build)
        return self.fresh_marks(snapshot)

    def fresh_marks(self, table: OpenMirroringRelation) -> Marks:
        """Return the marks of a table, whatever dbt has listed. Anybody may have set them."""
        properties = self.properties(table)
        build = re.fullmatch(r"\w+", properties.get(BUILD_PROPERTY, ""), re.ASCII)

        def pair(name: str, form: str) -> tuple[str, str] | None:
            found = re.fullmatch(form, properties.get(name, ""), re.ASCII)
            return (found[1], found[2]) if found else None

        return Marks(
            build[0] if build else None,
            pair(VERSION_PROPERTY, r"(\w+) (\w+)"),
            UNMIRRORED_PROPERTY in properties,
            pair(RESTORED_PROPERTY, r"(\w+) (\w+:\w+)"),
        )

    def cache(self, relation: OpenMirroringRelation) -> None:
        """Replace what dbt's cache has of a relation."""
        self.adapter.cache_dropped(relation)
        self.adapter.cache_added(relation)

    # Spark itself

    @property
    def embedded(self) -> Path | None:
        """The folder of the embedded Spark's tables; None with any other Spark."""
        return self.adapter.connections.embedded_warehouse

    @property
    def handle(self) -> SessionHandle | None:
        """The handle of the node's session; None with Thrift, HTTP or ODBC."""
        handle = self.adapter.connections.get_thread_connection().handle
        return handle if isinstance(handle, SessionHandle) else None

    @property
    def is_driven_here(self) -> bool:
        """Whether Spark's driver sees the same files as this process."""
        return self.handle is not None and self.handle.is_driven_here

    @property
    def is_local(self) -> bool:
        """Whether all of Spark runs on this machine."""
        return self.handle is not None and self.handle.is_local


def _missing_folder(location: str) -> Path | None:
    folder = local_path(location)
    return folder if folder and not folder.is_dir() else None
