"""The rows of a snapshot that an incremental run may change.

Only rows with the keys of new rows change. These are written beside the snapshot, with those that
come in their place: no other rows have to be compared. Delta and Iceberg take them in one commit,
once they are committed. Of other formats the next snapshot is written with them.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.openmirroring.node.reuse import FileRange, Reuse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import Layout

MERGING_FORMATS = ("delta", "iceberg")
# rows that are beside the snapshot, in Parquet, are the same in it: csv and json change them
_STORED_FORMATS = ("parquet", *MERGING_FORMATS)


@dataclass(frozen=True)
class TouchedRows(Reuse):
    """The rows of a snapshot that may be replaced, and what comes in their place.

    Args:
        new_rows: a table
        keys: a row may be replaced if it agrees with a new row in these columns; without any, new
            rows are only added
        old: a table of the rows that may be replaced; None without keys
        replacement: a table of those in their place, which the next snapshot is written with; None
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
    """Whether a snapshot can be changed in place.

    Args:
        planned: how the next one is to be stored
    """
    return snapshot.format in MERGING_FORMATS and snapshot == planned


def has_stored_rows(snapshot: Layout, planned: Layout) -> bool:
    """Whether rows beside a snapshot are as it stores them, so that they can be published.

    Args:
        planned: how the next one is to be stored
    """
    return snapshot.format in _STORED_FORMATS and snapshot == planned
