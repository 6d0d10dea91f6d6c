"""The bridge between dbt's macros, Spark and the landing zone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import available
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.contracts.metadata import CatalogTable
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.command import Command
from dbt.adapters.openmirroring.connections import (
    OpenMirroringConnectionManager,
    logger,
    project_folder,
    terminal,
)
from dbt.adapters.openmirroring.node.config import OpenMirroringConfig
from dbt.adapters.openmirroring.node.difference import difference
from dbt.adapters.openmirroring.node.materialize import materialize
from dbt.adapters.openmirroring.node.progress import Progress
from dbt.adapters.openmirroring.node.publish import rebuild
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.operations import catalog, replica
from dbt.adapters.openmirroring.operations.database import DatabaseOperations
from dbt.adapters.openmirroring.operations.history import history
from dbt.adapters.openmirroring.operations.mirror import Mirror
from dbt.adapters.openmirroring.operations.project_tables import (
    Outcome,
)
from dbt.adapters.openmirroring.operations.recover import recover_tables
from dbt.adapters.openmirroring.operations.report import report
from dbt.adapters.openmirroring.operations.report_page import Heading
from dbt.adapters.openmirroring.operations.status import status
from dbt.adapters.openmirroring.spark.process import process_spark
from dbt.adapters.openmirroring.spark.refusals import refuse_grants
from dbt.adapters.openmirroring.spark.relation import (
    OpenMirroringColumn,
    OpenMirroringRelation,
    quoted,
)
from dbt.adapters.openmirroring.spark.table import described_columns


class OpenMirroringAdapter(SparkAdapter):
    """dbt-spark's adapter, with what is published from it."""

    Relation = OpenMirroringRelation
    Column = OpenMirroringColumn
    ConnectionManager = OpenMirroringConnectionManager
    AdapterSpecificConfigs = OpenMirroringConfig
    _capabilities = CapabilityDict(
        {Capability.GetCatalogForSingleRelation: CapabilitySupport(support=Support.Full)}
    )

    CONSTRAINT_SUPPORT = {  # noqa: RUF012 - as dbt declares it
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.ENFORCED,
        ConstraintType.primary_key: ConstraintSupport.ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        self.progress = Progress(terminal())
        self._mirror = Mirror(
            config.credentials.target,
            project=lambda: project_folder(config),
            warehouse=lambda: self.connections.embedded_warehouse,  # type: ignore[attr-defined]
            uploads=self.progress.uploads,
        )
        self._command = Command(self, self._mirror)
        self.connections.start_early()  # type: ignore[attr-defined]

    @classmethod
    def quote(cls, identifier: str) -> str:
        # dbt's tests quote the database, and there is none
        return quoted(str(identifier))

    def parse_describe_extended(self, relation: Any, raw_rows: Any) -> list[SparkColumn]:
        """Read the columns, and the size of the table, from `describe extended`.

        dbt-spark takes a column whose name begins with # for a headline, and drops what follows.
        """
        return list(described_columns(relation, raw_rows))

    def parse_columns_from_information(self, relation: Any) -> list[SparkColumn]:
        """The columns for the catalog, as `describe` tells them.

        `show table extended`, which dbt-spark reads, has no comments and cuts off nested types.
        """
        try:
            columns: list[SparkColumn] = self.get_columns_in_relation(relation)
        except DbtRuntimeError as error:  # the documentation can do without
            logger.debug(f"{relation}: {error}")
            return []
        return columns

    @available.parse(lambda *_args, **_named: [])
    def get_column_schema_from_query(self, sql: str) -> list[Any]:
        """The columns of a query.

        Of Thrift's cursors a decimal has no digits and an array no elements.
        """
        if Warehouse(self, {}).handle:
            columns: list[Any] = super().get_column_schema_from_query(sql)
            return columns
        _, described = self.execute(f"describe query {sql}", fetch=True)
        return [self.Column.create(row["col_name"], row["data_type"]) for row in described]

    def get_catalog_for_single_relation(self, relation: Any) -> CatalogTable | None:
        """A relation as in dbt's catalog; None if it is not there."""
        rows = list(self._get_columns_for_catalog(relation))
        return catalog.catalog_table(rows) if rows else None

    def list_relations_without_caching(self, schema_relation: Any) -> list[Any]:
        """The relations of a schema, also views of a catalog that does not list them as tables."""
        # Spark does not tell in which catalog the schema is
        path = {"schema": schema_relation.schema}
        try:
            listed = super().list_relations_without_caching(schema_relation)
        except DbtRuntimeError as error:
            if "Namespace does not exist" in error.msg:  # as Iceberg's catalogs say it
                return []
            raise
        relations: list[Any] = [relation.incorporate(path=path) for relation in listed]
        known = {str(relation.identifier).lower() for relation in relations}
        try:
            views: Any = self.execute_macro(
                "openmirroring__list_views", kwargs={"schema_relation": schema_relation}
            )
        except DbtRuntimeError as error:  # no such schema, or a catalog without views
            logger.debug(f"{schema_relation}: {error}")
            return relations
        for _, name, is_temporary in (row.values()[:3] for row in views.rows):
            if not is_temporary and name.lower() not in known:
                view = self.Relation.create(
                    schema=schema_relation.schema, identifier=name, type=RelationType.View
                )
                relations.append(view)
        return relations

    def drop_schema(self, relation: Any) -> None:
        """Drop a schema with all that is in it: Iceberg's catalogs drop only an empty one."""
        for found in self.list_relations_without_caching(relation):
            self.drop_relation(found)
        super().drop_schema(relation)

    def _get_columns_for_catalog(self, relation: Any) -> Iterator[dict[str, Any]]:
        """The columns of a relation, with what was published of it."""
        statistics: dict[str, Any] = {}
        if relation.is_table:
            storage = self._mirror.storage()
            statistics = catalog.published_statistics(
                storage, str(relation.schema), str(relation.identifier)
            )
        for column in super()._get_columns_for_catalog(relation):
            yield {**column, **statistics}

    def debug_query(self) -> None:
        """`dbt debug`: Java and Spark start with the first statement, then Fabric is asked, and
        the landing zone tried.
        """
        super().debug_query()
        process_spark.tell()
        self._mirror.check()

    # Nodes

    def pre_model_hook(self, config: Mapping[str, Any]) -> None:
        """Before a node, whatever its materialization."""
        refuse_grants(config)
        super().pre_model_hook(config)

    @available
    def materialize(self, context: Mapping[str, Any]) -> OpenMirroringRelation:
        """Build a table-like node, publish what has changed, and document it.

        Args:
            context: of dbt, in the node's materialization

        Raises:
            DbtRuntimeError: a step fails; the message says what was changed
        """
        node = self._command.node(context)
        with self._command.running(node):
            return materialize(node, self._mirror)

    # Operations

    @available
    def status(self, graph: Mapping[str, Any]) -> Outcome:
        """The state of each mirrored table, and of the mirrored database in Fabric."""
        return status(self._command.tables(graph), self._mirror)

    @available
    def report(self, graph: Mapping[str, Any]) -> Outcome:
        """Write the state and the history of each mirrored table to a page."""
        config = self.config
        heading = Heading(config.project_name, config.target_name, self._mirror.place)
        folder = Path(config.project_target_path)
        return report(self._command.tables(graph), self._mirror, heading, folder)

    @available
    def history(self, graph: Mapping[str, Any], table: str | None, limit: int) -> Outcome:
        """The last batches of each mirrored table; `operations.history` has the arguments."""
        return history(self._command.tables(graph), table, limit)

    @available
    def recover(self, graph: Mapping[str, Any]) -> Outcome:
        """Finish what an earlier run of this dbt project has committed."""
        return recover_tables(self._command.tables(graph), self._command.recover_table)

    @available
    def rebuild(self, graph: Mapping[str, Any], table: str) -> Outcome:
        """Publish a table as it is in Spark as a rebuild.

        Args:
            graph: of dbt
            table: `schema.table`, the table alone, or the name or unique id of its node

        Raises:
            DbtRuntimeError: no such table
        """
        found = self._command.tables(graph).node(table)
        node = self._command.node_of(found)
        with self._command.running(node):
            response = rebuild(node, self._mirror)
        return Outcome((f"{found.table}: {response}",))

    @available
    def publish_held(
        self, graph: Mapping[str, Any], table: str | None = None, results: Any = None
    ) -> Outcome:
        """Publish what is held: all of it or that of a table, or what a command has tested.

        Args:
            graph: of dbt
            table: as for `rebuild`; None for all
            results: of the command; None if a user asks for it, whatever the tests say
        """
        if results is None:
            return self._command.publish_held(graph, table)
        return self._command.publish_tested(graph, results)

    @available
    def drop_orphans(self, graph: Mapping[str, Any], dry_run: bool, schema: str | None) -> Outcome:
        """Drop the table folders that no mirrored node has any more, or only list them."""
        if not dry_run:
            self._mirror.require_run()
        self._mirror.replicate_at_the_end(not dry_run)
        return self._command.tables(graph).drop_orphans(dry_run, schema)

    @available
    def mirrored_database(self) -> DatabaseOperations:
        """The mirrored database in Fabric, to be created, changed, started or stopped."""
        self._mirror.require_run()
        return DatabaseOperations(self._mirror.database)

    @available
    def replicate(self) -> Outcome:
        """Apply what was published to the mirrored tables on this machine.

        Raises:
            DbtRuntimeError: the replicator is not installed, or has no place here
        """
        self._mirror.require_run()
        found = replica.replicate(self._mirror.landing_zone)
        failed = f"Not replicated: {', '.join(found.failed)}"
        return Outcome(found.lines, (failed,) if found.failed else ())

    @available
    def mirror_difference(
        self, context: Mapping[str, Any], model: OpenMirroringRelation, seconds: float
    ) -> str:
        """A query of the rows that a model and its mirrored table do not have equally often.

        Args:
            context: of dbt
            seconds: to wait until all that was published is applied

        Raises:
            DbtRuntimeError: it is not, and why
        """

        def mirrored_table() -> replica.Replica:
            name = str(model.schema), str(model.identifier)
            return self._mirror.replica_of(*name, float(seconds))

        warehouse = Warehouse(self, context)
        rows = self._command.compared_rows(warehouse, model)
        if rows is None:
            return "select 1 where false"
        return difference(warehouse, model, rows, mirrored_table)

    # A command

    def set_relations_cache(
        self, relation_configs: Iterable[Any], *args: Any, **named: Any
    ) -> None:
        """Before hooks and nodes: nothing is compiled with what an interrupted run has left."""
        nodes = list(relation_configs)
        super().set_relations_cache(nodes, *args, **named)
        self._command.begin(nodes)

    def cleanup_connections(self) -> None:
        """The end of a command: what it has published is applied, if the profile says so."""
        self._command.end()
        super().cleanup_connections()
        self._mirror.end()
