"""The bridge between dbt's macros, Spark and the landing zone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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

from dbt.adapters.openmirroring.connections import OpenMirroringConnectionManager, logger
from dbt.adapters.openmirroring.dbt_core.flags import (
    is_building,
    project_folder,
    target_folder,
    terminal,
)
from dbt.adapters.openmirroring.destination import replica
from dbt.adapters.openmirroring.destination.after_command import end_command
from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.node.config import OpenMirroringConfig
from dbt.adapters.openmirroring.node.difference import difference
from dbt.adapters.openmirroring.node.materialize import materialize
from dbt.adapters.openmirroring.node.progress import Progress
from dbt.adapters.openmirroring.node.publish import rebuild
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.operations import catalog
from dbt.adapters.openmirroring.operations.arguments import (
    Flag,
    Limit,
    Name,
    Names,
    Results,
    operation,
)
from dbt.adapters.openmirroring.operations.command import Command
from dbt.adapters.openmirroring.operations.database import DatabaseOperations
from dbt.adapters.openmirroring.operations.history import history
from dbt.adapters.openmirroring.operations.project_tables import Outcome
from dbt.adapters.openmirroring.operations.report import report
from dbt.adapters.openmirroring.operations.report_page import Heading
from dbt.adapters.openmirroring.operations.status import status
from dbt.adapters.openmirroring.spark.embedded.process import process_spark
from dbt.adapters.openmirroring.spark.refusals import refuse_grants
from dbt.adapters.openmirroring.spark.relation import (
    OpenMirroringColumn,
    OpenMirroringRelation,
    quoted,
)
from dbt.adapters.openmirroring.spark.table import described_columns
from dbt.adapters.openmirroring.text.console import print_any_text


class OpenMirroringAdapter(SparkAdapter):
    """An adapter that extends dbt-spark's with publishing to the landing zone."""

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
        print_any_text()
        self.progress = Progress(terminal())
        self._destination = Destination(
            config.credentials.target,
            project=lambda: project_folder(config),
            warehouse=lambda: self.connections.embedded_warehouse,  # type: ignore[attr-defined]
            uploads=self.progress.uploads,
            kept=lambda: target_folder(config),
        )
        self._command = Command(self, self._destination)
        # by place: relations that `--empty` or `--sample` has made, which dbt's cache leaves out
        self.checked: dict[tuple[str, str], OpenMirroringRelation] = {}
        self.connections.start_early()  # type: ignore[attr-defined]

    @classmethod
    def quote(cls, identifier: str) -> str:
        # dbt's tests quote the database, which is None here
        return quoted(str(identifier))

    def parse_describe_extended(self, relation: Any, raw_rows: Any) -> list[SparkColumn]:
        """Read the columns and the size of a table from `describe extended`.

        dbt-spark mistakes a column whose name begins with # for a headline, and drops the columns
        after it.
        """
        return list(described_columns(relation, raw_rows))

    def parse_columns_from_information(self, relation: Any) -> list[SparkColumn]:
        """Read the columns for the catalog from `describe`.

        dbt-spark reads `show table extended`, which has no comments and truncates nested types.
        """
        try:
            columns: list[SparkColumn] = self.get_columns_in_relation(relation)
        except DbtRuntimeError as error:  # the catalog can do without these columns
            logger.debug(f"{relation}: {error}")
            return []
        return columns

    @available.parse(lambda *_args, **_named: [])
    def get_column_schema_from_query(self, sql: str) -> list[Any]:
        """Return the columns of a query.

        Other connections use `describe query`, because Thrift's cursors report a decimal without
        its precision and an array without its element type.
        """
        if Warehouse(self, {}).handle:
            columns: list[Any] = super().get_column_schema_from_query(sql)
            return columns
        _, described = self.execute(f"describe query {sql}", fetch=True)
        return [self.Column.create(row["col_name"], row["data_type"]) for row in described]

    def get_catalog_for_single_relation(self, relation: Any) -> CatalogTable | None:
        """Return the catalog entry of a relation, or None if it does not exist."""
        rows = list(self._get_columns_for_catalog(relation))
        return catalog.catalog_table(rows) if rows else None

    def list_relations_without_caching(self, schema_relation: Any) -> list[Any]:
        """Return the relations of a schema.

        Some catalogs do not list views as tables, so views are listed separately too.
        """
        # Spark returns the schema without its catalog
        path = {"schema": schema_relation.schema}
        try:
            listed = super().list_relations_without_caching(schema_relation)
        except DbtRuntimeError as error:
            if "Namespace does not exist" in error.msg:  # the message of Iceberg's catalogs
                return []
            raise
        relations: list[Any] = [relation.incorporate(path=path) for relation in listed]
        known = {str(relation.identifier).lower() for relation in relations}
        try:
            views: Any = self.execute_macro(
                "openmirroring__list_views", kwargs={"schema_relation": schema_relation}
            )
        except DbtRuntimeError as error:  # the schema is missing, or its catalog has no views
            logger.debug(f"{schema_relation}: {error}")
            return relations
        for _, name, is_temporary in (row.values()[:3] for row in views.rows):
            if not is_temporary and name.lower() not in known:
                view = self.Relation.create(
                    schema=schema_relation.schema, identifier=name, type=RelationType.View
                )
                relations.append(view)
        return self._without_checked(relations)

    def _without_checked(self, relations: list[Any]) -> list[Any]:
        """Leave out what `--empty` or `--sample` has made, for a command that builds nodes.

        Such a relation is there for the models downstream and for unit tests. For its own node it
        does not exist, because it was never published: is_incremental() is false.
        """
        if not is_building():
            return relations
        checked = [relation for relation in relations if relation.is_checked]
        self.checked.update({relation.place: relation for relation in checked})
        return [relation for relation in relations if not relation.is_checked]

    def drop_schema(self, relation: Any) -> None:
        """Drop a schema and its relations. Iceberg's catalogs drop only an empty schema."""
        for found in self.list_relations_without_caching(relation):
            self.drop_relation(found)
        super().drop_schema(relation)

    def _get_columns_for_catalog(self, relation: Any) -> Iterator[dict[str, Any]]:
        """Yield the columns of a relation, each with the statistics of its publication."""
        statistics: dict[str, Any] = {}
        if relation.is_table:
            storage = self._destination.storage()
            statistics = catalog.published_statistics(
                storage, str(relation.schema), str(relation.identifier)
            )
        for column in super()._get_columns_for_catalog(relation):
            yield {**column, **statistics}

    def debug_query(self) -> None:
        """Check Spark, then Fabric and the landing zone, for `dbt debug`.

        Java and Spark start with the first statement.
        """
        super().debug_query()
        process_spark.tell(self.config.credentials.prepared_start)
        self._destination.check()

    # Nodes

    def pre_model_hook(self, config: Mapping[str, Any]) -> None:
        """Check a node of any materialization before it runs."""
        refuse_grants(config)
        self._command.tell_not_mirrored(config)
        super().pre_model_hook(config)

    @available
    def materialize(self, context: Mapping[str, Any]) -> OpenMirroringRelation:
        """Build a table-like node, publish its changes, and persist its documentation.

        Args:
            context: the dbt context of the node's materialization

        Raises:
            DbtRuntimeError: if a step fails; the message says what was changed
        """
        self._command.check_project()
        node = self._command.node(context)
        with self._command.running(node):
            return materialize(node, self._destination)

    @available
    def refuse_clone(self, context: Mapping[str, Any]) -> None:
        """Check that a clone does not take the place of a mirrored table.

        Args:
            context: the dbt context of the clone

        Raises:
            CompilationError: if it does
        """
        self._command.refuse_clone(context)

    # Operations. Their macros pass the arguments as a mapping, `given`.

    @available
    @operation("mirror_status")
    def status(self, graph: Mapping[str, Any]) -> Outcome:
        """Report the state of each mirrored table, and of the mirrored database in Fabric."""
        return status(self._command.tables(graph), self._destination)

    @available
    @operation("mirror_report")
    def report(self, graph: Mapping[str, Any]) -> Outcome:
        """Write the state and the history of each mirrored table to a page."""
        config = self.config
        heading = Heading(config.project_name, config.target_name, self._destination.place)
        folder = Path(config.project_target_path)
        return report(self._command.tables(graph), self._destination, heading, folder)

    @available
    @operation("mirror_history")
    def history(
        self, graph: Mapping[str, Any], *, table: Name | None = None, limit: Limit = 10
    ) -> Outcome:
        """Report the last batches of each mirrored table.

        `operations.history` documents the arguments.
        """
        return history(self._command.tables(graph), table, limit)

    @available
    @operation("mirror_recover")
    def recover(self, graph: Mapping[str, Any]) -> Outcome:
        """Finish the batches that an earlier run of this dbt project committed."""
        return self._command.recovery.finish_all(self._command.tables(graph))

    @available
    @operation("mirror_rebuild")
    def rebuild(self, graph: Mapping[str, Any], *, table: Name) -> Outcome:
        """Publish the current state of a table in Spark as a rebuild.

        Args:
            graph: dbt's graph
            table: `schema.table`, the table alone, or the name or unique id of its node

        Raises:
            DbtRuntimeError: if there is no such table, or if a step fails
        """
        found = self._command.tables(graph).node(table)
        node = self._command.node_of(found)
        with self._command.running(node):
            response = rebuild(node, self._destination)
        return Outcome((f"{found.table}: {response}",))

    @available
    @operation("mirror_publish")
    def publish_held(self, graph: Mapping[str, Any], *, table: Name | None = None) -> Outcome:
        """Publish held tables, whether or not their tests have passed.

        Args:
            graph: dbt's graph
            table: as for `rebuild`; None for all
        """
        return self._command.publish_held(graph, table)

    @available
    @operation("mirror_publish_tested")
    def publish_tested(self, graph: Mapping[str, Any], *, results: Results) -> Outcome:
        """Publish the held tables whose tests have passed in a command.

        Args:
            graph: dbt's graph
            results: the results of the command
        """
        return self._command.publish_tested(graph, results)

    @available
    @operation("mirror_drop_orphans")
    def drop_orphans(
        self,
        graph: Mapping[str, Any],
        *,
        dry_run: Flag = True,
        schema: Name | None = None,
        table: Names | None = None,
    ) -> Outcome:
        """Drop the table folders that belong to no mirrored node any more, or only list them.

        `operations.orphans` documents the arguments.
        """
        if not dry_run:
            self._destination.require_run()
        self._destination.replicate_at_the_end(not dry_run)
        return self._command.drop_orphans(graph, dry_run, schema, table)

    @available
    def mirrored_database(self) -> DatabaseOperations:
        """Return the operations that create, change, start or stop the mirrored database."""
        self._destination.require_run()
        return DatabaseOperations(self._destination.database)

    @available
    @operation("mirror_replicate")
    def replicate(self) -> Outcome:
        """Apply the published files to the mirrored tables on this machine.

        Raises:
            DbtRuntimeError: if the replicator is not installed, or does not support the landing
                zone
        """
        self._destination.require_run()
        found = replica.replicate(self._destination.landing_zone)
        failed = f"Not replicated: {', '.join(found.failed)}"
        return Outcome(found.lines, (failed,) if found.failed else ())

    @available
    def mirror_difference(
        self, context: Mapping[str, Any], model: OpenMirroringRelation, seconds: float
    ) -> str:
        """Return a query of the rows whose counts differ between a model and its mirrored table.

        Args:
            context: a dbt context
            model: the relation of the model
            seconds: how long to wait until all published files are applied

        Raises:
            DbtRuntimeError: if they are not applied in time; the message says why
        """

        warehouse = Warehouse(self, context)
        rows = self._command.compared_rows(warehouse, model)
        if rows is None:
            return "select 1 where false"
        return difference(warehouse, model, rows, self._destination, float(seconds))

    # Begin and end of a command

    def set_relations_cache(
        self, relation_configs: Iterable[Any], *args: Any, **named: Any
    ) -> None:
        """Fill dbt's cache, then recover interrupted runs before dbt runs hooks and nodes."""
        nodes = list(relation_configs)
        super().set_relations_cache(nodes, *args, **named)
        self._command.begin(nodes)

    @contextmanager
    def connection_named(
        self, name: str, query_header_context: Any = None, *args: Any, **named: Any
    ) -> Iterator[None]:
        """Take a connection. dbt does so with each node before it compiles the node."""
        with super().connection_named(name, query_header_context, *args, **named):
            if query_header_context is not None:
                self._command.before_node(query_header_context)
            yield

    def cleanup_connections(self) -> None:
        """End the command. Apply the published files if the profile asks for it."""
        self._command.end()
        super().cleanup_connections()
        end_command(self._destination)
