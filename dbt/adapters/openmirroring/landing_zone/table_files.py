"""The data files of a table folder, and the check that they are as they were published."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dbt.adapters.openmirroring.landing_zone.layout import (
    PROCESSED_FOLDERS,
    TableFolder,
    file_number,
)
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.landing_zone.storage import Entry, Storage, plain


@dataclass(frozen=True)
class TableFiles:
    """The data files of a table folder: their sizes in bytes, by number.

    Args:
        unprocessed: the files directly in the table folder
        processed: the files that the service has applied, and moved to folders of its own
        latest: the latest modification time of all files, in nanoseconds since 1970
    """

    unprocessed: Mapping[int, int] = field(default_factory=dict)
    processed: Mapping[int, int] = field(default_factory=dict)
    latest: int = 0

    @classmethod
    def of(cls, storage: Storage, table: TableFolder) -> TableFiles:
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
        latest = max(
            (file.modified for file in (*entries, *processed) if file_number(file.name)), default=0
        )
        return cls(_sizes(entries), _sizes(processed), latest)

    @property
    def sizes(self) -> dict[int, int]:
        return {**self.processed, **self.unprocessed}

    @property
    def largest(self) -> int:
        return max(self.sizes, default=0)

    def problem(self, journal: Journal) -> str:
        """Return how somebody else has changed the files; empty if they are as published.

        The service moves the lowest numbers away first. Applied files may be deleted at any time,
        by the service or by a cleanup job. So a file is known to be missing only if a lower number
        is not applied yet. A change to a file goes unnoticed once the file is applied and deleted.
        """
        batch = journal.batch
        sizes = self.sizes
        if self.largest > batch.last_file:
            return (
                f"has a file with number {self.largest}, but the last one published from here was "
                f"{batch.last_file}: somebody else writes to this folder"
            )
        end = batch.last_file + 1
        missing = [n for n in range(min(self.unprocessed, default=end), end) if n not in sizes]
        if missing:
            return f"has no file with number {missing[0]} any more: somebody else has deleted it"
        empty = [number for number, size in sizes.items() if not size]
        if empty:
            return f"has a file with number {min(empty)} of 0 bytes: somebody else has emptied it"
        written = range(batch.first_file, batch.last_file + 1) if batch.first_file else ()
        found = [sizes[number] for number in written if number in sizes]
        if len(found) == len(written) and sum(found) != batch.bytes_written:
            return (
                f"has {sum(found):,} bytes in the files of the last publication, which wrote "
                f"{batch.bytes_written:,}: somebody else has changed them"
            )
        return ""


def problem_with(storage: Storage, table: TableFolder, journal: Journal) -> str:
    """Return how somebody else has changed the files of a table; empty if they are unchanged."""
    found = TableFiles.of(storage, table).problem(journal)
    return f"The table folder {table.path} {found}" if found else ""


def _sizes(entries: Iterable[Entry]) -> dict[int, int]:
    return {
        number: entry.size for entry in entries if (number := file_number(entry.name)) is not None
    }
