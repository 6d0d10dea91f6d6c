"""How the value of each option is read: it is kept as it was meant, or refused by its name.

An empty text is no value, as packages write it for "none on this target". Other values that have
no meaning are refused: without the option, the table would have other rows than the user expects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import (
    COLUMN_SEPARATORS,
    LAST_UPDATE_TIME,
    UPSERT,
)
from dbt.adapters.openmirroring.text.sql import ended, unquoted

# values of `publish`
IMMEDIATELY, AFTER_TESTS, ON_REQUEST = "immediately", "after_tests", "on_request"

INCREMENTAL_STRATEGIES = ("append", "merge", "delete+insert", "insert_overwrite", "microbatch")

# the columns that a dbt snapshot adds; the last one with `hard_deletes: new_record`
_HISTORY_COLUMNS = (
    *("dbt_valid_from", "dbt_valid_to", "dbt_scd_id", "dbt_updated_at", "dbt_is_deleted"),
)

# the prefix of table properties that are ours
_OURS = "openmirroring."

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_SIZE = re.compile(r"(\d+)\s*(kb|mb|gb)")
_UNITS = {"kb": 2**10, "mb": 2**20, "gb": 2**30}
_PROVIDER = re.compile(r"[\w.]+")
# dbt does not quote the names of the columns of a dbt snapshot
_PLAIN_NAME = re.compile(r"[a-z_]\w*", re.IGNORECASE | re.ASCII)

# returns what a value means, given the name of its option; raises if it means nothing
Reader = Callable[[str, Any], Any]


def given(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options without empty texts: packages write '' for "none on this target"."""
    return {name: value for name, value in config.items() if value != ""}


def read_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the options that a node has, by their names.

    Options of incremental models, dbt snapshots and seeds are read in these only: a project may
    set them for all its nodes.

    Raises:
        CompilationError: if an option cannot have its value
    """
    readers = {**_OPTIONS, **_OPTIONS_OF.get(str(config.get("materialized")), {})}
    return {
        name: reader(name, config[name])
        for name, reader in readers.items()
        if config.get(name) is not None
    }


def one_of(*allowed: Any) -> Reader:
    """Return a reader of an option that has few values."""

    def read(name: str, value: Any) -> Any:
        if value not in allowed or isinstance(value, bool) is not isinstance(allowed[0], bool):
            raise _wrong(name, value, f"Allowed: {', '.join(str(c).lower() for c in allowed)}.")
        return value

    return read


def _wrong(name: str, value: Any, remedy: str) -> CompilationError:
    return CompilationError(f"`{name}` is {value!r}. {remedy}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _text(name: str, value: Any) -> str:
    if not _is_text(value):
        raise _wrong(name, value, "It must be text.")
    return str(value)


def _header(name: str, value: Any) -> str:
    # a block of Jinja may leave only spaces
    return value if isinstance(value, str) else _text(name, value)


def _texts(what: str) -> Reader:
    """Return a reader of a list, or of one of its elements alone."""

    def read(name: str, value: Any) -> tuple[str, ...]:
        texts = [value] if isinstance(value, str) else value
        if not isinstance(texts, (list, tuple)) or not all(map(_is_text, texts)):
            raise _wrong(name, value, f"It must be {what}, or a list of them.")
        return tuple(texts)

    return read


def column_names(name: str, value: Any) -> tuple[str, ...]:
    """Return each column once. As elsewhere in dbt, an empty list means no columns.

    Args:
        name: of the option

    Raises:
        CompilationError: if it has no names of columns
    """
    if isinstance(value, Mapping) and "field" in value:
        raise CompilationError(
            f"`{name}` is {value!r}, as BigQuery has it. Set the names of columns, whose values "
            f"Spark keeps in folders of their own: `{name}: [{value['field']}]`."
        )
    first: dict[str, str] = {}
    for column in map(unquoted, _texts("the name of a column")(name, value)):
        first.setdefault(column.lower(), column)
    return tuple(first.values())


def _updated_columns(name: str, value: Any) -> tuple[str, ...]:
    columns = column_names(name, value)
    if not columns:  # dbt would update all columns
        raise CompilationError(
            f"`{name}` is empty. Nothing was changed. Remove it, or set null, to update all "
            "columns. To update none, so that a merge only adds rows, name the key: "
            f"`{name}: <unique_key>`."
        )
    return columns


def _condition(name: str, value: Any) -> str:
    return ended(_text(name, value))


def _conditions(name: str, value: Any) -> tuple[str, ...]:
    return tuple(map(ended, _texts("an SQL condition")(name, value)))


def _history_strategy(name: str, value: Any) -> str:
    """Return the name of a strategy. Others than dbt's own are macros of the project."""
    strategy = _text(name, value).removeprefix("dbt.")
    if strategy.lower() in ("check", "timestamp") and not strategy.islower():
        raise _wrong(name, value, f"Write it in small letters: {strategy.lower()}.")
    return strategy


def _history_columns(name: str, value: Any) -> dict[str, str]:
    """Return the names of the columns that a dbt snapshot adds, by dbt's own names for them."""
    set_ = {own: spelled for own, spelled in mapping(name, value).items() if spelled}
    names = {own: set_.get(own, own) for own in _HISTORY_COLUMNS}
    for own, spelled in names.items():
        if not _PLAIN_NAME.fullmatch(str(spelled)):
            raise _wrong(f"{name}.{own}", spelled, "It must have letters, digits and _ only.")
    if len({spelled.lower() for spelled in names.values()}) < len(names):
        raise _wrong(name, set_, f"Each needs a name of its own: {', '.join(names.values())}.")
    return names


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Return names with their values."""
    if not isinstance(value, Mapping) or not all(map(_is_text, value)):
        raise _wrong(name, value, "It must have names with values.")
    return value


def _settings(name: str, value: Any) -> Mapping[str, Any]:
    """Return texts, numbers and booleans by their names."""
    for key, each in mapping(name, value).items():
        if not isinstance(each, (str, int, float)):
            raise _wrong(f"{name}.{key}", each, "It must be a text, a number or a boolean.")
    return mapping(name, value)


def _properties(name: str, value: Any) -> Mapping[str, Any]:
    properties = _settings(name, value)
    if any(key.lower().startswith(_OURS) for key in properties):
        raise _wrong(name, value, f"Properties that begin with {_OURS} belong to this adapter.")
    return properties


def _storage_options(name: str, value: Any) -> Mapping[str, Any]:
    options = _settings(name, value)
    for key, path in options.items():
        if key.lower() == "path":
            _no_location(f"{name}.{key}", path)
    return options


def _no_location(name: str, value: Any) -> None:
    _text(name, value)
    raise CompilationError(
        f"`{name}` is not supported: the baseline of a model is replaced by renaming a managed "
        "table. Set spark.sql.warehouse.dir, or the location of the schema."
    )


def _column_types(name: str, value: Any) -> Mapping[str, str | None]:
    types = mapping(name, value)
    for column, type_ in types.items():
        if not isinstance(type_, (str, type(None))):
            raise _wrong(f"{name}.{column}", type_, "It must be the name of a type.")
    return types


def _file_format(name: str, value: Any) -> str:
    if not isinstance(value, str) or not _PROVIDER.fullmatch(value):
        raise _wrong(name, value, "It must be the name of a format, e.g. parquet.")
    return value


def _buckets(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _wrong(name, value, "It must be a whole number, e.g. 8.")
    return value


def _size(name: str, value: Any) -> int:
    match = _SIZE.fullmatch(str(value).strip().lower())
    if not match or not int(match[1]):
        raise _wrong(name, value, "It must be a number with a unit: kb, mb or gb.")
    return int(match[1]) * _UNITS[match[2]]


def _max_deleted(name: str, value: Any) -> int | float:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    share = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if share and float(share[1]) <= 100:
        return float(share[1])
    raise _wrong(
        name,
        value,
        "It must be a number of rows, e.g. 1000, or a share of the published rows, e.g. 10%.",
    )


# options of all nodes, and those that have an effect in one kind only
_OPTIONS: dict[str, Reader] = {
    "unique_key": column_names,
    "mirror": one_of(True, False),
    "on_breaking_change": one_of("rebuild", "fail"),
    "insert_marker": one_of(UPSERT, "insert"),
    "landing_format": one_of("parquet", *COLUMN_SEPARATORS),
    "file_detection": one_of("sequential", LAST_UPDATE_TIME),
    "default_row_marker": one_of("insert", UPSERT),
    "schema_folder": one_of(True, False),
    "publish": one_of(IMMEDIATELY, AFTER_TESTS, ON_REQUEST),
    "on_foreign_changes": one_of("fail", "publish"),
    "target_file_size": _size,
    "delete_when": _condition,
    "max_deleted": _max_deleted,
    "file_format": _file_format,
    "location_root": _no_location,
    "partition_by": column_names,
    "clustered_by": column_names,
    "buckets": _buckets,
    "tblproperties": _properties,
    "options": _storage_options,
    "event_time": _text,
    "sql_header": _header,
}

_OPTIONS_OF: dict[str, dict[str, Reader]] = {
    "incremental": {
        "incremental_strategy": one_of(*INCREMENTAL_STRATEGIES),
        "on_schema_change": one_of("ignore", "fail", "append_new_columns", "sync_all_columns"),
        "merge_update_columns": _updated_columns,
        "merge_exclude_columns": column_names,
        "incremental_predicates": _conditions,
        "predicates": _conditions,
    },
    "snapshot": {
        "unique_key": _texts("a column of the source, or SQL of its columns"),
        "strategy": _history_strategy,
        "check_cols": column_names,
        "updated_at": _text,
        "hard_deletes": one_of("ignore", "invalidate", "new_record"),
        "invalidate_hard_deletes": one_of(True, False),
        "snapshot_meta_column_names": _history_columns,
        "dbt_valid_to_current": _text,
    },
    "seed": {"column_types": _column_types},
}
