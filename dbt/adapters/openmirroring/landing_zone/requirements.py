"""The requirements for publishing a table. The error of each one says what it has found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from dbt.adapters.openmirroring.landing_zone.batch import Batch, Owner
from dbt.adapters.openmirroring.landing_zone.errors import (
    ForeignTableFolderError,
    MirrorError,
    SnapshotMismatchError,
)
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder, file_number
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.landing_zone.table_files import TableFiles, problem_with
from dbt.adapters.openmirroring.text import findings
from dbt.adapters.openmirroring.text.shown import shown
from dbt.adapters.openmirroring.text.ways_out import (
    FOREIGN_CHANGES,
    FULL_LOAD,
    LOAD_ANEW,
    compute_anew,
    publish_present,
)


@dataclass(frozen=True)
class SameOwner:
    """The requirement that a batch belongs to this table of this project."""

    table: TableFolder
    owner: Owner

    def validate(self, batch: Batch) -> None:
        """Compare the owner with that of a batch that was published or committed before.

        Raises:
            ForeignTableFolderError: if the batch has another owner
        """
        found = batch.owner
        if found.project != self.owner.project:
            project, node = shown(found.project), shown(found.node)
            raise ForeignTableFolderError(
                f"{findings.other_project(self.table.path, project, node)} Nothing was changed. "
                "Give the model another `alias` or `schema`; if that project is gone, delete the "
                f"folder and {self.table.scratch}, and {LOAD_ANEW}."
            )
        if not self.table.schema and found.schema != self.owner.schema:
            raise ForeignTableFolderError(
                f"The table folder {self.table.path} belongs to {shown(found.node)} in the schema "
                f"{shown(found.schema)!r}: without schema folders, a landing zone can have only "
                "one table of that name. Nothing was changed. Give the model another `alias`, or "
                "remove `schema_folder: false`; if that model is gone, delete the folder and "
                f"{self.table.scratch}, and {LOAD_ANEW}."
            )


@dataclass(frozen=True)
class NoFolder:
    """The requirement that a table without a journal has no table folder either."""

    table: TableFolder

    def validate(self, storage: Storage) -> None:
        """Check that the table folder is missing or empty.

        Raises:
            ForeignTableFolderError: if it has content, which somebody else may have created
        """
        if storage.list(self.table.path):
            raise ForeignTableFolderError(
                f"The table folder {self.table.path} exists, but has no _journal.json: "
                "dbt-openmirroring has not published it, or its journal is lost. Nothing was "
                "changed. Give the model another `alias` or `schema`; or delete the folder, and "
                f"{LOAD_ANEW}."
            )


@dataclass(frozen=True)
class SameBatch:
    """The requirement that the snapshot carries the batch that was published last.

    Args:
        owner: the owner of the snapshot
        batch_id: the batch id of the snapshot; None if there is none, or it was never published
    """

    table: TableFolder
    owner: Owner
    batch_id: str | None

    def validate(self, journal: Journal) -> None:
        """Compare with the last publication.

        Raises:
            SnapshotMismatchError: if the snapshot carries another batch, or none
        """
        if self.batch_id != journal.batch.id:
            last = journal.batch.owner
            known = {"target": last.target, "user": last.user}
            by = [f"{name} {shown(value)!r}" for name, value in known.items() if value]
            when_and_by = ", ".join([shown(journal.published_at), *by])
            finding = findings.other_batch(
                self.table, self.table.journal, journal.batch.id, when_and_by, self.batch_id
            )
            way_out = compute_anew(self.owner.node, journal.batch.table_rows)
            # batch ids begin with a time: rows of a later batch were published elsewhere
            if self.batch_id and self.batch_id > journal.batch.id:
                way_out = f"{publish_present(self.table)} {way_out}"
            raise SnapshotMismatchError(f"{finding} {way_out}")


@dataclass(frozen=True)
class SameRows:
    """The requirement that the snapshot has as many rows as the mirrored table.

    Args:
        owner: the owner of the snapshot
        rows: the number of rows of the snapshot
    """

    table: TableFolder
    owner: Owner
    rows: int

    def validate(self, journal: Journal) -> None:
        """Compare with the last publication.

        Raises:
            SnapshotMismatchError: if the numbers differ
        """
        published = journal.batch.table_rows
        if self.rows != published:
            finding = findings.other_rows(self.table, self.rows, published)
            raise SnapshotMismatchError(
                f"{finding} {_ways_out(journal, self.table, self.owner, self.rows)}"
            )


@dataclass(frozen=True)
class SameState:
    """The requirement that nobody else has written to the snapshot since it was published.

    Args:
        owner: the owner of the snapshot
        state: the state of the snapshot's data
        count: returns the number of rows of the snapshot; 0 if they cannot be read
    """

    table: TableFolder
    owner: Owner
    state: str
    count: Callable[[], int]

    def validate(self, journal: Journal) -> None:
        """Compare with the state in which the last publication left the snapshot.

        Raises:
            SnapshotMismatchError: if it is in another state
        """
        if journal.snapshot_state not in (None, self.state):
            finding = findings.other_state(self.table, shown(journal.published_at))
            raise SnapshotMismatchError(
                f"{finding} {_ways_out(journal, self.table, self.owner, self.count())}"
            )


@dataclass(frozen=True)
class FilesUntouched:
    """The requirement that nobody else has changed the data files of the table folder."""

    table: TableFolder
    owner: Owner
    storage: Storage

    def validate(self, journal: Journal) -> None:
        """Compare with the last publication.

        Raises:
            ForeignTableFolderError: if a file was added, deleted or changed
        """
        files = TableFiles.of(self.storage.at_once(self.table.path), self.table)
        problem = problem_with(self.table, files, journal)
        if problem:
            raise ForeignTableFolderError(
                f"{problem}. Nothing was changed. {publish_present(self.table)} "
                f"{compute_anew(self.owner.node, journal.batch.table_rows)}"
            )


@dataclass(frozen=True)
class IncreasingTimes:
    """The requirement that the modification times of the data files increase.

    Files with equal times have no order.
    """

    table: TableFolder

    def validate(self, storage: Storage) -> None:
        """Compare the times of the files in the table folder.

        Raises:
            MirrorError: if a file is not later than the one before it
        """
        files = [file for file in storage.list(self.table.path) if file_number(file.name)]
        for earlier, later in pairwise(files):
            if later.modified <= earlier.modified:
                raise MirrorError(
                    f"In {self.table.path}, {later.name} is not later than {earlier.name}: the "
                    "storage does not keep the time of a file that it renames, so the service "
                    f"cannot know their order. Set `file_detection: sequential`, and {FULL_LOAD}."
                )


def _ways_out(journal: Journal, table: TableFolder, owner: Owner, rows: int) -> str:
    """Return the ways out of a snapshot with other rows than those that were published.

    Args:
        rows: the number of its rows; no way out empties a mirrored table
    """
    anew = compute_anew(owner.node, journal.batch.table_rows)
    present = f" {publish_present(table, f'the {rows:,} rows')}" if rows else ""
    return f"{anew}{present} {FOREIGN_CHANGES}"
