"""Checks of options and names, before the first node is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt_common.contracts.constraints import ModelLevelConstraint
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.dbt_core.project import ManifestNode, Project
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.node.config import NodeConfig, given
from dbt.adapters.openmirroring.node.constraints import (
    VERIFIED,
    constraints_of,
    declared_constraints,
)
from dbt.adapters.openmirroring.node.other_options import refuse_hidden
from dbt.adapters.openmirroring.node.snapshot.scratch_tables import check_name
from dbt.adapters.openmirroring.operations.not_mirrored import why_not_mirrored
from dbt.adapters.openmirroring.operations.project_tables import MIRRORED, NODES
from dbt.adapters.openmirroring.spark.refusals import (
    no_python_models,
    refuse_function,
    refuse_grants,
)


@dataclass(frozen=True)
class NodeChecks:
    """The checks of nodes that need neither Spark nor the landing zone.

    Args:
        in_onelake: whether the landing zone is in OneLake
        is_embedded: whether Spark is the embedded one
        runs_python: whether Spark runs Python models
    """

    project: Project
    in_onelake: bool
    is_embedded: bool
    runs_python: bool

    def refuse(self, nodes: Iterable[ManifestNode]) -> None:
        """Check all nodes, so that the user sees all errors at once.

        Raises:
            CompilationError: if nodes are not configured right; the message names each of them
        """
        found = []
        for node in nodes:
            try:
                self._check(node)
            except DbtRuntimeError as error:
                found.append(f"{node.unique_id} ({node.original_file_path}): {error.msg}")
        if found:
            raise CompilationError("\n".join(found))

    def _check(self, node: ManifestNode) -> None:
        if node.resource_type == "function":
            refuse_function(node.to_dict(omit_none=True))
            return
        kind = node.config.get("materialized")
        if node.resource_type not in NODES or kind == "ephemeral":
            return
        config = given(node.config.to_dict(omit_none=True))
        refuse_grants(config)
        if config.get("mirror") is True:
            why_not_mirrored(node, self.project)
        if kind == "snapshot":  # as in a node: that of its source repeats in its history
            config["unique_key"] = "dbt_scd_id"
        if kind in MIRRORED:
            self._check_table(node, config)

    def _check_table(self, node: ManifestNode, config: Mapping[str, Any]) -> None:
        described = node.to_dict(omit_none=True)
        refuse_hidden(config, self.project.columns_of(described))
        options = NodeConfig.parse(config, self.in_onelake)
        schema, identifier = str(node.schema), str(node.alias)
        check_name(schema, identifier, str(config.get("file_format")), self.is_embedded)
        if options.mirror:
            TableFolder(schema if options.schema_folder else "", identifier)
        if getattr(node, "language", None) == "python" and not self.runs_python:
            raise no_python_models()
        if (config.get("contract") or {}).get("enforced"):
            declared = declared_constraints(described)
            constraints_of(
                [ModelLevelConstraint.from_dict(c) for c in declared if c["type"] in VERIFIED]
            )
