"""Checks of options and names, before the first node is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dbt_common.contracts.constraints import ModelLevelConstraint
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.dbt_core.project import Project
from dbt.adapters.openmirroring.landing_zone.layout import DEFAULT_SCHEMA, TableFolder
from dbt.adapters.openmirroring.node.build import (
    VERIFIED,
    constraints_of,
    declared_constraints,
)
from dbt.adapters.openmirroring.node.config import (
    NodeConfig,
    OpenMirroringConfig,
    given,
    refuse_hidden,
)
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import check_name
from dbt.adapters.openmirroring.operations.project_tables import MIRRORED, NODES, is_mirrored
from dbt.adapters.openmirroring.spark.refusals import (
    no_python_models,
    refuse_function,
    refuse_grants,
)

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.dbt_core.project import Macro, ManifestNode

# the packages of dbt and of its adapters; what they materialize is documented
_BUILT_IN = ("dbt", "dbt_spark", "dbt_openmirroring")


def check_nodes(
    nodes: Iterable[ManifestNode],
    project: Project,
    *,
    in_onelake: bool,
    is_embedded: bool,
    runs_python: bool,
) -> None:
    """Check nodes without Spark and the landing zone, so that the user sees all errors at once.

    Raises:
        CompilationError: if nodes are not configured right; the message names each of them
    """

    def check(node: ManifestNode) -> None:
        if str(node.resource_type) == "function":
            refuse_function(node.to_dict(omit_none=True))
            return
        kind = node.config.get("materialized")
        if node.resource_type not in NODES or kind == "ephemeral":
            return
        config = given(node.config.to_dict(omit_none=True))
        refuse_grants(config)
        if config.get("mirror") is True:
            why_not_mirrored(node, project)
        if kind == "snapshot":  # as in a node: that of its source repeats in its history
            config["unique_key"] = "dbt_scd_id"
        if kind in MIRRORED:
            check_table(node, config)

    def check_table(node: ManifestNode, config: Mapping[str, Any]) -> None:
        described = node.to_dict(omit_none=True)
        refuse_hidden(config, project.columns_of(described))
        options = NodeConfig.parse(config, in_onelake)
        schema, identifier = str(node.schema), str(node.alias)
        check_name(schema, identifier, str(config.get("file_format")), is_embedded)
        if options.mirror:
            TableFolder(schema if options.schema_folder else "", identifier)
        if getattr(node, "language", None) == "python" and not runs_python:
            raise no_python_models()
        if (config.get("contract") or {}).get("enforced"):
            declared = declared_constraints(described)
            constraints_of(
                [ModelLevelConstraint.from_dict(c) for c in declared if c["type"] in VERIFIED]
            )

    found = []
    for node in nodes:
        try:
            check(node)
        except DbtRuntimeError as error:
            found.append(f"{node.unique_id} ({node.original_file_path}): {error.msg}")
    if found:
        raise CompilationError("\n".join(found))


def refuse_same_tables(nodes: Iterable[ManifestNode]) -> None:
    """Check that no mirrored node shares its relation or its mirrored table with another node.

    dbt checks this too, but `Orders` and `orders` are two names for it. For Spark they are one
    table, so that each node would replace the rows of the other one.

    Raises:
        CompilationError: if two nodes would be one table
    """
    found = [
        node
        for node in nodes
        if node.resource_type in NODES and node.config.get("materialized") != "ephemeral"
    ]
    for one, other in _pairs(found, _relation):
        raise CompilationError(
            f"{_shown(one)} and {_shown(other)} are one table for Spark, which ignores case: each "
            "of them would replace the rows of the other one, in Spark and in the mirror. Nothing "
            "was changed. Give one of them another `alias` or `schema`."
        )
    for one, other in _pairs(found, _mirrored_table):
        raise CompilationError(
            f"{_shown(one)} and {_shown(other)} would both be the mirrored table "
            f"{_mirrored_table(one)}: `schema_folder: false` puts a table folder at the root of "
            "the landing zone. Nothing was changed. Give one of them another `alias`, or remove "
            "`schema_folder: false`."
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
    if (
        macro is None
        or macro.package_name in _BUILT_IN
        or _publishes(macro, project.manifest.macros)
    ):
        return ""
    found = (
        f"{node.unique_id} is not mirrored: its materialization `{kind}` of the package "
        f"{macro.package_name} does not publish"
    )
    if is_asked:
        raise CompilationError(
            f"{found}, and it has `mirror: true`. Nothing was changed. Use `table` or "
            "`incremental`, or remove `mirror: true`."
        )
    return f"{found}. Use `table` or `incremental`, or set `mirror: false` to end this warning."


def _publishes(macro: Macro, macros: Mapping[str, Macro]) -> bool:
    """Check whether a materialization calls one of this adapter, or the adapter itself."""
    found, ahead = {macro.unique_id}, [macro]
    while ahead:
        macro = ahead.pop()
        if "adapter.materialize(" in macro.macro_sql:
            return True
        for name in macro.depends_on.macros:
            if name not in found and name in macros:
                found.add(name)
                ahead.append(macros[name])
    return False
