"""Read access to a table as it was last published."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from dbt.adapters.openmirroring.landing_zone.batch import Owner, new_batch_id
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.inventory import published_folders
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.records import Journal, Manifest
from dbt.adapters.openmirroring.landing_zone.requirements import (
    FilesUntouched,
    NoFolder,
    SameBatch,
    SameOwner,
    SameRows,
    SameState,
)
from dbt.adapters.openmirroring.landing_zone.storage import Readable, Storage
from dbt.adapters.openmirroring.text.ways_out import RECOVER


class PublishedTable:
    """A table, as it was published last.

    Args:
        storage: the storage of the landing zone
        table: the table folder
        owner: the expected owner of the table
    """

    def __init__(self, storage: Storage, table: TableFolder, owner: Owner) -> None:
        self.batch_id = new_batch_id()
        self.table = table
        self._storage = storage
        self._owner = owner
        self._last: Journal | None = None
        self._may_have_folder = False
        """Whether a batch that was never completed has begun the table folder."""

    def open(self) -> None:
        """Read the journal of the last publication.

        Raises:
            MirrorError: if an interrupted run has left a batch to complete, or a record is damaged
        """
        self._last = self.journal()
        pending = self._pending()
        if pending:
            raise MirrorError(
                f"An earlier run has committed batch {pending.batch.id} of {self.table}, and was "
                f"interrupted. A dry run changes nothing, so it cannot finish it. Run {RECOVER} "
                "with a target that is no dry run."
            )

    @property
    def last(self) -> Journal | None:
        """The journal that this publication follows; None before the first publication."""
        return self._last

    @property
    def last_batch_id(self) -> str | None:
        """The id of the batch that was published last; None before the first publication."""
        return self._last.batch.id if self._last else None

    def journal(self) -> Journal | None:
        """Read the journal; None if the table has never been published."""
        content = self._storage.read(self.table.journal)
        return Journal.from_json(content, self.table.journal) if content is not None else None

    def is_published_again(self) -> bool:
        """Check whether another run has published, or committed, since the journal was read.

        Raises:
            MirrorError: if a record is damaged
        """
        return self.journal() != self._last or self._pending() is not None

    def former_folder(self, batch_id: str) -> TableFolder | None:
        """Find the other folder that the table had, whose name differs in case or in its schema.

        Args:
            batch_id: the id of the last batch of that folder

        Returns:
            the folder; None if there is none
        """
        name = self.table.identifier.lower()
        for folder in published_folders(self._storage):
            if folder.identifier.lower() != name or folder == self.table:
                continue
            with suppress(MirrorError):  # a damaged record says nothing
                content = self._storage.read(folder.journal)
                if content and Journal.from_json(content, folder.journal).batch.id == batch_id:
                    return folder
        return None

    def _pending(self, files: Readable | None = None) -> Manifest | None:
        """Read the manifest of a batch that is committed but not completed; None without one."""
        content = (files or self._storage).read(self.table.manifest)
        return Manifest.from_json(content, self.table.manifest) if content is not None else None

    def verify(self, snapshot_batch_id: str | None, rebuilds: bool) -> Journal | None:
        """2. Check that journal, table folder and snapshot belong together.

        Args:
            snapshot_batch_id: the batch id of the snapshot; None if there is no snapshot, or it
                was never published
            rebuilds: whether the table is rebuilt, so that snapshot and files need not match

        Returns:
            the journal; None for a table that does not exist yet

        Raises:
            ForeignTableFolderError: if somebody else owns the folder or has changed its files
            SnapshotMismatchError: if the snapshot is not the one that was published last
        """
        # The journal is not read again. A newer one would be of another run, whose rows the next
        # snapshot does not have.
        journal = self._last
        if journal is None:
            if not self._may_have_folder:
                NoFolder(self.table).validate(self._storage)
            return None
        SameOwner(self.table, self._owner).validate(journal.batch)
        if not rebuilds:
            SameBatch(self.table, self._owner, snapshot_batch_id).validate(journal)
            FilesUntouched(self.table, self._owner, self._storage).validate(journal)
        return journal

    def verify_rows(self, journal: Journal, rows: int) -> None:
        """2. Check that the snapshot has as many rows as the mirrored table.

        Args:
            journal: the journal of the last publication
            rows: the number of rows of the snapshot

        Raises:
            SnapshotMismatchError: if the numbers differ
        """
        SameRows(self.table, self._owner, rows).validate(journal)

    def verify_state(
        self, journal: Journal, state: str, count: Callable[[], int] = lambda: 0
    ) -> None:
        """2. Check that the snapshot is in the state in which the last publication left it.

        Args:
            journal: the journal of the last publication
            state: the state of the snapshot now
            count: returns the number of rows of the snapshot; 0 if they cannot be read

        Raises:
            SnapshotMismatchError: if the states differ
        """
        SameState(self.table, self._owner, state, count).validate(journal)
