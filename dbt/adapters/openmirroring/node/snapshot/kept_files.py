"""Files of a snapshot that the next snapshot keeps.

A Parquet file cannot be changed, but in most files of a snapshot an incremental run changes no
row. These files are linked into the next snapshot. Each then has two names, so that either table
can be dropped.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange, Reuse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import (
    Layout,
    TableDescription,
    data_files,
    local_path,
)

# Every append adds files. If one folder has more small files than this, all files are rewritten.
_MANY_FILES = 64
_SMALL_FILE = 16 * 2**20

_FORMATS = ("parquet", "orc")


@dataclass(frozen=True)
class KeptFiles(Reuse):
    """The files of a snapshot that the next snapshot keeps, and the files to write again.

    Args:
        folder: the folder of the snapshot's data files
        replaced: the files to write again, as Spark spells them in `_metadata.file_path`
        kept: the other files, relative to the folder
        layout: how the snapshot is stored
    """

    folder: Path
    replaced: tuple[str, ...]
    kept: tuple[Path, ...]
    layout: Layout

    compares_all = False

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted({path.name for path in self.kept}))

    def before(self, snapshot: OpenMirroringRelation) -> FileRange:
        return FileRange(snapshot, only=self.replaced)

    def after(self, next_snapshot: OpenMirroringRelation) -> FileRange:
        return FileRange(next_snapshot, other_than=self.names)

    def link_into(self, table: TableDescription) -> None:
        """Link the kept files into the next snapshot.

        Args:
            table: the next snapshot

        Raises:
            DbtRuntimeError: if Spark stores the next snapshot differently from the snapshot
        """
        if table.layout != self.layout:
            raise DbtRuntimeError(
                f"Spark made the next snapshot as {table.layout}, but files of the snapshot are "
                f"to be linked into it, which is {self.layout}. Nothing was changed. Set "
                "`file_format` and `partition_by` in the node's config, or run with "
                "--full-refresh."
            )
        folder = table.folder
        assert folder, "a table is where the one before it was"
        for path in self.kept:
            target = folder / path
            target.parent.mkdir(exist_ok=True, parents=True)
            try:
                os.link(self.folder / path, target)
            except OSError:  # the file system may not support hard links
                shutil.copy2(self.folder / path, target)


def can_keep_files(snapshot: TableDescription, planned: Layout) -> bool:
    """Check whether files of a snapshot can be linked into the next snapshot.

    Args:
        planned: how the next snapshot will be stored, apart from buckets
    """
    return (
        snapshot.layout.format in _FORMATS
        and snapshot.layout == planned
        and not snapshot.layout.buckets
        # an old file lacks the column, and the next snapshot does not have its default
        and not snapshot.has_defaults
        and snapshot.folder is not None
    )


def kept_files(snapshot: TableDescription, touched: Sequence[str]) -> KeptFiles | None:
    """Return the files that the next snapshot keeps. Return None if rewriting all is better.

    Args:
        snapshot: the snapshot, whose files can be kept
        touched: files with rows that may change, as Spark spells them in `_metadata.file_path`
    """
    folder = snapshot.folder
    assert folder, "its files can be kept"
    replaced = {local_path(unquote(path)) for path in touched}
    sizes = {path: path.stat().st_size for path in data_files(folder)}
    if not replaced <= sizes.keys():  # a touched file that is not found here would be kept
        return None
    kept = [path for path in sizes if path not in replaced]
    small = Counter(path.parent for path in kept if sizes[path] < _SMALL_FILE)
    if not kept or max(small.values(), default=0) > _MANY_FILES:
        return None
    if 2 * sum(sizes[path] for path in kept) < sum(sizes.values()):
        # writing all files takes less time than looking up the rows of most of them
        return None
    names = tuple(path.relative_to(folder) for path in kept)
    return KeptFiles(folder, tuple(touched), names, snapshot.layout)
