"""Nodes of a dbt project that would be one table, in Spark or in the mirrored database."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.dbt_core.project import ManifestNode
from dbt.adapters.openmirroring.landing_zone.layout import DEFAULT_SCHEMA
from dbt.adapters.openmirroring.operations.project_tables import NODES, is_mirrored


def refuse_same_tables(nodes: Iterable[ManifestNode]) -> None:
    """Check that no mirrored node shares its relation or its mirrored table with another node.

    dbt checks this too, but `Orders` and `orders` are two names for it. For Spark they are one
    table, so that each node would replace the rows of the other one.

    Args:
        nodes: all enabled nodes of the dbt project, as in dbt's manifest

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
