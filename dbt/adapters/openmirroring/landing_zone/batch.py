"""What one publication is, as data: the batch, and what its table is."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated

from pydantic import Field

from dbt.adapters.openmirroring.landing_zone.delimited import COLUMN_SEPARATORS, DelimitedText
from dbt.adapters.openmirroring.landing_zone.layout import file_name
from dbt.adapters.openmirroring.landing_zone.shown import shown

# how a user gives up what is committed, but cannot be brought to its end
WITHDRAW = (
    "Delete {manifest} and run again: the batch is computed again. If a part of it was published "
    "already, that run says so."
)
# what else a table can be declared to be (specification, "Nonsequential files")
LAST_UPDATE_TIME = "last_update_time"
UPSERT = "upsert"

# the extension of compressed text
GZIP = ".gz"

# publications that begin with an empty table folder
STARTS_FOLDER = ("initial", "rebuild")

# Records are files that others can write, and names become paths and names of tables.
BATCH_ID = r"\d{14}[0-9a-f]{8}"
_PLAIN_NAME = re.compile(r"\w[\w.=-]*")

Count = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True)
class MirroredColumn:
    """A column of the model.

    Args:
        type: in Spark, as Spark spells it
        landed_type: in the mirror, as Spark spells it
    """

    name: str
    type: str
    landed_type: str


@dataclass(frozen=True)
class TableDefinition:
    """What the mirrored table is pinned to by its first file.

    Args:
        columns: in the model's order, without the row marker
        key_columns: the `keyColumns`, spelled as in columns; empty for an insert-only table
        landing_format: of the data files, which is also their extension
        delimited: how their text is spelled; None for Parquet
        file_detection: what gives the files their order: `sequential`: their numbers, or
            `last_update_time`
        default_row_marker: what a row without row marker is: `insert`, or `upsert`
    """

    columns: tuple[MirroredColumn, ...]
    key_columns: tuple[str, ...]
    landing_format: str
    delimited: DelimitedText | None = None
    file_detection: str = "sequential"
    default_row_marker: str = "insert"

    def __post_init__(self) -> None:
        if self.landing_format not in ("parquet", *COLUMN_SEPARATORS):
            raise ValueError(f"{self.landing_format!r} is not a landing format")
        if (self.delimited is None) != (self.landing_format == "parquet"):
            raise ValueError("delimited text has a spelling, and Parquet has none")
        if self.file_detection not in ("sequential", LAST_UPDATE_TIME):
            raise ValueError(f"{self.file_detection!r} is not a file detection")
        if self.default_row_marker not in ("insert", UPSERT):
            raise ValueError(f"{self.default_row_marker!r} is not a row marker")
        names = {column.name for column in self.columns}
        if not names or not names.issuperset(self.key_columns):
            raise ValueError("a key column is not among the columns")

    @property
    def is_by_time(self) -> bool:
        return self.file_detection == LAST_UPDATE_TIME


@dataclass(frozen=True)
class Owner:
    """Who publishes a table.

    Args:
        project: the dbt project
        node: its unique id
        schema: of its relation in Spark
        invocation_id: of the command of dbt
    """

    project: str
    node: str
    schema: str
    invocation_id: str = ""


@dataclass(frozen=True)
class RowCounts:
    """Rows of a batch by what they do to the mirror."""

    inserted: Count = 0
    updated: Count = 0
    deleted: Count = 0

    def __bool__(self) -> bool:
        return any((self.inserted, self.updated, self.deleted))

    def __str__(self) -> str:
        return f"+{self.inserted} ~{self.updated} -{self.deleted}"


@dataclass(frozen=True)
class StagedFile:
    """A finished file on the scratch pad.

    Args:
        name: in the folder `rows` of the batch
        size: bytes
    """

    name: str
    size: Count

    def __post_init__(self) -> None:
        if not _PLAIN_NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is not the name of a staged file")

    @property
    def is_gzip(self) -> bool:
        return self.name.endswith(GZIP)


@dataclass(frozen=True)
class Batch:
    """One publication.

    Args:
        id: unique; the snapshot carries it as a table property
        publication: `initial`, `changes`, `rebuild`, or `unchanged` when only the snapshot changes
        reason: why a rebuild, or what else is worth telling
        extension: of its files, with that of their compression
        first_file: the number of the first file, None when the batch has no file
        last_file: the largest number ever given in this table folder
        table_rows: in the mirrored table after it
    """

    id: str
    publication: str
    reason: str
    owner: Owner
    definition: TableDefinition
    rows: RowCounts
    extension: str
    first_file: Count | None
    last_file: Count
    files_written: Count
    bytes_written: Count
    table_rows: Count

    def __post_init__(self) -> None:
        check_batch_id(self.id)
        if self.publication not in (*STARTS_FOLDER, "changes", "unchanged"):
            raise ValueError(f"{self.publication!r} is no publication")
        landing_format = self.definition.landing_format
        if self.extension not in (landing_format, landing_format + GZIP):
            raise ValueError(f"{self.extension!r} is not an extension of {landing_format} files")
        first = self.last_file - self.files_written + 1 if self.files_written else None
        if self.first_file != first or first == 0:
            raise ValueError("it does not have one number for each file")

    @property
    def starts_folder(self) -> bool:
        return self.publication in STARTS_FOLDER

    @property
    def summary(self) -> str:
        """The batch in a line: what happens to the mirror, the numbers of the files, and why.

        A batch may come from a record, so the line is fit for a terminal.
        """
        what = told(self.publication, self.rows)
        first = self.first_file or self.last_file
        numbers = f"#{first}" if first == self.last_file else f"#{first}-#{self.last_file}"
        return shown(" · ".join(part for part in (what, numbers, self.reason) if part))

    def file_name(self, number: int) -> str:
        """Of a file of this batch.

        Where times are the order, a name must be unique and nothing else (specification,
        "Nonsequential files"). It has the batch's id besides the number, so that it is not used
        again after a rebuild either.
        """
        return file_name(number, self.extension, self.id if self.definition.is_by_time else "")


def told(publication: str, rows: RowCounts) -> str:
    """What a publication does to the mirrored table, in short."""
    if publication in STARTS_FOLDER:
        return f"{publication} +{rows.inserted}"
    return "unchanged" if publication == "unchanged" else str(rows)


def new_batch_id() -> str:
    """Sorts by time, and is part of a table name: so digits and lower case letters only."""
    return f"{datetime.now(timezone.utc):%Y%m%d%H%M%S}{secrets.token_hex(4)}"


def check_batch_id(batch_id: str) -> None:
    if not re.fullmatch(BATCH_ID, batch_id, re.ASCII):
        raise ValueError(f"{batch_id!r} is no id of a batch")
