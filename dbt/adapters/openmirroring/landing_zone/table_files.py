"""The data files of a table folder, and the check that they are as they were published."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from dbt.adapters.openmirroring.landing_zone.batch import BATCH_ID, Batch
from dbt.adapters.openmirroring.landing_zone.layout import (
    PROCESSED_FOLDERS,
    TableFolder,
    file_number,
)
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.landing_zone.storage import Entry, Readable, plain
from dbt.adapters.openmirroring.text.shown import shown

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

    def problem_in(self, table: TableFolder, journal: Journal) -> str:
        """Return the sentence that says how somebody else has changed the files; or nothing."""
        found = self.problem(journal)
        return f"The table folder {table.path} {found}" if found else ""

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
        foreign = self._foreign(batch)
        if foreign:
            return (
                f"has a file {shown(foreign)} that was not published from here: somebody else "
                "writes to this folder"
            )
        # a journal can name any number, so only the numbers that are there are looked at
        lowest = min(self.unprocessed, default=batch.last_file)
        missing = [n + 1 for n in sizes if lowest <= n < batch.last_file and n + 1 not in sizes]
        if missing:
            return f"has no file with number {min(missing)} any more: somebody else has deleted it"
        empty = [number for number, size in sizes.items() if not size]
        if empty:
            return f"has a file with number {min(empty)} of 0 bytes: somebody else has emptied it"
        first = batch.first_file or batch.last_file + 1
        found = [size for number, size in sizes.items() if number >= first]
        if len(found) == batch.files_written and sum(found) != batch.bytes_written:
            return (
                f"has {sum(found):,} bytes in the files of the last publication, which wrote "
                f"{batch.bytes_written:,}: somebody else has changed them"
            )
        return ""

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
