"""A publication in the landing zone: recovery, commit, publication, journal.

The numbers in the docstrings are the steps of a publication. The caller does the steps in which
rows are computed: build, compare and stage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timezone
from itertools import pairwise
from typing import TYPE_CHECKING

from dbt.adapters.openmirroring.landing_zone.batch import Owner, StagedFile
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    ForeignTableFolderError,
    LandingZoneUnavailableError,
    MirrorError,
    NotPlainError,
    PathExistsError,
    StagedFilesLostError,
)
from dbt.adapters.openmirroring.landing_zone.inventory import TableFiles
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder, file_number
from dbt.adapters.openmirroring.landing_zone.plan import Plan, StagedFiles
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable, compute_anew
from dbt.adapters.openmirroring.landing_zone.records import (
    LOAD_ANEW,
    HeldRecord,
    Journal,
    Manifest,
    withdraw,
)
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.protocol.facts import Held
from dbt.adapters.openmirroring.text.shown import shown

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.service.monitoring import Service


class Publication(PublishedTable):
    """One publication of one table. It holds the table's lock until it is closed.

    Args:
        service: the service that a rebuild or an initial load waits for; None if there is none

    Raises:
        ConcurrentPublicationError: if another run is publishing this table
    """

    def __init__(
        self,
        storage: Storage,
        table: TableFolder,
        owner: Owner,
        service: Service | None = None,
    ) -> None:
        super().__init__(storage, table, owner)
        self.published_at: datetime | None = None
        """When the last file of the completed batch appeared; None before, or if it has none."""
        self.staged_files = StagedFiles(storage, table, self.batch_id)
        self._service = service
        self._renamed_at: datetime | None = None
        self._renamed: int | None = None
        self.committed = False
        self._is_withdrawn = False
        self.held: Held | None = None
        """The record of a snapshot that is ahead of the mirror, if it can be read.

        It is known after `pending`.
        """
        self._has_held_record = False
        self._is_staged = False
        self._lock = ExitStack()
        self._lock.enter_context(storage.lock(table.scratch))

    def pending(self) -> Manifest | None:
        """0. Return the manifest that an earlier run left behind, so that it can be finished.

        Staged files that do not belong to it are deleted.

        Raises:
            ForeignTableFolderError: if somebody else owns the manifest, or the folder that it
                continues is gone or has lost its journal
            MirrorError: if the manifest or the journal is damaged
        """
        files = self._storage.at_once(self.table.scratch)
        self.last = self.journal()
        manifest = self._pending(files)
        if manifest:
            self._require_owner(manifest.batch)
        if manifest and not self._is_current(manifest):
            if self.last is None:
                raise ForeignTableFolderError(
                    f"{self.table.manifest} continues batch "
                    f"{shown(manifest.previous_batch_id)}, but "
                    f"{self.table.journal} is gone: somebody else has deleted it, or the folder. "
                    "Nothing was changed. Restore it; or delete the manifest and the folder, and "
                    f"{LOAD_ANEW}."
                )
            # the run lost the race for the table, and died before it could delete its manifest
            manifest = None
        own = {self.table.manifest, self.table.staging(manifest.batch.id)} if manifest else set()
        for entry in files.list(self.table.scratch):
            path = f"{self.table.scratch}/{entry.name}"
            if path == self.table.held:
                self._has_held_record = True
                record = HeldRecord.read_whole(files, path)
                self.held = record.held if record else None
            elif path not in own:
                self._storage.delete(path)
        self.committed = manifest is not None
        return manifest

    def supersede(self, manifest: Manifest) -> None:
        """0. Let the commit of this publication, a rebuild, replace a batch nobody can finish."""
        self._superseded = manifest
        self.committed = False

    @property
    def is_superseded(self) -> bool:
        """Whether there is a batch that the commit of this publication replaces."""
        return self._superseded is not None and not self._is_withdrawn

    def withdraw_superseded(self) -> None:
        """5. Delete the batch that this one replaces, with all that was published of it.

        A node whose snapshot goes ahead asks for it before the commit does: then it is gone.

        Raises:
            ConcurrentPublicationError: if another run has finished it
        """
        if self._superseded is None or self._is_withdrawn:
            return
        if self._pending() != self._superseded:
            raise self._lost_race()
        if self.last is None:  # it has begun the folder
            self._storage.delete(self.table.path)
        self._storage.delete(self.table.manifest)
        self._storage.delete(self.table.staging(self._superseded.batch.id))
        self._is_withdrawn = True

    def hold(self, held: Held) -> None:
        """Write the record that the snapshot is ahead of the mirror, or will be."""
        self._storage.write(self.table.held, HeldRecord(self._owner, held).to_json())
        self.held = held
        self._has_held_record = True

    @property
    def is_held_damaged(self) -> bool:
        """Whether there is a record of a snapshot that is ahead, and it cannot be read."""
        return self._has_held_record and self.held is None

    def check_held_record(self) -> None:
        """Check that the record of a snapshot that is ahead, if there is one, can be read.

        Raises:
            MirrorError: if it is damaged
        """
        if self.is_held_damaged:
            HeldRecord.read(self._storage, self.table.held)

    def delete_held_record(self) -> None:
        """Delete the record of held rows, if there is one."""
        self.held = None
        if self._has_held_record:
            self._storage.delete(self.table.held)
            self._has_held_record = False

    def restore_metadata(self, journal: Journal) -> bool:
        """2. Write `_metadata.json` again if it was changed. Return whether it was written."""
        published = journal.batch.definition.metadata
        if self._storage.read(self.table.metadata) == published:
            return False
        self._storage.write(self.table.metadata, published)
        return True

    def staging_url(self, name: str) -> str:
        """4. Return the URL of a folder of this batch on the scratch pad."""
        self._is_staged = True
        return self._storage.url(f"{self.table.staging(self.batch_id)}/{name}")

    def commit(
        self,
        plan: Plan,
        files: list[StagedFile],
        build: str | None = None,
        snapshot_version: str | None = None,
        snapshot_state: str | None = None,
    ) -> Manifest:
        """5. Create the manifest, which documents the arguments. Every later step can be repeated.

        Args:
            plan: the plan of this batch
            files: the files in publication order
            build: the id of the build whose rows are published; None if this publication built
                them
            snapshot_version: the version, before the change, of a snapshot that is changed in
                place
            snapshot_state: the state of the snapshot's data after this batch; None if nobody
                knows it yet

        Raises:
            ConcurrentPublicationError: if another run has published since the plan was made
            ForeignTableFolderError: if somebody else has changed the table folder since then
        """
        journal = plan.journal
        self.withdraw_superseded()
        self._verify_again(plan)
        last = 0 if plan.starts_folder or not journal else journal.batch.last_file
        batch = plan.batch(self.batch_id, build or self.batch_id, self._owner, files, last)
        previous = journal.batch.id if journal else None
        history = journal.batches if journal else ()
        state = (snapshot_version, history, snapshot_state)
        manifest = Manifest(batch, self.table, previous, tuple(files), *state)
        if files:
            self._storage.flush(self.staged_files.folder, [file.name for file in files])
        # if the storage does not answer, the manifest may exist, and then needs the staged files
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

    def _verify_again(self, plan: Plan) -> None:
        """5. Check that the table folder is still as it was when the plan was made.

        A build may take hours, and the numbers of the batch follow those in the journal.
        """
        try:
            if plan.journal is None:
                self._require_no_folder()
            elif not plan.starts_folder:
                self._require_files(plan.journal)
        except ForeignTableFolderError:
            # the files may be those of another run
            if self.journal() != plan.journal or self._storage.read(self.table.manifest):
                raise self._lost_race() from None
            raise

    def withdraw(self, manifest: Manifest) -> None:
        """5. Withdraw a batch whose rows the snapshot could not store.

        Raises:
            MirrorError: if a part of the batch is already published
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
        """6. Rename the staged files to their numbers. A rebuild drops the table folder first.

        This step can be repeated: only a rename removes a file from the scratch pad, so files that
        are no longer there have been published. A folder is recreated after the service has
        dropped the table (best practices, "Recovery"). A rebuild then waits until the table is
        back. The manifest stays until then, so no run publishes changes earlier.

        Raises:
            PathExistsError: if somebody else wrote a file with one of the batch's numbers
            StagedFilesLostError: if a staged file was deleted or changed before it was published
            MirrorError: if the times of the files do not give their order, or the service did not
                act in time
        """
        self.committed = True
        self._renamed_at = self._renamed = None
        with self._told_what_is_published(manifest):
            self._publish_files(manifest)

    def _publish_files(self, manifest: Manifest) -> None:
        batch = manifest.batch
        staged = self._staged(batch.id)
        waiting = staged.waiting()
        gone = self._require_files_of(manifest, staged, waiting)
        self._renamed = len(gone)
        if batch.starts_folder and not gone:
            is_rebuild = batch.publication == "rebuild"
            if is_rebuild:
                if self._service:
                    self._service.check_answer(self.table.mirrored_table)
                # no file of the batch is published yet, so this is the old folder
                self._storage.delete(self.table.path)
            # An initial load waits too, because somebody may have dropped the folder. A folder
            # with metadata is the new one, so its table may exist already.
            if self._service and self._storage.read(self.table.metadata) is None:
                dropped = is_rebuild or self._superseded is not None
                self._service.wait_until_gone(self.table.mirrored_table, dropped=dropped)
            self._storage.write(self.table.metadata, batch.definition.metadata)
        by_time = batch.definition.is_by_time
        latest = TableFiles.of(self._storage, self.table).latest if by_time else 0
        for number, file in enumerate(manifest.files, start=batch.first_file or 0):
            path = f"{staged.folder}/{file.name}"
            if file.name in waiting:
                if by_time:
                    latest = self._storage.touch(path, latest)
                # before the rename: the service may apply the file before its answer arrives
                self._renamed_at = datetime.now(timezone.utc)
                self._storage.rename(path, f"{self.table.path}/{batch.file_name(number)}")
                self._renamed += 1
                if by_time:  # no later file may survive a power loss without this one
                    self._storage.flush(self.table.path)
        if manifest.files:
            self._storage.flush(self.table.path)
        if by_time:
            self._require_increasing_times()
        if batch.publication == "rebuild" and self._service:
            self._service.wait_until_back(self.table.mirrored_table)

    def verify_staged(self, manifest: Manifest) -> None:
        """5. Check that no staged file of a batch is lost.

        Raises:
            StagedFilesLostError: if one was deleted or changed before it was published
        """
        staged = self._staged(manifest.batch.id)
        self._require_files_of(manifest, staged, staged.waiting())

    def _require_files_of(
        self, manifest: Manifest, staged: StagedFiles, waiting: Mapping[str, int]
    ) -> Mapping[int, StagedFile]:
        """Check that each file of a batch is either published, or still staged as it was written.

        Returns:
            the published files by number
        """
        batch = manifest.batch
        # check every file: a power loss may undo an earlier rename, but not a later one
        gone = {
            number: file
            for number, file in enumerate(manifest.files, start=batch.first_file or 0)
            if file.name not in waiting
        }
        missing: Collection[StagedFile] = ()
        journal = self.journal() if gone else None
        if journal and batch.starts_folder and journal.batch.id != batch.id:
            missing = gone.values()  # the old folder is not dropped yet
        elif gone:
            there = TableFiles.of(self._storage, self.table)
            missing = [
                file
                for number, file in gone.items()
                # the service removes lower numbers first: it has not removed one above the largest
                if number > there.largest or there.sizes.get(number, file.size) != file.size
            ]
        for file in manifest.files:
            if file in missing or waiting.get(file.name, file.size) != file.size:
                raise StagedFilesLostError(
                    f"The staged file {staged.folder}/{file.name} is gone, or not as it was "
                    "written: somebody else has deleted or changed it. Nothing was changed. "
                    f"{withdraw(self.table.manifest)} Or: "
                    f"{compute_anew(batch.owner.node, batch.table_rows)}"
                )
        return gone

    def _require_increasing_times(self) -> None:
        """Check that each file is later than the one before: equal times give no order."""
        files = [file for file in self._storage.list(self.table.path) if file_number(file.name)]
        for earlier, later in pairwise(files):
            if later.modified <= earlier.modified:
                raise MirrorError(
                    f"In {self.table.path}, {later.name} is not later than {earlier.name}: the "
                    "storage does not keep the time of a file that it renames, so the service "
                    "cannot know their order. Set `file_detection: sequential`, and run with "
                    "--full-refresh to publish a full load of the rows that the node computes.",
                    code="OM423",
                )

    @contextmanager
    def _told_what_is_published(self, manifest: Manifest) -> Iterator[None]:
        """Add to an error of the storage how much of a committed batch is published."""
        try:
            yield
        except NotPlainError:  # its message has a way out of its own
            raise
        except LandingZoneUnavailableError as error:
            count, batch = len(manifest.files), manifest.batch
            progress = ""
            if self._renamed is not None and count:
                progress = f" {self._renamed:,} of its {count:,} files are published."
            raise LandingZoneUnavailableError(
                f"{error.text} Batch {batch.id} ({batch.summary}) is committed.{progress} The "
                "next run of the node, or `dbt run-operation mirror_recover`, finishes it.",
                code=error.code or "OM712",
            ) from error

    def record(self, manifest: Manifest, snapshot_state: str | None = None) -> Journal:
        """7. Write the journal of a batch whose files are published, and the mark of a new folder.

        Args:
            snapshot_state: the state of the snapshot's data; None if the manifest has it
        """
        # If an earlier run has renamed all files, nobody knows when. A time that is too late would
        # leave the table behind until its next batch.
        published_at = self._renamed_at or manifest.batch.begun_at
        state = snapshot_state or manifest.snapshot_state
        journal = Journal.of(manifest.batch, published_at, manifest.history, state)
        with self._told_what_is_published(manifest):
            if manifest.batch.starts_folder:
                mark = self.table.mark_of(manifest.batch.owner.project)
                self._storage.write(mark, manifest.batch.id.encode())
            self._record(journal)
        if manifest.files:
            self.published_at = published_at
        return journal

    def complete(self, manifest: Manifest) -> None:
        """8. Clear the scratch pad, after the snapshot has become that of the journal."""
        with self._told_what_is_published(manifest):
            self.delete_held_record()
            self._storage.delete(self.table.manifest)
            self._storage.delete(self.table.staging(manifest.batch.id))
        self.committed = False
        if manifest.batch.id == self.batch_id:
            self._is_staged = False

    def keep(self, journal: Journal, build: str, snapshot_state: str | None) -> None:
        """Record another build of the rows that were published last."""
        batch = replace(journal.batch, build=build)
        self._record(replace(journal, batch=batch, snapshot_state=snapshot_state))

    def _record(self, journal: Journal) -> None:
        self._storage.write(self.table.journal, journal.to_json())
        self.last = journal

    def close(self) -> None:
        """Release the lock, and delete the staged files if they were never committed."""
        with self._lock:
            if self._is_staged and not self.committed:
                # the next run deletes what stays, and this error would hide the one before it
                with suppress(MirrorError):
                    self._storage.delete(self.table.staging(self.batch_id))

    def _is_current(self, manifest: Manifest) -> bool:
        journal = self.journal()
        current = journal.batch.id if journal else None
        if current is None and manifest.batch.publication == "rebuild":
            # the old folder, with its journal, is already dropped
            return True
        return current in (manifest.previous_batch_id, manifest.batch.id)

    def _staged(self, batch_id: str) -> StagedFiles:
        return StagedFiles(self._storage, self.table, batch_id)

    def _lost_race(self) -> ConcurrentPublicationError:
        return ConcurrentPublicationError(
            f"Another run has published {self.table} while this one was building it. Nothing was "
            "changed by this run; run it again.",
            code="OM502",
        )
