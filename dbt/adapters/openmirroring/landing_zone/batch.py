"""What one publication is, as data: the batch, its manifest and the journal that remembers it."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from dbt.adapters.openmirroring.landing_zone.delimited import COLUMN_SEPARATORS, DelimitedText
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder, file_name
from dbt.adapters.openmirroring.landing_zone.shown import shown

VERSION = 1

# how a user gives up what is committed, but cannot be brought to its end
WITHDRAW = (
    "Delete {manifest} and run again: the batch is computed anew. If a part of it was published "
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
            raise ValueError(f"{self.landing_format!r} is no landing format")
        if (self.delimited is None) != (self.landing_format == "parquet"):
            raise ValueError("delimited text has a spelling, and Parquet has none")
        if self.file_detection not in ("sequential", LAST_UPDATE_TIME):
            raise ValueError(f"{self.file_detection!r} is no file detection")
        if self.default_row_marker not in ("insert", UPSERT):
            raise ValueError(f"{self.default_row_marker!r} is no row marker")
        names = {column.name for column in self.columns}
        if not names or not names.issuperset(self.key_columns):
            raise ValueError("a key column is none of the columns")

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
    """

    project: str
    node: str
    schema: str


@dataclass(frozen=True)
class RowCounts:
    """Rows of a batch by what they do to the mirror."""

    inserted: Count = 0
    updated: Count = 0
    deleted: Count = 0

    def __bool__(self) -> bool:
        return any((self.inserted, self.updated, self.deleted))


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
            raise ValueError(f"{self.name!r} is no name of a staged file")

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
        _check_batch_id(self.id)
        if self.publication not in (*STARTS_FOLDER, "changes", "unchanged"):
            raise ValueError(f"{self.publication!r} is no publication")
        landing_format = self.definition.landing_format
        if self.extension not in (landing_format, landing_format + GZIP):
            raise ValueError(f"{self.extension!r} is no extension of {landing_format} files")
        first = self.last_file - self.files_written + 1 if self.files_written else None
        if self.first_file != first or first == 0:
            raise ValueError("the numbers of its files are not as many as they are")

    @property
    def starts_folder(self) -> bool:
        return self.publication in STARTS_FOLDER

    @property
    def summary(self) -> str:
        """The batch in a line: what happens to the mirror, the numbers of the files, and why.

        A batch may come from a record, so the line is fit for a terminal.
        """
        rows = self.rows
        if self.starts_folder:
            what = f"{self.publication} +{rows.inserted}"
        elif self.publication == "unchanged":
            what = "unchanged"
        else:
            what = f"+{rows.inserted} ~{rows.updated} -{rows.deleted}"
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


@dataclass(frozen=True)
class Manifest:
    """The write-ahead record of a batch: its appearance commits the batch.

    Args:
        previous_batch_id: of the journal that the batch was planned against
        files: in publication order; the first gets the number batch.first_file
        snapshot_version: of a snapshot that is changed in place, before it is; None for one that
            is replaced
    """

    batch: Batch
    table: TableFolder
    previous_batch_id: str | None
    files: tuple[StagedFile, ...]
    snapshot_version: str | None = None

    def __post_init__(self) -> None:
        if self.previous_batch_id is not None:
            _check_batch_id(self.previous_batch_id)
        if self.table.schema not in ("", self.batch.owner.schema):
            raise ValueError("its owner is in another schema")
        if [len(self.files), sum(file.size for file in self.files)] != [
            self.batch.files_written,
            self.batch.bytes_written,
        ]:
            raise ValueError("its files are not those of its batch")

    def to_json(self) -> bytes:
        return _to_json(self)

    @classmethod
    def from_json(cls, content: bytes, where: str) -> Manifest:
        """Read a record.

        Args:
            where: it was found: it speaks of no other table

        Raises:
            MirrorError: it is not what `to_json` has returned
        """
        remedy = f"{WITHDRAW.format(manifest='it')} Or restore it."
        found = _from_json(_MANIFESTS, content, where, remedy)
        if found.table.manifest != where:
            raise _damaged(where, f"it is of the table {found.table}", remedy)
        return found


@dataclass(frozen=True)
class Journal:
    """The last completed batch of a table folder.

    Args:
        published_at: when its files appeared; UTC, ISO 8601
    """

    batch: Batch
    published_at: str

    def __post_init__(self) -> None:
        if datetime.fromisoformat(self.published_at).tzinfo is None:
            raise ValueError("its time has no zone")

    @classmethod
    def of(cls, batch: Batch, published_at: datetime) -> Journal:
        return cls(batch, published_at.isoformat(timespec="milliseconds"))

    def to_json(self) -> bytes:
        return _to_json(self)

    @classmethod
    def from_json(cls, content: bytes, where: str) -> Journal:
        """Read a record.

        Args:
            where: it was found

        Raises:
            MirrorError: it is not what `to_json` has returned
        """
        folder = where.rpartition("/")[0]
        remedy = f"Restore it; or delete {folder}, and run again to publish a full load."
        return _from_json(_JOURNALS, content, where, remedy)


def new_batch_id() -> str:
    """Sorts by time, and is part of a table name: so digits and lower case letters only."""
    return f"{datetime.now(timezone.utc):%Y%m%d%H%M%S}{secrets.token_hex(4)}"


_Record = TypeVar("_Record", Manifest, Journal)
_MANIFESTS, _JOURNALS = TypeAdapter(Manifest), TypeAdapter(Journal)


def _to_json(record: _Record) -> bytes:
    data = {"version": VERSION, **asdict(record)}
    return json.dumps({**data, "checksum": _checksum(data)}, indent=2).encode()


def _from_json(records: TypeAdapter[_Record], content: bytes, where: str, remedy: str) -> _Record:
    try:
        data = dict(json.loads(content))
        version = data["version"]
        if version == VERSION:
            if data.pop("checksum") != _checksum(data):
                raise ValueError("its checksum is that of another content")
            return records.validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False, include_input=False)
        path = ".".join(map(str, first["loc"]))
        raise _damaged(where, f"{path}: {first['msg']}", remedy) from error
    except (ValueError, LookupError, TypeError, RecursionError, MirrorError) as error:
        raise _damaged(where, str(error), remedy) from error
    raise MirrorError(
        f"{where} has version {shown(version)}, this dbt-openmirroring reads version "
        f"{VERSION}. Install the version of dbt-openmirroring that wrote it, or a later one."
    )


def _damaged(where: str, finding: str, remedy: str) -> MirrorError:
    return MirrorError(
        f"{where} is damaged or was edited: it is not what dbt-openmirroring has written "
        f"({shown(finding)}). Nothing was changed. {remedy}"
    )


def _checksum(data: Mapping[str, Any]) -> str:
    """A record is what was written, or is refused: an edited one would be taken for the truth."""
    content = json.dumps(data, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _check_batch_id(batch_id: str) -> None:
    if not re.fullmatch(BATCH_ID, batch_id, re.ASCII):
        raise ValueError(f"{batch_id!r} is no id of a batch")
