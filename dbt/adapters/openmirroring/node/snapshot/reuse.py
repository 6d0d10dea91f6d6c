"""The parts of a next snapshot that come from the snapshot, and the parts to compare."""

from __future__ import annotations

import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import unquote

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import (
    Layout,
    TableDescription,
    data_files,
    local_path,
    parquet_reader,
)
from dbt.adapters.openmirroring.types.columns import LandingColumn

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData


MERGING_FORMATS = ("delta", "iceberg")
_LINKED_FORMATS = ("parquet", "orc")

# Every append adds files. If one folder has more small files than this, all files are rewritten.
_MANY_FILES = 64
_SMALL_FILE = 16 * 2**20

# bytes of a file that are read at once
_BLOCK = 2**20


@dataclass(frozen=True)
class FileRange:
    """Rows of a table: all of them, or those of some of its files.

    Args:
        relation: the table, or a query in brackets
        only: paths of the files, as Spark spells them in `_metadata.file_path`; None for all files
        other_than: names of files to leave out, as in `_metadata.file_name`
    """

    relation: OpenMirroringRelation | str
    only: tuple[str, ...] | None = None
    other_than: tuple[str, ...] = ()


class Reuse:
    """The base case: nothing is reused, so every row of both snapshots is compared.

    Attributes:
        compares_all: whether every row of the snapshot is compared
        may_repeat_keys: whether a key that is new among the compared rows may be in a file that is
            not compared
        equal_rows: how many rows both snapshots have, if they are the same, so that nothing is
            compared; None otherwise
    """

    compares_all: ClassVar[bool] = True
    may_repeat_keys: ClassVar[bool] = False
    equal_rows: int | None = None

    def before(self, snapshot: OpenMirroringRelation) -> FileRange:
        """Return the rows of the snapshot that may be deleted or changed."""
        return FileRange(snapshot)

    def after(self, next_snapshot: OpenMirroringRelation) -> FileRange:
        """Return the rows of the next snapshot that may be new or changed."""
        return FileRange(next_snapshot)


@dataclass(frozen=True)
class NextSnapshot:
    """A built next snapshot, or the part of it that the snapshot takes in place.

    Args:
        columns: the columns as they land
        reuse: the parts that need no comparison
        moved: how it is stored differently than the snapshot; None if it is not
    """

    table: OpenMirroringRelation
    description: TableDescription
    columns: Sequence[LandingColumn]
    reuse: Reuse
    moved: str | None = None


@dataclass(frozen=True)
class TouchedRows(Reuse):
    """The rows of a Delta or Iceberg snapshot that an incremental run may change.

    Only rows with the keys of new rows change. These rows and the rows that replace them are
    written to tables beside the snapshot, so that no other rows are compared. After the commit of
    the batch, the snapshot takes the replacing rows in one commit.

    Args:
        new_rows: a table of the new rows
        keys: a row may be replaced if it agrees with a new row in these columns. Without keys, new
            rows are only added
        old: a table of the rows that may be replaced; None without keys
    """

    new_rows: OpenMirroringRelation
    keys: tuple[str, ...]
    old: OpenMirroringRelation | None

    compares_all = False

    def before(self, snapshot: OpenMirroringRelation) -> FileRange:
        return FileRange(self.old) if self.old else FileRange(snapshot, only=())


def can_merge(snapshot: Layout, planned: Layout) -> bool:
    """Check whether a snapshot can be changed in place, as the next one is planned."""
    return snapshot.format in MERGING_FORMATS and snapshot == planned


@dataclass(frozen=True)
class KeptFiles(Reuse):
    """The files of a snapshot that the next snapshot keeps, and the files to write again.

    A Parquet file cannot be changed, but in most files of a snapshot an incremental run changes
    no row. These files are linked into the next snapshot. Each then has two names, so that either
    table can be dropped.

    Args:
        folder: the folder of the snapshot's data files
        replaced: the files to write again, as Spark spells them in `_metadata.file_path`
        kept: the other files, relative to the folder
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

        Raises:
            DbtRuntimeError: if Spark stores the next snapshot differently from the snapshot
        """
        if table.layout != self.layout:
            raise DbtRuntimeError(
                f"Spark made the new table as {table.layout}, but files of the baseline are "
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
    """Check whether files of a snapshot can be linked into the next one.

    Args:
        planned: its layout, apart from buckets
    """
    return (
        snapshot.layout.format in _LINKED_FORMATS
        and snapshot.layout == planned
        and not snapshot.layout.buckets
        # an old file lacks the column, and the next snapshot does not have its default
        and not snapshot.has_defaults
        and snapshot.folder is not None
    )


def kept_files(snapshot: TableDescription, touched: Sequence[str]) -> KeptFiles | None:
    """Return the files that the next snapshot keeps. Return None if rewriting all is better.

    Args:
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


@dataclass(frozen=True)
class SameFiles(Reuse):
    """Files that are the same in two snapshots.

    The same query over the same rows usually writes the same files. Their rows have not changed,
    so they are not compared.

    Args:
        names_before: their names in the snapshot
        names_after: their names in the next snapshot
        equal_rows: the number of their rows if neither snapshot has other files, otherwise None
    """

    names_before: tuple[str, ...]
    names_after: tuple[str, ...]
    equal_rows: int | None = None

    compares_all = False
    may_repeat_keys = True

    def before(self, snapshot: OpenMirroringRelation) -> FileRange:
        return FileRange(snapshot, other_than=self.names_before)

    def after(self, next_snapshot: OpenMirroringRelation) -> FileRange:
        return FileRange(next_snapshot, other_than=self.names_after)


def same_files(before: TableDescription, after: TableDescription) -> SameFiles | None:
    """Return the files that a snapshot and the next snapshot have in common; None if none.

    The footers are read first, which requires pyarrow. The data of two files is compared only if
    their footers agree.
    """
    if not parquet_reader():
        return None
    # the folders of other formats also contain files that are not rows of the table
    if [before.layout.format, after.layout.format] != ["parquet", "parquet"]:
        return None
    # the same name of a folder may be another value
    if before.partition_types != after.partition_types or before.layout.zone != after.layout.zone:
        return None
    folder, next_folder = before.folder, after.folder
    if not folder or not next_folder:
        return None
    pairs, is_rest = _pairs(folder, next_folder)
    # files of different partitions may have the same name
    is_flat = all(path.parent == next_folder for path in pairs)
    if not pairs or (is_rest and not is_flat):
        return None
    rows = None
    if not is_rest:
        rows = sum(parquet_reader().read_metadata(path).num_rows for path in pairs)
    return SameFiles(
        names_before=tuple(sorted(path.name for path in pairs.values())),
        names_after=tuple(sorted(path.name for path in pairs)),
        equal_rows=rows,
    )


def _pairs(before: Path, after: Path) -> tuple[dict[Path, Path], bool]:
    """Pair each file after with an equal file before. Also return whether any file has no pair."""
    candidates = defaultdict(list)
    for path in sorted(data_files(before)):
        candidates[path.parent.relative_to(before), path.stat().st_size].append(path)
    pairs: dict[Path, Path] = {}
    is_rest = False
    for path in sorted(data_files(after)):
        like = candidates[path.parent.relative_to(after), path.stat().st_size]
        found = next((other for other in like if _have_same_rows(path, other)), None)
        if found:
            like.remove(found)
            pairs[path] = found
        else:
            is_rest = True
    return pairs, is_rest or any(candidates.values())


def _have_same_rows(one: Path, other: Path) -> bool:
    """Check whether two files of the same size have the same schema, chunks and pages."""
    footers = [parquet_reader().read_metadata(path) for path in (one, other)]
    if not footers[0].schema.equals(footers[1].schema):
        return False
    # not the whole footers, because the lists of encodings in them have no fixed order
    if _chunks(footers[0]) != _chunks(footers[1]) or footers[0].metadata != footers[1].metadata:
        return False
    with one.open("rb") as file, other.open("rb") as same:
        file.seek(-8, os.SEEK_END)
        end = file.tell() - int.from_bytes(file.read(4), "little")
        file.seek(0)
        while file.tell() < end:
            size = min(_BLOCK, end - file.tell())
            if file.read(size) != same.read(size):
                return False
    return True


def _chunks(footer: FileMetaData) -> list[tuple[int | str, ...]]:
    """Return the position, size and format of each column chunk in each row group."""
    groups = (footer.row_group(i) for i in range(footer.num_row_groups))
    return [
        (
            group.num_rows,
            chunk.num_values,
            chunk.compression,
            chunk.dictionary_page_offset,
            chunk.data_page_offset,
            chunk.total_compressed_size,
        )
        for group in groups
        for chunk in map(group.column, range(group.num_columns))
    ]
