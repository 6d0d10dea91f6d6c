"""The configuration of a node: read once, and refused before anything is built."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from dbt.adapters.spark.impl import SparkConfig
from dbt_common.exceptions import CompilationError

_SIZE = re.compile(r"(\d+)\s*(kb|mb|gb)")
_UNITS = {"kb": 2**10, "mb": 2**20, "gb": 2**30}


@dataclass
class OpenMirroringConfig(SparkConfig):
    """What dbt knows of our options. It checks neither names nor values: NodeConfig does."""

    mirror: bool | None = None
    on_breaking_change: str | None = None
    insert_marker: str | None = None
    landing_format: str | None = None
    compression: str | None = None
    target_file_size: str | None = None


@dataclass(frozen=True)
class NodeConfig:
    """How a node is mirrored.

    Args:
        unique_key: the `keyColumns`, as the user spells them
        mirror: False keeps the node in Spark alone
        on_breaking_change: `rebuild`, or `fail`
        insert_marker: of new rows in a change set: `upsert`, or `insert`
        landing_format: `parquet`
        compression: `none`, `snappy`, `gzip`, `zstd`
        target_file_size: bytes
    """

    unique_key: tuple[str, ...] = ()
    mirror: bool = True
    on_breaking_change: str = "rebuild"
    insert_marker: str = "upsert"
    landing_format: str = "parquet"
    compression: str = "zstd"
    target_file_size: int = 128 * 2**20

    @classmethod
    def parse(cls, config: Mapping[str, Any]) -> NodeConfig:
        """Read a node's configuration.

        Args:
            config: all of it, with dbt's own options and those of other packages

        Raises:
            CompilationError: an unknown value, a contradiction, or a name that looks like a
                misspelled one of ours
        """
        _refuse_misspelled(config)
        parsed = cls(
            unique_key=_unique_key(config.get("unique_key")),
            mirror=_choice(config, "mirror", (True, False)),
            on_breaking_change=_choice(config, "on_breaking_change", ("rebuild", "fail")),
            insert_marker=_choice(config, "insert_marker", ("upsert", "insert")),
            landing_format=_choice(config, "landing_format", ("parquet",)),
            compression=_choice(config, "compression", ("none", "snappy", "gzip", "zstd")),
            target_file_size=_size(config.get("target_file_size")),
        )
        if config.get("location_root"):
            raise CompilationError(
                "`location_root` is not supported: the snapshot of a model is replaced by "
                "renaming a managed table. Set spark.sql.warehouse.dir, or the location of the "
                "schema."
            )
        if config.get("insert_marker") and not parsed.unique_key:
            raise CompilationError(
                "`insert_marker` needs a `unique_key`: without one there are no row markers."
            )
        return parsed


def _refuse_misspelled(config: Mapping[str, Any]) -> None:
    ours = {field.name for field in fields(NodeConfig)}
    known = ours | {field.name for field in fields(SparkConfig)} | {"unique_key"}
    for name in config:
        close = [] if name in known else get_close_matches(name, ours, n=1, cutoff=0.8)
        if close:
            raise CompilationError(f"Unknown option `{name}`. Did you mean `{close[0]}`?")


def _choice(config: Mapping[str, Any], name: str, allowed: tuple[Any, ...]) -> Any:
    value = config.get(name)
    if value is None:
        return getattr(NodeConfig, name)
    if value not in allowed or isinstance(value, bool) is not isinstance(allowed[0], bool):
        choices = ", ".join(str(choice).lower() for choice in allowed)
        raise CompilationError(f"`{name}` is {value!r}. Allowed: {choices}.")
    return value


def _unique_key(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    names = [value] if isinstance(value, str) else value
    if (
        not isinstance(names, (list, tuple))
        or not names
        or not all(isinstance(name, str) and name for name in names)
        or len({name.casefold() for name in names}) < len(names)
    ):
        raise CompilationError(
            f"`unique_key` is {value!r}. It must be the name of a column, or a list of different "
            "ones."
        )
    return tuple(names)


def _size(value: Any) -> int:
    if value is None:
        return NodeConfig.target_file_size
    match = _SIZE.fullmatch(str(value).strip().lower())
    if not match or not int(match[1]):
        raise CompilationError(
            f"`target_file_size` is {value!r}. It must be a number with a unit: kb, mb or gb."
        )
    return int(match[1]) * _UNITS[match[2]]
