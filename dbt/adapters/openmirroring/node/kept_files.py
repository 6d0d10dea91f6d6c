"""How little of a snapshot an incremental run has to write again.

Only rows with the keys of new rows change. These are written beside the snapshot, with those that
come in their place: all that has to be compared. Delta and Iceberg take them in one commit, once
they are published. Of other formats the next snapshot is written with them.

A Parquet file cannot be changed, but most files of a snapshot have no row that does. These are
linked into the next snapshot: a file with two names, so that either table can be dropped.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import (
    Layout,
    data_files,
    layout_of,
    local_folder,
    local_path,
)

if TYPE_CHECKING:
    import agate

# Every append adds files. So many of less than this size in one folder are joined into fewer.
_MANY_FILES = 64
_SMALL_FILE = 16 * 2**20

_FILE_FORMATS = ("parquet", "orc")
_MERGING_FORMATS = ("delta", "iceberg")
# rows that are beside the snapshot, in Parquet, are the same in it: csv and json change them
_STORED_FORMATS = ("parquet", *_MERGING_FORMATS)


@dataclass(frozen=True)
class Rewrite:
    """What is written again, and what is kept.

    Args:
        folder: with the snapshot's data files
        replaced: the files to write again, as Spark has them in `_metadata.file_path`
        kept: the other ones, relative to the folder
        layout: how the snapshot is stored
    """

    folder: Path
    replaced: tuple[str, ...]
    kept: tuple[Path, ...]
    layout: Layout

    @property
    def kept_names(self) -> list[str]:
        return sorted({path.name for path in self.kept})

    def keep(self, folder: Path) -> None:
        """Link what is kept into the folder of the next snapshot."""
        for path in self.kept:
            target = folder / path
            target.parent.mkdir(exist_ok=True, parents=True)
            try:
                os.link(self.folder / path, target)
            except OSError:  # a file system without such links
                shutil.copy2(self.folder / path, target)


@dataclass(frozen=True)
class Part:
    """The rows of a snapshot that are to be replaced.

    Args:
        new_rows: a table
        keys: a row may be replaced if it agrees with a new row in these columns; without any, new
            rows are only added
        before: a table of these rows; None without keys
        after: a table of those in their place, which the next snapshot is written with; None if
            the snapshot takes them
        files: which the next snapshot has from the one before; None if it has none
    """

    new_rows: OpenMirroringRelation
    keys: tuple[str, ...]
    before: OpenMirroringRelation | None
    after: OpenMirroringRelation | None
    files: Rewrite | None = None

    def keeping(self, files: Rewrite | None) -> Part:
        return replace(self, files=files)


@dataclass(frozen=True)
class NextRows:
    """The rows of a next snapshot.

    Args:
        query: of rows to write
        rewrite: where the rest of the rows are: in files that are kept, or in the snapshot; None
            if the query has them all
    """

    query: str
    rewrite: Rewrite | Part | None = None

    @property
    def is_part(self) -> bool:
        """The snapshot takes them: there is no next one."""
        return isinstance(self.rewrite, Part) and not self.rewrite.after

    @property
    def files(self) -> Rewrite | None:
        """What is kept of the snapshot's files; None if nothing is."""
        return self.rewrite.files if isinstance(self.rewrite, Part) else self.rewrite


def rewritable_folder(
    description: agate.Table, file_format: str, options: NodeConfig
) -> Path | None:
    """The folder of a snapshot whose files the next one can have; None if it cannot.

    Args:
        description: what `describe table extended` returned
        file_format: of the next snapshot
    """
    if layout_of(description).buckets:
        return None
    if not _stays(description, _FILE_FORMATS, file_format, options):
        return None
    return local_folder(description)


def can_merge(description: agate.Table, file_format: str, options: NodeConfig) -> bool:
    """Whether a snapshot can be changed in place of being replaced.

    Args:
        description: what `describe table extended` returned
        file_format: of the next snapshot
    """
    return _stays(description, _MERGING_FORMATS, file_format, options)


def has_stored_rows(description: agate.Table, file_format: str, options: NodeConfig) -> bool:
    """Whether rows beside a snapshot are as it stores them, so that they can be published.

    Args:
        description: what `describe table extended` returned
        file_format: of the next snapshot
    """
    return _stays(description, _STORED_FORMATS, file_format, options)


def _stays(
    description: agate.Table,
    formats: Sequence[str],
    file_format: str,
    options: NodeConfig,
) -> bool:
    """A table has one of some formats, and that and its partitions are to stay as they are."""
    found = layout_of(description)
    partition_by = tuple(name.lower() for name in options.partition_by)
    return (
        found.format in formats
        and found.format == file_format.lower()
        and found.partitions == partition_by
    )


def plan_rewrite(folder: Path, layout: Layout, touched: Sequence[str]) -> Rewrite | None:
    """What to keep of a snapshot; None if nothing is worth it.

    Args:
        folder: with its data files
        layout: how they are stored
        touched: those with rows that may change, as Spark has them in `_metadata.file_path`
    """
    replaced = {local_path(unquote(path)) for path in touched}
    kept = [path for path in data_files(folder) if path not in replaced]
    small = Counter(path.parent for path in kept if path.stat().st_size < _SMALL_FILE)
    if not kept or max(small.values(), default=0) > _MANY_FILES:
        return None
    names = tuple(path.relative_to(folder) for path in kept)
    return Rewrite(folder, tuple(touched), names, layout)


def has_partitions_in_catalog(description: agate.Table) -> bool:
    """Whether the catalog has to know of each partition of a table; Delta and Iceberg know them.

    Args:
        description: what `describe table extended` returned
    """
    layout = layout_of(description)
    return layout.format not in _MERGING_FORMATS and bool(layout.partitions)
