"""The configuration of a node, which is checked before anything is built.

Options of other adapters that would change rows or their publication are refused, because a run
without them would give other rows than the user expects. Options that only change how a table is
stored or where a model runs (`zorder`, `databricks_tags`, `cluster_id`) are ignored, as options
that a project has invented for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from functools import cache
from typing import Any

from dbt.adapters.spark.impl import SparkConfig
from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import (
    ALLOWED,
    COLUMN_SEPARATORS,
    LAST_UPDATE_TIME,
    UPSERT,
    DelimitedText,
)
from dbt.adapters.openmirroring.node.options import (
    IMMEDIATELY,
    ON_REQUEST,
    given,
    mapping,
    one_of,
    read_options,
)
from dbt.adapters.openmirroring.spark.refusals import refuse_grants
from dbt.adapters.openmirroring.text.errors import RefusedError

# spellings of numbers, dates and booleans, which are written without quotes
_UNQUOTED = re.compile(r"[-+]?\d.*|true|false|[-+]?(nan|inf.*)", re.IGNORECASE | re.DOTALL)


@dataclass
class OpenMirroringConfig(SparkConfig):
    """The adapter's options as dbt knows them. NodeConfig checks their names and values."""

    mirror: bool | None = None
    on_breaking_change: str | None = None
    insert_marker: str | None = None
    landing_format: str | None = None
    delimited: dict[str, Any] | None = None
    compression: str | None = None
    file_detection: str | None = None
    default_row_marker: str | None = None
    schema_folder: bool | None = None
    target_file_size: str | None = None
    delete_when: str | None = None
    publish: str | None = None
    max_deleted: int | str | None = None
    on_foreign_changes: str | None = None


@dataclass(frozen=True)
class HistoryConfig:
    """How a dbt snapshot finds the rows of its source that have changed.

    Args:
        key: SQL of its `unique_key`, which repeats in its history
        updated_at: SQL of the time of a row; None for the time of the run
        records_deletes: a row that is gone gets a version of its own
    """

    key: tuple[str, ...]
    strategy: str
    updated_at: str | None = None
    records_deletes: bool = False


@dataclass(frozen=True)
class NodeConfig:
    """How a node is mirrored.

    Args:
        unique_key: columns for `keyColumns`, as the user spells them
        mirror: False keeps the node in Spark only
        insert_marker: row marker of new rows in a change set
        delimited: how delimited text is written; None for Parquet
        file_detection: how the service orders the files: by number, or by the time of each
        default_row_marker: meaning of a row without a row marker
        schema_folder: False puts the table folder at the root of the landing zone
        target_file_size: bytes
        incremental_strategy: one of INCREMENTAL_STRATEGIES
        merge_update_columns: columns that a merge updates in existing rows; if it is empty, all
            but those of `merge_exclude_columns`
        incremental_predicates: SQL conditions that a new row must meet to match a published row
        delete_when: SQL condition; a new row that meets it deletes instead of upserting
        max_deleted: limit of the rows that one publication may delete: their number, or (a float)
            a percentage of the published rows
        history: of a dbt snapshot, whose `unique_key` here is the id of a version
    """

    unique_key: tuple[str, ...] = ()
    mirror: bool = True
    on_breaking_change: str = "rebuild"
    insert_marker: str = "upsert"
    landing_format: str = "parquet"
    delimited: DelimitedText | None = None
    compression: str = "zstd"
    file_detection: str = "sequential"
    default_row_marker: str = "insert"
    schema_folder: bool = True
    target_file_size: int = 128 * 2**20
    incremental_strategy: str = "append"
    on_schema_change: str = "ignore"
    merge_update_columns: tuple[str, ...] = ()
    merge_exclude_columns: tuple[str, ...] = ()
    incremental_predicates: tuple[str, ...] = ()
    delete_when: str | None = None
    partition_by: tuple[str, ...] = ()
    publish: str = IMMEDIATELY
    max_deleted: int | float | None = None
    on_foreign_changes: str = "fail"
    history: HistoryConfig | None = None

    @property
    def is_held(self) -> bool:
        return self.publish != IMMEDIATELY

    @property
    def strategy_macro(self) -> str:
        return f"mirror_{self.incremental_strategy.replace('+', '_')}"

    @property
    def held_until(self) -> str:
        """The time until which a held node stays held, as text for a message."""
        return "until mirror_publish" if self.publish == ON_REQUEST else "until its tests pass"

    @property
    def touched_by(self) -> list[tuple[str, ...]] | None:
        """Lists of columns: a new row of an incremental model may change rows of the snapshot.

        These agree with it in all columns of one list. None means that it may change any row.
        """
        if self.incremental_strategy in ("insert_overwrite", "microbatch"):
            if not self.partition_by:
                return None
            return [columns for columns in (self.partition_by, self.unique_key) if columns]
        return [self.unique_key] if self.unique_key else []

    def spelled(self, columns: Iterable[str]) -> NodeConfig:
        """Return these options with the names of columns as they are spelled in the table."""
        # for a Spark that is set to tell names by their case
        names = {name.lower(): name for name in columns}
        return replace(
            self,
            unique_key=tuple(names.get(name.lower(), name) for name in self.unique_key),
            partition_by=tuple(names.get(name.lower(), name) for name in self.partition_by),
        )

    @classmethod
    def parse(cls, config: Mapping[str, Any], in_onelake: bool = False) -> NodeConfig:
        """Read a node's configuration.

        Args:
            config: the whole configuration, with options of dbt and of other packages
            in_onelake: whether the landing zone is in OneLake

        Raises:
            CompilationError: if a value is unknown, options contradict each other, the name of
                an option looks like a misspelled option of this adapter, or an option of another
                adapter would change rows
        """
        config = given(config)
        for name in config:
            close = _misspelled(name)
            if close:
                raise RefusedError(
                    f"Unknown option `{name}`. Did you mean `{close}`?", code="OM201"
                )
        _refuse_other_options(config)
        read = read_options(config)
        if config.get("materialized") == "snapshot":
            _read_history(read)
        elif config.get("materialized") == "incremental":
            _read_incremental(read)
        landing_format = read.get("landing_format", cls.landing_format)
        parsed = cls(
            **{name: read[name] for name in read.keys() & cls.__dataclass_fields__.keys()},
            delimited=_delimited(config.get("delimited"), landing_format),
            compression=_compression(config.get("compression"), landing_format),
        )
        refuse_grants(config)
        if parsed.file_detection == LAST_UPDATE_TIME and in_onelake:
            raise RefusedError(
                "`file_detection: last_update_time` is for local landing zones: OneLake has no "
                "request that gives a file its time. Set `file_detection: sequential`.",
                code="OM212",
            )
        if config.get("insert_marker") and not parsed.unique_key:
            raise CompilationError(
                "`insert_marker` needs a `unique_key`: without one there are no row markers."
            )
        if parsed.default_row_marker == UPSERT and not parsed.unique_key:
            raise CompilationError(
                "`default_row_marker: upsert` needs a `unique_key`: an upsert looks for the key."
            )
        if parsed.default_row_marker == UPSERT and parsed.insert_marker != UPSERT:
            raise CompilationError(
                "`insert_marker: insert` contradicts `default_row_marker: upsert`, by which new "
                "rows are upserts. Remove one of them."
            )
        deletes = parsed.unique_key and parsed.incremental_strategy in ("merge", "delete+insert")
        if parsed.delete_when and not deletes:
            raise CompilationError(
                "`delete_when` is for incremental models with a `unique_key` and the strategy "
                "merge or delete+insert: it says which of the new rows delete."
            )
        return parsed


def _read_history(read: dict[str, Any]) -> None:
    """Check the options of a dbt snapshot with each other, and set the key of its versions."""
    key, strategy, updated_at = (read.get(n) for n in ("unique_key", "strategy", "updated_at"))
    if not key:
        raise CompilationError("A dbt snapshot needs a `unique_key`.")
    if "hard_deletes" in read and "invalidate_hard_deletes" in read:
        raise CompilationError(
            "`invalidate_hard_deletes` contradicts `hard_deletes`. Remove the first, which is old."
        )
    if strategy == "timestamp" and not updated_at:
        raise CompilationError("The strategy timestamp needs `updated_at`.")
    records_deletes = read.get("hard_deletes") == "new_record"
    names = read.get("snapshot_meta_column_names", {})
    read["unique_key"] = (names.get("dbt_scd_id", "dbt_scd_id"),)
    read["history"] = HistoryConfig(key, str(strategy), updated_at, records_deletes)


def _read_incremental(read: dict[str, Any]) -> None:
    """Check the options of an incremental model with each other, and set its strategy."""
    unique_key = read.get("unique_key")
    strategy = read.setdefault("incremental_strategy", "merge" if unique_key else "append")
    if strategy == "delete+insert" and not unique_key:
        raise CompilationError("The strategy delete+insert needs a `unique_key`.")
    if strategy == "microbatch" and not read.get("partition_by"):
        raise CompilationError(
            "The strategy microbatch requires a `partition_by` config: a column of the grain of "
            "`batch_size`, whose values are replaced."
        )
    if strategy == "microbatch" and not read.get("event_time"):
        raise CompilationError(
            "The strategy microbatch requires an `event_time` config: the column with the time of "
            "a row."
        )
    if read.get("merge_update_columns") and read.get("merge_exclude_columns"):
        raise CompilationError(
            "`merge_update_columns` contradicts `merge_exclude_columns`. Remove one of them."
        )
    if read.get("predicates"):  # dbt's old name comes first
        read["incremental_predicates"] = read["predicates"]


@cache  # the nodes of a project have the same options, and looking for a name is slow
def _misspelled(name: str) -> str:
    """Return the option of this adapter that a name is like; empty if it is another option."""
    ours = {field.name for field in fields(NodeConfig)} - {"history"}
    # `delimiter` is an option of seeds
    known = ours | {field.name for field in fields(SparkConfig)} | {"unique_key", "delimiter"}
    close = [] if name in known else get_close_matches(name, ours, n=1, cutoff=0.8)
    return close[0] if close else ""


def _compression(value: Any, landing_format: str) -> str:
    if landing_format != "parquet":
        # Spark writes text with Hadoop's codecs, which have no zstd and frame snappy differently
        return str(one_of("none", "gzip")("compression", "none" if value is None else value))
    default = NodeConfig.compression
    read = one_of("none", "snappy", "gzip", "zstd")
    return str(read("compression", default if value is None else value))


def _delimited(options: Any, landing_format: str) -> DelimitedText | None:
    given = dict(mapping("delimited", {} if options is None else options))
    if landing_format not in COLUMN_SEPARATORS:
        if given:
            formats = ", ".join(COLUMN_SEPARATORS)
            raise CompilationError(f"`delimited` is for a `landing_format` of {formats}.")
        return None
    if given.pop("first_row_as_header", True) is not True:
        raise CompilationError("`delimited.first_row_as_header` must be true: it is required.")
    names = [field.name for field in fields(DelimitedText)]
    unknown = [str(name) for name in given if name not in names]
    if unknown:
        raise CompilationError(
            f"Unknown option `delimited.{unknown[0]}`. There are: {', '.join(names)}."
        )
    values = {"column_separator": COLUMN_SEPARATORS[landing_format], **given}
    for name, allowed in ALLOWED.items():
        if name in given:
            values[name] = _allowed(f"delimited.{name}", values[name], allowed)
    text = DelimitedText(**values)
    _check_null_value(text)
    return text


def _allowed(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """Return the allowed value that matches, ignoring case."""
    for choice in allowed:
        # dbt's static parser does not evaluate escape sequences in a config() call
        spelled = (choice.casefold(), choice.encode("unicode_escape").decode().casefold())
        if isinstance(value, str) and value.casefold() in spelled:
            return choice
    raise CompilationError(f"`{name}` is {value!r}. Allowed: {', '.join(map(repr, allowed))}.")


def _check_null_value(text: DelimitedText) -> None:
    null = text.null_value
    if not isinstance(null, str):
        raise CompilationError(f"`delimited.null_value` is {null!r}. It must be text, in quotes.")
    special = {text.column_separator, text.quote_character, text.escape_character, "\r", "\n"}
    found = sorted(character for character in special - {""} if character in null)
    if found:
        raise CompilationError(
            f"`delimited.null_value` is {null!r}, and {found[0]!r} in it means something else. "
            "Set another one, e.g. null."
        )
    if null != null.strip() or not null.isascii() or _UNQUOTED.fullmatch(null):
        raise CompilationError(
            f"`delimited.null_value` is {null!r}, which could be read as a number, a date, a "
            "boolean or another spelling of NULL. Set another one, e.g. null."
        )


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


def _refuse_other_options(config: Mapping[str, Any]) -> None:
    """Check that a node has no option of another adapter that would change its rows."""
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
    return RefusedError(
        f"{option} is not supported, and without it the table would have other rows or another "
        f"place. Nothing was changed. {remedy}.",
        code="OM202",
    )
