"""The steps of a dbt command before its first node and after its last node.

The options and names of nodes are checked without Spark and the landing zone, so that the user
sees all errors at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.relation import RelationType
from dbt.adapters.events.types import AdapterEventWarning
from dbt_common.contracts.constraints import ModelLevelConstraint
from dbt_common.events.functions import warn_or_error
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.dbt_core import flags
from dbt.adapters.openmirroring.dbt_core.project import BUILT_IN, Context, Project
from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.inventory import (
    LandedTable,
    held_rows,
    last_published,
)
from dbt.adapters.openmirroring.landing_zone.layout import DEFAULT_SCHEMA, TableFolder
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.node.advance import Table
from dbt.adapters.openmirroring.node.build import VERIFIED, constraints_of, declared_constraints
from dbt.adapters.openmirroring.node.config import (
    NodeConfig,
    OpenMirroringConfig,
    refuse_hidden,
)
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.options import AFTER_TESTS, given
from dbt.adapters.openmirroring.node.publish import recover_node
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import check_name
from dbt.adapters.openmirroring.node.user_code import changes
from dbt.adapters.openmirroring.node.warehouse import Warehouse, logger
from dbt.adapters.openmirroring.operations.project_tables import (
    MIRRORED,
    NODES,
    MirroredNode,
    ProjectTables,
    is_mirrored,
)
from dbt.adapters.openmirroring.operations.recover import Recovery, Restores, place_of
from dbt.adapters.openmirroring.protocol.facts import Held
from dbt.adapters.openmirroring.spark.refusals import (
    no_python_models,
    refuse_function,
    refuse_grants,
)
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.text.codes import with_code
from dbt.adapters.openmirroring.text.errors import RefusedError

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

    def tables(self) -> ProjectTables:
        """Return the mirrored tables of this dbt project."""
        config, project = self._project.config, self._project
        nodes = [*project.nodes.values(), *project.pointers()]
        kinds = {n.config.get("materialized") for n in nodes if n.resource_type in NODES}
        return ProjectTables(
            self._destination.storage(),
            config.project_name,
            config.credentials.schema,
            map(_in_graph, nodes),
            config.target_name,
            {*MIRRORED, *filter(project.publishes, kinds - {*MIRRORED, "view", "ephemeral"})},
            project.disabled,
        )

    def warehouse(self, context: Context) -> Warehouse:
        """Return Spark's tables, for a dbt context."""
        return Warehouse(self._adapter, context)

    def node(self, context: Context, is_view: bool = False) -> Node:
        """Return the node that a dbt context belongs to.

        Args:
            is_view: whether dbt makes a view of its rows

        Raises:
            CompilationError: if its configuration cannot be published
        """
        model = context["model"]
        refuse_hidden(model["config"], self._project.columns_of(model))
        in_onelake = self._destination.onelake is not None
        return Node(context, self.warehouse(context), in_onelake, is_view)

    def node_of(self, unique_id: str) -> Node:
        """Return a node that dbt is not running."""
        return self.node(self._project.context_of(unique_id))

    def running(self, node: Node) -> AbstractContextManager[None]:
        """Show the progress of a node to the user while this thread runs it."""
        return self._adapter.progress.node(node.model["name"], node.warehouse.follow)

    @contextmanager
    def connected(self, mirrored: MirroredNode) -> Iterator[Node]:
        """Take a connection for a node that dbt is not running."""
        with self._adapter.connection_named(f"publish {mirrored.unique_id}"):
            node = self.node_of(mirrored.unique_id)
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
        if flags.is_publishing():
            self._tell_left()
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

    def _tell_left(self) -> None:
        """Warn of mirrored tables that no node publishes any more: reports read their old rows.

        The node was removed, disabled or renamed, or is a view now; or dbt makes a view of the
        name, without a node.
        """
        try:
            left = self.tables().left(self.has_published)
        except DbtRuntimeError as error:  # a node that publishes reports it
            logger.debug(f"The landing zone could not be searched: {error.msg}")
            return
        if left:
            told = ", ".join(f"{each.path} ({each.note})" for each in left)
            _warn(
                f"No node here publishes {told}, so reports read old rows. To go on with a table, "
                "give it a mirrored node again. `dbt run-operation mirror_drop_orphans` lists "
                "tables without a node, and says how to drop them.",
                "OM428",
            )

    def check_selected(self) -> None:
        """Check, once in a command, that all nodes can be built that it has selected.

        Raises:
            CompilationError: if two nodes would be one table, or a node is not configured right
            MirrorError: if nothing can be published to the landing zone
        """
        if self._is_checked or not (flags.is_building() or flags.command() == "compile"):
            return
        self._is_checked = True
        functions = getattr(self._project.manifest, "functions", {})
        everything = {**self._project.nodes, **functions}
        nodes = [everything[name] for name in flags.selected() if name in everything]
        self._check(nodes)
        if flags.is_publishing() and any(is_mirrored(node.config) for node in nodes):
            self._destination.check_before_nodes()

    def _check(self, nodes: Iterable[ManifestNode]) -> None:
        refuse_same_tables([*self._project.nodes.values(), *self._project.pointers()])
        problems = []
        for node in nodes:
            try:
                self._check_node(node)
            except DbtRuntimeError as error:
                problems.append(f"{node.unique_id} ({node.original_file_path}): {error.msg}")
        if problems:
            raise CompilationError("\n".join(problems))

    def _check_node(self, node: ManifestNode) -> None:
        if str(node.resource_type) == "function":
            refuse_function(node.to_dict(omit_none=True))
            return
        kind = node.config.get("materialized")
        if node.resource_type not in NODES or kind == "ephemeral":
            return
        config = given(node.config.to_dict(omit_none=True))
        refuse_grants(config)
        if config.get("mirror") is True:
            why_not_mirrored(node, self._project)
        if kind in MIRRORED:
            self._check_table(node, config)

    def _check_table(self, node: ManifestNode, config: Mapping[str, Any]) -> None:
        described = node.to_dict(omit_none=True)
        refuse_hidden(config, self._project.columns_of(described))
        options = NodeConfig.parse(config, self._destination.onelake is not None)
        schema, identifier = str(node.schema), str(node.alias)
        file_format = str(config.get("file_format"))
        check_name(schema, identifier, file_format, self._adapter.is_embedded)
        if options.mirror:
            TableFolder(schema if options.schema_folder else "", identifier)
        if getattr(node, "language", None) == "python" and not self._adapter.runs_python:
            raise no_python_models()
        if (config.get("contract") or {}).get("enforced"):
            declared = declared_constraints(described)
            constraints_of(
                [ModelLevelConstraint.from_dict(c) for c in declared if c["type"] in VERIFIED]
            )

    def _note_builds(self, gated: Sequence[ManifestNode]) -> None:
        """Record the held builds, because the tests of this command read them."""
        warehouse = self.warehouse({})
        for node in gated:
            relation = self._adapter.relation_of(node)
            held = self._held(relation)
            if held and held.is_finished:
                build = warehouse.marks(warehouse.found(relation)).build
                if held.build == build:
                    self._destination.builds[node.unique_id] = build

    def _recover_before_compiling(self, nodes: Sequence[ManifestNode]) -> None:
        # Only the schemas of this target: another target may share the landing zone, but have its
        # relations in another Spark.
        schemas = {str(node.schema) for node in nodes}
        for schema in self.recovery.finish_schemas(self.tables(), schemas):
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

    def _restore(self, lost: ManifestNode, is_own: bool) -> None:
        if self.warehouse({}).found(self._adapter.relation_of(lost)) is None:
            node = self.node_of(lost.unique_id)
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
            if is_mirrored(node.config) and Table(warehouse, target).is_interrupted:
                try:
                    recover_node(self.node_of(node.unique_id), self._destination)
                except DbtRuntimeError as error:  # the node reports it
                    logger.debug(f"{target}: {error.msg}")

    def tell_not_mirrored(self, config: object) -> None:
        """Warn, once in a command, that a node is not mirrored although it looks like it."""
        node: ManifestNode | None = getattr(config, "model", None)
        if node is None or node.resource_type not in NODES or node.unique_id in self._told:
            return
        self._told.add(node.unique_id)
        warning = why_not_mirrored(node, self._project)
        if warning:
            _warn(warning, "OM208")

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
        raise RefusedError(
            f"{target} is a mirrored table, and {state}: the next run would rebuild the mirrored "
            "table with what the model computes then. Nothing was changed. Clone into another "
            "schema, or leave this node out with `--exclude`.",
            code="OM404",
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
        try:
            in_spark = Table(self.warehouse({}), relation, journal=table.journal)
            in_spark.look()
        except DbtRuntimeError as error:  # what Spark cannot describe shows nothing
            logger.debug(f"{relation}: {error.msg}")
            return False
        return in_spark.build == batch.build

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
        published = Table(warehouse, model, journal=last)
        if published.look().is_ahead:
            return published.relation
        if last is None and published.build:
            held = self._held(model)
            if held and held.build == published.build:
                return None
        return model

    def _held(self, relation: OpenMirroringRelation) -> Held | None:
        storage = self._destination.storage()
        return held_rows(storage, str(relation.schema), str(relation.identifier))

    def _last_published(self, relation: OpenMirroringRelation) -> Journal | None:
        schema, identifier = str(relation.schema), str(relation.identifier)
        published = last_published(self._destination.storage(), schema, identifier)
        return published[1] if published else None

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
    tables = {node.unique_id: node}
    open_ = [node]
    while open_:
        below = getattr(open_.pop().depends_on, "nodes", ())
        for each in (nodes[name] for name in below if name in nodes and name not in tables):
            tables[each.unique_id] = each
            if not is_mirrored(each.config):
                open_.append(each)
    return list(tables.values())


def _warn(text: str, code: str) -> None:
    """Warn of something, or fail if the user takes warnings for errors."""
    warn_or_error(AdapterEventWarning(base_msg=with_code(text, code)))


def _in_graph(node: ManifestNode) -> Mapping[str, Any]:
    """Return what `ProjectTables` needs of a node, by its names in dbt's graph."""
    names = ("unique_id", "name", "schema", "alias", "resource_type", "config")
    return {name: getattr(node, name) for name in names}


def is_gated(config: Config) -> bool:
    """Check whether a node with this configuration is published after its tests."""
    return is_mirrored(config) and config.get("publish") == AFTER_TESTS


def refuse_same_tables(nodes: Iterable[ManifestNode]) -> None:
    """Check that no mirrored node shares its relation or its mirrored table with another node.

    dbt checks this too, but `Orders` and `orders` are two names for it.
    """
    tables = [
        node
        for node in nodes
        if node.resource_type in NODES and node.config.get("materialized") != "ephemeral"
    ]
    for one, other in _pairs(tables, _relation):
        raise RefusedError(
            f"{_shown(one)} and {_shown(other)} are one table for Spark, which ignores case: each "
            "of them would replace the rows of the other one, in Spark and in the mirror. Nothing "
            "was changed. Give one of them another `alias` or `schema`.",
            code="OM206",
        )
    for one, other in _pairs(tables, _mirrored_table):
        raise RefusedError(
            f"{_shown(one)} and {_shown(other)} would both be the mirrored table "
            f"{_mirrored_table(one)}: `schema_folder: false` puts a table folder at the root of "
            "the landing zone. Nothing was changed. Give one of them another `alias`, or remove "
            "`schema_folder: false`.",
            code="OM207",
        )


def _pairs(
    nodes: Iterable[ManifestNode], name_of: Callable[[ManifestNode], str | None]
) -> Iterable[tuple[ManifestNode, ManifestNode]]:
    """Yield two nodes of each name that several have, if at least one of these is mirrored."""
    named: dict[str, list[ManifestNode]] = {}
    for node in nodes:
        name = name_of(node)
        if name is not None:
            named.setdefault(name, []).append(node)
    for same in named.values():
        # the mirrored one first, which would lose its rows
        same.sort(key=lambda node: (not is_mirrored(node.config), node.unique_id))
        if len(same) > 1 and is_mirrored(same[0].config):
            yield same[0], same[1]


def _relation(node: ManifestNode) -> str:
    return f"{node.schema}.{node.alias}".lower()


def _mirrored_table(node: ManifestNode) -> str | None:
    if not is_mirrored(node.config):
        return None
    has_folder = node.config.get("schema_folder") is not False
    return f"{node.schema if has_folder else DEFAULT_SCHEMA}.{node.alias}"


def _shown(node: ManifestNode) -> str:
    return f"{node.unique_id} ({node.schema}.{node.alias})"


def why_not_mirrored(node: ManifestNode, project: Project) -> str:
    """Return why a node is not mirrored although its configuration looks like it, as a warning.

    It is empty if the node is mirrored, or does not look like it.

    Raises:
        CompilationError: if the node asks to be mirrored with `mirror: true`
    """
    config, kind = node.config, node.config.get("materialized")
    is_asked = config.get("mirror") is True
    # without the options of dbt-spark
    names = ("unique_key", *OpenMirroringConfig.__annotations__)
    is_like_it = is_mirrored(config) or any(config.get(name) for name in names)
    if config.get("mirror") is False or kind == "view" or not is_like_it:
        return ""
    macro = project.materialization(kind)
    if macro is None or macro.package_name in BUILT_IN or project.publishes(kind):
        return ""
    what = (
        f"{node.unique_id} is not mirrored: its materialization `{kind}` of the package "
        f"{macro.package_name} does not publish"
    )
    if is_asked:
        raise RefusedError(
            f"{what}, and it has `mirror: true`. Nothing was changed. Use `table` or "
            "`incremental`, or remove `mirror: true`.",
            code="OM208",
        )
    return f"{what}. Use `table` or `incremental`, or set `mirror: false` to end this warning."
