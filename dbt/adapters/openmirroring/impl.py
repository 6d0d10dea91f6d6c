"""The bridge between dbt's macros, Spark and the landing zone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import sqlparse
from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.base.meta import available
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.types import (
    CodeExecution,
    CodeExecutionStatus,
    ConstraintNotSupported,
)
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.contracts.metadata import CatalogTable
from dbt_common.events.functions import fire_event, warn_or_error
from dbt_common.events.types import Note
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.connections import (
    OpenMirroringConnectionManager,
    logger,
    project_folder,
)
from dbt.adapters.openmirroring.landing_zone.batch import (
    LAST_UPDATE_TIME,
    Journal,
    Manifest,
    Owner,
    RowCounts,
    StagedFile,
    TableDefinition,
    new_batch_id,
)
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError, SnapshotMismatchError
from dbt.adapters.openmirroring.landing_zone.inventory import last_published
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.plan import (
    Change,
    FileRows,
    Plan,
    changes_between,
)
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.staged_files import ROWS
from dbt.adapters.openmirroring.node import footers, refusals
from dbt.adapters.openmirroring.node.config import NodeConfig, OpenMirroringConfig
from dbt.adapters.openmirroring.node.constraints import (
    BrokenConstraint,
    Constraint,
    broken_constraints,
    constraints_of,
    declared_constraints,
)
from dbt.adapters.openmirroring.node.definition import table_definition
from dbt.adapters.openmirroring.node.incremental import IncrementalColumn, incremental_columns
from dbt.adapters.openmirroring.node.kept_files import (
    NextRows,
    Part,
    Rewrite,
    can_merge,
    has_partitions_in_catalog,
    has_stored_rows,
    plan_rewrite,
    rewritable_folder,
)
from dbt.adapters.openmirroring.node.ready_files import ready_files
from dbt.adapters.openmirroring.node.response import MirrorResponse, message
from dbt.adapters.openmirroring.node.same_files import SameFiles, same_files
from dbt.adapters.openmirroring.node.scratch_tables import (
    AFTER,
    BEFORE,
    KEPT_ROWS,
    NEXT,
    is_made_for,
    is_plain,
    name_beside,
    tidy,
)
from dbt.adapters.openmirroring.operations import catalog, replica
from dbt.adapters.openmirroring.operations.database import DatabaseOperations
from dbt.adapters.openmirroring.operations.mirror import Mirror
from dbt.adapters.openmirroring.operations.project_tables import (
    MIRRORED_KINDS,
    Outcome,
    ProjectTables,
)
from dbt.adapters.openmirroring.spark import python_models
from dbt.adapters.openmirroring.spark.json_text import json_text
from dbt.adapters.openmirroring.spark.relation import (
    BATCH_ID_PROPERTY,
    OpenMirroringColumn,
    OpenMirroringRelation,
    quoted,
)
from dbt.adapters.openmirroring.spark.seed import seed_view
from dbt.adapters.openmirroring.spark.session import SessionHandle
from dbt.adapters.openmirroring.spark.table import (
    data_files,
    is_iceberg,
    layout_of,
    local_folder,
    local_path,
)

if TYPE_CHECKING:
    import agate


# dbt's commands that build nodes
_BUILDING = ("run", "build", "seed", "snapshot", "retry")


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
        self._node = threading.local()
        self._mirror = Mirror(
            config.credentials,
            project=lambda: project_folder(config),
            warehouse=lambda: self.connections.embedded_warehouse,  # type: ignore[attr-defined]
        )

    @classmethod
    def quote(cls, identifier: str) -> str:
        # dbt's tests quote the database, and there is none
        return quoted(str(identifier))

    def parse_describe_extended(self, relation: Any, raw_rows: Any) -> list[SparkColumn]:
        """Read the columns, and the size of the table, from `describe extended`.

        dbt-spark takes a column whose name begins with # for a headline, and drops what follows.
        """
        return catalog.described_columns(relation, raw_rows)

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
        if self._handle():
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
            statistics = self._published_statistics(relation)
        for column in super()._get_columns_for_catalog(relation):
            yield {**column, **statistics}

    def _published_statistics(self, relation: OpenMirroringRelation) -> dict[str, Any]:
        try:
            table, journal = last_published(
                self._mirror.storage(), str(relation.schema), str(relation.identifier)
            )
            return catalog.statistics(table, journal) if journal else {}
        except MirrorError as error:  # the documentation can do without
            logger.debug(f"{relation}: {error}")
            return {}

    # Configuration and storage

    @available
    def node_config(self, config: Mapping[str, Any], unique_key: str | None = None) -> NodeConfig:
        """The mirroring options of a node, checked.

        Args:
            unique_key: in place of the configured one, which in a dbt snapshot is not unique
        """
        values = dict(config)
        if unique_key:
            values["unique_key"] = unique_key
        options = NodeConfig.parse(values)
        if options.file_detection == LAST_UPDATE_TIME and self.config.credentials.onelake:
            raise CompilationError(
                "`file_detection: last_update_time` is for local landing zones: OneLake has no "
                "request that gives a file its time. Set `file_detection: sequential`."
            )
        return options

    @available
    def statements(self, sql: str | None) -> list[str]:
        """The statements of a `sql_header`."""
        return [text.rstrip(";") for text in sqlparse.split(sql or "")]

    def debug_query(self) -> None:
        """`dbt debug`: Java and Spark start with the first statement, then Fabric is asked, and
        the landing zone tried.
        """
        super().debug_query()
        self._mirror.check()

    # A publication

    @available
    def open_publication(
        self, relation: OpenMirroringRelation, node: Mapping[str, Any]
    ) -> Publication:
        """Begin the publication of a node. It is closed when the node ends, however it ends.

        Args:
            node: as in the graph
        """
        schema, identifier = str(relation.schema), str(relation.identifier)
        at_root = node["config"].get("schema_folder") is False
        owner = Owner(project=self.config.project_name, node=node["unique_id"], schema=schema)
        return self._open_publication(TableFolder("" if at_root else schema, identifier), owner)

    def _open_publication(self, table: TableFolder, owner: Owner) -> Publication:
        publication = self._mirror.open(table, owner)
        self._node.publication = publication
        return publication

    @available
    def add_table(self, publication: Publication, definition: TableDefinition) -> list[str]:
        """Count a table that is published for the first time; returns warnings for the user.

        Raises:
            MirrorError: it would be one too many
        """
        return self._mirror.add_table(publication.table, definition)

    @available
    def check_table(self, publication: Publication, rebuilds: bool) -> None:
        """Make sure that Fabric will apply what is published to a table.

        Args:
            rebuilds: the table is to be rebuilt

        Raises:
            ServiceError: it will not
        """
        self._mirror.check_table(publication.table, rebuilds)

    @available
    def next_snapshot(
        self, relation: OpenMirroringRelation, batch_id: str | None
    ) -> OpenMirroringRelation:
        """Where the next snapshot of a relation is built; each at a place of its own."""
        following: OpenMirroringRelation = self.rows_beside(relation, NEXT, batch_id)
        return following.carrying(batch_id) if batch_id else following

    @available
    def rows_beside(
        self, relation: OpenMirroringRelation, kind: str, batch_id: str | None
    ) -> OpenMirroringRelation:
        """Where rows are kept until the node ends.

        Args:
            kind: what they are to the relation (`warehouse`)
        """
        identifier = name_beside(str(relation.identifier), kind, batch_id or new_batch_id())
        rows: OpenMirroringRelation = relation.incorporate(path={"identifier": identifier})
        self._node.__dict__.setdefault("unfinished", {})[kind] = rows
        return rows

    @available.parse_list
    def leftover_snapshots(self, relation: OpenMirroringRelation) -> list[OpenMirroringRelation]:
        """The next snapshots that earlier runs were building when they ended."""
        return self._leftovers(relation, NEXT)

    @available.parse_list
    def leftover_rows(self, relation: OpenMirroringRelation) -> list[OpenMirroringRelation]:
        """What else earlier runs have left."""
        return self._leftovers(relation, *KEPT_ROWS)

    def _leftovers(
        self, relation: OpenMirroringRelation, *kinds: str
    ) -> list[OpenMirroringRelation]:
        return [
            found
            for found in self._relations_beside(relation)
            for kind in kinds
            if is_made_for(str(found.identifier), str(relation.identifier), kind)
        ]

    def _relations_beside(self, relation: OpenMirroringRelation) -> list[Any]:
        return list(self.list_relations(relation.database, str(relation.schema)))

    @available
    def store_part(
        self,
        publication: Publication,
        manifest: Manifest,
        target: OpenMirroringRelation,
        part: OpenMirroringRelation,
        new_rows: OpenMirroringRelation,
    ) -> None:
        """Let a snapshot take the rows of a batch, or withdraw the batch if it refuses them.

        Args:
            part: a table of the rows in the place of others
            new_rows: a table

        Raises:
            DbtRuntimeError: as Spark says it
        """
        is_repeated = publication.batch_id != manifest.batch.id
        arguments = {
            "target": target,
            "part": part,
            "new_rows": new_rows,
            "keys": list(manifest.batch.definition.key_columns),
            "batch": manifest.batch,
            "fence": publication.batch_id if is_repeated else None,
        }
        # the fence changes the version too
        was_stored = is_repeated and not self._is_as_planned(manifest, target)
        try:
            self.execute_macro("mirror_take_part", kwargs=arguments)
        except DbtRuntimeError:
            if not was_stored and (is_repeated or self._is_as_planned(manifest, target)):
                publication.withdraw(manifest)
            raise

    def _is_as_planned(self, manifest: Manifest, target: OpenMirroringRelation) -> bool:
        """A snapshot that is to be changed in place has not been; False if nobody knows."""
        try:
            version: Any = self.execute_macro("mirror_snapshot_version", kwargs={"target": target})
        except DbtRuntimeError as error:
            logger.debug(f"{target}: {error}")
            return False
        return manifest.snapshot_version is not None and version == manifest.snapshot_version

    @available
    def refuse_batch(self, manifest: Manifest, target: OpenMirroringRelation) -> None:
        """Raise that Spark does not have the rows of a batch that an earlier run has committed."""
        raise SnapshotMismatchError(
            f"An earlier run has committed batch {manifest.batch.id} of {manifest.table}, but "
            f"this Spark has neither a next snapshot of {target} nor a snapshot with that batch. "
            "It was another Spark, or its warehouse was lost. Nothing was changed. Run the node "
            "there to complete the batch. If that warehouse is lost, delete "
            f"{manifest.table.manifest} and run with --full-refresh."
        )

    @available
    def check_name(self, relation: OpenMirroringRelation) -> None:
        """Make sure that a relation's name is not a path.

        Raises:
            CompilationError: it is
        """
        for name in (str(relation.schema), str(relation.identifier)):
            if not is_plain(name):
                raise CompilationError(
                    f"{name!r} cannot be the name of a table or its schema: Spark makes a folder "
                    "of it. Nothing was changed. Set another `alias` or `schema`."
                )

    @available
    def cache_batch(self, relation: OpenMirroringRelation, batch_id: str) -> None:
        """Remember what a relation carries that has taken the rows of a batch."""
        self.cache_dropped(relation)
        self.cache_added(relation.carrying(batch_id))

    @available
    def refresh_relation(self, relation: OpenMirroringRelation) -> None:
        """Let everybody see a relation that was replaced."""
        self.connections.refresh(relation.render())  # type: ignore[attr-defined]

    @available
    def tidy_warehouse(self, relation: OpenMirroringRelation) -> None:
        """Let nothing that a killed process has left be in the way of a relation.

        Only where nobody else can be writing: in the embedded Spark, which one process uses.
        """
        warehouse = self.connections.embedded_warehouse  # type: ignore[attr-defined]
        if warehouse:
            found = self._relations_beside(relation)
            tables = [str(table.identifier) for table in found if table.is_table]
            tidy(warehouse, str(relation.schema), str(relation.identifier), tables)

    @available
    def batch_id_property(self) -> str:
        return BATCH_ID_PROPERTY

    @available
    def table_definition(
        self, columns: list[OpenMirroringColumn], landed_types: list[str], options: NodeConfig
    ) -> TableDefinition:
        return table_definition(columns, landed_types, options)

    @available
    def json_text(self, column: OpenMirroringColumn, source: str) -> str:
        """The SQL of a complex column's JSON.

        Args:
            source: the SQL of the column
        """
        try:
            return json_text(column.dtype, source)
        except ValueError as error:
            raise CompilationError(
                f"The keys of the maps in the column {column.quoted} cannot be written as JSON: "
                f"{error}. Cast it in the model, e.g. to_json({column.quoted})."
            ) from error

    @available
    def published_columns(self, journal: Journal) -> list[OpenMirroringColumn]:
        """The columns of the snapshot, as they were when it was published."""
        columns = journal.batch.definition.columns
        return [OpenMirroringColumn(column.name, column.type) for column in columns]

    @available
    def columns_by_name(
        self, columns: list[OpenMirroringColumn]
    ) -> dict[str, OpenMirroringColumn]:
        return {column.name: column for column in columns}

    @available
    def definition_changes(self, journal: Journal, definition: TableDefinition) -> list[Change]:
        """How the table differs from what was published."""
        return changes_between(journal.batch.definition, definition)

    @available
    def row_counts(self, **counts: int) -> RowCounts:
        return RowCounts(**{name: int(count) for name, count in counts.items()})

    @available
    def plan(
        self,
        publication: str,
        reason: str,
        definition: TableDefinition,
        rows: RowCounts,
        changed: str | None = None,
        in_full: bool = False,
        journal: Journal | None = None,
    ) -> Plan:
        return Plan(publication, reason, definition, rows, changed, in_full, journal)

    @available
    def refuse_keys(self, definition: TableDefinition, examples: agate.Table) -> None:
        """Raise that keys are NULL or not unique."""
        raise refusals.bad_keys(definition.key_columns, examples)

    @available
    def constraints(self, node: Mapping[str, Any]) -> list[Constraint]:
        """What the contract of a node promises and Spark can verify; warns about all else.

        Args:
            node: as in the graph

        Raises:
            CompilationError: a constraint without what it is about
        """
        declared = []
        for raw in declared_constraints(node):
            constraint = self._parse_model_constraint(raw)
            if constraint.type == ConstraintType.custom:
                warn_or_error(ConstraintNotSupported(constraint="custom", adapter=self.type()))
            elif self.process_parsed_constraint(constraint, lambda _: "supported"):
                declared.append(constraint)
        return constraints_of(declared)

    @available
    def broken_constraint(
        self, constraint: Constraint, count: int, columns: list[str], examples: agate.Table
    ) -> BrokenConstraint:
        return BrokenConstraint(constraint, int(count), tuple(columns), examples)

    @available
    def refuse_broken(self, broken: list[BrokenConstraint]) -> None:
        """Raise that the contract does not hold."""
        raise broken_constraints(broken)

    @available
    def refuse_new_rows(self, options: NodeConfig, examples: agate.Table) -> None:
        """Raise that several new rows of an incremental model have the same key."""
        raise refusals.ambiguous_new_rows(options.unique_key, examples)

    @available
    def incremental_columns(
        self,
        snapshot: list[OpenMirroringColumn],
        new_rows: list[OpenMirroringColumn],
        on_schema_change: str,
        config: Mapping[str, Any],
    ) -> list[IncrementalColumn]:
        """The columns of an incremental model's next snapshot."""
        return incremental_columns(snapshot, new_rows, on_schema_change, config)

    @available
    def same_files(
        self, snapshot: OpenMirroringRelation | None, description: agate.Table
    ) -> SameFiles | None:
        """The files that are the same in a snapshot and the next one; None if there are none.

        Only where Spark is on this machine too: they are read here.

        Args:
            description: of the next snapshot, from `describe table extended`
        """
        if not snapshot or not snapshot.information or not self._is_local():
            return None
        return same_files(snapshot.information, description)

    @available
    def next_rows(self, query: str, rewrite: Rewrite | None = None) -> NextRows:
        return NextRows(query, rewrite)

    @available
    def rewritable_folder(
        self, description: agate.Table, file_format: str, options: NodeConfig
    ) -> Path | None:
        """The folder of a snapshot whose files the next one can have; None if it cannot.

        Args:
            description: of the snapshot, from `describe table extended`
            file_format: of the next snapshot
        """
        if not self._is_driven_here():
            return None
        return rewritable_folder(description, file_format, options)

    @available
    def plan_part(
        self,
        relation: OpenMirroringRelation,
        description: agate.Table,
        file_format: str,
        options: NodeConfig,
        new_rows: OpenMirroringRelation,
        touched_by: list[list[str]],
    ) -> Part | None:
        """The rows of a snapshot that an incremental run replaces; None if all are looked at.

        Args:
            description: of the relation, from `describe table extended`
            file_format: of the next snapshot
            touched_by: as `mirror_rewrite` has it
        """
        keys = [tuple(columns) for columns in touched_by]
        if keys != [options.unique_key] * len(keys):
            return None
        # only what is to be published is known to have each key once
        if keys and not options.mirror:
            return None
        if not has_stored_rows(description, file_format, options):
            return None
        is_merged = can_merge(description, file_format, options)
        if not is_merged and not keys:
            return None
        # a server may still be at an INSERT whose client has died, and only Delta can fence it off
        if not keys and is_iceberg(description) and not self._is_driven_here():
            return None
        before = self.rows_beside(relation, BEFORE, None) if keys else None
        after = None if is_merged else self.rows_beside(relation, AFTER, None)
        return Part(new_rows, options.unique_key, before, after)

    @available
    def plan_rewrite(
        self, folder: Path, description: agate.Table, touched: agate.Table | None
    ) -> Rewrite | None:
        """What an incremental run keeps of the snapshot's files; None if it writes all again.

        Args:
            folder: of the snapshot
            description: of the snapshot, from `describe table extended`
            touched: its files with rows that may change; None if there are none
        """
        files = [str(row[0]) for row in touched.rows] if touched else []
        return plan_rewrite(folder, layout_of(description), files)

    @available
    def layout_change(
        self, snapshot: agate.Table | None, next_snapshot: agate.Table
    ) -> str | None:
        """How the next snapshot is stored in another way than the snapshot; None if it is not.

        Args:
            snapshot, next_snapshot: from `describe table extended`
        """
        before, after = (layout_of(each) if each else None for each in (snapshot, next_snapshot))
        if before is None or before == after:
            return None
        return f"stored as {after} in Spark, before as {before}"

    @available
    def has_partitions_in_catalog(self, description: agate.Table) -> bool:
        """Whether the catalog has to know of each partition of a table.

        Args:
            description: from `describe table extended`
        """
        return has_partitions_in_catalog(description)

    @available
    def keep_files(self, rewrite: Rewrite, description: agate.Table) -> None:
        """Let the next snapshot have the files that were not written again.

        Args:
            description: of the next snapshot, from `describe table extended`

        Raises:
            DbtRuntimeError: they are no files of this table
        """
        found = layout_of(description)
        if found != rewrite.layout:
            raise DbtRuntimeError(
                f"Spark made the next snapshot as {found}, but files of the snapshot are to be "
                f"linked into it, which is {rewrite.layout}. Nothing was changed. Set "
                "`file_format` and `partition_by` in the node's config, or run with "
                "--full-refresh."
            )
        folder = local_folder(description)
        assert folder, "a table is where the one before it was"
        rewrite.keep(folder)

    @available
    def history_columns(
        self,
        snapshot: list[OpenMirroringColumn],
        changes: list[OpenMirroringColumn],
        valid_to: str,
    ) -> list[IncrementalColumn]:
        """The columns of a dbt snapshot's next version, without those of dbt's comparison.

        Args:
            valid_to: the only column that changes in rows that are there
        """
        own = [
            column
            for column in changes
            if column.name.lower() != "dbt_change_type"
            and not column.name.lower().startswith("dbt_unique_key")
        ]
        updated = {"merge_update_columns": [valid_to]}
        return incremental_columns(snapshot, own, "append_new_columns", updated)

    @available
    def described_columns(
        self, relation: OpenMirroringRelation, description: agate.Table
    ) -> list[SparkColumn]:
        """The columns of a relation; the first has the size of the table, if that can be known.

        Args:
            description: from `describe table extended`
        """
        columns = catalog.described_columns(relation, description.rows)
        folder = local_folder(description)
        size: Any = None
        if is_iceberg(description):  # whose statistics are rows by their types' usual widths
            size = self.execute_macro("openmirroring__iceberg_size", kwargs={"relation": relation})
        elif folder and not columns[0].table_stats:
            size = sum(path.stat().st_size for path in data_files(folder))
        if size is not None:
            columns[0].table_stats = SparkColumn.convert_table_stats(f"{size} bytes")
        return columns

    @available
    def link_ready_files(
        self, publication: Publication, description: agate.Table, plan: Plan, options: NodeConfig
    ) -> list[StagedFile]:
        """Stage a load by links to the files of the next snapshot; nothing where that cannot be.

        Args:
            description: of the next snapshot, from `describe table extended`
        """
        staging = local_path(publication.staging_url(ROWS))
        folder = local_folder(description)
        if not (plan.starts_folder and staging and folder and self._is_driven_here()):
            return []
        if layout_of(description).format != "parquet":
            return []
        ready = ready_files(folder, plan.definition, options.compression, options.target_file_size)
        return publication.staged(plan) if ready and ready.link(staging) else []

    @available
    def staged_rows(
        self, publication: Publication, files: list[StagedFile]
    ) -> list[FileRows] | None:
        """What the footers of staged files tell of their rows; None if Spark has to be asked."""
        folder = local_path(publication.staging_url(ROWS))
        return footers.rows_in(folder, files) if folder and folder.is_dir() else None

    @available
    def counted_rows(self, counts: agate.Table) -> list[FileRows]:
        """The rows of files, as a query has counted them by file and row marker."""
        return [
            FileRows(str(name), None if marker is None else int(marker), int(rows))
            for name, marker, rows in counts.rows
        ]

    @available
    def published(self, manifest: Manifest) -> MirrorResponse:
        """What to tell about a batch."""
        return MirrorResponse.of(manifest.batch)

    @available
    def unchanged(self, publication: Publication) -> MirrorResponse:
        """What to tell when there was nothing to publish."""
        journal = publication.journal()
        assert journal, "a table is unchanged only since it was published"
        return MirrorResponse.of(
            replace(
                journal.batch,
                publication="unchanged",
                reason="",
                rows=RowCounts(),
                first_file=None,
                files_written=0,
                bytes_written=0,
            )
        )

    @available
    def checked_only(self) -> AdapterResponse:
        """What to tell after `--empty` and `--sample`."""
        return AdapterResponse(_message="SQL checked, nothing published")

    def post_model_hook(self, config: Mapping[str, Any], context: Any) -> None:
        super().post_model_hook(config, context)
        self._end_node()

    def _end_node(self) -> None:
        """Leave nothing half done, whatever ended the node."""
        publication = getattr(self._node, "publication", None)
        unfinished = getattr(self._node, "unfinished", {})
        self._node.__dict__.clear()
        if publication:
            if publication.committed:
                unfinished = {}
            self._mirror.close(publication)
        for relation in unfinished.values():
            if self.get_relation("", relation.schema, relation.identifier):
                try:
                    self.drop_relation(relation)
                except DbtRuntimeError as error:
                    # the next run drops it, and the node's own error matters more
                    logger.debug(f"{relation} could not be dropped: {error}")

    # Operations

    @available
    def project_tables(self, nodes: Iterable[Mapping[str, Any]]) -> ProjectTables:
        """The mirrored tables of this dbt project.

        Args:
            nodes: all of the graph
        """
        schema = self.config.credentials.schema
        return ProjectTables(self._mirror.storage(), self.config.project_name, schema, nodes)

    @available
    def drop_orphans(
        self, nodes: Iterable[Mapping[str, Any]], dry_run: bool, schema: str | None
    ) -> Outcome:
        """Drop the table folders of this dbt project that no mirrored node has any more.

        Args:
            nodes: all of the graph
            dry_run: only list them
            schema: of those to drop; None for all schemas of this target
        """
        self._mirror.replicate_at_the_end(not dry_run)
        tables: ProjectTables = self.project_tables(nodes)
        return tables.drop_orphans(dry_run, schema)

    @available
    def recover(self, nodes: Iterable[Mapping[str, Any]]) -> Outcome:
        """Bring to its end whatever an earlier run of this dbt project has committed.

        Args:
            nodes: all of the graph
        """
        tables: ProjectTables = self.project_tables(nodes)
        lines, failed = [], []
        for unfinished in tables.unfinished():
            try:
                finished = self._recover_table(unfinished)
            except DbtRuntimeError as error:
                failed.append(f"{unfinished.table}: {error.msg}")
            else:
                if finished:
                    lines.append(f"{unfinished.table}: finished {message(finished.batch)}")
        if not lines and not failed:
            lines.append("Nothing was unfinished.")
        return Outcome(tuple(lines), tuple(failed))

    def set_relations_cache(
        self, relation_configs: Iterable[Any], *args: Any, **named: Any
    ) -> None:
        """Before hooks and nodes: nothing is compiled with what an interrupted run has left."""
        # the adapter is loaded before dbt's flags can be
        from dbt.flags import get_flags

        nodes = list(relation_configs)
        super().set_relations_cache(nodes, *args, **named)
        flags = get_flags()
        if getattr(flags, "WHICH", None) not in _BUILDING:
            return
        if getattr(flags, "EMPTY", False) or getattr(flags, "SAMPLE", None):
            return  # they publish nothing
        self._recover_before_compiling(nodes)

    def _recover_before_compiling(self, nodes: list[Any]) -> None:
        """Whatever fails here does not stop the command: the table's own node tells it."""
        if not any(
            node.config.materialized in MIRRORED_KINDS and node.config.get("mirror") is not False
            for node in nodes
        ):
            return  # who mirrors nothing may have no landing zone
        # another target may share the landing zone, and its relations may be in another Spark
        schemas = {str(node.schema) for node in nodes}
        touched = set()
        try:
            pending = self.project_tables(()).unfinished()
        except DbtRuntimeError as error:
            logger.debug(f"The landing zone could not be searched: {error.msg}")
            return
        for manifest in pending:
            schema = manifest.batch.owner.schema
            if schema not in schemas:
                continue
            touched.add(schema)
            try:
                finished = self._recover_table(manifest)
            except DbtRuntimeError as error:
                logger.warning(f"{manifest.table} could not be recovered yet: {error.msg}")
                continue
            if finished:
                batch, table = finished.batch.id, manifest.table
                told = f"Finished batch {batch} of {table}, which an earlier run had left"
                fire_event(Note(msg=told))
        for schema in touched:
            # a statement that failed half way has left dbt's cache ahead of Spark
            self.cache.drop_schema(None, schema)
            try:
                self.list_relations(None, schema)
            except DbtRuntimeError as error:  # the nodes ask again
                logger.debug(f"{schema}: {error.msg}")

    def _recover_table(self, manifest: Manifest) -> Manifest | None:
        owner, identifier = manifest.batch.owner, manifest.table.identifier
        target = self.Relation.create(
            schema=owner.schema, identifier=identifier, type=RelationType.Table
        )
        try:
            publication = self._open_publication(manifest.table, owner)
            arguments = {"publication": publication, "target": target}
            finished = self.execute_macro("mirror_recover_table", kwargs=arguments)
            return cast("Manifest | None", finished)
        finally:
            self._end_node()

    @available
    def rebuild(self, nodes: Iterable[Mapping[str, Any]], table: str) -> str:
        """Publish a table as it is in Spark as a rebuild, and tell what was published.

        Args:
            nodes: all of the graph
            table: `schema.table`, the table alone, or the name or unique id of its node

        Raises:
            DbtRuntimeError: no such table
        """
        # the adapter is loaded before dbt's contexts can be
        from dbt.context.providers import generate_runtime_model_context

        tables: ProjectTables = self.project_tables(nodes)
        node = tables.node(table)
        manifest: Any = self._macro_resolver
        context = generate_runtime_model_context(
            manifest.nodes[node.unique_id], self.config, manifest
        )
        try:
            response = self.execute_macro("mirror_rebuild_table", context_override=context)
        finally:
            self._end_node()
        return f"{node.table}: {response}"

    @available
    def status_lines(self, nodes: Iterable[Mapping[str, Any]]) -> list[str]:
        """How it is about each mirrored table, and about the mirrored database in Fabric.

        Args:
            nodes: all of the graph
        """
        report, lines = self._mirror.report()
        tables: ProjectTables = self.project_tables(nodes)
        return [*lines, *tables.status_lines(report)]

    @available
    def mirrored_database(self) -> DatabaseOperations:
        """The mirrored database in Fabric, to be created, started or stopped."""
        return DatabaseOperations(self._mirror.database)

    # Replication

    @available
    def replicate(self) -> replica.Replication:
        """Apply what was published to the mirrored tables on this machine.

        Raises:
            DbtRuntimeError: the replicator is not installed, or has no place here
        """
        return replica.replicate(self._mirror.landing_zone)

    @available
    def replicated(self, relation: OpenMirroringRelation, seconds: float) -> replica.Replica:
        """A relation's mirrored table, once all that was published of it is applied.

        Args:
            seconds: to wait for that

        Raises:
            DbtRuntimeError: it is not, and why
        """
        table, _ = last_published(
            self._mirror.storage(), str(relation.schema), str(relation.identifier)
        )
        return replica.applied(
            self._mirror.landing_zone,
            table.schema,
            table.identifier,
            replicate=self.config.credentials.replicate,
            seconds=float(seconds),
        )

    def cleanup_connections(self) -> None:
        """The end of a command: what it has published is applied, if the profile says so."""
        super().cleanup_connections()
        self._mirror.end()

    # Rows that do not come from SQL

    @available
    def create_python_view(self, name: str, code: str, node: Mapping[str, Any]) -> None:
        """Let Spark have the result of a Python model, as a temporary view.

        Args:
            name: of the view
            code: as dbt has compiled it
            node: as in the graph

        Raises:
            DbtRuntimeError: the model fails, or this is not a session
        """
        handle = self._handle()
        if not handle:
            raise DbtRuntimeError(
                "Python models need `method: session` or `method: connect` in the profile."
            )
        connection = self.connections.get_thread_connection().name
        fire_event(CodeExecution(conn_name=connection, code_content=code))
        started = time.monotonic()
        python_models.create_view(name, code, handle.session, node["unique_id"])
        elapsed = round(time.monotonic() - started, 2)
        fire_event(CodeExecutionStatus(status="OK", elapsed=elapsed))

    @available
    def create_seed_view(self, name: str, agate_table: agate.Table) -> None:
        """Let Spark have a seed's rows, as a temporary view of strings.

        Args:
            name: of the view
            agate_table: the seed as dbt has read it
        """
        self.add_query(seed_view(name, agate_table), auto_begin=False, abridge_sql_log=True)

    def _handle(self) -> SessionHandle | None:
        """What holds the session of the node; None with Thrift, HTTP or ODBC."""
        handle = self.connections.get_thread_connection().handle
        return handle if isinstance(handle, SessionHandle) else None

    def _is_driven_here(self) -> bool:
        handle = self._handle()
        return handle is not None and handle.is_driven_here

    def _is_local(self) -> bool:
        handle = self._handle()
        return handle is not None and handle.is_local
