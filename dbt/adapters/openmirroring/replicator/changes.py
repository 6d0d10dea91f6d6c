"""Row markers, and the net changes of a sequence of operations."""

from __future__ import annotations

from enum import IntEnum

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.rows import ROW_MARKER

# Additional bytes per row while operations are reduced: the number of its key, its position, and
# the last position of this key.
_NUMBERS = 32


class Marker(IntEnum):
    """The row markers (specification, "Format requirements")."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2
    UPSERT = 4


def check_operations(rows: pa.Table, keys: tuple[str, ...]) -> None:
    """Check that operations can be reduced.

    Raises:
        TableError: if a marker is unknown, an operation needs a key, or a key is NULL
    """
    marker = rows[ROW_MARKER]
    unknown = pc.invert(pc.is_in(marker, pa.array([int(known) for known in Marker], pa.int32())))
    if pc.any(unknown).as_py():
        raise TableError(
            "InputValidationError", f"{marker.filter(unknown)[0]} is not a row marker."
        )
    if _all_are_inserts(marker):
        return
    if not keys:
        raise TableError(
            "InputValidationError",
            "Updates and deletes require keyColumns in _metadata.json.",
        )
    for key in keys:
        if rows[key].null_count:
            raise TableError("InputValidationError", f"The key column {key!r} is NULL in a row.")


def net_changes(rows: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """Reduce a sequence of operations to its net changes.

    For each key only its last update, upsert or delete counts, and the inserts after it. If
    inserts have added several rows with one key, an update leaves one row, and a delete none.

    Args:
        rows: the checked operations in the order of the files, with the row marker

    Returns:
        the operations that count; at most one for each key is no insert
    """
    marker = rows[ROW_MARKER].combine_chunks()
    if _all_are_inserts(marker):
        return rows
    key = _numbered([rows[name].combine_chunks() for name in keys])
    position = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(rows)))
    changed = pc.if_else(pc.equal(marker, int(Marker.INSERT)), 0, position)
    by_key = pa.table({"key": key, "changed": changed}).group_by("key")
    last = by_key.aggregate([("changed", "max")]).sort_by("key")["changed_max"]
    return rows.filter(pc.greater_equal(position, last.take(key)))


def _all_are_inserts(marker: pa.Array | pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.equal(marker, int(Marker.INSERT)), min_count=0).as_py())


def weight(rows: pa.Table | pa.RecordBatch) -> int:
    """Return the bytes of memory needed to reduce rows to their net changes."""
    return int(rows.nbytes) + _NUMBERS * int(rows.num_rows)


def marked(rows: pa.Table, marker: Marker) -> pa.Table:
    """Append the same row marker to all rows, as their last column."""
    markers = pa.repeat(pa.scalar(int(marker), pa.int32()), len(rows))
    return rows.append_column(ROW_MARKER, markers)


def _numbered(columns: list[pa.Array]) -> pa.Array:
    """Return a number for each row. Rows with the same values have the same, from 0 upwards."""
    numbers = pa.repeat(pa.scalar(0, pa.int64()), len(columns[0]))
    for column in columns:
        values = column.dictionary_encode()
        pairs = pc.add(
            pc.multiply(numbers, len(values.dictionary)), values.indices.cast(pa.int64())
        )
        numbers = pairs.dictionary_encode().indices.cast(pa.int64())
    return numbers
