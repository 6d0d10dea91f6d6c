"""Row markers, and the net changes of a sequence of operations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import pyarrow as pa
import pyarrow.compute as pc

from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.rows import ROW_MARKER

# Additional bytes per row while operations are reduced: the number of its key, its position, and
# the columns of the join.
_NUMBERS = 32


class Marker(IntEnum):
    """The row markers (specification, "Format requirements")."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2
    UPSERT = 4


@dataclass(frozen=True)
class Changes:
    """The changes to apply to a table. `deleted` and `upserted` have each key at most once.

    Args:
        deleted: the keys of the rows to delete
        upserted: the rows that replace all rows with the same key
        inserted: the rows to add after that
    """

    deleted: pa.Table
    upserted: pa.Table
    inserted: pa.Table

    @property
    def weight(self) -> int:
        """The bytes of memory needed to reduce these changes once more."""
        return sum(map(weight, (self.deleted, self.upserted, self.inserted)))

    def then(self, later: Changes, keys: tuple[str, ...]) -> Changes:
        """Combine these changes with later ones."""
        operations = [
            marked(rows, marker)
            for changes in (self, later)
            for rows, marker in (
                (changes.deleted, Marker.DELETE),
                (changes.upserted, Marker.UPSERT),
                (changes.inserted, Marker.INSERT),
            )
        ]
        return net_changes(pa.concat_tables(operations, promote_options="default"), keys)


def check_operations(rows: pa.Table, keys: tuple[str, ...]) -> None:
    """Make sure that operations can be reduced.

    Args:
        rows: the operations, with the row marker
        keys: the key columns; without them only inserts are allowed

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


def net_changes(rows: pa.Table, keys: tuple[str, ...]) -> Changes:
    """Reduce a sequence of operations to its net changes.

    For each key only its last update, upsert or delete counts, and the inserts after it. If
    inserts have added several rows with one key, an update leaves one row, and a delete none.

    Args:
        rows: the checked operations in the order of the files, with the row marker
        keys: the key columns; without them only inserts are allowed
    """
    marker = rows[ROW_MARKER].combine_chunks()
    rows = rows.drop_columns([ROW_MARKER])
    if _all_are_inserts(marker):
        return Changes(rows.slice(0, 0).select(keys), rows.slice(0, 0), rows)
    operations = pa.table(
        {
            "key": _numbered([rows[key].combine_chunks() for key in keys]),
            "position": pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(rows))),
            "marker": marker,
        }
    )
    last = (
        operations.filter(pc.not_equal(marker, int(Marker.INSERT)))
        .group_by("key")
        .aggregate([("position", "max")])
        .rename_columns(["key", "last"])
    )
    operations = operations.join(last, "key", join_type="left outer").sort_by("position")
    last_of_key = pc.fill_null(operations["last"], 0)
    is_last = pc.equal(operations["position"], last_of_key)
    is_delete = pc.equal(operations["marker"], int(Marker.DELETE))
    is_insert = pc.equal(operations["marker"], int(Marker.INSERT))
    is_later = pc.greater(operations["position"], last_of_key)
    return Changes(
        deleted=rows.select(keys).filter(pc.and_(is_last, is_delete)),
        upserted=rows.filter(pc.and_(is_last, pc.invert(is_delete))),
        inserted=rows.filter(pc.and_(is_insert, is_later)),
    )


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
    """Return a number for each row. Rows with the same values have the same number."""
    numbers = pa.repeat(pa.scalar(0, pa.int64()), len(columns[0]))
    for column in columns:
        values = column.dictionary_encode()
        pairs = pc.add(
            pc.multiply(numbers, len(values.dictionary)), values.indices.cast(pa.int64())
        )
        numbers = pairs.dictionary_encode().indices.cast(pa.int64())
    return numbers
