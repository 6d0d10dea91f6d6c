"""The records in a landing zone: manifest, journal and held record. Others can edit them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import cache
from typing import Any, ClassVar, TypeVar

from pydantic import TypeAdapter, ValidationError

from dbt.adapters.openmirroring.landing_zone.batch import (
    Batch,
    Count,
    Owner,
    RowCounts,
    StagedFile,
    check_batch_id,
)
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.storage import Readable
from dbt.adapters.openmirroring.protocol.facts import Held
from dbt.adapters.openmirroring.text.shown import shown

VERSION = 2

# The state of a snapshot's data: the version of a table, or a digest of its files. `before` has
# the version before a change in place, if the run that has made the change was killed.
_STATE = re.compile(r"(version|before|files):\w+", re.ASCII)

# the number of batches in a journal
_REMEMBERED = 100

_LONG_AGO = datetime.min.replace(tzinfo=timezone.utc)

# the way out after which a table folder is deleted
LOAD_ANEW = (
    "run again to publish a full load of the rows that the node then has in Spark, in place of "
    "those that the mirrored table has"
)


def withdraw(manifest: str) -> str:
    """Return the way out of a committed batch that cannot be completed."""
    return (
        f"Delete {manifest} and run again: the batch is computed again. If a part of it was "
        "published already, that run says so."
    )


_Record = TypeVar("_Record", bound="Record")


@dataclass(frozen=True)
class Record:
    """A record in JSON, with a checksum: a run refuses one that was edited after writing."""

    # the way out of a damaged record; {folder} stands for its folder
    REMEDY: ClassVar[str]

    def to_json(self) -> bytes:
        data = {"version": VERSION, **asdict(self)}
        return json.dumps({**data, "checksum": _checksum(data)}, indent=2).encode()

    @classmethod
    def read(cls: type[_Record], storage: Readable, path: str) -> _Record | None:
        """Read a record; None if there is none at this path. Errors are those of `from_json`."""
        content = storage.read(path)
        return cls.from_json(content, path) if content is not None else None

    @classmethod
    def from_json(cls: type[_Record], content: bytes, where: str) -> _Record:
        """Read the content of a record.

        Raises:
            MirrorError: if it is not what `to_json` has returned
        """
        try:
            data = dict(json.loads(content))
            version = data["version"]
            if version == VERSION:
                if data.pop("checksum") != _checksum(data):
                    raise ValueError("its checksum does not match its content")
                return cls._checked(data, where)
        except ValidationError as error:
            [first, *_] = error.errors(include_url=False, include_input=False)
            path = ".".join(map(str, first["loc"]))
            raise cls._damaged(where, f"{path}: {first['msg']}") from error
        except MirrorError as error:
            raise cls._damaged(where, error.text) from error
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            raise cls._damaged(where, str(error)) from error
        raise MirrorError(
            f"{where} has version {shown(version)}, this dbt-openmirroring reads version "
            f"{VERSION}. Install the version of dbt-openmirroring that wrote it, or a later one.",
            code="OM420",
        )

    @classmethod
    def _checked(cls: type[_Record], data: dict[str, Any], where: str) -> _Record:  # noqa: ARG003
        records: TypeAdapter[_Record] = _adapter(cls)  # type: ignore[arg-type]
        return records.validate_json(json.dumps(data), strict=True)

    @classmethod
    def _damaged(cls, where: str, finding: str) -> MirrorError:
        return MirrorError(
            f"{where} is damaged or was edited: it is not what dbt-openmirroring has written "
            f"({shown(finding)}). Nothing was changed. "
            f"{cls.REMEDY.format(folder=where.rpartition('/')[0])}",
            code="OM419",
        )


@dataclass(frozen=True)
class PastBatch:
    """The summary of a completed batch. `Batch` and `Journal` document its fields."""

    id: str
    published_at: str
    publication: str
    reason: str
    rows: RowCounts
    files_written: Count
    bytes_written: Count
    table_rows: Count
    invocation_id: str
    build: str

    def __post_init__(self) -> None:
        check_batch_id(self.id)
        _check_time(self.published_at)

    @classmethod
    def of(cls, batch: Batch, published_at: str) -> PastBatch:
        return cls(
            batch.id,
            published_at,
            batch.publication,
            batch.reason,
            batch.rows,
            batch.files_written,
            batch.bytes_written,
            batch.table_rows,
            batch.owner.invocation_id,
            batch.build,
        )


@dataclass(frozen=True)
class Manifest(Record):
    """The write-ahead record of a batch: its appearance commits the batch.

    Args:
        previous_batch_id: the id of the batch in the journal that the batch was planned against
        files: the files in publication order; the first gets the number batch.first_file
        snapshot_version: the version, before the change, of a snapshot that is changed in place;
            None for a snapshot that is replaced
        history: the batches before this one, the latest first; they are kept here because a
            rebuild drops the journal
        snapshot_state: the state of the snapshot's data after the batch; None if nobody knows it
    """

    REMEDY = f"{withdraw('it')} Or restore it."

    batch: Batch
    table: TableFolder
    previous_batch_id: str | None
    files: tuple[StagedFile, ...]
    snapshot_version: str | None = None
    history: tuple[PastBatch, ...] = ()
    snapshot_state: str | None = None

    def __post_init__(self) -> None:
        _check_state(self.snapshot_state)
        if self.previous_batch_id is not None:
            check_batch_id(self.previous_batch_id)
        if self.table.schema not in ("", self.batch.owner.schema):
            raise ValueError("its owner is in another schema")
        if [len(self.files), sum(file.size for file in self.files)] != [
            self.batch.files_written,
            self.batch.bytes_written,
        ]:
            raise ValueError("its files are not those of its batch")

    @classmethod
    def _checked(cls, data: dict[str, Any], where: str) -> Manifest:
        found = super()._checked(data, where)
        if found.table.manifest != where:
            raise ValueError(f"it is of the table {found.table}")
        return found


@dataclass(frozen=True)
class Journal(Record):
    """The last completed batch of a table folder.

    Args:
        published_at: when its last file appeared, or when its run began if nobody saw that; UTC,
            ISO 8601
        history: the batches before it, the latest first
        snapshot_state: the state in which the publication left the data of the snapshot; None if
            nobody knows it
    """

    REMEDY = f"Restore it; or delete {{folder}}, and {LOAD_ANEW}."

    batch: Batch
    published_at: str
    history: tuple[PastBatch, ...] = ()
    snapshot_state: str | None = None

    def __post_init__(self) -> None:
        _check_time(self.published_at)
        _check_state(self.snapshot_state)

    @classmethod
    def of(
        cls,
        batch: Batch,
        published_at: datetime,
        history: tuple[PastBatch, ...] = (),
        snapshot_state: str | None = None,
    ) -> Journal:
        at = published_at.isoformat(timespec="milliseconds")
        return cls(batch, at, history, snapshot_state)

    @property
    def batches(self) -> tuple[PastBatch, ...]:
        """The last hundred batches, the latest first."""
        last = PastBatch.of(self.batch, self.published_at)
        return (last, *self.history)[:_REMEMBERED]

    @property
    def files_at(self) -> datetime:
        """When files were published last: a batch that only reorders columns has none.

        It is the earliest of all times if that was before the batches that the journal remembers.
        """
        times = (batch.published_at for batch in self.batches if batch.files_written)
        return max(map(datetime.fromisoformat, times), default=_LONG_AGO)


@dataclass(frozen=True)
class HeldRecord(Record):
    """The record that the snapshot is ahead of the mirror. Only the snapshot has the rows."""

    REMEDY = "Delete it: the next run of the node writes it again."

    owner: Owner
    held: Held

    @classmethod
    def read_whole(cls, storage: Readable, path: str) -> HeldRecord | None:
        """Read a record; None if there is none, or if it is damaged: the next build writes it.

        Raises:
            MirrorError: if the storage refuses the request
        """
        content = storage.read(path)
        with suppress(MirrorError):
            return cls.from_json(content, path) if content is not None else None
        return None

    def __post_init__(self) -> None:
        check_batch_id(self.held.build)
        if self.held.before:
            check_batch_id(self.held.before)


@cache
def _adapter(record: type[Record]) -> TypeAdapter[Any]:
    return TypeAdapter(record)


def _checksum(data: Mapping[str, Any]) -> str:
    content = json.dumps(data, sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _check_state(state: str | None) -> None:
    if state is not None and not _STATE.fullmatch(state):
        raise ValueError(f"{state!r} is no state of a snapshot")


def _check_time(text: str) -> None:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError(f"the time {text!r} has no zone")
