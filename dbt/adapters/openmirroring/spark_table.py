"""What `describe table extended` says of a table, and its files where they are on this machine."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import agate

_SCHEME = "file:"


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


def is_bucketed(description: agate.Table) -> bool:
    """Whether the files of a table are buckets.

    Args:
        description: what `describe table extended` returned
    """
    return "Num Buckets" in _details(description)


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
