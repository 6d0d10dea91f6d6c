"""The content of a landing zone, as its records describe it."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from dbt.adapters.openmirroring.landing_zone.batch import BATCH_ID, Batch, TableDefinition
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.layout import (
    PROCESSED_FOLDERS,
    SCHEMA_SUFFIX,
    SCRATCH_PAD,
    TableFolder,
    file_number,
)
from dbt.adapters.openmirroring.landing_zone.records import HeldRecord, Journal, Manifest
from dbt.adapters.openmirroring.landing_zone.storage import Entry, Readable, Storage, plain
from dbt.adapters.openmirroring.protocol.facts import Held
from dbt.adapters.openmirroring.text.codes import with_code
from dbt.adapters.openmirroring.text.shown import shown

# the limit of a mirrored database (Fabric's documentation, "Troubleshoot mirroring")
MAX_TABLES = 1000
_MANY_TABLES = 900

# best practices: fewer than five
_MAX_KEY_COLUMNS = 4

# the names of files that the service orders by time, as `Batch.file_name` gives them
_NAME_BY_TIME = re.compile(rf"\d{{20}}-{BATCH_ID}(\.\w+)+", re.ASCII)


@dataclass(frozen=True)
class TableFiles:
    """The data files of a table folder: their sizes in bytes, by number.

    Args:
        unprocessed: the files directly in the table folder
        processed: the files that the service has applied, and moved to folders of its own
        names: the names of all files, with or without a number. A service that orders files by
            time reads those without one too (specification, "Nonsequential files")
        latest: the latest modification time of all files, in nanoseconds since 1970
    """

    unprocessed: Mapping[int, int] = field(default_factory=dict)
    processed: Mapping[int, int] = field(default_factory=dict)
    names: Collection[str] = ()
    latest: int = 0

    @classmethod
    def of(cls, storage: Readable, table: TableFolder) -> TableFiles:
        """List the data files of a table folder.

        Raises:
            NotPlainError: if there is a link, a pipe or the like in it
        """
        # List the table folder first: the service moves files out of it, so none is missed.
        entries = plain(table.path, storage.list(table.path))
        folders = [
            f"{table.path}/{entry.name}" for entry in entries if entry.name in PROCESSED_FOLDERS
        ]
        processed = [file for folder in folders for file in plain(folder, storage.list(folder))]
        data = [
            file
            for file in (*entries, *processed)
            if not file.is_folder and not file.name.startswith(("_", "."))
        ]
        # a file that the service is moving is in both folders, with one name
        names = {file.name for file in data}
        latest = max((file.modified for file in data), default=0)
        return cls(_sizes(entries), _sizes(processed), names, latest)

    @property
    def sizes(self) -> dict[int, int]:
        return {**self.processed, **self.unprocessed}

    @property
    def largest(self) -> int:
        return max(self.sizes, default=0)

    def has_all_since_load(self, journal: Journal) -> bool:
        """Check whether all files since the last full load are there, and not applied yet."""
        last = journal.batch.last_file
        return sum(number <= last for number in self.unprocessed) == last

    def problem_in(self, table: TableFolder, journal: Journal) -> tuple[str, str]:
        """Return the sentence that says how somebody else has changed the files, and its code.

        Both are empty if they are as published.
        """
        problem, code = self.problem(journal)
        return f"The table folder {table.path} {problem}" if problem else "", code

    def problem(self, journal: Journal) -> tuple[str, str]:
        """Return how somebody else has changed the files, and the code of the message.

        The service moves the lowest numbers away first. Applied files may be deleted at any time,
        by the service or by a cleanup job. So a file is known to be missing only if a lower number
        is not applied yet. A change to a file goes unnoticed once the file is applied and deleted.
        """
        batch = journal.batch
        sizes = self.sizes
        if self.largest > batch.last_file:
            return (
                f"has a file with number {self.largest}, but the last one published from here was "
                f"{batch.last_file}: somebody else writes to this folder",
                "OM416",
            )
        foreign = self._foreign(batch)
        if foreign:
            return (
                f"has a file {shown(foreign)} that was not published from here: somebody else "
                "writes to this folder",
                "OM416",
            )
        # a journal can name any number, so only the numbers that are there are looked at
        lowest = min(self.unprocessed, default=batch.last_file)
        missing = [n + 1 for n in sizes if lowest <= n < batch.last_file and n + 1 not in sizes]
        if missing:
            gone = min(missing)
            return (
                f"has no file with number {gone} any more: somebody else has deleted it",
                "OM417",
            )
        empty = [number for number, size in sizes.items() if not size]
        if empty:
            return (
                f"has a file with number {min(empty)} of 0 bytes: somebody else has emptied it",
                "",
            )
        first = batch.first_file or batch.last_file + 1
        of_last = [size for number, size in sizes.items() if number >= first]
        if len(of_last) == batch.files_written and sum(of_last) != batch.bytes_written:
            return (
                f"has {sum(of_last):,} bytes in the files of the last publication, which wrote "
                f"{batch.bytes_written:,}: somebody else has changed them",
                "OM418",
            )
        return "", ""

    def _foreign(self, batch: Batch) -> str:
        """Return the name of a file that was not published from here; empty if there is none."""
        seen: set[int] = set()
        first = batch.first_file or batch.last_file + 1
        for name in sorted(self.names):
            number = file_number(name)
            if batch.definition.is_by_time and (
                number is None
                or not _NAME_BY_TIME.fullmatch(name)
                or (number >= first and name != batch.file_name(number))
            ):
                return name
            if number is not None:
                if number in seen:
                    return name
                seen.add(number)
        return ""


def _sizes(entries: Iterable[Entry]) -> dict[int, int]:
    return {
        number: entry.size for entry in entries if (number := file_number(entry.name)) is not None
    }


@dataclass(frozen=True)
class LandedTable:
    """The state of a table in a landing zone.

    Args:
        exists: whether its table folder has any content
        journal: the record of the last completed batch
        pending: the manifest of a batch that is committed but not completed
        held: the record of rows that are held back from publication
        held_problem: what is wrong with that record. It only informs, so that runs go on
        problem: why the next run will refuse to publish, as far as the landing zone shows
        files: its data files; none if there is no journal
    """

    folder: TableFolder
    exists: bool
    journal: Journal | None = None
    pending: Manifest | None = None
    held: HeldRecord | None = None
    held_problem: str = ""
    problem: str = ""
    files: TableFiles = TableFiles()

    def is_of(self, project: str) -> bool:
        """Check whether a project has published the table."""
        return self.journal is not None and self.journal.batch.owner.project == project

    def is_held_of(self, project: str) -> bool:
        """Check whether rows of a project are held back, or were when a run was killed.

        A record that cannot be read is taken for that of the table's owner.
        """
        if self.held:
            return self.held.owner.project == project
        if self.held_problem:
            return self.journal is None or self.is_of(project)
        batch = self.pending.batch if self.pending else None
        return batch is not None and batch.build != batch.id and self.is_pending_of(project)

    def is_pending_of(self, project: str) -> bool:
        """Check whether the pending batch belongs to a project."""
        return self.pending is not None and self.pending.batch.owner.project == project


def landed_table(storage: Readable, folder: TableFolder) -> LandedTable:
    """Return the state of one table, even if it was never published."""
    exists, held, held_problem = True, None, ""
    try:
        held = HeldRecord.read(storage, folder.held)
    except MirrorError as error:
        held_problem = error.msg
    try:
        last = Journal.read(storage, folder.journal)
        exists = last is not None or bool(storage.list(folder.path))
        manifest = Manifest.read(storage, folder.manifest)
        files = TableFiles.of(storage, folder) if last else TableFiles()
        # the journal does not know the files of a pending batch yet
        problem = files.problem_in(folder, last) if last and not manifest else ("", "")
        told = with_code(*problem)
        return LandedTable(folder, exists, last, manifest, held, held_problem, told, files)
    except MirrorError as error:
        return LandedTable(folder, exists, None, None, held, held_problem, error.msg)


def drop_table(storage: Storage, table: LandedTable) -> bool:
    """Drop a table folder, its mark, and the content of the table's folder on the scratch pad.

    Args:
        table: the state of the table; if it was published since then, it is not dropped

    Returns:
        True if the table folder was dropped

    Raises:
        ConcurrentPublicationError: if a run is publishing the table
    """
    folder = table.folder
    with storage.lock(folder.scratch):
        if table.journal is None or landed_table(storage, folder).journal != table.journal:
            return False
        # the manifest first, so that no run completes its batch in a folder that is gone
        storage.delete(folder.manifest)
        storage.flush(folder.scratch)
        for entry in storage.list(folder.scratch):
            storage.delete(f"{folder.scratch}/{entry.name}")
        storage.delete(folder.mark_of(table.journal.batch.owner.project))
        # the journal last: it alone says who owns the other files
        for entry in storage.list(folder.path):
            if f"{folder.path}/{entry.name}" != folder.journal:
                storage.delete(f"{folder.path}/{entry.name}")
        storage.flush(folder.path)
        storage.delete(folder.path)
    return True


def table_folders(storage: Readable) -> set[TableFolder]:
    """Return the tables that have a table folder or a folder on the scratch pad."""
    return set(published_folders(storage)) | set(_staged(storage))


def pending_batches(storage: Readable) -> Iterator[Manifest]:
    """Yield the manifests of all owners whose batches are committed but not completed.

    Only the scratch pad is listed; it is empty if nothing is pending. A manifest that is damaged
    or cannot be read is skipped: the run of its node handles it.
    """
    for folder in _staged(storage):
        with suppress(MirrorError):
            manifest = Manifest.read(storage, folder.manifest)
            if manifest:
                yield manifest


def last_published(
    storage: Storage, schema: str, identifier: str
) -> tuple[TableFolder, Journal] | None:
    """Find where a relation was published last, with or without a schema folder.

    Returns:
        its table folder and journal; None if it was never published

    Raises:
        MirrorError: if a journal cannot be read
    """
    published = [
        (folder, journal)
        for folder in _folders_of(schema, identifier)
        if (journal := Journal.read(storage, folder.journal))
        and journal.batch.owner.schema == schema
    ]
    return max(published, key=lambda each: each[1].published_at, default=None)


def _folders_of(schema: str, identifier: str) -> Iterator[TableFolder]:
    """Yield the folders that a relation may have: in a schema folder, and without one.

    What is not mirrored may have names that no folder can have.
    """
    yield from _table_folder(schema, identifier)
    yield from _table_folder("", identifier)


def held_rows(storage: Storage, schema: str, identifier: str) -> Held | None:
    """Read the record of a relation that is ahead; None if there is none that can be read."""
    for folder in _folders_of(schema, identifier):
        record = HeldRecord.read_whole(storage, folder.held)
        if record and record.owner.schema == schema:
            return record.held
    return None


def published_folders(
    storage: Readable, schemas: Collection[str] | None = None
) -> Iterator[TableFolder]:
    """Yield the table folders of all owners.

    Args:
        schemas: the schemas whose folders to list; None for all
    """
    for entry in storage.list(""):
        if entry.is_folder and entry.name.endswith(SCHEMA_SUFFIX):
            schema = entry.name.removesuffix(SCHEMA_SUFFIX)
            for table in storage.list(entry.name) if schemas is None or schema in schemas else ():
                if table.is_folder:
                    yield from _table_folder(schema, table.name)
        elif entry.is_folder:
            yield from _table_folder("", entry.name)


class NewTables:
    """The tables that a run adds to a landing zone. The landing zone is listed only once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: set[TableFolder] | None = None
        self._has_warned = False

    def add(self, storage: Storage, table: TableFolder, definition: TableDefinition) -> list[str]:
        """Count a table that is published for the first time.

        Returns:
            warnings for the user

        Raises:
            MirrorError: if the table would exceed the limit
        """
        warnings = []
        if len(definition.key_columns) > _MAX_KEY_COLUMNS:
            warnings.append(
                f"The key of {table} has {len(definition.key_columns)} columns. Microsoft "
                f"recommends {_MAX_KEY_COLUMNS} at most. Use a hash of them in one column as "
                "the key."
            )
        with self._lock:
            if self._tables is None:
                self._tables = set(published_folders(storage))
            count = len(self._tables | {table})
            if count > MAX_TABLES:
                raise MirrorError(
                    f"{table} would be table number {count:,} of this landing zone, and a "
                    f"mirrored database has {MAX_TABLES:,} at most. Nothing was published. "
                    "Publish it to another mirrored database, set `mirror: false`, or drop "
                    "tables that nobody needs: dbt run-operation mirror_drop_orphans",
                    code="OM422",
                )
            self._tables.add(table)
            if count >= _MANY_TABLES and not self._has_warned:
                self._has_warned = True
                warnings.append(
                    f"With {table} the landing zone has {count:,} tables. A mirrored database has "
                    f"{MAX_TABLES:,} at most."
                )
        return warnings


def _staged(storage: Readable) -> Iterator[TableFolder]:
    for entry in storage.list(SCRATCH_PAD):
        if entry.is_folder:
            schema, _, table = entry.name.rpartition(".")
            yield from _table_folder(schema, table)


def _table_folder(schema: str, table: str) -> Iterator[TableFolder]:
    try:
        yield TableFolder(schema, table)
    except MirrorError:  # this adapter never gives a folder such a name
        return
