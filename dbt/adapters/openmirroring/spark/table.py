"""What `describe table extended` says of a table, and its files where they are on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

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

# their statistics are rows by the usual widths of their types
_GUESSING_FORMATS = ("iceberg",)


@dataclass(frozen=True)
class Layout:
    """How a table is stored, as Spark has resolved it.

    Args:
        format: in lower case
        partitions: columns, in lower case
        buckets: how many, by which columns and sorted by which; empty without any
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
        columns: in their order
        layout: how it is stored
        location: URL of its folder; empty if Spark does not tell
        statistics: bytes, as Spark says; None if it does not, or only guesses
    """

    columns: tuple[OpenMirroringColumn, ...]
    layout: Layout
    location: str = ""
    statistics: int | None = None

    @classmethod
    def parse(cls, relation: Any, rows: Iterable[Mapping[str, Any]]) -> TableDescription:
        """Read what `describe table extended` returned.

        Args:
            relation: the table
            rows: with `col_name`, `data_type` and `comment`
        """
        described = list(rows)
        columns = described_columns(relation, described)
        # the details come after the columns, which may have the same names
        details = {row["col_name"]: str(row["data_type"] or "") for row in described}
        layout = _layout([row["col_name"] or "" for row in described], details)
        statistics = (columns[0].table_stats or {}).get("stats:bytes:value") if columns else None
        if layout.format in _GUESSING_FORMATS:
            statistics = None
        return cls(
            tuple(columns),
            layout,
            details.get("Location", ""),
            None if statistics is None else int(statistics),
        )

    @property
    def folder(self) -> Path | None:
        """Where the table has its files, if that is on this machine."""
        folder = local_path(self.location)
        return folder if folder and folder.is_dir() else None

    @cached_property
    def bytes(self) -> int | None:
        """The size of the table in storage; None if neither Spark nor its folder tells."""
        if self.statistics is not None or self.layout.format in _GUESSING_FORMATS:
            return self.statistics
        folder = self.folder
        return sum(path.stat().st_size for path in data_files(folder)) if folder else None


def described_columns(
    relation: Any, described: Sequence[Mapping[str, Any]]
) -> list[OpenMirroringColumn]:
    """The columns of a relation; each has the table's owner, comment and statistics, as in dbt.

    Args:
        described: the rows of `describe extended`
    """
    rows = [(row["col_name"], row["data_type"], row["comment"]) for row in described]
    end = next(
        (i for i, (name, *_) in enumerate(rows) if not name or name in _HEADLINES), len(rows)
    )
    details = {name: value for name, value, _ in rows[end:]}
    # so a Hive metastore says of a table whose rows nobody has counted
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
    """How a table is stored.

    Args:
        names: the first column of the description, in order
        details: the second by the first
    """
    partitions: list[str] = []
    if "# Partition Information" in names:
        # after its headline and one for its columns
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
    """The path of a file or folder that a URL says is on this machine."""
    # Spark writes one slash or three
    path = re.sub("^//(?=/)", "", url.removeprefix(_SCHEME))
    return Path(path) if url.startswith(_SCHEME) else None


def data_files(folder: Path) -> Iterable[Path]:
    """The files of a table, also those in the folders of partitions."""
    for path in folder.iterdir():
        if path.name.startswith(("_", ".")):
            continue
        if path.is_dir():
            yield from data_files(path)
        else:
            yield path


def parquet_reader() -> Any:
    """The module that reads footers of files; None without a pyarrow that works.

    Some versions of it refuse the NumPy that an older Spark needs.
    """
    try:
        from pyarrow import parquet
    except ImportError:
        return None
    return parquet
