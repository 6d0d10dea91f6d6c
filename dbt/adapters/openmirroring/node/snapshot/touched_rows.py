"""The rows of a Delta or Iceberg snapshot that an incremental run may change.

Only rows with the keys of new rows change. These rows and the rows that replace them are written
to tables beside the snapshot, so that no other rows are compared. After the commit of the batch,
the snapshot takes the replacing rows in one commit.
"""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.openmirroring.node.snapshot.reuse import FileRange, Reuse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import Layout

MERGING_FORMATS = ("delta", "iceberg")


@dataclass(frozen=True)
class TouchedRows(Reuse):
    """The rows of a snapshot that may be replaced.

    Args:
        new_rows: a table of the new rows
        keys: a row may be replaced if it agrees with a new row in these columns. Without keys, new
            rows are only added
        old: a table of the rows that may be replaced; None without keys
    """

    new_rows: OpenMirroringRelation
    keys: tuple[str, ...]
    old: OpenMirroringRelation | None

    @property
    def compares_all(self) -> bool:
        return False

    def before(self, snapshot: OpenMirroringRelation) -> FileRange:
        return FileRange(self.old) if self.old else FileRange(snapshot, only=())


def can_merge(snapshot: Layout, planned: Layout) -> bool:
    """Check whether a snapshot can be changed in place.

    Args:
        planned: how the next snapshot will be stored
    """
    return snapshot.format in MERGING_FORMATS and snapshot == planned
