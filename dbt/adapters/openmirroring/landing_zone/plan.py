"""What is to be published: the input of the mapping of changes, and its outcome."""

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
from dbt.adapters.openmirroring.landing_zone.shown import shown

# row markers (specification, "Row marker")
INSERT_MARKER, UPDATE_MARKER, DELETE_MARKER, UPSERT_MARKER = 0, 1, 2, 4

# A table of that many keys fits into the memory of every executor.
_BROADCAST_ROWS = 1_000_000


@dataclass(frozen=True)
class Files:
    """How a batch is cut into files.

    Args:
        count: files that Spark is to write
        rows_per_file: where Spark begins another file; 0 for no limit
    """

    count: int
    rows_per_file: int


@dataclass(frozen=True)
class Plan:
    """What a batch is going to be.

    Args:
        publication: `initial`, `changes`, `rebuild` or `unchanged`
        reason: why; for `unchanged`, why the next snapshot replaces the snapshot all the same
        changed: where Spark finds the changed keys, in SQL; None for a load
        in_full: the new rows are there too
        journal: what it was made against; None for a table that was not there
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
        """Its rows have row markers.

        Where rows without one are upserts, only deletes need it; but delimited text must not drop
        the column once it was there (best practices).
        """
        definition = self.definition
        if self.starts_folder or not definition.key_columns:
            return False
        by_default = definition.default_row_marker == UPSERT and not definition.delimited
        return bool(self.rows.deleted) or not by_default

    @property
    def is_void(self) -> bool:
        """Neither files nor a new snapshot."""
        return self.publication == "unchanged" and not self.reason

    @property
    def summary(self) -> str:
        """The plan in a line."""
        what = told(self.publication, self.rows)
        return shown(" · ".join(part for part in (what, self.reason) if part))

    @property
    def row_count(self) -> int:
        return self.rows.inserted + self.rows.updated + self.rows.deleted

    @property
    def is_small(self) -> bool:
        """The changed keys can be sent to every executor."""
        return self.row_count <= _BROADCAST_ROWS

    def batch(
        self, batch_id: str, owner: Owner, files: Sequence[StagedFile], last_file: int
    ) -> Batch:
        """The batch that publishes files by this plan.

        Args:
            files: in publication order
            last_file: the largest number given in the table folder so far; 0 in a new one
        """
        # a Parquet file says in itself how it is compressed
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
        """How staged files differ from what is planned; empty if they do not."""
        counts: Counter[int | None] = Counter()
        for each in found:
            counts[each.marker] += each.rows
        if not self.is_marked:
            planned: Counter[int | None] = Counter({None: self.row_count})
        else:
            # a new row has one of two markers, for all of them the same
            new = UPSERT_MARKER if UPSERT_MARKER in counts else INSERT_MARKER
            rows = self.rows
            planned = Counter({new: rows.inserted, UPDATE_MARKER: rows.updated})
            planned[DELETE_MARKER] = rows.deleted
        if +counts == +planned:
            return ""
        return f"{_rows_told(counts)}, and {_rows_told(planned)} were planned"

    def files(self, table_bytes: int, table_rows: int, target_bytes: int) -> Files:
        """Split or join this batch to files of about a size.

        Args:
            table_bytes: of the next snapshot
            table_rows: of the next snapshot; this batch's own rows where it does not matter
            target_bytes: of a file
        """
        count = ceil(table_bytes * self.row_count / table_rows / target_bytes) if table_rows else 1
        count = max(1, count)
        # partitions are not equally large: leave them a margin before another file is begun
        return Files(count, ceil(1.25 * self.row_count / count) if count > 1 else 0)


@dataclass(frozen=True)
class FileRows:
    """Rows that were found in a staged file.

    Args:
        marker: their row marker; None if they have none
    """

    name: str
    marker: int | None
    rows: int


@dataclass(frozen=True)
class Change:
    """A difference between the published definition and the new one.

    Args:
        kind: names the macro that decides what it leads to, `mirror_on_<kind>`
        detail: for the user
    """

    kind: str
    detail: str

    def __post_init__(self) -> None:
        # what was published is told by a record
        object.__setattr__(self, "detail", shown(self.detail))


def changes_between(published: TableDefinition, wanted: TableDefinition) -> list[Change]:
    """Compare two definitions of a table; nothing for equal ones.

    Names are compared as they are spelled: the mirror's Delta table and the `keyColumns` are case
    sensitive, Spark is not.
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
    """What changes in `_metadata.json` besides columns and keys."""
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
