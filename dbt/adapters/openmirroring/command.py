"""What a command of dbt does before its first node and after its last one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from dbt.adapters.contracts.relation import RelationType
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.connections import (
    is_publishing,
    is_running_hooks,
    is_testing,
    logger,
)
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.node.advance import recover
from dbt.adapters.openmirroring.node.config import AFTER_TESTS
from dbt.adapters.openmirroring.node.held import is_torn, published_rows
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.preview import drop_stand_ins
from dbt.adapters.openmirroring.node.progress import Progress
from dbt.adapters.openmirroring.node.publish import keep_held, publish_held, recover_node
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.operations.held import publish_all, publish_tested
from dbt.adapters.openmirroring.operations.mirror import Mirror
from dbt.adapters.openmirroring.operations.project_tables import Node as ProjectNode
from dbt.adapters.openmirroring.operations.project_tables import (
    Outcome,
    ProjectTables,
    is_mirrored,
)
from dbt.adapters.openmirroring.operations.recover import recover_schemas
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation

# the hook that publishes what has passed its tests
_HOOK = "operation.dbt_openmirroring.dbt_openmirroring-on-run-end-0"


class Command:
    """A command of dbt.

    Args:
        adapter: dbt's
        mirror: where it publishes to
    """

    def __init__(self, adapter: Any, mirror: Mirror) -> None:
        self._adapter = adapter
        self._mirror = mirror

    def tables(self, graph: Mapping[str, Any]) -> ProjectTables:
        """The mirrored tables of this dbt project."""
        config = self._adapter.config
        storage, schema = self._mirror.storage(), config.credentials.schema
        return ProjectTables(storage, config.project_name, schema, graph["nodes"].values())

    def node(self, context: Mapping[str, Any]) -> Node:
        """The node of a context of dbt."""
        in_onelake = self._adapter.config.credentials.onelake is not None
        return Node(context, Warehouse(self._adapter, context), in_onelake)

    def node_of(self, found: Any) -> Node:
        """A node that is not being run.

        Args:
            found: what has its `unique_id`
        """
        # the adapter is loaded before dbt's contexts can be
        from dbt.context.providers import generate_runtime_model_context

        manifest = self._adapter._macro_resolver
        node = manifest.nodes[found.unique_id]
        return self.node(generate_runtime_model_context(node, self._adapter.config, manifest))

    def running(self, node: Node) -> AbstractContextManager[None]:
        """Let a user see how far a node is, as long as this thread runs it."""
        progress: Progress = self._adapter.progress
        return progress.node(node.model["name"], node.warehouse.follow)

    # Before the first node

    def begin(self, nodes: Sequence[Any]) -> None:
        """Before hooks and nodes: nothing is compiled with what an interrupted run has left.

        Args:
            nodes: of dbt
        """
        gated = [node for node in nodes if _is_gated(node.config)]
        if is_running_hooks() and (self._mirror.dry_run or not gated):
            # it would have nothing to do, and would be shown
            self._adapter._macro_resolver.nodes.pop(_HOOK, None)
        if self._mirror.dry_run:
            return
        # who mirrors nothing may have no landing zone
        if is_publishing() and any(is_mirrored(node.config) for node in nodes):
            self._recover_before_compiling(nodes)
            self._bring_back(nodes)
        if is_testing():
            self._note_builds(gated)

    def _note_builds(self, gated: Sequence[Any]) -> None:
        """What is held now is what the tests of the command see."""
        warehouse = Warehouse(self._adapter, {})
        for node in gated:
            relation = self._adapter.Relation.create_from(self._adapter.config, node)
            build = warehouse.marks(warehouse.found(relation)).held
            if build:
                self._mirror.built(node.unique_id, build)

    def _recover_before_compiling(self, nodes: Sequence[Any]) -> None:
        # another target may share the landing zone, and its relations may be in another Spark
        schemas = {str(node.schema) for node in nodes}
        tables = self.tables({"nodes": {}})
        for schema in recover_schemas(tables, schemas, self.recover_table):
            # a statement that failed half way has left dbt's cache ahead of Spark
            self._adapter.cache.drop_schema(None, schema)
            try:
                self._adapter.list_relations(None, schema)
            except DbtRuntimeError as error:  # the nodes ask again
                logger.debug(f"{schema}: {error.msg}")

    def _bring_back(self, nodes: Sequence[Any]) -> None:
        """What a killed process has left half held is a relation again before it is asked for."""
        warehouse = Warehouse(self._adapter, {})
        for node in nodes:
            target = self._adapter.Relation.create_from(self._adapter.config, node)
            if is_mirrored(node.config) and is_torn(warehouse, target):
                try:
                    recover_node(self.node_of(node), self._mirror)
                except DbtRuntimeError as error:  # the node tells it
                    logger.debug(f"{target}: {error.msg}")

    def recover_table(self, unfinished: Manifest) -> Manifest | None:
        """Finish a batch that an earlier run has committed; None if another run has done that."""
        owner, table = unfinished.batch.owner, unfinished.table
        target = self._adapter.Relation.create(
            schema=owner.schema, identifier=table.identifier, type=RelationType.Table
        )
        warehouse = Warehouse(self._adapter, self._context())
        with self._mirror.publication(table, owner) as publication:
            return recover(warehouse, publication, target)

    # After the last one

    def publish_held(self, graph: Mapping[str, Any], table: str | None) -> Outcome:
        """Publish what is held, whatever the tests say.

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
            results: of dbt
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

    def compared_rows(
        self, warehouse: Warehouse, model: OpenMirroringRelation
    ) -> OpenMirroringRelation | None:
        """The rows that the mirrored table of a model has to have.

        Returns:
            of what is held, those that were published last; None if none were, or in a dry run
        """
        if self._mirror.dry_run:
            return None
        last = self._mirror.last_published(model)
        published = published_rows(warehouse, model, last.batch.id if last else None)
        if not published.is_held:
            return model
        return published.relation if last else None

    def end(self) -> None:
        """Before the connections are closed: nothing of a dry run is left."""
        if OpenMirroringRelation.stand_ins:
            with self._adapter.connection_named("master"):
                drop_stand_ins(Warehouse(self._adapter, self._context()))

    def _context(self) -> dict[str, Any]:
        """A context of dbt without a node."""
        adapter = self._adapter
        macro = adapter._macro_resolver.find_macro_by_name(
            "mirror_recover", adapter.config.project_name, None
        )
        context: dict[str, Any] = adapter._macro_context_generator(
            macro, adapter.config, adapter._macro_resolver, None
        )
        return context


def _is_gated(config: Any) -> bool:
    return is_mirrored(config) and config.get("publish") == AFTER_TESTS
