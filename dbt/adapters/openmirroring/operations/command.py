"""The steps of a dbt command before its first node and after its last node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.dbt_core import flags
from dbt.adapters.openmirroring.dbt_core.project import Context, Graph, Project
from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.inventory import LandedTable, last_published
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.advance import is_interrupted
from dbt.adapters.openmirroring.node.config import AFTER_TESTS, refuse_hidden
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.publish import recover_node
from dbt.adapters.openmirroring.node.snapshot.snapshot import published_rows
from dbt.adapters.openmirroring.node.user_code import changes
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.operations.node_checks import (
    check_nodes,
    refuse_same_tables,
    why_not_mirrored,
)
from dbt.adapters.openmirroring.operations.project_tables import (
    NODES,
    MirroredNode,
    ProjectTables,
    is_mirrored,
)
from dbt.adapters.openmirroring.operations.recover import Recovery, Restores, place_of
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.text.codes import with_code

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.dbt_core.project import Config, ManifestNode
    from dbt.adapters.openmirroring.impl import OpenMirroringAdapter

# the on-run-end hook that publishes the held nodes whose tests have passed
_HOOK = "operation.dbt_openmirroring.dbt_openmirroring-on-run-end-0"


class Command:
    """A dbt command: its steps before its first node and after its last."""

    def __init__(
        self, adapter: OpenMirroringAdapter, project: Project, destination: Destination
    ) -> None:
        self._adapter = adapter
        self._project = project
        self._destination = destination
        self._is_checked = False
        self._told: set[str] = set()
        self.recovery = Recovery(destination, lambda: self.warehouse(project.context))
        self._restores = Restores(destination, self.running)

    def tables(self, graph: Graph) -> ProjectTables:
        """Return the mirrored tables of this dbt project."""
        project, storage = self._project, self._destination.storage()
        nodes = graph["nodes"].values()
        return ProjectTables(storage, project.name, project.schema, nodes, project.target)

    def warehouse(self, context: Context) -> Warehouse:
        """Return Spark's tables, for a dbt context."""
        return Warehouse(self._adapter, context)

    def node(self, context: Context) -> Node:
        """Return the node that a dbt context belongs to.

        Raises:
            CompilationError: if its configuration cannot be published
        """
        model = context["model"]
        refuse_hidden(model["config"], self._project.columns_of(model))
        in_onelake = self._destination.target.onelake is not None
        return Node(context, self.warehouse(context), in_onelake)

    def node_of(self, unique_id: str) -> Node:
        """Return a node that dbt is not running."""
        return self.node(self._project.context_of(unique_id))

    def running(self, node: Node) -> AbstractContextManager[None]:
        """Show the progress of a node to the user while this thread runs it."""
        return self._adapter.progress.node(node.model["name"], node.warehouse.follow)

    @contextmanager
    def connected(self, found: MirroredNode) -> Iterator[Node]:
        """Take a connection for a node that dbt is not running."""
        with self._adapter.connection_named(f"publish {found.unique_id}"):
            node = self.node_of(found.unique_id)
            with self.running(node):
                yield node

    # Before the first node

    def after_parsing(self) -> None:
        """Check the nodes, for `dbt parse`. Take the hook that publishes held nodes out.

        If this project has no such nodes, dbt would count and print it.
        """
        nodes = self._project.nodes
        gated = any(is_gated(node.config) for node in nodes.values())
        if self._destination.dry_run or not gated:
            nodes.pop(_HOOK, None)
        if flags.command() == "parse":
            self._check(nodes.values())

    def before_first_node(self, nodes: Sequence[ManifestNode]) -> None:
        """Recover interrupted runs, before hooks run and nodes compile."""
        if not self._destination.dry_run:
            self._before_publishing(nodes)
        if flags.is_running_hooks():
            # hooks run whatever is selected, and dbt compiles them one by one
            for hook in self._project.nodes.values():
                if str(hook.resource_type) == "operation":
                    self.before_node(hook)

    def _before_publishing(self, nodes: Sequence[ManifestNode]) -> None:
        # a project without mirrored nodes may have no landing zone
        if flags.is_publishing() and any(is_mirrored(node.config) for node in nodes):
            self._recover_before_compiling(nodes)
            self._catch_up(nodes)
        if flags.is_testing() and not flags.prefers_other_state():
            self._note_builds([node for node in nodes if is_gated(node.config)])

    def check_selected(self) -> None:
        """Check, once in a command, that all nodes can be built that it has selected.

        Raises:
            CompilationError: if two nodes would be one table, or a node is not configured right
            MirrorError: if nothing can be published to the landing zone
        """
        if self._is_checked or not (flags.is_building() or flags.command() == "compile"):
            return
        self._is_checked = True
        everything = {**self._project.nodes, **self._project.functions}
        nodes = [everything[name] for name in flags.selected() if name in everything]
        self._check(nodes)
        if flags.is_publishing() and any(is_mirrored(node.config) for node in nodes):
            self._destination.check_before_nodes()

    def _check(self, nodes: Iterable[ManifestNode]) -> None:
        refuse_same_tables(self._project.nodes.values())
        check_nodes(
            nodes,
            self._project,
            in_onelake=self._destination.target.onelake is not None,
            is_embedded=self._adapter.is_embedded,
            runs_python=self._adapter.runs_python,
        )

    def _note_builds(self, gated: Sequence[ManifestNode]) -> None:
        """Record the held builds, because the tests of this command read them."""
        warehouse = self.warehouse({})
        for node in gated:
            relation = self._adapter.relation_of(node)
            held = self._destination.held(str(relation.schema), str(relation.identifier))
            if held and held.is_finished and held.build:
                build = warehouse.marks(warehouse.found(relation)).build
                if held.build == build:
                    self._destination.builds[node.unique_id] = build

    def _recover_before_compiling(self, nodes: Sequence[ManifestNode]) -> None:
        # Only the schemas of this target: another target may share the landing zone, but have its
        # relations in another Spark.
        schemas = {str(node.schema) for node in nodes}
        tables = self.tables({"nodes": {}})
        for schema in self.recovery.finish_schemas(tables, schemas):
            # after a statement that failed half way, dbt's cache differs from Spark
            relation = self._adapter.Relation.create(schema=schema)
            try:
                self.warehouse({}).list_again(relation)
            except DbtRuntimeError as error:  # the nodes list the relations again
                logger.debug(f"{schema}: {error.msg}")

    def before_node(self, node: ManifestNode) -> None:
        """Bring a node and the tables that it reads to the state that was published last.

        This happens before the node is compiled, because its SQL may depend on the result.

        Raises:
            DbtRuntimeError: if the batch of the node itself cannot be finished, or if one of the
                tables cannot be restored
        """
        restores = self._destination.restores and flags.reads_tables()
        if not (self.recovery.has_postponed or restores):
            return
        for each in _with_tables_below(node, self._project.nodes):
            is_own = each.unique_id == node.unique_id
            self.recovery.finish_postponed(place_of(each.schema, each.alias), is_own=is_own)
            if restores and each.resource_type in NODES and is_mirrored(each.config):
                self._restore(each, is_own)

    def while_compiling(self, node: ManifestNode) -> Callable[[str], bool]:
        """Return a function that refuses statements by which a node changes its own table.

        A node is compiled before it is known what was published.
        """
        if not is_mirrored(node.config):
            return lambda _: True
        relation = self._adapter.relation_of(node)

        def allows(statement: str) -> bool:
            if changes(statement, relation):
                raise CompilationError(
                    f"The SQL of {node.unique_id} calls a macro that changes {relation} while dbt "
                    "compiles the node. Nothing was changed. Call it in a `pre_hook` or "
                    "`post_hook`: what hooks do is published with the node."
                )
            return True

        return allows

    def _restore(self, found: ManifestNode, is_own: bool) -> None:
        if self.warehouse({}).found(self._adapter.relation_of(found)) is None:
            node = self.node_of(found.unique_id)
            # a full refresh needs no rows from before
            if not (is_own and node.is_full_refresh):
                self._restores.restore(node)

    def _catch_up(self, nodes: Sequence[ManifestNode]) -> None:
        """Let relations catch up that a killed process has left, before anything reads them."""
        warehouse = self.warehouse({})
        for node in nodes:
            target = self._adapter.relation_of(node)
            if self.recovery.is_postponed(place_of(node.schema, node.alias)):
                continue
            if is_mirrored(node.config) and is_interrupted(warehouse, target):
                try:
                    recover_node(self.node_of(node.unique_id), self._destination)
                except DbtRuntimeError as error:  # the node reports it
                    logger.debug(f"{target}: {error.msg}")

    def tell_not_mirrored(self, config: object) -> None:
        """Warn, once in a command, that a node is not mirrored although it looks like it.

        Args:
            config: dbt's object of the configuration in the node's context
        """
        node: ManifestNode | None = getattr(config, "model", None)
        if node is None or node.resource_type not in NODES or node.unique_id in self._told:
            return
        self._told.add(node.unique_id)
        warning = why_not_mirrored(node, self._project)
        if warning:
            warn_or_error(AdapterEventWarning(base_msg=with_code(warning)))

    def refuse_clone(self, context: Context) -> None:
        """Check that a view, as which `dbt clone` copies, does not replace a mirrored table.

        The next run would see a view, and rebuild the mirrored table with what it can compute: the
        history of an incremental model or a dbt snapshot would be lost in Spark and in the mirror.
        """
        target, config = context["this"], context["model"]["config"]
        warehouse = self.warehouse(context)
        found = warehouse.found(target)
        if found and found.is_view:
            return
        marks = warehouse.marks(found)
        if marks.build is None and not (is_mirrored(config) and self._last_published(target)):
            return
        if found:
            state = "a clone would drop its rows, which may be the only ones with its history"
        else:
            state = "Spark has lost its rows, and a clone would hide that"
        raise CompilationError(
            f"{target} is a mirrored table, and {state}: the next run would rebuild the mirrored "
            "table with what the model computes then. Nothing was changed. Clone into another "
            "schema, or leave this node out with `--exclude`."
        )

    # Comparisons with the mirror

    def has_published(self, table: LandedTable) -> bool:
        """Check whether Spark has the rows of a table that were published last."""
        if not table.journal:
            return False
        batch = table.journal.batch
        relation = self._adapter.Relation.create(
            schema=batch.owner.schema, identifier=table.folder.identifier, type=RelationType.Table
        )
        warehouse = self.warehouse({})
        return published_rows(warehouse, relation, batch.build, None).build == batch.build

    def compared_rows(
        self, warehouse: Warehouse, model: OpenMirroringRelation
    ) -> OpenMirroringRelation | None:
        """Return the relation with the rows that the mirrored table of a model should contain.

        Of a held model, these are not those of the model itself. None if nothing was published
        yet, or in a dry run.
        """
        if self._destination.dry_run:
            return None
        last = self._last_published(model)
        build = last.batch.build if last else None
        published = published_rows(warehouse, model, build, None)
        if published.is_ahead:
            return published.relation
        if last is None and published.build:
            held = self._destination.held(str(model.schema), str(model.identifier))
            if held and held.build == published.build:
                return None
        return model

    def _last_published(self, relation: OpenMirroringRelation) -> Journal | None:
        schema, identifier = str(relation.schema), str(relation.identifier)
        return last_published(self._destination.storage(), schema, identifier)[1]

    def after_last_node(self) -> None:
        """Drop the relations of a dry run before dbt closes the connections, and tell the rest."""
        self.recovery.tell_left()
        built = self._adapter.stand_ins.take_all()
        if built or self._restores.for_dry_run:
            with self._adapter.connection_named("master"):
                warehouse = self.warehouse(self._project.context)
                for relation in built:
                    warehouse.drop_if_there(relation)
                self._restores.drop_those_of_dry_run()


def _with_tables_below(
    node: ManifestNode, nodes: Mapping[str, ManifestNode]
) -> list[ManifestNode]:
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


def is_gated(config: Config) -> bool:
    """Check whether a node with this configuration is published after its tests."""
    return is_mirrored(config) and config.get("publish") == AFTER_TESTS
