"""The output of `describe table extended`, and the files of a table on this machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.impl import KEY_TABLE_OWNER, KEY_TABLE_STATISTICS

from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn

_SCHEME = "file:"

# a row of a description: name, type or value, and comment
_Row = tuple[str, str, Any]

# Formats whose size in bytes is only a guess: the number of rows times the usual widths of the
# column types.
_GUESSING_FORMATS = ("iceberg",)

# Formats that record the values of partitions. Others keep them as text in the names of folders.
RECORDING_FORMATS = ("delta", "iceberg")

# the option for the zone of times in the names of folders
ZONE = "timeZone"
_ZONE = re.compile(rf"\b{ZONE}=([^,\]]*)", re.IGNORECASE)


@dataclass(frozen=True)
class Layout:
    """The storage layout of a table, as Spark has resolved it, in lower case.

    Args:
        buckets: the number of buckets, their columns and their sort columns; empty without buckets
        zone: the time zone of times in the names of partition folders; empty if a session decides
    """

    format: str
    partitions: tuple[str, ...]
    buckets: str
    zone: str = ""

    def __str__(self) -> str:
        partitions = f", partitioned by {', '.join(self.partitions)}" if self.partitions else ""
        return f"{self.format}{partitions}{f', in buckets {self.buckets}' if self.buckets else ''}"


@dataclass(frozen=True)
class TableDescription:
    """A table, as Spark describes it.

    Args:
        location: the URL of the table's folder; empty if Spark does not report it
        statistics: the size in bytes; None if Spark does not report it, or only guesses
        has_defaults: whether a column has a default value, which old files may lack
    """

    columns: tuple[OpenMirroringColumn, ...]
    layout: Layout
    location: str = ""
    statistics: int | None = None
    has_defaults: bool = False

    @classmethod
    def parse(cls, relation: BaseRelation, rows: Iterable[Mapping[str, Any]]) -> TableDescription:
        """Parse the `col_name`, `data_type` and `comment` of `describe table extended`.

        As in dbt, each column has the table's owner and statistics.
        """
        sections = _sections(rows)
        details = {
            name: value for name, value, _ in sections.get("# Detailed Table Information", ())
        }
        # a Hive metastore reports 0 rows for a table whose rows were never counted
        size = details.get(KEY_TABLE_STATISTICS, "").removesuffix(", 0 rows")
        statistics = SparkColumn.convert_table_stats(size)
        columns = tuple(
            OpenMirroringColumn(
                table_schema=relation.schema,
                table_name=relation.name,
                table_type=relation.type,
                table_owner=details.get(KEY_TABLE_OWNER),
                table_comment=details.get("Comment"),
                table_stats=statistics,
                column=name,
                column_index=index,
                dtype=data_type,
                column_comment=comment,
            )
            for index, (name, data_type, comment) in enumerate(sections[""], start=1)
        )
        # below the headline of the section is that of its columns
        partitions = [name for name, *_ in sections.get("# Partition Information", [])[1:]]
        table_format = details.get("Provider", "").lower()
        named = ("Num Buckets", "Bucket Columns", "Sort Columns")
        buckets = [details[name].strip() for name in named if details.get(name, "[]") != "[]"]
        has_folders = partitions and table_format not in RECORDING_FORMATS
        zone = _ZONE.search(details.get("Storage Properties", "")) if has_folders else None
        layout = Layout(
            table_format,
            tuple(map(str.lower, partitions)),
            " ".join(buckets).lower(),
            zone[1] if zone else "",
        )
        is_counted = table_format not in _GUESSING_FORMATS
        return cls(
            columns,
            layout,
            details.get("Location", ""),
            statistics.get("stats:bytes:value") if is_counted else None,
            bool(sections.get("# Column Default Values")),
        )

    @property
    def partition_types(self) -> list[tuple[str, str]]:
        """The names and types of the partition columns, which no data file has."""
        named = ((column.name.lower(), column.dtype) for column in self.columns)
        return [(name, dtype) for name, dtype in named if name in self.layout.partitions]

    @property
    def folder(self) -> Path | None:
        """The folder of the table's files, or None if it is not on this machine."""
        folder = local_path(self.location)
        return folder if folder and folder.is_dir() else None

    @cached_property
    def bytes(self) -> int | None:
        """The size of the table in storage, or None if it is unknown.

        It comes from Spark's statistics, or else from the files on this machine.
        """
        if self.statistics is not None or self.layout.format in _GUESSING_FORMATS:
            return self.statistics
        folder = self.folder
        return sum(path.stat().st_size for path in data_files(folder)) if folder else None


def _sections(described: Iterable[Mapping[str, Any]]) -> dict[str, list[_Row]]:
    """Return the rows under each headline; those of the columns have none.

    A headline has no type. A column may have any name, but it always has a type.
    """
    rows: list[_Row] = []
    sections = {"": rows}
    for each in described:
        name, type_ = each["col_name"] or "", str(each["data_type"] or "")
        if not type_ and (not name or name.startswith("#")):
            rows = sections.setdefault(name or "blank", [])
        else:
            rows.append((name, type_, each["comment"]))
    return sections


def local_path(url: str) -> Path | None:
    """Return the path in a `file:` URL, or None for another URL."""
    # Spark writes either one or three slashes
    path = re.sub("^//(?=/)", "", url.removeprefix(_SCHEME))
    if sys.platform == "win32":  # file:///C:/shop
        path = path.removeprefix("/")
    return Path(path) if url.startswith(_SCHEME) else None


def data_files(folder: Path) -> Iterable[Path]:
    """Yield the data files of a table, including those in partition folders."""
    for path in folder.iterdir():
        if path.name.startswith(("_", ".")):
            continue
        if path.is_dir():
            yield from data_files(path)
        else:
            yield path


def parquet_reader() -> Any:
    """Return pyarrow's Parquet module, or None if it cannot be imported.

    Some versions of pyarrow refuse the NumPy that an older Spark needs.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        return None
    return parquet
