"""2. The plan of a batch, with what Spark needs to write its files."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil

from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.node.text_files import TextFiles

# A table of this many keys fits into the memory of every executor.
_BROADCAST_ROWS = 1_000_000


# why a table is rebuilt, whatever has changed
FULL_REFRESH = "--full-refresh"


@dataclass(frozen=True)
class SparkPlan(Plan):
    """The plan of a batch whose files Spark writes.

    Args:
        changed: the SQL of a relation with the changed keys; None if nothing was compared
        in_full: whether `changed` has the new rows too
    """

    changed: str | None = None
    in_full: bool = False

    @cached_property
    def text(self) -> TextFiles | None:
        """How delimited text is written; None for Parquet."""
        return TextFiles.of(self.definition.delimited)

    @property
    def is_small(self) -> bool:
        """Whether the changed keys are few enough to send them to every executor."""
        return self.row_count <= _BROADCAST_ROWS

    def files(self, table_bytes: int, table_rows: int, target_bytes: int) -> tuple[int, int]:
        """Choose the number of files, so that each has about the target size.

        Args:
            table_bytes: the size of the next snapshot
            table_rows: the rows of the next snapshot; the rows of this batch, if the next snapshot
                has no more than `target_bytes`
            target_bytes: the target size of a file

        Returns:
            the number of files that Spark should write, and the number of rows after which it
            begins another file; 0 for no limit
        """
        count = ceil(table_bytes * self.row_count / table_rows / target_bytes) if table_rows else 1
        count = max(1, count)
        # partitions differ in size, so leave a margin before Spark begins another file
        return count, ceil(1.25 * self.row_count / count) if count > 1 else 0
