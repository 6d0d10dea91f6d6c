"""The dbt project of a command: its nodes and macros, and the contexts in which they run.

dbt gives them to its adapters, but documents no interface for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from dbt.adapters.base.impl import BaseAdapter
from dbt.adapters.events.types import ConstraintNotSupported
from dbt_common.contracts.constraints import ConstraintType, ModelLevelConstraint
from dbt_common.events.functions import warn_or_error

if TYPE_CHECKING:
    from dbt.contracts.graph.manifest import Manifest as Manifest
    from dbt.contracts.graph.nodes import Macro as Macro
    from dbt.contracts.graph.nodes import ManifestNode as ManifestNode
    from dbt_common.contracts.config.base import BaseConfig

    # the configuration of a node, as dbt's object or as the mapping in its graph
    Config = BaseConfig | Mapping[str, Any]

# the variables and macros that dbt gives to Jinja
Context = Mapping[str, Any]


class Graph(TypedDict):
    """dbt's graph: its nodes by unique id."""

    nodes: Mapping[str, Mapping[str, Any]]


class Project:
    """The dbt project of a command.

    Args:
        adapter: the adapter, which gets the manifest when dbt has parsed the project
    """

    def __init__(self, adapter: BaseAdapter) -> None:
        self._adapter = adapter
        self._config = adapter.config

    @property
    def name(self) -> str:
        return str(self._config.project_name)

    @property
    def target(self) -> str:
        """The name of the target."""
        return str(self._config.target_name)

    @property
    def schema(self) -> str:
        """The schema of the target."""
        return str(self._config.credentials.schema)

    @property
    def threads(self) -> int:
        return int(self._config.threads)

    @property
    def target_folder(self) -> Path:
        """dbt's own folder for what a command makes."""
        return Path(self._config.project_target_path)

    @property
    def manifest(self) -> Manifest:
        manifest: Any = self._adapter.get_macro_resolver()
        found: Manifest = manifest
        return found

    @property
    def nodes(self) -> MutableMapping[str, ManifestNode]:
        """The enabled nodes by unique id. None if a tool has loaded nothing but macros."""
        nodes: MutableMapping[str, ManifestNode] = getattr(self.manifest, "nodes", {})
        return nodes

    @property
    def functions(self) -> Mapping[str, ManifestNode]:
        """The enabled functions by unique id."""
        functions: Mapping[str, ManifestNode] = getattr(self.manifest, "functions", {})
        return functions

    def context_of(self, unique_id: str) -> Context:
        """Return the context of a node that dbt is not running."""
        # dbt loads the adapter before its contexts can be imported
        from dbt.context.providers import generate_runtime_model_context

        manifest: Any = self.manifest
        node = manifest.nodes[unique_id]
        return generate_runtime_model_context(node, self._config, manifest)

    @cached_property
    def context(self) -> Context:
        """A context that belongs to no node."""
        from dbt.context.providers import generate_runtime_macro_context

        manifest: Any = self.manifest
        macro = manifest.find_macro_by_name("mirror_recover", self.name, None)
        return generate_runtime_macro_context(macro, self._config, manifest, None)

    def columns_of(self, model: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the columns that the project describes of a node: their names and properties.

        dbt keeps only `meta` and `tags` of the `config` of a column, so the file is read too.

        Args:
            model: the node as in its context
        """
        yield from (model.get("columns") or {}).items()
        file = getattr(self.manifest, "files", {}).get(model.get("patch_path"))
        for kind in ("models", "seeds", "snapshots"):
            for node in (file.dict_from_yaml.get(kind) or ()) if file else ():
                if node["name"] != model["name"]:
                    continue
                for version in (node, *(node.get("versions") or ())):
                    for column in version.get("columns") or ():
                        if isinstance(column.get("config"), dict):
                            yield column["name"], column["config"]

    def materialization(self, name: str) -> Macro | None:
        """Return the macro of a materialization."""
        return self.manifest.find_materialization_macro_by_name(self.name, name, "openmirroring")


def supported_constraints(
    adapter: BaseAdapter, declared: Iterable[dict[str, Any]]
) -> list[ModelLevelConstraint]:
    """Return the constraints that an adapter supports. Warn about all others.

    Args:
        declared: the constraints, in the form of a node's constraints
    """
    found = []
    for raw in declared:
        constraint = adapter._parse_model_constraint(raw)
        if constraint.type == ConstraintType.custom:
            warn_or_error(ConstraintNotSupported(constraint="custom", adapter=adapter.type()))
        elif adapter.process_parsed_constraint(constraint, lambda _: "supported"):
            found.append(constraint)
    return found
