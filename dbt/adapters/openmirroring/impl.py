"""The bridge between dbt's macros, Spark and the landing zone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from decimal import Decimal
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, Any, cast

from dbt.adapters.base.column import Column as BaseColumn
from dbt.adapters.base.impl import ConstraintSupport, FreshnessResponse
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation, InformationSchema
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterRequiredConfig, AdapterResponse
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt.adapters.contracts.relation import RelationConfig, RelationType
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.connections import OpenMirroringConnectionManager, logger
from dbt.adapters.openmirroring.dbt_core.flags import (
    is_building,
    project_folder,
    terminal,
)
from dbt.adapters.openmirroring.dbt_core.project import Context, Graph, Project
from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.node.config import OpenMirroringConfig
from dbt.adapters.openmirroring.node.history import compared_columns
from dbt.adapters.openmirroring.node.materialize import materialize
from dbt.adapters.openmirroring.node.mirrored_rows import difference
from dbt.adapters.openmirroring.node.options import given
from dbt.adapters.openmirroring.node.progress import Progress
from dbt.adapters.openmirroring.node.user_code import UserCode
from dbt.adapters.openmirroring.operations import catalog
from dbt.adapters.openmirroring.operations.command import Command
from dbt.adapters.openmirroring.operations.run_operations import RunOperations
from dbt.adapters.openmirroring.spark.embedded.start import process_spark
from dbt.adapters.openmirroring.spark.refusals import refuse_grants
from dbt.adapters.openmirroring.spark.relation import (
    OpenMirroringColumn,
    OpenMirroringRelation,
    StandIns,
)
from dbt.adapters.openmirroring.spark.table import TableDescription
from dbt.adapters.openmirroring.text.codes import with_code
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.text.table import print_any_text
from dbt.adapters.openmirroring.types.crossing import offsets

if TYPE_CHECKING:
    import agate

    from dbt.adapters.openmirroring.dbt_core.project import ManifestNode


class UsersMacros(list[Any]):
    """The macros through which an error has come, without those of this package.

    dbt lists them under the message, as if the error were theirs.
    """

    def append(self, macro: Any) -> None:
        if getattr(macro, "package_name", "") != "dbt_openmirroring":
            super().append(macro)


class OpenMirroringAdapter(SparkAdapter):
    """An adapter that extends dbt-spark's with publishing to the landing zone."""

    Relation: type[OpenMirroringRelation] = OpenMirroringRelation
    Column: type[OpenMirroringColumn] = OpenMirroringColumn
    ConnectionManager = OpenMirroringConnectionManager
    AdapterSpecificConfigs = OpenMirroringConfig
    _capabilities = CapabilityDict(
        dict.fromkeys(
            (
                Capability.SchemaMetadataByRelations,
                Capability.TableLastModifiedMetadata,
            ),
            CapabilitySupport(support=Support.Full),
        )
    )

    CONSTRAINT_SUPPORT = {  # noqa: RUF012 - as dbt declares it
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.ENFORCED,
        ConstraintType.primary_key: ConstraintSupport.ENFORCED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }

    connections: OpenMirroringConnectionManager

    def __init__(self, config: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        print_any_text()
        self.progress = Progress(terminal())
        self._destination = Destination(
            self.connections.credentials,
            project=lambda: project_folder(config),
            warehouse=lambda: self.connections.embedded_warehouse,
            uploads=self.progress.uploads,
            downloads=self.progress.downloads,
            own_session=self.connections.own_session,
        )
        self._project = Project(self)
        self._command = Command(self, self._project, self._destination)
        self.stand_ins = StandIns()
        if self._destination.dry_run:
            self.Relation = self.stand_ins.relation_class()
        # relations that `--empty` or `--sample` has made, which dbt's cache leaves out
        self.checked: dict[tuple[str, str], OpenMirroringRelation] = {}
        self.user_code = UserCode()
        self.is_embedded = self.connections.will_embed
        self.runs_python = self.connections.credentials.method in ("session", "connect", "livy")
        self.connections.start_early()

    def relation_of(self, node: ManifestNode) -> OpenMirroringRelation:
        """Return the relation of a node; in a dry run, the one that was built in its place."""
        return self.Relation.create_from(self.config, cast(RelationConfig, node))

    @classmethod
    def quote(cls, identifier: str) -> str:
        # dbt's tests quote the database, which is None here
        return quoted(str(identifier))

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        """Return the type of a column of a seed, whose numbers may have an exponent.

        dbt-spark takes 1e5, 1.0, nan and inf for whole numbers, which Spark cannot read as such.
        """
        values = agate_table.columns[col_idx].values()
        if any(value is not None and not _is_whole(value) for value in values):
            return "double"
        return "bigint"

    def parse_describe_extended(
        self, relation: BaseRelation, raw_rows: agate.Table
    ) -> list[SparkColumn]:
        """Read the columns and the size of a table from `describe extended`.

        dbt-spark takes a column whose name begins with # for a headline, and drops the rest.
        """
        return list(TableDescription.parse(relation, raw_rows).columns)

    def parse_columns_from_information(self, relation: BaseRelation) -> list[SparkColumn]:
        """Read the columns for the catalog from `describe`.

        dbt-spark reads `show table extended`, which has no comments and truncates nested types.
        """
        try:
            return self.get_columns_in_relation(relation)
        except DbtRuntimeError as error:  # the catalog can do without these columns
            logger.debug(f"{relation}: {error}")
            return []

    @available.parse(lambda *_args, **_named: _nothing())
    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, agate.Table]:
        """Execute a statement, unless code of the user sends it that is to be left out."""
        if not self.user_code.allows(sql):
            return _nothing()
        result: tuple[AdapterResponse, agate.Table] = super().execute(
            sql, auto_begin, fetch, limit
        )
        return result

    @available.parse(lambda *_args, **_named: [])
    def get_column_schema_from_query(self, sql: str) -> list[BaseColumn]:
        """Return the columns of a query.

        Other connections use `describe query`, because Thrift's cursors report a decimal without
        its precision and an array without its element type.
        """
        if self._command.warehouse({}).handle:
            return list(super().get_column_schema_from_query(sql))
        _, described = self.execute(f"describe query {sql}", fetch=True)
        return [self.Column.create(row["col_name"], row["data_type"]) for row in described]

    def _get_one_catalog_by_relations(
        self, _schema: InformationSchema, relations: list[BaseRelation], *_: object
    ) -> agate.Table:
        """Return the catalog of some relations. dbt-spark reads all of their schemas."""
        warehouse = self._command.warehouse({})
        # with their types, which dbt does not know here
        typed = [warehouse.found(cast(OpenMirroringRelation, each)) for each in relations]
        return catalog.table_of(
            row for each in typed if each for row in self._get_columns_for_catalog(each)
        )

    def _process_freshness_execution(self, *args: Any, **named: Any) -> Any:
        """Return how fresh a source is. dbt takes a time without an offset for one in UTC."""
        with offsets():
            return super()._process_freshness_execution(*args, **named)

    def calculate_freshness_from_metadata_batch(
        self, sources: list[BaseRelation], *_args: Any, **_named: Any
    ) -> tuple[list[AdapterResponse | None], dict[BaseRelation, FreshnessResponse]]:
        """Return how fresh sources are by the time when their rows were last written."""
        warehouse = self._command.warehouse(self._project.context)
        times = {
            each: catalog.last_written(warehouse, cast(OpenMirroringRelation, each))
            for each in sources
        }
        now = datetime.now(timezone.utc)
        return [], {
            each: self._create_freshness_response(time, now) for each, time in times.items()
        }

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        """List views separately too, because some catalogs do not list them as tables."""
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
            views: agate.Table = self.execute_macro(
                "openmirroring__list_views", kwargs={"schema_relation": schema_relation}
            )
        except DbtRuntimeError as error:  # the schema is missing, or its catalog has no views
            logger.debug(f"{schema_relation}: {error}")
            return relations
        for _, name, is_temporary in (row.values()[:3] for row in views.rows):
            if not is_temporary and name.lower() not in known:
                relations.append(
                    self.Relation.create(**path, identifier=name, type=RelationType.View)
                )
        if not is_building():
            return relations
        # What `--empty` or `--sample` has made is there for the models downstream and for unit
        # tests. For its own node it does not exist, because it was never published:
        # is_incremental() is false.
        self.checked.update({each.place: each for each in relations if each.is_checked})
        return [each for each in relations if not each.is_checked]

    def drop_schema(self, relation: BaseRelation) -> None:
        """Drop a schema and its relations. Iceberg's catalogs drop only an empty schema."""
        for found in self.list_relations_without_caching(relation):
            self.drop_relation(found)
        super().drop_schema(relation)

    def _get_columns_for_catalog(self, relation: BaseRelation) -> Iterator[dict[str, Any]]:
        statistics: dict[str, Any] = {}  # of the last publication
        if relation.is_table:
            storage = self._destination.storage()
            statistics = catalog.published_statistics(
                storage, str(relation.schema), str(relation.identifier)
            )
        for column in super()._get_columns_for_catalog(relation):
            yield {**column, **statistics}

    def debug_query(self) -> None:
        """Check Fabric and the landing zone, then Spark, for `dbt debug`.

        Spark comes last, because it starts with the first statement, which takes long.
        """
        self._destination.check()
        super().debug_query()
        process_spark.print_state()

    @available
    def with_code(self, text: str, code: str) -> str:
        """Return a message that Spark is to raise, with its code."""
        return with_code(text, code)

    # Nodes

    def pre_model_hook(self, config: Mapping[str, Any]) -> None:
        """Check a node of any materialization before it runs."""
        self.user_code.ends()  # the node is compiled
        refuse_grants(config)
        self._command.tell_not_mirrored(config)
        super().pre_model_hook(config)

    @available
    def materialize(self, context: Context, is_view: bool = False) -> OpenMirroringRelation:
        """Build a table-like node, publish its changes, and persist its documentation.

        Args:
            is_view: whether it is a view, of which a dry run makes another one beside it
        """
        node = self._command.node(context, is_view)
        with self._command.running(node):
            try:
                return materialize(node, self._destination)
            except CompilationError as error:
                error.stack = UsersMacros(error.stack)
                raise

    @available
    def compared_columns(self, query: str, check_cols: Any) -> list[str]:
        """Return the columns that the check strategy of a dbt snapshot compares, each once.

        Args:
            query: SQL of its source
        """
        return compared_columns(check_cols, self._command.warehouse({}).columns_of(query))

    @available.parse_none
    @classmethod
    def get_hard_deletes_behavior(cls, config: Any) -> str:
        """Return what happens to deleted rows. An empty option is none, as everywhere else."""
        names = ("hard_deletes", "invalidate_hard_deletes")
        return str(super().get_hard_deletes_behavior(given({n: config.get(n) for n in names})))

    @available
    def refuse_clone(self, context: Context) -> None:
        """Check that a clone does not take the place of a mirrored table."""
        self._command.refuse_clone(context)

    @available
    def run_operations(self, graph: Graph) -> RunOperations:
        """Return the operations that `dbt run-operation` can run."""
        own_spark = self.connections.own_spark
        return RunOperations(self._command, self._project, self._destination, graph, own_spark)

    @available
    def mirror_difference(
        self, context: Context, model: OpenMirroringRelation, seconds: float
    ) -> str:
        """Return a query of the rows whose counts differ between a model and its mirrored table.

        Args:
            seconds: how long to wait until all published files are applied
        """
        self.connections.begin_anew()  # a macro may have changed settings; dbt runs the query
        warehouse = self._command.warehouse(context)
        rows = self._command.compared_rows(warehouse, model)
        if rows is None:
            return "select 1 where false"
        return difference(warehouse, model, rows, self._destination, float(seconds))

    # Begin and end of a command

    def set_macro_resolver(self, macro_resolver: MacroResolverProtocol) -> None:
        super().set_macro_resolver(macro_resolver)
        self._command.after_parsing()

    def set_relations_cache(
        self, relation_configs: Iterable[RelationConfig], *args: Any, **named: Any
    ) -> None:
        """Fill dbt's cache, then recover interrupted runs before dbt runs hooks and nodes."""
        nodes = list(relation_configs)
        super().set_relations_cache(nodes, *args, **named)
        self._command.before_first_node(cast("list[ManifestNode]", nodes))

    @contextmanager
    def connection_named(
        self, name: str, query_header_context: ManifestNode | None = None, *args: Any, **named: Any
    ) -> Iterator[None]:
        """Check a node before it is compiled, for which dbt takes a connection.

        With the first one of a command, the nodes are selected, and Spark has no statement yet.
        """
        self._command.check_selected()
        if query_header_context is None:
            process_spark.wait_for_start(self.connections)
        with super().connection_named(name, query_header_context, *args, **named):
            if query_header_context is None:
                yield
                return
            self._command.before_node(query_header_context)
            with self.user_code.asks(self._command.while_compiling(query_header_context)):
                yield

    def cleanup_connections(self) -> None:
        """End the command. Apply the published files if the profile asks for it."""
        self._command.after_last_node()
        super().cleanup_connections()
        self._destination.end_command()


def _nothing() -> tuple[AdapterResponse, agate.Table]:
    """Return the result of a statement that was left out."""
    import agate  # slow to import

    return AdapterResponse("left out"), agate.Table([])


def _is_whole(number: Decimal) -> bool:
    """Check whether a number of a seed is written without a point and an exponent."""
    return number.is_finite() and number.as_tuple().exponent == 0
