"""The steps of a dbt command before its first node and after its last node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.connections import (
    is_building,
    is_publishing,
    is_running_hooks,
    is_testing,
    logger,
    prefers_other_state,
)
from dbt.adapters.openmirroring.landing_zone.inventory import LandedTable
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.node.advance import recover
from dbt.adapters.openmirroring.node.clone import refuse_clone
from dbt.adapters.openmirroring.node.config import AFTER_TESTS, OpenMirroringConfig
from dbt.adapters.openmirroring.node.held import is_torn, published_rows
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.preview import drop_stand_ins
from dbt.adapters.openmirroring.node.progress import Progress
from dbt.adapters.openmirroring.node.publish import keep_held, publish_held, recover_node
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.operations.held import publish_all, publish_tested
from dbt.adapters.openmirroring.operations.mirror import Mirror
from dbt.adapters.openmirroring.operations.not_mirrored import why_not_mirrored
from dbt.adapters.openmirroring.operations.orphans import drop_orphans
from dbt.adapters.openmirroring.operations.project_tables import (
    NODES,
    Outcome,
    ProjectTables,
    is_mirrored,
)
from dbt.adapters.openmirroring.operations.project_tables import Node as ProjectNode
from dbt.adapters.openmirroring.operations.recover import Postponed, place_of, recover_schemas
from dbt.adapters.openmirroring.operations.same_table import refuse_same_tables
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation

# the on-run-end hook that publishes the held nodes whose tests have passed
_HOOK = "operation.dbt_openmirroring.dbt_openmirroring-on-run-end-0"


class Command:
    """A dbt command.

    Args:
        adapter: the adapter that dbt has created
        mirror: the mirror that the command publishes to
    """

    def __init__(self, adapter: Any, mirror: Mirror) -> None:
        self._adapter = adapter
        self._mirror = mirror
        self._is_checked = False
        self._told: set[str] = set()
        self._postponed = Postponed(self.recover_table)

    def tables(self, graph: Mapping[str, Any]) -> ProjectTables:
        """Return the mirrored tables of this dbt project."""
        config = self._adapter.config
        storage, schema = self._mirror.storage(), config.credentials.schema
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
        if is_running_hooks() and (self._mirror.dry_run or not gated):
            # the hook would do nothing, but dbt would print it
            self._adapter._macro_resolver.nodes.pop(_HOOK, None)
        if self._mirror.dry_run:
            return
        # a project without mirrored nodes may have no landing zone
        if is_publishing() and any(is_mirrored(node.config) for node in nodes):
            self._recover_before_compiling(nodes)
            self._bring_back(nodes)
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
                self._mirror.built(node.unique_id, build)

    def _recover_before_compiling(self, nodes: Sequence[Any]) -> None:
        # Only the schemas of this target: another target may share the landing zone, but have its
        # relations in another Spark.
        schemas = {str(node.schema) for node in nodes}
        tables = self.tables({"nodes": {}})
        for schema in recover_schemas(tables, schemas, self.recover_table, self._postpone):
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

    def _postpone(self, unfinished: Manifest) -> bool:
        """Postpone a batch until a node needs it, if finishing it may take long."""
        is_postponed = self._mirror.waits_for(unfinished)
        if is_postponed:
            self._postponed.add(unfinished)
        return is_postponed

    def before_node(self, node: Any) -> None:
        """Finish the batches that earlier runs have left of a node and of the tables it reads.

        This happens before the node is compiled, because its SQL may depend on the result.

        Args:
            node: a node of dbt's manifest

        Raises:
            DbtRuntimeError: if the batch of the node itself cannot be finished
        """
        if not self._postponed:
            return
        for each in _with_tables_below(node, self._adapter._macro_resolver.nodes):
            place = place_of(each.schema, each.alias)
            self._postponed.finish(place, is_own=each.unique_id == node.unique_id)

    def _bring_back(self, nodes: Sequence[Any]) -> None:
        """Repair snapshots that a killed process left half held, before anything reads them."""
        warehouse = Warehouse(self._adapter, {})
        for node in nodes:
            target = self._adapter.Relation.create_from(self._adapter.config, node)
            if is_mirrored(node.config) and is_torn(warehouse, target):
                try:
                    recover_node(self.node_of(node), self._mirror)
                except DbtRuntimeError as error:  # the node reports it
                    logger.debug(f"{target}: {error.msg}")

    def recover_table(self, unfinished: Manifest) -> Manifest | None:
        """Finish a batch that an earlier run committed. Return None if another run finished it."""
        owner, table = unfinished.batch.owner, unfinished.table
        target = self._adapter.Relation.create(
            schema=owner.schema, identifier=table.identifier, type=RelationType.Table
        )
        warehouse = Warehouse(self._adapter, self._context())
        with self._mirror.publication(table, owner) as publication:
            return recover(warehouse, publication, target)

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
            lambda: is_mirrored(config) and self._mirror.last_published(target) is not None,
        )

    # After the last node

    def publish_held(self, graph: Mapping[str, Any], table: str | None) -> Outcome:
        """Publish held nodes, whether or not their tests have passed.

        Args:
            table: `schema.table`, the table alone, or the name or unique id of its node; None
                for all
        """
        return publish_all(
            self.tables(graph), graph["nodes"], table, self._publish_any, self._threads
        )

    def publish_tested(self, graph: Mapping[str, Any], results: Sequence[Any]) -> Outcome:
        """Publish the held nodes whose tests have all passed in this command.

        Args:
            results: the results of the command, as dbt returns them
        """
        statuses = {result.node.unique_id: str(result.status) for result in results}
        nodes = graph["nodes"]
        gated = {name for name, node in nodes.items() if _is_gated(node["config"])}
        return publish_tested(
            self.tables(graph),
            gated,
            nodes,
            statuses,
            self._publish_build,
            self._keep_build,
            self._threads,
        )

    @property
    def _threads(self) -> int:
        return int(self._adapter.config.threads)

    def _publish_any(self, found: ProjectNode, wait_for_turn: Callable[[], None]) -> Any:
        with self._connected(found) as node:
            return publish_held(node, self._mirror, wait_for_turn)

    def _publish_build(self, found: ProjectNode, wait_for_turn: Callable[[], None]) -> Any:
        build = self._mirror.build_of(found.unique_id)
        if build is None:
            return None
        with self._connected(found) as node:
            return publish_held(node, self._mirror, wait_for_turn, build)

    def _keep_build(self, found: ProjectNode, why: str) -> bool:
        is_held = self._mirror.build_of(found.unique_id) is not None
        if is_held:
            keep_held(self.node_of(found), self._mirror, why)
        return is_held

    @contextmanager
    def _connected(self, found: ProjectNode) -> Iterator[Node]:
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
        if self._mirror.dry_run:
            return None
        last = self._mirror.last_published(model)
        published = published_rows(warehouse, model, last.batch.id if last else None)
        if not published.is_held:
            return model
        return published.relation if last else None

    def end(self) -> None:
        """Drop the relations of a dry run before dbt closes the connections, and tell the rest."""
        self._postponed.tell_left()
        if OpenMirroringRelation.stand_ins:
            with self._adapter.connection_named("master"):
                drop_stand_ins(Warehouse(self._adapter, self._context()))

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
