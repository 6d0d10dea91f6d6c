"""Options of other adapters that would change rows or their publication.

They are refused, because a run without them would give other rows than the user expects. Options
that only change how a table is stored or where a model runs (`zorder`, `databricks_tags`,
`cluster_id`) are ignored, as options that a project has invented for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dbt_common.exceptions import CompilationError

_LEAVE = "Join `{{ this }}` in the model, and leave out the rows "
_ALIASES = (
    "Write DBT_INTERNAL_DEST for the table and DBT_INTERNAL_SOURCE for the new rows in "
    "`incremental_predicates`"
)
_GONE = (
    "Set `materialized: table`, with which rows that the model no longer selects are deleted; or "
    "select them from `{{ this }}` with their new values"
)

# how to get the same from an incremental model; of dbt-databricks, the last two of dbt-fabric
INCREMENTAL = {
    "skip_matched_step": f"{_LEAVE}whose key it has",
    "skip_not_matched_step": f"{_LEAVE}whose key it does not have",
    # the name in the declaration of dbt-databricks; its macros read the other one
    "skip_non_matched_step": f"{_LEAVE}whose key it does not have",
    "matched_condition": f"{_LEAVE}that must not replace theirs",
    "not_matched_condition": f"{_LEAVE}that must not be added",
    "not_matched_by_source_action": _GONE,
    "not_matched_by_source_condition": _GONE,
    "merge_with_schema_evolution": "Set `on_schema_change: append_new_columns`",
    "target_alias": _ALIASES,
    "source_alias": _ALIASES,
    "delete_not_matched_by_source": _GONE,
    "delete_condition": "Set `delete_when`, whose condition is about the new rows",
}

# how to get the same from any node; of dbt-databricks, dbt-core and dbt-fabricspark
EVERYWHERE = {
    "table_format": "Set `file_format: iceberg`",
    "database": "Name the catalog in the schema: `schema: catalog.schema`",
    "catalog_name": "Name the catalog in the schema: `schema: catalog.schema`",
    "persist_constraints": "Enforce a contract, whose constraints are checked before rows are "
    "published",
    "workspace_name": "Set `landing_zone` in the profile, which says where tables are published",
}

# parts of the names of options that hide rows or values from some readers: `column_mask` and
# `row_filter` of dbt-databricks, `policy_tags` of dbt-bigquery, `row_access_policy` and
# `masking_policy` of Snowflake, `lf_tags_config` and `lf_grants` of dbt-athena
_HIDES = re.compile(
    "mask|row_?(access|filter|level|polic|security)|policy_tags|^lf_(tags|grants)", re.IGNORECASE
)

# how dbt-databricks spells that an option is off
_OFF = ("", "none", "false", "default")


def refuse_other_options(config: Mapping[str, Any]) -> None:
    """Check that a node has no option of another adapter that would change its rows.

    Args:
        config: the configuration of the node

    Raises:
        CompilationError: if it has one; the message says what to use instead
    """
    if config.get("materialized") == "view":
        return
    is_incremental = config.get("materialized") == "incremental"
    refused = {**EVERYWHERE, **(INCREMENTAL if is_incremental else {})}
    for name, remedy in refused.items():
        if _is_on(config.get(name)):
            raise _refused(f"`{name}`", remedy)
    if config.get("incremental_strategy") == "replace_where" and is_incremental:
        remedy = "Set `insert_overwrite` with `partition_by`, which replaces whole partitions"
        raise _refused("`incremental_strategy: replace_where`", remedy)
    if config.get("incremental_strategy") == "insert_overwrite" and is_incremental:
        for name in ("liquid_clustered_by", "auto_liquid_cluster"):
            # without it, all rows would be replaced
            if _is_on(config.get(name)) and not config.get("partition_by"):
                remedy = "Set `partition_by`: the partitions of the new rows are replaced"
                raise _refused(f"`{name}` with insert_overwrite", remedy)


def refuse_hidden(
    config: Mapping[str, Any], columns: Iterable[tuple[str, Mapping[str, Any]]]
) -> None:
    """Check that a node has no option that hides rows or values from some readers.

    Args:
        config: the configuration of the node
        columns: the names of its columns, with their properties or configuration

    Raises:
        CompilationError: if it has one, because everybody could read them in the mirrored table
    """
    if config.get("materialized") == "view":
        return
    of_columns = ((f" of the column `{name}`", options) for name, options in columns)
    for place, options in (("", config), *of_columns):
        for name, value in options.items():
            if _HIDES.search(name) and _is_on(value):
                raise CompilationError(
                    f"`{name}`{place} is not supported: everybody who reads the mirrored table "
                    "would see what it hides. Nothing was changed. Let the model select what "
                    "everybody may see, e.g. sha2(email, 256) as email, and remove the option; "
                    "or restrict in Fabric who sees what."
                )


def _is_on(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().lower() not in _OFF
    return bool(value)


def _refused(option: str, remedy: str) -> CompilationError:
    return CompilationError(
        f"{option} is not supported, and without it the table would have other rows or another "
        f"place. Nothing was changed. {remedy}."
    )
