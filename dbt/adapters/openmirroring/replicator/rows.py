"""The rows of a data file, with the column types of the mirrored table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from dbt.adapters.openmirroring.replicator.errors import TableError, unreadable
from dbt.adapters.openmirroring.replicator.metadata import clash

ROW_MARKER = "__rowMarker__"

UTC = pa.timestamp("us", "UTC")

# Bytes of rows that are in memory at once, in Arrow's format.
AT_ONCE = 64 * 2**20

# The rows of a file may have this many bytes, or this many times the size of the file. Without a
# limit, a malicious file of a few bytes could expand to more than a disk. Data files with real
# rows stay far below both limits.
_LARGEST = 8 * 2**30
_LARGEST_RATIO = 1_000

# Minimum bytes that a row counts for, so that many rows with few bytes reach the limit too.
_SMALLEST_ROW = 8

OpenFile = Callable[[], pa.NativeFile]


@dataclass(frozen=True)
class Rows:
    """A data file that has been opened.

    Args:
        name: the name of the file
        size: the size of the file in bytes
        schema: the schema of the mirrored columns
        marked: whether the row marker follows these columns, as INT32
        read: reads the file from its beginning, in batches with these columns
    """

    name: str
    size: int
    schema: pa.Schema
    marked: bool
    read: Callable[[], Iterable[pa.RecordBatch]]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the order of the file, with the row marker if there is one.

        A batch has one row, or at most AT_ONCE bytes.

        Raises:
            TableError: if the file is corrupt, or its rows are too large for its size
        """
        schema = self.schema
        if self.marked:
            schema = schema.append(pa.field(ROW_MARKER, pa.int32()))
        left = most_bytes(self.size)
        try:
            for batch in self.read():
                for piece in _pieces(batch.cast(schema)):
                    left -= max(piece.nbytes, _SMALLEST_ROW * piece.num_rows)
                    if left < 0:
                        raise too_large(self.name, self.size)
                    yield piece
        except (pa.ArrowException, OSError, ValueError) as error:
            raise unreadable(self.name, error) from None


def check_names(file: str, names: list[str]) -> None:
    """Make sure that a table can have the columns of a file.

    Raises:
        TableError: if two names differ at most in case, or the row marker is not the last column
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
    """Return the maximum bytes that the rows of a file may have.

    Args:
        size: the size of the file in bytes
    """
    return max(_LARGEST, _LARGEST_RATIO * size)


def too_large(name: str, size: int) -> TableError:
    """Return the error for a file whose rows are too large for its size."""
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
