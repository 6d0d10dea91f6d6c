"""The rows of a snapshot that an incremental run may change.

Only rows with the keys of new rows change. These rows and the rows that replace them are written
to tables beside the snapshot, so that no other rows are compared. After the commit of the batch, a
Delta or Iceberg snapshot takes the replacing rows in one commit. For other formats, the next
snapshot is written with them.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.openmirroring.node.reuse import FileRange, Reuse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import Layout

MERGING_FORMATS = ("delta", "iceberg")
# csv and json change values, so rows in Parquet tables beside such a snapshot could differ from it
_STORED_FORMATS = ("parquet", *MERGING_FORMATS)


@dataclass(frozen=True)
class TouchedRows(Reuse):
    """The rows of a snapshot that may be replaced, and the rows that replace them.

    Args:
        new_rows: a table of the new rows
        keys: a row may be replaced if it agrees with a new row in these columns. Without keys, new
            rows are only added
        old: a table of the rows that may be replaced; None without keys
        replacement: a table of the replacing rows, with which the next snapshot is written; None
            if the snapshot takes them in place
    """

    new_rows: OpenMirroringRelation
    keys: tuple[str, ...]
    old: OpenMirroringRelation | None
    replacement: OpenMirroringRelation | None

    @property
    def compares_all(self) -> bool:
        return False

    def before(self, snapshot: OpenMirroringRelation) -> FileRange:
        return FileRange(self.old) if self.old else FileRange(snapshot, only=())

    def after(self, next_snapshot: OpenMirroringRelation) -> FileRange:
        return FileRange(self.replacement or next_snapshot)


def can_merge(snapshot: Layout, planned: Layout) -> bool:
    """Check whether a snapshot can be changed in place.

    Args:
        planned: how the next snapshot will be stored
    """
    return snapshot.format in MERGING_FORMATS and snapshot == planned


def has_stored_rows(snapshot: Layout, planned: Layout) -> bool:
    """Check whether rows beside a snapshot have the values that the snapshot would store.

    Args:
        planned: how the next snapshot will be stored
    """
    return snapshot.format in _STORED_FORMATS and snapshot == planned
