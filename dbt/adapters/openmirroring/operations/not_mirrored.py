"""Nodes that look mirrored, but have a materialization that does not publish."""

from __future__ import annotations

from collections.abc import Mapping

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.dbt_core.project import Macro, ManifestNode, Project
from dbt.adapters.openmirroring.node.config import OpenMirroringConfig
from dbt.adapters.openmirroring.operations.project_tables import is_mirrored

# the packages of dbt and of its adapters; what they materialize is documented
_BUILT_IN = ("dbt", "dbt_spark", "dbt_openmirroring")


def why_not_mirrored(node: ManifestNode, project: Project) -> str:
    """Return why a node is not mirrored although its configuration looks like it.

    Args:
        node: the node, as in dbt's manifest
        project: the dbt project

    Returns:
        a text for a warning; empty if the node is mirrored, or does not look like it

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
