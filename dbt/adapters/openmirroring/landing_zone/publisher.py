"""A publication in the landing zone: recovery, commit, publication, journal.

The numbers in the docstrings are the steps of a publication. The caller does the steps in between
that happen in Spark: building, comparing, staging.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from typing import Protocol

from dbt.adapters.openmirroring.landing_zone.batch import Owner, StagedFile
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    ForeignTableFolderError,
    MirrorError,
    PathExistsError,
)
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.metadata import metadata
from dbt.adapters.openmirroring.landing_zone.plan import FileRows, Plan
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.landing_zone.records import HeldRecord, Journal, Manifest
from dbt.adapters.openmirroring.landing_zone.requirements import IncreasingTimes, SameOwner
from dbt.adapters.openmirroring.landing_zone.shown import shown
from dbt.adapters.openmirroring.landing_zone.staged_files import StagedFiles
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.landing_zone.table_files import TableFiles


class ServiceWatch(Protocol):
    """Watches which tables the service has mirrored.

    A table is `schema.table`. Every method raises MirrorError when it has waited in vain.
    """

    def wait_until_gone(self, table: str, dropped: bool) -> None:
        """Wait until a table has disappeared after its folder was dropped.

        Args:
            dropped: the folder was dropped just now; otherwise it was not there before, and the
                table may never have existed
        """

    def wait_until_back(self, table: str) -> None:
        """Wait until a table is mirrored again after its folder was recreated."""


class Publication(PublishedTable):
    """One publication of one table. It holds the table's lock until it is closed.

    Args:
        storage: the landing zone
        table: the table folder
        owner: who publishes
        service: a rebuild waits for it; None where nobody can watch it

    Raises:
        ConcurrentPublicationError: another run is publishing this table
    """

    def __init__(
        self,
        storage: Storage,
        table: TableFolder,
        owner: Owner,
        service: ServiceWatch | None = None,
    ) -> None:
        super().__init__(storage, table, owner)
        self.published_at: datetime | None = None
        """When the files of the completed batch appeared; None before that, or without files."""
        self._service = service
        self._renaming_since = datetime.now(timezone.utc)
        self.committed = False
        self._is_completed = False
        self._is_held = False
        self._lock = ExitStack()
        self._lock.enter_context(storage.lock(table.scratch))

    def pending(self) -> Manifest | None:
        """0. Find the manifest that an earlier run left behind, to be published and completed.

        Staged files that do not belong to it are deleted.

        Raises:
            ForeignTableFolderError: the manifest is somebody else's; or the folder that it
                continues is gone, or has lost its journal
            MirrorError: the manifest or the journal is damaged
        """
        self._last = self.journal()
        manifest = self._pending()
        if manifest:
            SameOwner(self.table, self._owner).validate(manifest.batch)
        if manifest and not self._is_current(manifest):
            if self._last is None:
                raise ForeignTableFolderError(
                    f"{self.table.manifest} continues batch "
                    f"{shown(manifest.previous_batch_id)}, but "
                    f"{self.table.journal} is gone: somebody else has deleted it, or the folder. "
                    "Nothing was changed. Restore it; or delete the manifest and the folder, and "
                    "run again to publish a full load."
                )
            # its run lost the race for the table, and died before it could delete the manifest
            self._storage.delete(self.table.manifest)
            manifest = None
        kept = {self.table.manifest, self.table.staging(manifest.batch.id)} if manifest else set()
        for entry in self._storage.list(self.table.scratch):
            path = f"{self.table.scratch}/{entry.name}"
            if path == self.table.held:
                self._is_held = True
            elif path not in kept:
                self._storage.delete(path)
        self.committed = manifest is not None
        return manifest

    def hold(self, why: str) -> None:
        """Let everybody who asks know that rows are held back.

        Args:
            why: and until when
        """
        record = HeldRecord.of(self._owner, datetime.now(timezone.utc), why)
        self._storage.write(self.table.held, record.to_json())
        self._is_held = True

    def let_go(self) -> None:
        """Nothing is held back any more."""
        if self._is_held:
            self._storage.delete(self.table.held)
            self._is_held = False

    def restore_metadata(self, journal: Journal) -> bool:
        """2. Write `_metadata.json` again if it is not what was published.

        Returns:
            whether it was written
        """
        published = metadata(journal.batch.definition)
        if self._storage.read(self.table.metadata) == published:
            return False
        self._storage.write(self.table.metadata, published)
        return True

    def staging_url(self, name: str) -> str:
        """4. The URL by which Spark finds a folder of this batch on the scratch pad."""
        return self._storage.url(f"{self.table.staging(self.batch_id)}/{name}")

    def staged(self, plan: Plan) -> list[StagedFile]:
        """4. Find the files that Spark has written to `rows`.

        Raises:
            MirrorError: there are none
        """
        return self._staged(self.batch_id).written(plan)

    def verify_staged(
        self, plan: Plan, files: list[StagedFile], found: Sequence[FileRows]
    ) -> list[StagedFile]:
        """4. Make sure that the staged files have the rows of the plan.

        Args:
            files: to be published
            found: the rows that were read back, of these files and maybe of others

        Returns:
            the files with rows; if none has any, the first file, for its columns

        Raises:
            MirrorError: the rows are not those of the plan
        """
        return self._staged(self.batch_id).verified(plan, files, found)

    def commit(
        self,
        plan: Plan,
        files: list[StagedFile],
        snapshot_version: str | None = None,
        held: str | None = None,
    ) -> Manifest:
        """5. Let the manifest appear. From here on every step can be repeated.

        Args:
            plan: of this batch
            files: in publication order
            snapshot_version: of a snapshot that is changed in place, before the change
            held: the id of the held snapshot that is published

        Raises:
            ConcurrentPublicationError: somebody else has published since the plan was made
        """
        journal = plan.journal
        if journal and not plan.starts_folder:
            last = max(journal.batch.last_file, TableFiles.of(self._storage, self.table).largest)
        else:
            last = 0
        batch = plan.batch(self.batch_id, self._owner, files, last)
        previous = journal.batch.id if journal else None
        history = journal.batches if journal else ()
        manifest = Manifest(
            batch, self.table, previous, tuple(files), snapshot_version, history, held
        )
        if files:
            self._storage.flush(self._staged(batch.id).folder, [file.name for file in files])
        # if the storage does not answer, the manifest may be there, and needs the staged files
        self.committed = True
        try:
            self._storage.create(self.table.manifest, manifest.to_json())
        except PathExistsError:
            self.committed = False
            raise self._lost_race() from None
        # nobody else can commit while this manifest is there, so the answer stays true
        if not self._is_current(manifest):
            self._storage.delete(self.table.manifest)
            self.committed = False
            raise self._lost_race()
        return manifest

    def withdraw(self, manifest: Manifest) -> None:
        """5. Take back a batch that Spark has refused to store.

        Raises:
            MirrorError: a part of it is published already
        """
        waiting = self._staged(manifest.batch.id).waiting()
        published = [file.name for file in manifest.files if file.name not in waiting]
        if published:
            raise MirrorError(
                f"Batch {manifest.batch.id} cannot be withdrawn: {published[0]} is published or "
                "gone already. Remove what keeps Spark from storing its rows, then run again."
            )
        self._storage.delete(self.table.manifest)
        self._storage.flush(self.table.scratch)
        self._storage.delete(self.table.staging(manifest.batch.id))
        self.committed = False

    def publish(self, manifest: Manifest) -> None:
        """6. Rename the staged files to their numbers, for a rebuild after dropping the folder.

        This step can be repeated: only a rename removes a file from the scratch pad, so files that
        are no longer there have been published. A folder is recreated after the service has
        dropped the table (best practices, "Recovery"). A rebuild then waits until the table is
        back. The manifest stays until then, so nobody publishes changes earlier.

        Raises:
            PathExistsError: somebody else wrote a file with one of the batch's numbers
            MirrorError: a staged file was deleted or changed before it was published; the files
                have no order; or the service did not answer in time
        """
        self.committed = True
        batch = manifest.batch
        staged = self._staged(batch.id)
        waiting = staged.waiting()
        # any of them: after a loss of power, a later rename may have survived an earlier one
        gone = {
            number: file
            for number, file in enumerate(manifest.files, start=batch.first_file or 0)
            if file.name not in waiting
        }
        staged.check(manifest, waiting, self._unpublished(manifest, gone))
        if batch.starts_folder and not gone:
            is_rebuild = batch.publication == "rebuild"
            if is_rebuild:
                # no file of the batch is published yet, so this is the old folder
                self._storage.delete(self.table.path)
            # Before an initial load too, as somebody may have dropped the folder. A folder with
            # metadata is the new one, and its table may exist already.
            if self._service and self._storage.read(self.table.metadata) is None:
                self._service.wait_until_gone(self.table.mirrored_table, dropped=is_rebuild)
            self._storage.write(self.table.metadata, metadata(batch.definition))
        self._renaming_since = datetime.now(timezone.utc)
        by_time = batch.definition.is_by_time
        latest = TableFiles.of(self._storage, self.table).latest if by_time else 0
        for number, file in enumerate(manifest.files, start=batch.first_file or 0):
            path = f"{staged.folder}/{file.name}"
            if file.name in waiting:
                if by_time:
                    latest = self._storage.touch(path, latest)
                self._storage.rename(path, f"{self.table.path}/{batch.file_name(number)}")
                if by_time:  # no later file may survive a loss of power without this one
                    self._storage.flush(self.table.path)
        if manifest.files:
            self._storage.flush(self.table.path)
        if by_time:
            IncreasingTimes(self.table).validate(self._storage)
        if batch.publication == "rebuild" and self._service:
            self._service.wait_until_back(self.table.mirrored_table)

    def _unpublished(self, manifest: Manifest, gone: Mapping[int, StagedFile]) -> list[StagedFile]:
        """The files that were never published, though they are gone from the scratch pad.

        Args:
            gone: from the scratch pad, by number
        """
        journal = self.journal() if gone else None
        if journal and manifest.batch.starts_folder and journal.batch.id != manifest.batch.id:
            return list(gone.values())  # the batch has not dropped the old folder yet
        found = TableFiles.of(self._storage, self.table) if gone else TableFiles()
        return [
            file
            for number, file in gone.items()
            # the service may have removed a file, but it removes later ones after it
            if number > found.largest or found.sizes.get(number, file.size) != file.size
        ]

    def complete(self, manifest: Manifest) -> None:
        """7. Write the journal and clear the scratch pad, after the snapshot was swapped."""
        journal = Journal.of(manifest.batch, self._renaming_since, manifest.history)
        self._storage.write(self.table.journal, journal.to_json())
        self._last = journal
        self.let_go()
        self._storage.delete(self.table.manifest)
        self._storage.delete(self.table.staging(manifest.batch.id))
        self.committed = False
        self._is_completed = manifest.batch.id == self.batch_id
        if manifest.files:
            self.published_at = self._renaming_since

    def close(self) -> None:
        """Free the table, and delete the staged files if they were never committed."""
        with self._lock:
            if not (self.committed or self._is_completed):
                self._storage.delete(self.table.staging(self.batch_id))

    def _is_current(self, manifest: Manifest) -> bool:
        journal = self.journal()
        current = journal.batch.id if journal else None
        if current is None and manifest.batch.publication == "rebuild":
            # the old folder is dropped already, with its journal
            return True
        return current in (manifest.previous_batch_id, manifest.batch.id)

    def _staged(self, batch_id: str) -> StagedFiles:
        return StagedFiles(self._storage, self.table, batch_id)

    def _lost_race(self) -> ConcurrentPublicationError:
        return ConcurrentPublicationError(
            f"Another run has published {self.table} while this one was building it. Nothing was "
            "changed by this run; run it again."
        )
