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
from dbt.adapters.openmirroring.spark.refusals import refuse_grants
from dbt.adapters.openmirroring.text.errors import RefusedError
from dbt.adapters.openmirroring.text.sql import ended

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_SIZE = re.compile(r"(\d+)\s*(kb|mb|gb)")
_PROVIDER = re.compile(r"[\w.]+")
_UNITS = {"kb": 2**10, "mb": 2**20, "gb": 2**30}

# values of `publish`
IMMEDIATELY, AFTER_TESTS, ON_REQUEST = "immediately", "after_tests", "on_request"

INCREMENTAL_STRATEGIES = ("append", "merge", "delete+insert", "insert_overwrite", "microbatch")

# the values of options that have few, the default first
_CHOICES: dict[str, tuple[Any, ...]] = {
    "mirror": (True, False),
    "on_breaking_change": ("rebuild", "fail"),
    "insert_marker": (UPSERT, "insert"),
    "landing_format": ("parquet", *COLUMN_SEPARATORS),
    "file_detection": ("sequential", LAST_UPDATE_TIME),
    "default_row_marker": ("insert", UPSERT),
    "schema_folder": (True, False),
    "publish": (IMMEDIATELY, AFTER_TESTS, ON_REQUEST),
    "on_foreign_changes": ("fail", "publish"),
}

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
        delete_when: SQL condition; a new row that meets it deletes instead of upserting
        max_deleted: limit of the rows that one publication may delete: their number, or (a float)
            a percentage of the published rows
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
    delete_when: str | None = None
    partition_by: tuple[str, ...] = ()
    publish: str = IMMEDIATELY
    max_deleted: int | float | None = None
    on_foreign_changes: str = "fail"

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
        unique_key = _columns(config, "unique_key")
        chosen = {
            name: _choice(name, config.get(name), allowed) for name, allowed in _CHOICES.items()
        }
        landing_format = chosen["landing_format"]
        parsed = cls(
            **chosen,
            unique_key=unique_key,
            delimited=_delimited(config.get("delimited"), landing_format),
            compression=_compression(config.get("compression"), landing_format),
            target_file_size=_size(config.get("target_file_size")),
            incremental_strategy=_strategy(config, unique_key),
            delete_when=ended(_text(config, "delete_when") or "") or None,
            partition_by=_columns(config, "partition_by"),
            max_deleted=_max_deleted(config.get("max_deleted")),
        )
        file_format = _text(config, "file_format")
        if file_format and not _PROVIDER.fullmatch(file_format):
            raise CompilationError(
                f"`file_format` is {file_format!r}. It must be the name of a format, e.g. parquet."
            )
        if config.get("location_root"):
            raise CompilationError(
                "`location_root` is not supported: the snapshot of a model is replaced by "
                "renaming a managed table. Set spark.sql.warehouse.dir, or the location of the "
                "schema."
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


def given(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without empty texts: packages write '' for "none on this target"."""
    return {name: value for name, value in config.items() if value != ""}


def _strategy(config: Mapping[str, Any], unique_key: tuple[str, ...]) -> str:
    """Return the incremental strategy. Other nodes get the default, which has no effect."""
    if config.get("materialized") != "incremental":
        return NodeConfig.incremental_strategy
    default = "merge" if unique_key else "append"
    given = config.get("incremental_strategy") or default
    strategy = str(_choice("incremental_strategy", given, INCREMENTAL_STRATEGIES))
    if strategy == "delete+insert" and not unique_key:
        raise CompilationError("The strategy delete+insert needs a `unique_key`.")
    if strategy == "microbatch" and not config.get("partition_by"):
        raise CompilationError(
            "The strategy microbatch requires a `partition_by` config: a column of the grain of "
            "`batch_size`, whose values are replaced."
        )
    if config.get("merge_update_columns") and config.get("merge_exclude_columns"):
        raise CompilationError(
            "`merge_update_columns` contradicts `merge_exclude_columns`. Remove one of them."
        )
    return strategy


@cache  # the nodes of a project have the same options, and looking for a name is slow
def _misspelled(name: str) -> str:
    """Return the option of this adapter that a name is like; empty if it is another option."""
    ours = {field.name for field in fields(NodeConfig)}
    # `delimiter` is an option of seeds
    known = ours | {field.name for field in fields(SparkConfig)} | {"unique_key", "delimiter"}
    close = [] if name in known else get_close_matches(name, ours, n=1, cutoff=0.8)
    return close[0] if close else ""


def _choice(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    if value is None:
        return allowed[0]
    if value not in allowed or isinstance(value, bool) is not isinstance(allowed[0], bool):
        choices = ", ".join(str(choice).lower() for choice in allowed)
        raise CompilationError(f"`{name}` is {value!r}. Allowed: {choices}.")
    return value


def _compression(value: Any, landing_format: str) -> str:
    if landing_format != "parquet":
        # Spark writes text with Hadoop's codecs, which have no zstd and frame snappy differently
        return str(_choice("compression", value, ("none", "gzip")))
    allowed = ("none", "snappy", "gzip", "zstd")
    return str(_choice("compression", value or NodeConfig.compression, allowed))


def _delimited(options: Any, landing_format: str) -> DelimitedText | None:
    if landing_format not in COLUMN_SEPARATORS:
        if options:
            formats = ", ".join(COLUMN_SEPARATORS)
            raise CompilationError(f"`delimited` is for a `landing_format` of {formats}.")
        return None
    if not isinstance(options or {}, Mapping):
        raise CompilationError(f"`delimited` is {options!r}. It must have options with values.")
    given = dict(options or {})
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


def _columns(config: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return each column once. As elsewhere in dbt, an empty list means no columns."""
    value = config.get(name)
    names = [value] if isinstance(value, str) else value
    if not names or names == [""]:
        return ()
    if isinstance(names, Mapping) and "field" in names:
        raise CompilationError(
            f"`{name}` is {value!r}, as BigQuery has it. Set the names of columns, whose values "
            f"Spark keeps in folders of their own: `{name}: [{names['field']}]`."
        )
    if not isinstance(names, (list, tuple)) or not all(
        isinstance(column, str) and column for column in names
    ):
        raise CompilationError(
            f"`{name}` is {value!r}. It must be the name of a column, or a list of them."
        )
    first: dict[str, str] = {}
    for column in names:
        first.setdefault(column.lower(), column)
    return tuple(first.values())


def _text(config: Mapping[str, Any], name: str) -> str | None:
    value = config.get(name)
    if value is not None and not isinstance(value, str):
        raise CompilationError(f"`{name}` is {value!r}. It must be text.")
    return value


def _size(value: Any) -> int:
    if value is None:
        return NodeConfig.target_file_size
    match = _SIZE.fullmatch(str(value).strip().lower())
    if not match or not int(match[1]):
        raise CompilationError(
            f"`target_file_size` is {value!r}. It must be a number with a unit: kb, mb or gb."
        )
    return int(match[1]) * _UNITS[match[2]]


def _max_deleted(value: Any) -> int | float | None:
    if value is None:
        return None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    share = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if share and float(share[1]) <= 100:
        return float(share[1])
    raise CompilationError(
        f"`max_deleted` is {value!r}. It must be a number of rows, e.g. 1000, or a share of "
        "the published rows, e.g. 10%."
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
