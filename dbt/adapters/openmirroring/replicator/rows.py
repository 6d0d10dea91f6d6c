"""The rows of a data file, in the types that the mirrored table has for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from dbt.adapters.openmirroring.replicator.errors import TableError, unreadable
from dbt.adapters.openmirroring.replicator.metadata import clash

ROW_MARKER = "__rowMarker__"

UTC = pa.timestamp("us", "UTC")

# Bytes of rows that are in memory at once, as Arrow has them.
AT_ONCE = 64 * 2**20

# What rows may come to: a file of a few bytes can be written that has more of them than a disk.
# The most that a data file of real rows was seen to come to is far below both.
_LARGEST = 8 * 2**30
_LARGEST_RATIO = 1_000

# Bytes that a value counts for at least: a column of booleans has many rows too
_SMALLEST_VALUE = 8

OpenFile = Callable[[], BinaryIO]


@dataclass(frozen=True)
class Rows:
    """A data file that has been opened.

    Args:
        name: of the file
        size: bytes of the file
        schema: of the mirrored columns
        marked: whether the row marker follows, as INT32
        read: reads the file from its beginning, in batches with these columns
    """

    name: str
    size: int
    schema: pa.Schema
    marked: bool
    read: Callable[[], Iterable[pa.RecordBatch]]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in the file's order, with the row marker if there is one.

        A batch has AT_ONCE bytes at most, or one row.

        Raises:
            TableError: the file is corrupt, or its rows are many more than its bytes
        """
        schema = self.schema
        if self.marked:
            schema = schema.append(pa.field(ROW_MARKER, pa.int32()))
        left = most_bytes(self.size)
        try:
            for batch in self.read():
                for piece in _pieces(batch.cast(schema)):
                    left -= max(piece.nbytes, _SMALLEST_VALUE * piece.num_rows)
                    if left < 0:
                        raise too_large(self.name, self.size)
                    yield piece
        except (pa.ArrowException, OSError, ValueError) as error:
            raise unreadable(self.name, error) from None


def check_names(file: str, names: list[str]) -> None:
    """Make sure that a table can have the columns of a file.

    Raises:
        TableError: two have the same name, or the row marker is not the last
    """
    if ROW_MARKER in names and names[-1] != ROW_MARKER:
        raise TableError("InputValidationError", f"{file}: {ROW_MARKER} must be the last column.")
    clashing = clash(names)
    if clashing:
        one, other = clashing
        raise TableError(
            "SchemaMergeFailure",
            f"{file} has the columns {one!r} and {other!r}: one table cannot have both.",
        )


def most_bytes(size: int) -> int:
    """What the rows of a file of so many bytes may come to."""
    return max(_LARGEST, _LARGEST_RATIO * size)


def too_large(name: str, size: int) -> TableError:
    """A file whose few bytes stand for more rows than can be meant."""
    return TableError(
        "InputValidationError",
        f"{name} has {size:,} bytes, and its rows have more than a thousand times as many. If "
        "this is intended, publish them in several files.",
    )


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= AT_ONCE or batch.num_rows <= 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _pieces(batch.slice(0, half))
    yield from _pieces(batch.slice(half))
