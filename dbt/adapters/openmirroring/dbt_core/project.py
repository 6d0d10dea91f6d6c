"""The dbt project of a command: its nodes and macros, and the contexts in which they run.

dbt gives them to its adapters, but documents no interface for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict

from dbt.adapters.base.impl import BaseAdapter
from dbt.adapters.events.types import ConstraintNotSupported
from dbt_common.contracts.constraints import ConstraintType, ModelLevelConstraint
from dbt_common.events.functions import warn_or_error

from dbt.adapters.openmirroring.dbt_core.flags import makes_pointers

if TYPE_CHECKING:
    from dbt.contracts.graph.nodes import Macro as Macro
    from dbt.contracts.graph.nodes import ManifestNode as ManifestNode
    from dbt_common.contracts.config.base import BaseConfig

    # the configuration of a node, as dbt's object or as the mapping in its graph
    Config = BaseConfig | Mapping[str, Any]

# the packages of dbt and of its adapters; what they materialize is documented
BUILT_IN = ("dbt", "dbt_spark", "dbt_openmirroring")

# the macro of dbt 1.12 and newer that names the view of a model's latest version
_POINTER_ALIAS = "generate_latest_version_pointer_alias"

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
        self.config: Any = adapter.config
        """dbt's `RuntimeConfig` of the project and its target."""

    @property
    def manifest(self) -> Any:
        """dbt's `Manifest`. If a tool has loaded nothing but macros, it has no nodes."""
        return self._adapter.get_macro_resolver()

    @property
    def nodes(self) -> MutableMapping[str, ManifestNode]:
        """The enabled nodes by unique id."""
        return getattr(self.manifest, "nodes", {})

    @property
    def disabled(self) -> Collection[str]:
        """The unique ids of the disabled nodes."""
        return getattr(self.manifest, "disabled", {}).keys()

    def pointers(self) -> Iterator[ManifestNode]:
        """Yield, as nodes, the views that dbt makes of the latest versions of models.

        They have no node in the manifest. dbt makes them in `ModelRunner` of `dbt/task/run.py`,
        from a node like this one.
        """
        by_default = makes_pointers()
        nodes: list[Any] = list(self.nodes.values())
        for node in nodes:
            # with an older dbt, an option of this name is of somebody else
            pointer = getattr(node.config, "latest_version_pointer", None)
            if pointer is None or node.config.materialized == "ephemeral":
                continue
            is_made = by_default if pointer.enabled is None else pointer.enabled
            if is_made and node.version is not None and node.is_latest_version:
                alias = str(pointer.alias).strip() if pointer.alias else None
                given = {"custom_alias_name": alias, "node": node.to_dict(omit_none=True)}
                name = self._adapter.execute_macro(_POINTER_ALIAS, kwargs=given)
                yield replace(
                    node,
                    unique_id=f"{node.unique_id}__latest_version_pointer",
                    alias=str(name).strip(),
                    config=replace(node.config, materialized="view"),
                )

    def context_of(self, unique_id: str) -> Context:
        """Return the context of a node that dbt is not running."""
        # dbt loads the adapter before its contexts can be imported
        from dbt.context.providers import generate_runtime_model_context

        manifest = self.manifest
        return generate_runtime_model_context(manifest.nodes[unique_id], self.config, manifest)

    @cached_property
    def context(self) -> Context:
        """A context that belongs to no node."""
        from dbt.context.providers import generate_runtime_macro_context

        name = self.config.project_name
        macro = self.manifest.find_macro_by_name("mirror_recover", name, None)
        return generate_runtime_macro_context(macro, self.config, self.manifest, None)

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
        project = self.config.project_name
        macro: Macro | None
        macro = self.manifest.find_materialization_macro_by_name(project, name, "openmirroring")
        return macro

    def publishes(self, name: str) -> bool:
        """Check whether a materialization of the project or of a package publishes.

        It does if it calls one of this adapter, or the adapter itself.
        """
        macro = self.materialization(name)
        if macro is None or macro.package_name in BUILT_IN:
            return False
        macros: Mapping[str, Macro] = self.manifest.macros
        found, ahead = {macro.unique_id}, [macro]
        while ahead:
            macro = ahead.pop()
            if "adapter.materialize(" in macro.macro_sql:
                return True
            for called in macro.depends_on.macros:
                if called not in found and called in macros:
                    found.add(called)
                    ahead.append(macros[called])
        return False


def supported_constraints(
    adapter: BaseAdapter, declared: Iterable[dict[str, Any]]
) -> list[ModelLevelConstraint]:
    """Return the constraints of a node that an adapter supports. Warn about all others."""
    found = []
    for raw in declared:
        constraint = adapter._parse_model_constraint(raw)
        if constraint.type == ConstraintType.custom:
            warn_or_error(ConstraintNotSupported(constraint="custom", adapter=adapter.type()))
        elif adapter.process_parsed_constraint(constraint, lambda _: "supported"):
            found.append(constraint)
    return found
