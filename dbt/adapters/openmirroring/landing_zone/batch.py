"""What one publication is, as data: the batch, its manifest and the journal that remembers it."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from typing import Any, TypeVar

from dbt.adapters.openmirroring.landing_zone.delimited import DelimitedText
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

# of batches and staged files: records are files that others can write, and names become paths
_PLAIN_NAME = re.compile(r"\w[\w.=-]*")


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

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

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
    size: int

    def __post_init__(self) -> None:
        _check_name(self.name)

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
    first_file: int | None
    last_file: int
    files_written: int
    bytes_written: int
    table_rows: int

    def __post_init__(self) -> None:
        _check_name(self.id)

    @property
    def starts_folder(self) -> bool:
        return self.publication in STARTS_FOLDER

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

    def to_json(self) -> bytes:
        return _to_json(self)

    @classmethod
    def from_json(cls, content: bytes, where: str) -> Manifest:
        remedy = f"{WITHDRAW.format(manifest='it')} Or restore it."
        with _readable(where, remedy):
            data = _from_json(content, where)
            return cls(
                batch=_batch(data["batch"]),
                table=TableFolder(**data["table"]),
                previous_batch_id=data["previous_batch_id"],
                files=tuple(StagedFile(**file) for file in data["files"]),
                # earlier versions have none
                snapshot_version=data.get("snapshot_version"),
            )


@dataclass(frozen=True)
class Journal:
    """The last completed batch of a table folder.

    Args:
        published_at: when its files appeared; UTC, ISO 8601
    """

    batch: Batch
    published_at: str

    @classmethod
    def of(cls, batch: Batch, published_at: datetime) -> Journal:
        return cls(batch, published_at.isoformat(timespec="milliseconds"))

    def to_json(self) -> bytes:
        return _to_json(self)

    @classmethod
    def from_json(cls, content: bytes, where: str) -> Journal:
        folder = where.rpartition("/")[0]
        remedy = f"Restore it; or delete {folder}, and run again to publish a full load."
        with _readable(where, remedy):
            data = _from_json(content, where)
            return cls(batch=_batch(data["batch"]), published_at=data["published_at"])


def new_batch_id() -> str:
    """Sorts by time, and is part of a table name: so digits and lower case letters only."""
    return f"{datetime.now(timezone.utc):%Y%m%d%H%M%S}{secrets.token_hex(4)}"


def _batch(data: dict[str, Any]) -> Batch:
    definition = data["definition"]
    delimited = definition["delimited"]
    return replace(
        Batch(**data),
        owner=Owner(**data["owner"]),
        rows=RowCounts(**data["rows"]),
        definition=TableDefinition(
            columns=tuple(MirroredColumn(**column) for column in definition["columns"]),
            key_columns=tuple(definition["key_columns"]),
            landing_format=definition["landing_format"],
            delimited=DelimitedText(**delimited) if delimited else None,
            file_detection=definition["file_detection"],
            default_row_marker=definition["default_row_marker"],
        ),
    )


_Record = TypeVar("_Record", Manifest, Journal)


def _to_json(record: _Record) -> bytes:
    data = {"version": VERSION, **asdict(record)}
    return json.dumps({**data, "checksum": _checksum(data)}, indent=2).encode()


def _from_json(content: bytes, where: str) -> dict[str, Any]:
    data = dict(json.loads(content))
    if data["version"] != VERSION:
        raise MirrorError(
            f"{where} has version {shown(data['version'])}, this dbt-openmirroring reads version "
            f"{VERSION}. Install the version of dbt-openmirroring that wrote it, or a later one."
        )
    if data.pop("checksum") != _checksum(data):
        raise ValueError("its checksum is that of another content")
    return data


def _checksum(data: Mapping[str, Any]) -> str:
    """A record is what was written, or is refused: an edited one would be taken for the truth."""
    content = json.dumps(data, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


@contextmanager
def _readable(where: str, remedy: str) -> Iterator[None]:
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise MirrorError(
            f"{where} is damaged or was edited: it is not what dbt-openmirroring has written "
            f"({shown(error)}). Nothing was changed. {remedy}"
        ) from error


def _check_name(name: str) -> None:
    if not _PLAIN_NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a batch or a staged file")
