"""The output of `describe table extended`, and the files of a table on this machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.impl import KEY_TABLE_OWNER, KEY_TABLE_STATISTICS

from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn

_SCHEME = "file:"

_HEADLINES = {
    "# Partition Information",
    "# Partitioning",
    "# Clustering Information",
    "# Metadata Columns",
    "# Detailed Table Information",
}

# Formats whose size in bytes is only a guess: the number of rows times the usual widths of the
# column types.
_GUESSING_FORMATS = ("iceberg",)


@dataclass(frozen=True)
class Layout:
    """The storage layout of a table, as Spark has resolved it.

    Args:
        format: the format in lower case
        partitions: the partition columns in lower case
        buckets: the number of buckets, their columns and their sort columns; empty without buckets
    """

    format: str
    partitions: tuple[str, ...]
    buckets: str

    def __str__(self) -> str:
        partitions = f", partitioned by {', '.join(self.partitions)}" if self.partitions else ""
        return f"{self.format}{partitions}{f', in buckets {self.buckets}' if self.buckets else ''}"


@dataclass(frozen=True)
class TableDescription:
    """A table, as Spark describes it.

    Args:
        columns: the columns in the order of the table
        layout: the storage layout
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
        """Parse the rows that `describe table extended` has returned.

        Args:
            relation: the relation of the table
            rows: the rows, with `col_name`, `data_type` and `comment`
        """
        described = list(rows)
        columns = described_columns(relation, described)
        # the details come after the columns, so they replace columns with the same names
        details = {row["col_name"]: str(row["data_type"] or "") for row in described}
        names = [row["col_name"] or "" for row in described]
        layout = _layout(names, details)
        statistics = (columns[0].table_stats or {}).get("stats:bytes:value") if columns else None
        if layout.format in _GUESSING_FORMATS:
            statistics = None
        return cls(
            tuple(columns),
            layout,
            details.get("Location", ""),
            None if statistics is None else int(statistics),
            "# Column Default Values" in names,
        )

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


def described_columns(
    relation: BaseRelation, described: Sequence[Mapping[str, Any]]
) -> list[OpenMirroringColumn]:
    """Return the columns of a relation. As in dbt, each has the table's owner and statistics.

    Args:
        relation: the relation
        described: the rows of `describe extended`
    """
    rows = [(row["col_name"], row["data_type"], row["comment"]) for row in described]
    end = next(
        (i for i, (name, *_) in enumerate(rows) if not name or name in _HEADLINES), len(rows)
    )
    details = {name: value for name, value, _ in rows[end:]}
    # a Hive metastore reports 0 rows for a table whose rows were never counted
    statistics = details.get(KEY_TABLE_STATISTICS, "").removesuffix(", 0 rows")
    return [
        OpenMirroringColumn(
            table_schema=relation.schema,
            table_name=relation.name,
            table_type=relation.type,
            table_owner=details.get(KEY_TABLE_OWNER),
            table_comment=details.get("Comment"),
            table_stats=SparkColumn.convert_table_stats(statistics),
            column=name,
            column_index=index,
            dtype=data_type,
            column_comment=comment,
        )
        for index, (name, data_type, comment) in enumerate(rows[:end], start=1)
    ]


def _layout(names: list[str], details: Mapping[str, str]) -> Layout:
    """Read the storage layout from a description.

    Args:
        names: the values of the description's first column, in their order
        details: the values of its second column by those of the first
    """
    partitions: list[str] = []
    if "# Partition Information" in names:
        # skip the headline of the section and the headline of its columns
        partitions = names[names.index("# Partition Information") + 2 :]
        partitions = partitions[: partitions.index("")]
    named = ("Num Buckets", "Bucket Columns", "Sort Columns")
    buckets = [details[name].strip() for name in named if details.get(name, "[]") != "[]"]
    return Layout(
        details.get("Provider", "").lower(),
        tuple(name.lower() for name in partitions),
        " ".join(buckets).lower(),
    )


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
