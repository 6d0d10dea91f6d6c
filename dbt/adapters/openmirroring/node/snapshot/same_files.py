"""Files with the same content in the snapshot and the next snapshot.

The same query over the same rows usually writes the same files. The rows of such files have not
changed, so they are not compared.
"""

from __future__ import annotations

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange, Reuse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import TableDescription, data_files, parquet_reader

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData

# bytes
_BLOCK = 2**20


@dataclass(frozen=True)
class SameFiles(Reuse):
    """Files that are the same in two snapshots.

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

    Args:
        before: the snapshot
        after: the next snapshot
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
