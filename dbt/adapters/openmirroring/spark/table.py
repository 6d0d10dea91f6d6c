"""A table as `describe extended` shows it, and its files if they are on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbt.adapters.spark.column import SparkColumn
from dbt.adapters.spark.impl import KEY_TABLE_OWNER, KEY_TABLE_STATISTICS

from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn

if TYPE_CHECKING:
    import agate

_SCHEME = "file:"

# these follow the columns in `describe extended`
_DESCRIBE_HEADLINES = {
    "# Partition Information",
    "# Partitioning",
    "# Clustering Information",
    "# Metadata Columns",
    "# Detailed Table Information",
}


@dataclass(frozen=True)
class Layout:
    """How a table is stored.

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


def provider(description: agate.Table) -> str:
    """The format of a table, in lower case.

    Args:
        description: what `describe table extended` returned
    """
    return _details(description).get("Provider", "").lower()


def partition_columns(description: agate.Table) -> list[str]:
    """By what a table is partitioned.

    Args:
        description: what `describe table extended` returned
    """
    names = [row[0] for row in description.rows]
    if "# Partition Information" not in names:
        return []
    # after its headline and one for its columns
    partition = names[names.index("# Partition Information") + 2 :]
    return partition[: partition.index("")]


def layout_of(description: agate.Table) -> Layout:
    """How a table is stored, as Spark has resolved it.

    Args:
        description: what `describe table extended` returned
    """
    details = _details(description)
    named = ("Num Buckets", "Bucket Columns", "Sort Columns")
    buckets = [details[name].strip() for name in named if details.get(name, "[]") != "[]"]
    partitions = tuple(name.lower() for name in partition_columns(description))
    return Layout(provider(description), partitions, " ".join(buckets).lower())


def local_folder(description: agate.Table) -> Path | None:
    """Where a table has its files, if that is on this machine.

    Args:
        description: what `describe table extended` returned
    """
    folder = local_path(_details(description).get("Location", ""))
    return folder if folder and folder.is_dir() else None


def is_iceberg(description: agate.Table) -> bool:
    """A table is Iceberg's.

    Args:
        description: what `describe table extended` returned
    """
    return _details(description).get("Provider") == "iceberg"


def _details(description: agate.Table) -> dict[str, str]:
    # the details come after the columns, which may have the same names
    return {row[0]: row[1] or "" for row in description.rows}


def local_path(url: str) -> Path | None:
    """The path of a file or folder that a url says is on this machine."""
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


def described_columns(relation: Any, described: Iterable[Mapping[str, Any]]) -> list[SparkColumn]:
    """The columns of a relation, and the size of the table.

    Args:
        described: the rows of `describe extended`
    """
    rows = [(row["col_name"], row["data_type"], row["comment"]) for row in described]
    end = next(
        (i for i, (name, *_) in enumerate(rows) if not name or name in _DESCRIBE_HEADLINES),
        len(rows),
    )
    details = {name: value for name, value, _ in rows[end:]}
    # a Hive metastore says so of a table whose rows nobody has counted
    statistics = details.get(KEY_TABLE_STATISTICS, "").removesuffix(", 0 rows")
    return [
        OpenMirroringColumn(
            table_schema=relation.schema,
            table_name=relation.name,
            table_type=relation.type,
            table_owner=details.get(KEY_TABLE_OWNER),
            table_comment=details.get("Comment"),
            table_stats=OpenMirroringColumn.convert_table_stats(statistics),
            column=name,
            column_index=index,
            dtype=data_type,
            column_comment=comment,
        )
        for index, (name, data_type, comment) in enumerate(rows[:end], start=1)
    ]
