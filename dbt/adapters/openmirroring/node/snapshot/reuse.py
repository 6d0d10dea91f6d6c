"""The parts of a next snapshot that come from the snapshot, and the parts to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import Layout, TableDescription
from dbt.adapters.openmirroring.types.columns import LandingColumn


@dataclass(frozen=True)
class FileRange:
    """Rows of a table: all of them, or those of some of its files.

    Args:
        relation: the table
        only: paths of the files, as Spark spells them in `_metadata.file_path`; None for all files
        other_than: names of files to leave out, as in `_metadata.file_name`
    """

    relation: OpenMirroringRelation
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
        table: the table with its rows
        description: the description of the table
        columns: the columns as they land
        reuse: the parts that need no comparison
        moved: how it is stored differently than the snapshot; None if it is not
    """

    table: OpenMirroringRelation
    description: TableDescription
    columns: Sequence[LandingColumn]
    reuse: Reuse
    moved: str | None = None


MERGING_FORMATS = ("delta", "iceberg")


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
    """Check whether a snapshot can be changed in place.

    Args:
        planned: how the next snapshot will be stored
    """
    return snapshot.format in MERGING_FORMATS and snapshot == planned
