"""The plan of a publication, and the comparison of two table definitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import ceil

from dbt.adapters.openmirroring.landing_zone.batch import (
    GZIP,
    STARTS_FOLDER,
    UPSERT,
    Batch,
    Owner,
    RowCounts,
    StagedFile,
    TableDefinition,
    told,
)
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.text.shown import shown

# row markers (specification, "Row marker")
INSERT_MARKER, UPDATE_MARKER, DELETE_MARKER, UPSERT_MARKER = 0, 1, 2, 4

# A table of this many keys fits into the memory of every executor.
_BROADCAST_ROWS = 1_000_000


@dataclass(frozen=True)
class Files:
    """The division of a batch into files.

    Args:
        count: the number of files that Spark should write
        rows_per_file: the number of rows after which Spark begins another file; 0 for no limit
    """

    count: int
    rows_per_file: int


@dataclass(frozen=True)
class Rebuild:
    """A rebuild that is due whatever has changed.

    Args:
        why: the reason for the user
    """

    why: str


FULL_REFRESH = Rebuild("--full-refresh")


@dataclass(frozen=True)
class Plan:
    """The plan of a batch.

    Args:
        publication: `initial`, `changes`, `rebuild` or `unchanged`
        reason: why this publication; for `unchanged`, why the next snapshot still replaces the
            snapshot
        changed: the SQL of a relation with the changed keys; None if nothing was compared
        in_full: whether `changed` has the new rows too
        journal: the journal that the plan was made against; None for a table that did not exist
    """

    publication: str
    reason: str
    definition: TableDefinition
    rows: RowCounts
    changed: str | None = None
    in_full: bool = False
    journal: Journal | None = None

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
        what = told(self.publication, self.rows)
        return shown(" · ".join(part for part in (what, self.reason) if part))

    @property
    def row_count(self) -> int:
        return self.rows.inserted + self.rows.updated + self.rows.deleted

    @property
    def is_small(self) -> bool:
        """Whether the changed keys are few enough to send them to every executor."""
        return self.row_count <= _BROADCAST_ROWS

    def batch(
        self, batch_id: str, owner: Owner, files: Sequence[StagedFile], last_file: int
    ) -> Batch:
        """Return the batch that publishes files according to this plan.

        Args:
            files: the files in publication order
            last_file: the largest number used in the table folder so far; 0 for a new folder
        """
        # a Parquet file needs no such extension, because its content names the compression
        is_gzip = self.definition.delimited and any(file.is_gzip for file in files)
        before = 0 if self.starts_folder or not self.journal else self.journal.batch.table_rows
        return Batch(
            id=batch_id,
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
            table_rows=before + self.rows.inserted - self.rows.deleted,
        )

    def finding(self, found: Iterable[FileRows]) -> str:
        """Return how staged files differ from the plan; empty if they do not."""
        counts: Counter[int | None] = Counter()
        for each in found:
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

    def files(self, table_bytes: int, table_rows: int, target_bytes: int) -> Files:
        """Choose the number of files, so that each has about the target size.

        Args:
            table_bytes: the size of the next snapshot
            table_rows: the rows of the next snapshot; the rows of this batch, if the next snapshot
                has no more than `target_bytes`
            target_bytes: the target size of a file
        """
        count = ceil(table_bytes * self.row_count / table_rows / target_bytes) if table_rows else 1
        count = max(1, count)
        # partitions differ in size, so leave a margin before Spark begins another file
        return Files(count, ceil(1.25 * self.row_count / count) if count > 1 else 0)


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
class Change:
    """A difference between the published definition and the new one.

    Args:
        kind: the suffix of the macro that decides what to do, `mirror_on_<kind>`
        detail: the description for the user
    """

    kind: str
    detail: str

    def __post_init__(self) -> None:
        # the published definition comes from a record, which others can edit
        object.__setattr__(self, "detail", shown(self.detail))


def changes_between(published: TableDefinition, wanted: TableDefinition) -> list[Change]:
    """Return the changes between two definitions of a table; an empty list if they are equal.

    Names are compared with their case, because the mirror's Delta table and the `keyColumns` are
    case sensitive. Spark is not.
    """
    before = {column.name: column.landed_type for column in published.columns}
    after = {column.name: column.landed_type for column in wanted.columns}
    recased = {
        old: new
        for old in before.keys() - after.keys()
        for new in after.keys() - before.keys()
        if old.lower() == new.lower()
    }
    dropped = [name for name in before if name not in after and name not in recased]
    added = [name for name in after if name not in before and name not in recased.values()]
    retyped = [name for name in after if name in before and before[name] != after[name]]

    changes = _format_changes(published, wanted)
    if published.key_columns != wanted.key_columns:
        keys = f"{_names(published.key_columns)} to {_names(wanted.key_columns)}"
        changes.append(Change("key_columns_changed", f"key columns changed from {keys}"))
    if dropped:
        changes.append(Change("columns_dropped", f"column dropped: {_names(dropped)}"))
    if recased:
        cases = ", ".join(f"{old} to {new}" for old, new in sorted(recased.items()))
        changes.append(Change("column_case_changed", f"case of a column changed: {cases}"))
    if retyped:
        types = ", ".join(f"{name} from {before[name]} to {after[name]}" for name in retyped)
        changes.append(Change("column_types_changed", f"column type changed: {types}"))
    if added:
        kind = "declared_columns_changed" if wanted.delimited else "columns_added"
        changes.append(Change(kind, f"column added: {_names(added)}"))
    if not changes and list(before) != list(after):
        kind = "declared_columns_changed" if wanted.delimited else "columns_reordered"
        changes.append(Change(kind, "columns reordered"))
    elif not changes and published.columns != wanted.columns:
        changes.append(Change("spark_types_changed", "types changed in Spark only"))
    return changes


def _format_changes(published: TableDefinition, wanted: TableDefinition) -> list[Change]:
    """Return the changes in `_metadata.json` other than columns and keys."""
    kind = "landing_format_changed"
    if published.landing_format != wanted.landing_format:
        formats = f"{published.landing_format} to {wanted.landing_format}"
        return [Change(kind, f"landing format changed from {formats}")]
    before, after = (_format_options(definition) for definition in (published, wanted))
    return [
        Change(kind, f"{name} changed from {before[name]!r} to {after[name]!r}")
        for name in before
        if before[name] != after[name]
    ]


def _format_options(definition: TableDefinition) -> dict[str, str]:
    options = {
        "file_detection": definition.file_detection,
        "default_row_marker": definition.default_row_marker,
    }
    return options | (asdict(definition.delimited) if definition.delimited else {})


def _names(columns: tuple[str, ...] | list[str]) -> str:
    return ", ".join(columns) or "none"


def _rows_told(counts: Counter[int | None]) -> str:
    marked = {marker: rows for marker, rows in counts.items() if marker is not None and rows}
    told = ", ".join(f"{rows:,} with row marker {marker}" for marker, rows in marked.items())
    return f"{counts.total():,} rows{f' ({told})' if told else ''}"
