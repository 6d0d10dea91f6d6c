"""The plan of a publication, and the staged files that carry it out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dbt.adapters.openmirroring.landing_zone.batch import (
    GZIP,
    STARTS_FOLDER,
    UPSERT,
    Batch,
    Owner,
    RowCounts,
    StagedFile,
    TableDefinition,
    summary_of,
)
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.landing_zone.storage import Storage, plain
from dbt.adapters.openmirroring.text.shown import shown, shown_url

# row markers (specification, "Row marker")
INSERT_MARKER, UPDATE_MARKER, DELETE_MARKER, UPSERT_MARKER = 0, 1, 2, 4

# the folder with the files to publish, in the folder of a batch on the scratch pad
ROWS = "rows"

# the bytes of an empty gzip file
_EMPTY_GZIP = 20


@dataclass(frozen=True)
class Plan:
    """The plan of a batch, whose fields `Batch` documents.

    Args:
        reason: for `unchanged`, why the next snapshot still replaces the snapshot
        journal: the journal that the plan was made against; None for a table that did not exist
        table_rows: the rows of the mirrored table after this batch; None if it had those of the
            journal before
    """

    publication: str
    reason: str
    definition: TableDefinition
    rows: RowCounts
    journal: Journal | None = None
    table_rows: int | None = None

    @property
    def starts_folder(self) -> bool:
        return self.publication in STARTS_FOLDER

    @property
    def is_marked(self) -> bool:
        """Whether the rows of the batch have row markers.

        If rows without a marker are upserts, only deletes need one. But delimited text must not
        drop the column after a file has had it (best practices).
        """
        definition = self.definition
        if self.starts_folder or not definition.key_columns:
            return False
        by_default = definition.default_row_marker == UPSERT and not definition.delimited
        return bool(self.rows.deleted) or not by_default

    @property
    def is_void(self) -> bool:
        """Whether there is nothing to do: no files, and no new snapshot."""
        return self.publication == "unchanged" and not self.reason

    @property
    def summary(self) -> str:
        """The plan in one line."""
        what = summary_of(self.publication, self.rows)
        return shown(" · ".join(part for part in (what, self.reason) if part))

    @property
    def row_count(self) -> int:
        return self.rows.inserted + self.rows.updated + self.rows.deleted

    def batch(
        self, batch_id: str, build: str, owner: Owner, files: Sequence[StagedFile], last_file: int
    ) -> Batch:
        """Return the batch that publishes files, in this order, according to this plan.

        Args:
            build: the id of the build whose rows it publishes
            last_file: the largest number used in the table folder so far; 0 for a new folder
        """
        # a Parquet file needs no such extension, because its content names the compression
        is_gzip = self.definition.delimited and any(file.is_gzip for file in files)
        before = 0 if self.starts_folder or not self.journal else self.journal.batch.table_rows
        after = before + self.rows.inserted - self.rows.deleted
        return Batch(
            id=batch_id,
            build=build,
            publication=self.publication,
            reason=self.reason,
            owner=owner,
            definition=self.definition,
            rows=self.rows,
            extension=f"{self.definition.landing_format}{GZIP if is_gzip else ''}",
            first_file=last_file + 1 if files else None,
            last_file=last_file + len(files),
            files_written=len(files),
            bytes_written=sum(file.size for file in files),
            table_rows=after if self.table_rows is None else self.table_rows,
        )

    def finding(self, read: Iterable[FileRows]) -> str:
        """Return how staged files differ from the plan; empty if they do not."""
        counts: Counter[int | None] = Counter()
        for each in read:
            counts[each.marker] += each.rows
        if not self.is_marked:
            planned: Counter[int | None] = Counter({None: self.row_count})
        else:
            # all new rows have the same marker: insert or upsert
            new = UPSERT_MARKER if UPSERT_MARKER in counts else INSERT_MARKER
            rows = self.rows
            planned = Counter({new: rows.inserted, UPDATE_MARKER: rows.updated})
            planned[DELETE_MARKER] = rows.deleted
        if +counts == +planned:
            return ""
        return f"{_rows_told(counts)}, and {_rows_told(planned)} were planned"


@dataclass(frozen=True)
class FileRows:
    """The rows that a staged file has with one row marker.

    Args:
        name: the name of the file
        marker: the row marker; None if the rows have none
        rows: the number of rows
    """

    name: str
    marker: int | None
    rows: int


@dataclass(frozen=True)
class StagedFiles:
    """The staged files of one batch."""

    storage: Storage
    table: TableFolder
    batch_id: str

    @property
    def folder(self) -> str:
        return f"{self.table.staging(self.batch_id)}/{ROWS}"

    @property
    def _shown_folder(self) -> str:
        return shown_url(self.storage.url(self.folder))

    def written(self, plan: Plan) -> list[StagedFile]:
        """Find the data files that were written, without auxiliary files.

        Raises:
            MirrorError: if there are none
        """
        files = [
            StagedFile(entry.name, entry.size)
            for entry in plain(self.folder, self.storage.collect(self.folder))
            if not entry.name.startswith((".", "_"))
        ]
        if plan.definition.delimited:
            # without rows there may be an empty file, without a header
            files = [file for file in files if file.size > (_EMPTY_GZIP if file.is_gzip else 0)]
        if not files:
            raise MirrorError(
                f"Spark has written the files of this batch to {self._shown_folder}, but dbt "
                "finds none there: the two do not share this folder. Nothing was published. Set "
                "`landing_zone`, or for OneLake `staging_location`, to a place that dbt's machine "
                "and all machines of Spark can reach.",
                code="OM609",
            )
        return files

    def verified(
        self, plan: Plan, files: list[StagedFile], read: Sequence[FileRows]
    ) -> list[StagedFile]:
        """Check that files have the rows of the plan.

        Args:
            read: the rows that were read back, of these files and perhaps of others

        Returns:
            the files with rows; if none has rows, the first file, for its columns

        Raises:
            MirrorError: if they have other rows
        """
        names = {file.name for file in files}
        counted = [each for each in read if each.name in names]
        finding = plan.finding(counted)
        if finding:
            raise MirrorError(
                f"In the files that Spark has written to {self._shown_folder}, dbt counts "
                f"{finding}. Nothing was published. If Spark runs on several machines, set "
                "`landing_zone`, or for OneLake `staging_location`, to a folder that all of them "
                "reach.",
                code="OM610",
            )
        with_rows = {each.name for each in counted}
        return [file for file in files if file.name in with_rows] or files[:1]

    def waiting(self) -> dict[str, int]:
        """Return the sizes in bytes of the files that are still staged, by name."""
        entries = plain(self.folder, self.storage.list(self.folder))
        return {entry.name: entry.size for entry in entries}


def _rows_told(counts: Counter[int | None]) -> str:
    marked = {marker: rows for marker, rows in counts.items() if marker is not None and rows}
    told = ", ".join(f"{rows:,} with row marker {marker}" for marker, rows in marked.items())
    return f"{counts.total():,} rows{f' ({told})' if told else ''}"
