"""Spark's tables, as a node uses them: by dbt's connection and cache, with SQL from macros."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.spark.relation import (
    Marks,
    OpenMirroringColumn,
    OpenMirroringRelation,
)
from dbt.adapters.openmirroring.spark.session import SessionHandle
from dbt.adapters.openmirroring.spark.table import TableDescription
from dbt.adapters.openmirroring.spark.tasks import Tasks

if TYPE_CHECKING:
    import agate

logger = AdapterLogger("OpenMirroring")


class Warehouse:
    """Spark's tables.

    Args:
        adapter: dbt's, whose connection and cache are used
        context: of dbt: a node's, or that of a macro
    """

    def __init__(self, adapter: Any, context: Mapping[str, Any]) -> None:
        self.adapter = adapter
        self._context = context

    def begin(self, step: str) -> None:
        """Let a user who waits see which step the node is in."""
        self.adapter.progress.begin(step)

    def follow(self) -> Tasks:
        """How far Spark is with what this thread runs from now on, where it tells."""
        return self.handle.follow() if self.handle else lambda: None

    # Macros

    def ask(self, macro: str, *arguments: Any) -> Any:
        """What a macro returns. A project may have its own in place of ours.

        Args:
            macro: its name, without the prefix of the adapter
        """
        return self._context["adapter"].dispatch(macro, "dbt")(*arguments)

    def sql(self, macro: str, *arguments: Any) -> str:
        """The SQL that a macro writes."""
        return str(self.ask(macro, *arguments)).strip()

    # Statements

    def execute(self, sql: str) -> None:
        self.adapter.execute(sql)

    def build(self, sql: str) -> AdapterResponse:
        """Run a statement that computes rows of the node; it is kept in the `target` folder."""
        self._context["write"](sql)
        response: AdapterResponse
        response, _ = self.adapter.execute(sql, auto_begin=True)
        return response

    def query(self, sql: str) -> agate.Table:
        table: agate.Table
        _, table = self.adapter.execute(sql, fetch=True)
        return table

    def count(self, sql: str) -> int:
        """The only value of a query."""
        return int(self.query(sql).rows[0][0])

    # Relations

    def found(self, relation: OpenMirroringRelation) -> OpenMirroringRelation | None:
        """A relation as dbt's cache has it; None if it is not there."""
        found: OpenMirroringRelation | None = self.adapter.get_relation(
            relation.database, relation.schema, relation.identifier
        )
        return found

    def beside(self, relation: OpenMirroringRelation) -> list[OpenMirroringRelation]:
        """All relations in the schema of a relation."""
        return list(self.adapter.list_relations(relation.database, str(relation.schema)))

    def added(self, relation: OpenMirroringRelation) -> None:
        """Let dbt's cache know of a relation that was made."""
        self.adapter.cache_added(relation)

    def drop(self, relation: OpenMirroringRelation) -> None:
        self.adapter.drop_relation(relation)

    def drop_if_there(self, relation: OpenMirroringRelation) -> None:
        """Drop a relation, or leave it to the next run: whatever ends a node matters more."""
        try:
            if self.found(relation):
                self.drop(relation)
        except DbtRuntimeError as error:
            logger.debug(f"{relation} could not be dropped: {error}")

    def rename(self, relation: OpenMirroringRelation, to: OpenMirroringRelation) -> None:
        self.adapter.rename_relation(relation, to)

    def replaced(self, relation: OpenMirroringRelation) -> None:
        """Let everybody see a relation that has other rows now."""
        self.adapter.connections.refresh(relation.render())

    def columns(self, relation: OpenMirroringRelation) -> list[OpenMirroringColumn]:
        columns: list[OpenMirroringColumn] = self.adapter.get_columns_in_relation(relation)
        return columns

    def describe(self, relation: OpenMirroringRelation) -> TableDescription:
        rows = self.query(f"describe table extended {relation}").rows
        return TableDescription.parse(relation, rows)

    def known_bytes(
        self, relation: OpenMirroringRelation, description: TableDescription
    ) -> int | None:
        """The size of a table in storage; None if that takes a look at its rows."""
        if description.layout.format == "iceberg":
            return self.count(self.sql("mirror_iceberg_bytes", relation))
        return description.bytes

    def is_small(
        self, relation: OpenMirroringRelation, description: TableDescription, rows: int = 0
    ) -> bool:
        """Whether a table is known to be small enough for one task.

        Args:
            rows: of another table, if it takes part
        """
        return self.ask("mirror_is_small", self.known_bytes(relation, description), rows) is True

    def properties(self, relation: OpenMirroringRelation) -> dict[str, str]:
        """The properties of a table."""
        rows = self.query(f"show tblproperties {relation}").rows
        return {str(row[0]): str(row[1]) for row in rows}

    def mark(self, relation: OpenMirroringRelation, properties: Mapping[str, str]) -> None:
        """Set properties of a table."""
        self.execute(self.sql("mirror_mark", relation, properties))

    def unmark(self, relation: OpenMirroringRelation, names: Collection[str]) -> None:
        """Remove properties of a table, as far as it has them."""
        self.execute(self.sql("mirror_unmark", relation, names))

    def batch_id(self, snapshot: OpenMirroringRelation | None) -> str | None:
        """The batch that a snapshot was published with.

        Where a format keeps the properties of its tables to itself, as Delta does, they are not in
        the list of the relations that dbt has made.
        """
        return self.marks(snapshot).batch_id

    def marks(self, snapshot: OpenMirroringRelation | None) -> Marks:
        """What a snapshot says of its publication; nothing without one."""
        if snapshot is None or snapshot.is_view:
            return Marks()
        if snapshot.batch_id:  # what is held has none where dbt's list has properties
            return Marks(snapshot.batch_id)
        return Marks.of(self.properties(snapshot))

    def remark(
        self,
        relation: OpenMirroringRelation,
        names: Collection[str],
        properties: Mapping[str, str],
    ) -> OpenMirroringRelation:
        """Replace properties of a table.

        Args:
            names: of those to remove
        """
        self.unmark(relation, names)
        self.mark(relation, properties)
        self.adapter.cache_dropped(relation)
        plain = replace(relation, information=None)
        self.adapter.cache_added(plain)
        return plain

    def carries(self, relation: OpenMirroringRelation, batch_id: str) -> None:
        """Let dbt's cache know that a relation has taken the rows of a batch."""
        self.adapter.cache_dropped(relation)
        self.adapter.cache_added(relation.carrying(batch_id))

    # Spark itself

    @property
    def embedded(self) -> Path | None:
        """The folder of the embedded Spark's tables; None with any other Spark."""
        folder: Path | None = self.adapter.connections.embedded_warehouse
        return folder

    @property
    def connection(self) -> str:
        """The name of dbt's connection, for its log."""
        return str(self.adapter.connections.get_thread_connection().name)

    @property
    def handle(self) -> SessionHandle | None:
        """What holds the session of the node; None with Thrift, HTTP or ODBC."""
        handle = self.adapter.connections.get_thread_connection().handle
        return handle if isinstance(handle, SessionHandle) else None

    @property
    def is_driven_here(self) -> bool:
        """Spark's driver has the same files as this process."""
        return self.handle is not None and self.handle.is_driven_here

    @property
    def is_local(self) -> bool:
        """All of Spark is on this machine."""
        return self.handle is not None and self.handle.is_local
