"""What a next snapshot has from the snapshot before it, and what is left to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbt.adapters.openmirroring.node.columns import LandingColumn
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import TableDescription


@dataclass(frozen=True)
class FileRange:
    """Rows of a table: all of them, or those of some of its files.

    Args:
        relation: the table
        only: paths of files, as Spark has them in `_metadata.file_path`; None for all files
        other_than: names of files to leave out, as in `_metadata.file_name`
    """

    relation: OpenMirroringRelation
    only: tuple[str, ...] | None = None
    other_than: tuple[str, ...] = ()


class Reuse:
    """Nothing is reused: every row of both snapshots is compared."""

    @property
    def compares_all(self) -> bool:
        """Every row of the snapshot is compared."""
        return True

    @property
    def is_everything(self) -> bool:
        """Both snapshots have the same rows, so there is nothing to compare."""
        return False

    @property
    def may_repeat_keys(self) -> bool:
        """A key that is new among the compared rows may be in a file that is not compared."""
        return False

    def before(self, snapshot: OpenMirroringRelation) -> FileRange:
        """The rows of the snapshot that may be gone or changed."""
        return FileRange(snapshot)

    def after(self, next_snapshot: OpenMirroringRelation) -> FileRange:
        """The rows of the next snapshot that may be new or changed."""
        return FileRange(next_snapshot)


@dataclass(frozen=True)
class NextSnapshot:
    """A next snapshot that is built; or the part of it that the snapshot is to take in place.

    Args:
        table: with its rows
        description: of the table
        columns: as they land
        reuse: what of it need not be compared
        moved: how it is stored in another way than the snapshot; empty if it is not
    """

    table: OpenMirroringRelation
    description: TableDescription
    columns: Sequence[LandingColumn]
    reuse: Reuse
    moved: str = ""
