"""The data model of a publication: the batch and the definition of its table."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Any

from pydantic import Field

from dbt.adapters.openmirroring.landing_zone.layout import file_name
from dbt.adapters.openmirroring.text.shown import shown

# the alternatives to the default file detection and row marker (specification, "Nonsequential
# files")
LAST_UPDATE_TIME = "last_update_time"
UPSERT = "upsert"

# the default column separator of each landing format, which is also the file extension
COLUMN_SEPARATORS = {"csv": ",", "tsv": "\t", "psv": "|"}

# The specification allows these values. Of its "wide range" of encodings, these can be written.
ALLOWED = {
    "row_separator": ("\r\n", "\n", "\r"),
    "column_separator": (",", ";", "|", "\t"),
    "quote_character": ('"', "'", ""),
    "escape_character": ("\\", "/", '"', ""),
    "encoding": (
        *("UTF-8", "ascii", "iso-8859-1", "windows-1252"),
        *("utf-16", "utf-16le", "utf-16be"),
    ),
}

# the `DataType` of `SchemaDefinition` for each landed type; it has none for decimals
_DATA_TYPES = {
    "boolean": "Boolean",
    "tinyint": "Int16",
    "smallint": "Int16",
    "int": "Int32",
    "bigint": "Int64",
    "float": "Single",
    "double": "Double",
    "string": "String",
    "binary": "ByteArray",
    "date": "IDate",
    "timestamp": "DateTime",
    "time": "ITime",
}

# the extension of compressed text
GZIP = ".gz"

# publications that start with an empty table folder
STARTS_FOLDER = ("initial", "rebuild")

# Others can edit the records, and these values become paths and table names.
BATCH_ID = r"\d{14}[0-9a-f]{8}"
_TIME = "%Y%m%d%H%M%S"
_PLAIN_NAME = re.compile(r"\w[\w.=-]*")

Count = Annotated[int, Field(ge=0, lt=2**63)]


@dataclass(frozen=True)
class MirroredColumn:
    """A column of the model.

    Args:
        type: the type in the snapshot
        landed_type: the type in the mirror, in the same spelling
    """

    name: str
    type: str
    landed_type: str


@dataclass(frozen=True)
class DelimitedText:
    """The options of a table's files: the `FileFormatTypeProperties` of `_metadata.json`.

    Args:
        column_separator, row_separator, quote_character: the text between and around values
        escape_character: the character before a quote in a quoted value, and before itself
        null_value: the text for NULL; a quoted value is never NULL
        encoding: one of the encodings in ALLOWED
    """

    column_separator: str = ","
    row_separator: str = "\r\n"
    quote_character: str = '"'
    escape_character: str = "\\"
    null_value: str = "null"
    encoding: str = "UTF-8"

    def __post_init__(self) -> None:
        for name, allowed in ALLOWED.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{getattr(self, name)!r} is no {name}")

    @property
    def properties(self) -> dict[str, str | bool]:
        return {
            "FirstRowAsHeader": True,
            "RowSeparator": self.row_separator,
            "ColumnSeparator": self.column_separator,
            "QuoteCharacter": self.quote_character,
            "EscapeCharacter": self.escape_character,
            "NullValue": self.null_value,
            "Encoding": self.encoding,
        }


@dataclass(frozen=True)
class TableDefinition:
    """The properties of a mirrored table that its first file fixes.

    Args:
        columns: the columns in the model's order, without the row marker
        key_columns: the `keyColumns`, spelled as in `columns`; empty for an insert-only table
        landing_format: the format of the data files, and their extension
        delimited: the options of delimited text; None for Parquet
        file_detection: how the service orders the files: `sequential` by their numbers, or
            `last_update_time`
        default_row_marker: the meaning of a row without a row marker: `insert` or `upsert`
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

    @property
    def metadata(self) -> bytes:
        """The content of `_metadata.json`, with only the properties that the table needs.

        Without `keyColumns` the service can only insert. The file is needed even without
        properties: the service has been seen to ignore a table folder without it. The row marker
        is not declared, because it is not a column of the table (specification, "Metadata file"
        and "Delimited text requirements").
        """
        properties: dict[str, Any] = {}
        if self.key_columns:
            properties["keyColumns"] = list(self.key_columns)
        if self.is_by_time:
            properties["fileDetectionStrategy"] = "LastUpdateTimeFileDetection"
        if self.default_row_marker == UPSERT:
            properties["isUpsertDefaultRowMarker"] = True
        if self.delimited:
            columns = [
                {
                    "Name": column.name,
                    "DataType": data_type(column.landed_type),
                    "IsNullable": column.name not in self.key_columns,
                }
                for column in self.columns
            ]
            properties |= {
                "SchemaDefinition": {"Columns": columns},
                "FileFormat": "CSV" if self.landing_format == "csv" else "DelimitedText",
                "FileExtension": self.landing_format,
                "FileFormatTypeProperties": self.delimited.properties,
            }
        return json.dumps(properties, ensure_ascii=False, indent=2).encode()


@dataclass(frozen=True)
class Owner:
    """The owner of a table: the node that publishes it.

    Args:
        node: the unique id of the node
        schema: the schema of the node's relation
        target: the name of the target in the profile
        user: the name of the user on their machine; empty if it is unknown
    """

    project: str
    node: str
    schema: str
    invocation_id: str = ""
    target: str = ""
    user: str = ""


@dataclass(frozen=True)
class RowCounts:
    """The rows of a batch, counted by their effect on the mirror."""

    inserted: Count = 0
    updated: Count = 0
    deleted: Count = 0

    def __bool__(self) -> bool:
        return any((self.inserted, self.updated, self.deleted))

    def __str__(self) -> str:
        return f"+{self.inserted} ~{self.updated} -{self.deleted}"


@dataclass(frozen=True)
class StagedFile:
    """A finished file in the folder `rows` of a batch on the scratch pad, and its bytes."""

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
        id: a unique id
        build: the id of the build whose rows it publishes: the snapshot carries it as a table
            property. It is another one if the rows were built before this publication began
        publication: `initial`, `changes`, `rebuild`, or `unchanged` if only the snapshot changes
        reason: why the table is rebuilt, or another note for the user
        extension: the extension of the files, including that of their compression
        first_file: the number of the first file; None if the batch has no file
        last_file: the largest number used so far in this table folder
        table_rows: the number of rows in the mirrored table after this batch
    """

    id: str
    build: str
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
        check_batch_id(self.build)
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
    def begun_at(self) -> datetime:
        """When the run of this batch began, in UTC."""
        return _time_of(self.id)

    @property
    def summary(self) -> str:
        """The batch in one line: the effect on the mirror, the file numbers and the reason.

        The line is safe for a terminal, because others can edit the record of a batch.
        """
        what = summary_of(self.publication, self.rows)
        first = self.first_file or self.last_file
        numbers = f"#{first}" if first == self.last_file else f"#{first}-#{self.last_file}"
        return shown(" · ".join(part for part in (what, numbers, self.reason) if part))

    def file_name(self, number: int) -> str:
        """Return the name of a data file of this batch.

        If the service orders files by time, a name only has to be unique (specification,
        "Nonsequential files"). The name then includes the batch id, so that no name is reused
        when a rebuild restarts the numbers.
        """
        return file_name(number, self.extension, self.id if self.definition.is_by_time else "")


def summary_of(publication: str, rows: RowCounts) -> str:
    """Return a short text for the effect of a publication on the mirrored table."""
    if publication in STARTS_FOLDER:
        return f"{publication} +{rows.inserted}"
    return "unchanged" if publication == "unchanged" else str(rows)


def data_type(landed_type: str) -> str | None:
    """Return the `DataType` of `SchemaDefinition` for a landed type; None if there is none."""
    return _DATA_TYPES.get(landed_type.partition("(")[0])


def new_batch_id() -> str:
    """Return a new batch id, which sorts by time and is valid as a part of a table name."""
    return f"{datetime.now(timezone.utc):{_TIME}}{secrets.token_hex(4)}"


def check_batch_id(batch_id: str) -> None:
    if not re.fullmatch(BATCH_ID, batch_id, re.ASCII):
        raise ValueError(f"{batch_id!r} is no id of a batch")
    _time_of(batch_id)


def _time_of(batch_id: str) -> datetime:
    return datetime.strptime(batch_id[:14], _TIME).replace(tzinfo=timezone.utc)
