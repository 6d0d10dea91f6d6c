"""A publication as the landing zone sees it: recovery, commit, publication, journal.

The numbers in the docstrings are the steps of a publication. What happens in Spark in between
(building, comparing, staging) is up to the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from itertools import pairwise
from typing import Protocol

from dbt.adapters.openmirroring.landing_zone.batch import (
    GZIP,
    WITHDRAW,
    Batch,
    Journal,
    Manifest,
    Owner,
    StagedFile,
    new_batch_id,
)
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    ForeignTableFolderError,
    MirrorError,
    PathExistsError,
    SnapshotMismatchError,
)
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder, file_number
from dbt.adapters.openmirroring.landing_zone.metadata import metadata
from dbt.adapters.openmirroring.landing_zone.plan import FileRows, Plan
from dbt.adapters.openmirroring.landing_zone.shown import shown, shown_url
from dbt.adapters.openmirroring.landing_zone.storage import Storage, plain
from dbt.adapters.openmirroring.landing_zone.table_files import TableFiles, problem_with

# the folder of a batch, on the scratch pad, that holds the files to publish
ROWS = "rows"

# bytes of a file with nothing in it
_EMPTY_GZIP = 20

_REBUILD = "`dbt run --full-refresh` drops the table folder and publishes a full load."
_REBUILD_FROM_SPARK = (
    f"{_REBUILD} `dbt run-operation mirror_rebuild` does so with the rows that Spark has, and "
    "computes nothing."
)


class Service(Protocol):
    """The service that applies the landing zone, where it tells what it has.

    A table is `schema.table`. Every method raises MirrorError when it has waited in vain.
    """

    def wait_until_gone(self, table: str, dropped: bool) -> None:
        """Wait until a table has disappeared whose folder was dropped.

        Args:
            dropped: just now; otherwise it was not there before, and the table may never have been
        """

    def wait_until_back(self, table: str) -> None:
        """Wait until a table is mirrored again whose folder was made anew."""


class Publication:
    """One publication of one table. It holds the table's lock until it is closed.

    Args:
        storage: the landing zone
        table: the table folder
        owner: who publishes
        service: what a rebuild waits for; None where nobody tells

    Raises:
        ConcurrentPublicationError: another run is publishing this table
    """

    def __init__(
        self,
        storage: Storage,
        table: TableFolder,
        owner: Owner,
        service: Service | None = None,
    ) -> None:
        self.batch_id = new_batch_id()
        self.table = table
        self.published_at: datetime | None = None
        """When files of a batch appeared that was completed; None as long as none has."""
        self._storage = storage
        self._owner = owner
        self._service = service
        self._renaming_since = datetime.now(timezone.utc)
        self.committed = False
        self._is_completed = False
        self._last: Journal | None = None
        self._lock = ExitStack()
        self._lock.enter_context(storage.lock(table.scratch))

    def pending(self) -> Manifest | None:
        """0. The manifest that an earlier run left behind, to be published and completed.

        Staged files that no manifest speaks of are deleted.

        Raises:
            ForeignTableFolderError: it is somebody else's; or the folder that it continues is
                gone, or has lost its journal
            MirrorError: the manifest or the journal is damaged
        """
        self._last = self.journal()
        content = self._storage.read(self.table.manifest)
        manifest = (
            Manifest.from_json(content, self.table.manifest) if content is not None else None
        )
        if manifest:
            self._check_owner(manifest.batch)
        if manifest and not self._is_current(manifest):
            if self._last is None:
                raise ForeignTableFolderError(
                    f"{self.table.manifest} continues batch "
                    f"{shown(manifest.previous_batch_id)}, but "
                    f"{self.table.journal} is gone: somebody else has deleted it, or the folder. "
                    "Nothing was changed. Restore it; or delete the manifest and the folder, and "
                    "run again to publish a full load."
                )
            # it lost the race for the table and died before it could withdraw
            self._storage.delete(self.table.manifest)
            manifest = None
        kept = {self.table.manifest, self.table.staging(manifest.batch.id)} if manifest else set()
        for entry in self._storage.list(self.table.scratch):
            path = f"{self.table.scratch}/{entry.name}"
            if path not in kept:
                self._storage.delete(path)
        self.committed = manifest is not None
        return manifest

    def journal(self) -> Journal | None:
        """The last completed batch, or None when the table has never been published."""
        content = self._storage.read(self.table.journal)
        return Journal.from_json(content, self.table.journal) if content is not None else None

    def verify(self, snapshot_batch_id: str | None, full_refresh: bool) -> Journal | None:
        """2. Make sure that journal, table folder and snapshot belong together.

        Args:
            snapshot_batch_id: what the snapshot carries; None without a snapshot, or when it was
                never published
            full_refresh: the user asked for a rebuild, so a snapshot that does not match is fine

        Returns:
            the journal, None for a table that is not there yet

        Raises:
            ForeignTableFolderError: somebody else's folder, or somebody else's files in ours
            SnapshotMismatchError: the snapshot is not what was published last
        """
        # read again, it might be another run's, which what was built since knows nothing of
        journal = self._last
        if journal is None:
            if self._storage.list(self.table.path):
                raise ForeignTableFolderError(
                    f"The table folder {self.table.path} exists, but has no _journal.json: it was "
                    "not published by dbt-openmirroring, or its journal is lost. Nothing was "
                    "changed. Delete the folder to publish a full load in its place, or give the "
                    "model another `alias` or `schema`."
                )
            return None
        batch = journal.batch
        self._check_owner(batch)
        if full_refresh:
            return journal
        if snapshot_batch_id != batch.id:
            found = f"batch {snapshot_batch_id}" if snapshot_batch_id else "no published snapshot"
            raise SnapshotMismatchError(
                f"{self.table.journal} says that batch {batch.id} was published last "
                f"({shown(journal.published_at)}), but Spark has {found} of {self.table}. "
                "Somebody else has published this table, or the warehouse is another one or was "
                f"lost. Nothing was changed. {_REBUILD}"
            )
        problem = problem_with(self._storage, self.table, journal)
        if problem:
            raise ForeignTableFolderError(f"{problem}. Nothing was changed. {_REBUILD_FROM_SPARK}")
        return journal

    def _check_owner(self, batch: Batch) -> None:
        """Make sure that a batch is of this table of this dbt project."""
        owner = batch.owner
        if owner.project != self._owner.project:
            raise ForeignTableFolderError(
                f"The table folder {self.table.path} belongs to the dbt project "
                f"{shown(owner.project)!r} (node {shown(owner.node)}). Nothing was "
                "changed. Give the model another `alias` or `schema`; if that project is gone, "
                f"delete the folder and {self.table.scratch}."
            )
        if not self.table.schema and owner.schema != self._owner.schema:
            raise ForeignTableFolderError(
                f"The table folder {self.table.path} belongs to {shown(owner.node)} in the schema "
                f"{shown(owner.schema)!r}: a landing zone has one table of that name without a "
                "schema folder. Nothing was changed. Give the model another `alias`, or remove "
                "`schema_folder: false`; if that model is gone, delete the folder and "
                f"{self.table.scratch}."
            )

    def verify_rows(self, journal: Journal, rows: int) -> None:
        """2. Make sure that the snapshot has as many rows as the mirrored table.

        Args:
            rows: of the snapshot

        Raises:
            SnapshotMismatchError: it has not
        """
        published = journal.batch.table_rows
        if rows != published:
            raise SnapshotMismatchError(
                f"Spark has {rows:,} rows of {self.table}, but {published:,} were published: "
                "somebody else has written to the table in Spark, or a hook has. Nothing was "
                f"changed. {_REBUILD_FROM_SPARK}"
            )

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
        """4. Where Spark finds a folder of this batch on the scratch pad."""
        return self._storage.url(f"{self.table.staging(self.batch_id)}/{name}")

    @property
    def _shown_staging(self) -> str:
        return shown_url(self.staging_url(ROWS))

    def staged(self, plan: Plan) -> list[StagedFile]:
        """4. The files that Spark has written to `rows`, without what it leaves beside them."""
        rows = f"{self.table.staging(self.batch_id)}/{ROWS}"
        files = [
            StagedFile(entry.name, entry.size)
            for entry in plain(rows, self._storage.collect(rows))
            if not entry.name.startswith((".", "_"))
        ]
        if plan.definition.delimited:
            # without rows there is no header either
            files = [file for file in files if file.size > (_EMPTY_GZIP if file.is_gzip else 0)]
        if not files:
            raise MirrorError(
                f"Spark has written the files of this batch to {self._shown_staging}, and dbt "
                "finds none there: the two do not share this folder. Nothing was published. Set "
                "`landing_zone`, or for OneLake `staging_location`, to a place that all of Spark "
                "and the machine of dbt can reach."
            )
        return files

    def verify_staged(
        self, plan: Plan, files: list[StagedFile], found: Sequence[FileRows]
    ) -> list[StagedFile]:
        """4. Make sure that the staged files have the rows of the plan.

        Args:
            files: that are to be published
            found: what was read back, of these files and maybe of others

        Returns:
            the files with rows; if none has, the first: it has the columns

        Raises:
            MirrorError: they have not
        """
        names = {file.name for file in files}
        counted = [each for each in found if each.name in names]
        finding = plan.finding(counted)
        if finding:
            raise MirrorError(
                f"The files that Spark has written to {self._shown_staging} have, as far as "
                f"dbt sees them, {finding}. Nothing was published. If Spark runs on several "
                "machines, all of them must reach this folder: set `landing_zone`, or for OneLake "
                "`staging_location`, accordingly."
            )
        with_rows = {each.name for each in counted}
        return [file for file in files if file.name in with_rows] or files[:1]

    def commit(
        self, plan: Plan, files: list[StagedFile], snapshot_version: str | None = None
    ) -> Manifest:
        """5. Let the manifest appear. From here on every step can be repeated.

        Args:
            plan: what was decided
            files: in publication order
            snapshot_version: of a snapshot that is to be changed in place, before it is

        Raises:
            ConcurrentPublicationError: somebody else has published since the plan was made
        """
        journal = plan.journal
        if journal and not plan.starts_folder:
            last = max(journal.batch.last_file, TableFiles.of(self._storage, self.table).largest)
        else:
            last = 0
        batch = Batch(
            id=self.batch_id,
            publication=plan.publication,
            reason=plan.reason,
            owner=self._owner,
            definition=plan.definition,
            rows=plan.rows,
            extension=_extension(plan, files),
            first_file=last + 1 if files else None,
            last_file=last + len(files),
            files_written=len(files),
            bytes_written=sum(file.size for file in files),
            table_rows=_table_rows(plan),
        )
        previous = journal.batch.id if journal else None
        manifest = Manifest(batch, self.table, previous, tuple(files), snapshot_version)
        if files:
            rows = f"{self.table.staging(self.batch_id)}/{ROWS}"
            self._storage.flush(rows, [file.name for file in files])
        # if the storage gives no answer, the manifest may be there, and needs what was staged
        self.committed = True
        try:
            self._storage.create(self.table.manifest, manifest.to_json())
        except PathExistsError:
            self.committed = False
            raise self._lost_race() from None
        # nobody can commit as long as this manifest is there: what is true now stays true
        if not self._is_current(manifest):
            self._storage.delete(self.table.manifest)
            self.committed = False
            raise self._lost_race()
        return manifest

    def withdraw(self, manifest: Manifest) -> None:
        """5. Take a batch back that Spark has refused to store: as if it had never been committed.

        Raises:
            MirrorError: a part of it is published already
        """
        staging = f"{self.table.staging(manifest.batch.id)}/{ROWS}"
        waiting = {entry.name for entry in plain(staging, self._storage.list(staging))}
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

        Can be repeated: only a rename removes a file from the scratch pad, so files that are no
        longer there have been published. A new folder is made when
        the service has no table of its name any more (best practices, "Recovery"). A rebuild waits
        for it once more: nobody publishes changes before the table is back, since until then the
        manifest stays.

        Raises:
            PathExistsError: somebody else wrote a file with one of the batch's numbers
            MirrorError: a staged file is gone and was never published, or was changed, the files
                have no order, or the service was waited for in vain
        """
        self.committed = True
        batch = manifest.batch
        staging = f"{self.table.staging(batch.id)}/{ROWS}"
        found = plain(staging, self._storage.list(staging))
        waiting = {entry.name: entry.size for entry in found}
        # a loss of power may have left any of them
        gone = {
            number: file
            for number, file in enumerate(manifest.files, start=batch.first_file or 0)
            if file.name not in waiting
        }
        missing = self._unpublished(manifest, gone)
        for file in manifest.files:
            if file in missing or waiting.get(file.name, file.size) != file.size:
                raise MirrorError(
                    f"The staged file {staging}/{file.name} is gone, or not as it was written: "
                    "somebody else has deleted or changed it. Nothing was changed. "
                    f"{WITHDRAW.format(manifest=self.table.manifest)}"
                )
        if batch.starts_folder and not gone:
            is_rebuild = batch.publication == "rebuild"
            if is_rebuild:
                # nothing of the new folder is published yet, so whatever is there is the old one
                self._storage.delete(self.table.path)
            # somebody may have dropped the folder before an initial load; but with metadata in it
            # it is the new one, whose table may be there already
            if self._service and self._storage.read(self.table.metadata) is None:
                self._service.wait_until_gone(self.table.mirrored_table, dropped=is_rebuild)
            self._storage.write(self.table.metadata, metadata(batch.definition))
        self._renaming_since = datetime.now(timezone.utc)
        by_time = batch.definition.is_by_time
        latest = TableFiles.of(self._storage, self.table).latest if by_time else 0
        for number, file in enumerate(manifest.files, start=batch.first_file or 0):
            staged = f"{staging}/{file.name}"
            if file.name in waiting:
                if by_time:
                    latest = self._storage.touch(staged, latest)
                self._storage.rename(staged, f"{self.table.path}/{batch.file_name(number)}")
                if by_time:  # a later one must not survive without it
                    self._storage.flush(self.table.path)
        if manifest.files:
            self._storage.flush(self.table.path)
        if by_time:
            self._check_times()
        if batch.publication == "rebuild" and self._service:
            self._service.wait_until_back(self.table.mirrored_table)

    def _unpublished(self, manifest: Manifest, gone: Mapping[int, StagedFile]) -> list[StagedFile]:
        """Those of a batch's files that cannot be what is in the table folder.

        Args:
            gone: by their numbers, the files that are no longer on the scratch pad
        """
        journal = self.journal() if gone else None
        if journal and manifest.batch.starts_folder and journal.batch.id != manifest.batch.id:
            return list(gone.values())  # it is still the folder that the batch was to drop
        found = TableFiles.of(self._storage, self.table) if gone else TableFiles()
        return [
            file
            for number, file in gone.items()
            # the service may have removed it, but then it has not removed those after it
            if number > found.largest or found.sizes.get(number, file.size) != file.size
        ]

    def complete(self, manifest: Manifest) -> None:
        """7. Write the journal and clear the scratch pad. The snapshot was swapped before."""
        journal = Journal.of(manifest.batch, self._renaming_since)
        self._storage.write(self.table.journal, journal.to_json())
        self._last = journal
        self._storage.delete(self.table.manifest)
        self._storage.delete(self.table.staging(manifest.batch.id))
        self.committed = False
        self._is_completed = manifest.batch.id == self.batch_id
        if manifest.files:
            self.published_at = self._renaming_since

    def close(self) -> None:
        """Free the table, and delete what was staged if it was never committed."""
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

    def _check_times(self) -> None:
        """Make sure that the times of the files are their order: equal times have none."""
        files = [file for file in self._storage.list(self.table.path) if file_number(file.name)]
        for earlier, later in pairwise(files):
            if later.modified <= earlier.modified:
                raise MirrorError(
                    f"In {self.table.path}, {later.name} is not later than {earlier.name}: the "
                    "storage does not keep the time of a file that it renames, so the service "
                    "cannot know their order. Set `file_detection: sequential`, and run with "
                    "--full-refresh to publish a full load."
                )

    def _lost_race(self) -> ConcurrentPublicationError:
        return ConcurrentPublicationError(
            f"Another run has published {self.table} while this one was building it. Nothing was "
            "changed by this run; run it again."
        )


def _extension(plan: Plan, files: list[StagedFile]) -> str:
    """Of the files to publish. A Parquet file says in itself how it is compressed."""
    compressed = plan.definition.delimited and any(file.is_gzip for file in files)
    return f"{plan.definition.landing_format}{GZIP if compressed else ''}"


def _table_rows(plan: Plan) -> int:
    """The rows of the mirrored table after a batch."""
    journal = plan.journal
    before = 0 if plan.starts_folder or not journal else journal.batch.table_rows
    return before + plan.rows.inserted - plan.rows.deleted
