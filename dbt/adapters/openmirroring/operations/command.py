"""The steps of a dbt command before its first node and after its last node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any

from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.dbt_core.flags import (
    is_building,
    is_publishing,
    is_running_hooks,
    is_testing,
    prefers_other_state,
)
from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.inventory import LandedTable
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.clone import refuse_clone
from dbt.adapters.openmirroring.node.config import AFTER_TESTS, OpenMirroringConfig
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.preview import drop_stand_ins
from dbt.adapters.openmirroring.node.progress import Progress
from dbt.adapters.openmirroring.node.publish import recover_node
from dbt.adapters.openmirroring.node.snapshot.held import is_half_held, published_rows
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.operations.held import HeldNodes
from dbt.adapters.openmirroring.operations.not_mirrored import why_not_mirrored
from dbt.adapters.openmirroring.operations.orphans import drop_orphans
from dbt.adapters.openmirroring.operations.project_tables import (
    NODES,
    MirroredNode,
    Outcome,
    ProjectTables,
    is_mirrored,
)
from dbt.adapters.openmirroring.operations.recover import Recovery, place_of
from dbt.adapters.openmirroring.operations.same_table import refuse_same_tables
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation

# the on-run-end hook that publishes the held nodes whose tests have passed
_HOOK = "operation.dbt_openmirroring.dbt_openmirroring-on-run-end-0"


class Command:
    """A dbt command.

    Args:
        adapter: the adapter that dbt has created
        destination: where the command publishes to
    """

    def __init__(self, adapter: Any, destination: Destination) -> None:
        self._adapter = adapter
        self._destination = destination
        self._is_checked = False
        self._told: set[str] = set()
        self.recovery = Recovery(destination, lambda: Warehouse(adapter, self._context))

    def tables(self, graph: Mapping[str, Any]) -> ProjectTables:
        """Return the mirrored tables of this dbt project."""
        config = self._adapter.config
        storage, schema = self._destination.storage(), config.credentials.schema
        nodes = graph["nodes"].values()
        return ProjectTables(storage, config.project_name, schema, nodes, config.target_name)

    def node(self, context: Mapping[str, Any]) -> Node:
        """Return the node that a dbt context belongs to."""
        in_onelake = self._adapter.config.credentials.onelake is not None
        return Node(context, Warehouse(self._adapter, context), in_onelake)

    def node_of(self, found: Any) -> Node:
        """Return a node that dbt is not running.

        Args:
            found: an object with the `unique_id` of the node
        """
        # dbt loads the adapter before its contexts can be imported
        from dbt.context.providers import generate_runtime_model_context

        manifest = self._adapter._macro_resolver
        node = manifest.nodes[found.unique_id]
        return self.node(generate_runtime_model_context(node, self._adapter.config, manifest))

    def running(self, node: Node) -> AbstractContextManager[None]:
        """Show the progress of a node to the user while this thread runs it."""
        progress: Progress = self._adapter.progress
        return progress.node(node.model["name"], node.warehouse.follow)

    # Before the first node

    def begin(self, nodes: Sequence[Any]) -> None:
        """Check the project and recover interrupted runs, before hooks run and nodes compile.

        Args:
            nodes: the nodes of the dbt project

        Raises:
            CompilationError: if two nodes would be one table
        """
        if is_building():
            self.check_project(nodes)
        gated = [node for node in nodes if _is_gated(node.config)]
        if is_running_hooks() and (self._destination.dry_run or not gated):
            # the hook would do nothing, but dbt would print it
            self._adapter._macro_resolver.nodes.pop(_HOOK, None)
        if self._destination.dry_run:
            return
        # a project without mirrored nodes may have no landing zone
        if is_publishing() and any(is_mirrored(node.config) for node in nodes):
            self._recover_before_compiling(nodes)
            self._finish_holds(nodes)
        if is_testing() and not prefers_other_state():
            self._note_builds(gated)

    def check_project(self, nodes: Iterable[Any] | None = None) -> None:
        """Check, once in a command, that its nodes can be built side by side.

        With `--no-populate-cache` a command has no beginning, and the first node checks this.

        Args:
            nodes: the nodes of the dbt project; None takes those of dbt's manifest

        Raises:
            CompilationError: if two nodes would be one table
        """
        if not self._is_checked:
            refuse_same_tables(nodes or self._adapter._macro_resolver.nodes.values())
            self._is_checked = True

    def _note_builds(self, gated: Sequence[Any]) -> None:
        """Record the held builds, because the tests of this command read them."""
        warehouse = Warehouse(self._adapter, {})
        for node in gated:
            relation = self._adapter.Relation.create_from(self._adapter.config, node)
            build = warehouse.marks(warehouse.found(relation)).held
            if build:
                self._destination.builds[node.unique_id] = build

    def _recover_before_compiling(self, nodes: Sequence[Any]) -> None:
        # Only the schemas of this target: another target may share the landing zone, but have its
        # relations in another Spark.
        schemas = {str(node.schema) for node in nodes}
        tables = self.tables({"nodes": {}})
        for schema in self.recovery.finish_schemas(tables, schemas):
            # after a statement that failed half way, dbt's cache differs from Spark
            self._adapter.cache.drop_schema(None, schema)
            try:
                self._adapter.list_relations(None, schema)
            except DbtRuntimeError as error:  # the nodes list the relations again
                logger.debug(f"{schema}: {error.msg}")
        # hooks run whatever is selected, and dbt compiles them one by one
        for hook in self._adapter._macro_resolver.nodes.values():
            if hook.resource_type == "operation":
                self.before_node(hook)

    def before_node(self, node: Any) -> None:
        """Finish the batches that earlier runs have left of a node and of the tables it reads.

        This happens before the node is compiled, because its SQL may depend on the result.

        Args:
            node: a node of dbt's manifest

        Raises:
            DbtRuntimeError: if the batch of the node itself cannot be finished
        """
        if not self.recovery.has_postponed:
            return
        for each in _with_tables_below(node, self._adapter._macro_resolver.nodes):
            place = place_of(each.schema, each.alias)
            self.recovery.finish_postponed(place, is_own=each.unique_id == node.unique_id)

    def _finish_holds(self, nodes: Sequence[Any]) -> None:
        """Repair snapshots that a killed process left half held, before anything reads them."""
        warehouse = Warehouse(self._adapter, {})
        for node in nodes:
            target = self._adapter.Relation.create_from(self._adapter.config, node)
            if is_mirrored(node.config) and is_half_held(warehouse, target):
                try:
                    recover_node(self.node_of(node), self._destination)
                except DbtRuntimeError as error:  # the node reports it
                    logger.debug(f"{target}: {error.msg}")

    def tell_not_mirrored(self, config: Any) -> None:
        """Warn, once in a command, that a node is not mirrored although it looks like it.

        Args:
            config: dbt's object of the configuration in the node's context
        """
        node: Any = getattr(config, "model", None)
        if getattr(node, "resource_type", None) not in NODES or node.unique_id in self._told:
            return
        self._told.add(node.unique_id)
        macros, project = self._adapter._macro_resolver, self._adapter.config.project_name
        warning = why_not_mirrored(node, macros, project, OpenMirroringConfig)
        if warning:
            warn_or_error(AdapterEventWarning(base_msg=warning))

    def refuse_clone(self, context: Mapping[str, Any]) -> None:
        """Check that a clone does not take the place of a mirrored table."""
        target, config = context["this"], context["model"]["config"]
        refuse_clone(
            Warehouse(self._adapter, context),
            target,
            lambda: is_mirrored(config) and self._last_published(target) is not None,
        )

    # After the last node

    def publish_held(self, graph: Mapping[str, Any], table: str | None) -> Outcome:
        """Publish held nodes, whether or not their tests have passed.

        Args:
            table: `schema.table`, the table alone, or the name or unique id of its node; None
                for all
        """
        return self._held_nodes(graph).publish_all(table)

    def publish_tested(self, graph: Mapping[str, Any], results: Sequence[Any]) -> Outcome:
        """Publish the held nodes whose tests have all passed in this command.

        Args:
            results: the results of the command, as dbt returns them
        """
        statuses = {result.node.unique_id: str(result.status) for result in results}
        gated = {name for name, node in graph["nodes"].items() if _is_gated(node["config"])}
        return self._held_nodes(graph).publish_tested(gated, statuses)

    def _held_nodes(self, graph: Mapping[str, Any]) -> HeldNodes:
        threads = int(self._adapter.config.threads)
        return HeldNodes(
            self.tables(graph), graph["nodes"], self._destination, self._connected, threads
        )

    @contextmanager
    def _connected(self, found: MirroredNode) -> Iterator[Node]:
        with self._adapter.connection_named(f"publish {found.unique_id}"):
            node = self.node_of(found)
            with self.running(node):
                yield node

    def drop_orphans(
        self,
        graph: Mapping[str, Any],
        dry_run: bool,
        schema: str | None,
        table: str | Sequence[str] | None,
    ) -> Outcome:
        """Drop the table folders that belong to no mirrored node any more, or only list them.

        `operations.orphans` documents the arguments.
        """
        return drop_orphans(self.tables(graph), dry_run, schema, table, self._has_published)

    def _has_published(self, table: LandedTable) -> bool:
        """Check whether Spark has the rows of a table that were published last."""
        if not table.journal:
            return False
        batch = table.journal.batch
        relation = self._adapter.Relation.create(
            schema=batch.owner.schema, identifier=table.folder.identifier, type=RelationType.Table
        )
        warehouse = Warehouse(self._adapter, {})
        return published_rows(warehouse, relation, batch.id).batch_id == batch.id

    def compared_rows(
        self, warehouse: Warehouse, model: OpenMirroringRelation
    ) -> OpenMirroringRelation | None:
        """Return the rows that the mirrored table of a model should contain.

        Returns:
            the model; if it is held, the relation with the rows that were published last; None if
            nothing was published yet, or in a dry run
        """
        if self._destination.dry_run:
            return None
        last = self._last_published(model)
        published = published_rows(warehouse, model, last.batch.id if last else None)
        if not published.is_held:
            return model
        return published.relation if last else None

    def _last_published(self, relation: OpenMirroringRelation) -> Journal | None:
        schema, identifier = str(relation.schema), str(relation.identifier)
        return self._destination.last_published(schema, identifier)

    def end(self) -> None:
        """Drop the relations of a dry run before dbt closes the connections, and tell the rest."""
        self.recovery.tell_left()
        if OpenMirroringRelation.stand_ins:
            with self._adapter.connection_named("master"):
                drop_stand_ins(Warehouse(self._adapter, self._context))

    @cached_property
    def _context(self) -> dict[str, Any]:
        """Return a dbt context that belongs to no node."""
        adapter = self._adapter
        macro = adapter._macro_resolver.find_macro_by_name(
            "mirror_recover", adapter.config.project_name, None
        )
        context: dict[str, Any] = adapter._macro_context_generator(
            macro, adapter.config, adapter._macro_resolver, None
        )
        return context


def _with_tables_below(node: Any, nodes: Mapping[str, Any]) -> list[Any]:
    """Return a node and the tables that it reads, also through views and ephemeral models."""
    found = {node.unique_id: node}
    open_ = [node]
    while open_:
        below = getattr(open_.pop().depends_on, "nodes", ())
        for each in (nodes[name] for name in below if name in nodes and name not in found):
            found[each.unique_id] = each
            if not is_mirrored(each.config):
                open_.append(each)
    return list(found.values())


def _is_gated(config: Any) -> bool:
    return is_mirrored(config) and config.get("publish") == AFTER_TESTS
