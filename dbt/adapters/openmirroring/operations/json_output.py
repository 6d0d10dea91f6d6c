"""The JSON that operations print with `format: json`. Its fields are in docs/operations.md."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import datetime, timezone

from dbt.adapters.openmirroring.landing_zone.records import PastBatch
from dbt.adapters.openmirroring.operations.project_tables import ProjectTables, TableStatus
from dbt.adapters.openmirroring.service.reports import ServiceReport

# A new field leaves the version as it is. One that goes, or gets another meaning, does not.
VERSION = 1


@dataclass(frozen=True)
class ServiceRecord:
    """The service that applies published files.

    Args:
        status: None if it has reported nothing
        error: its error, or why it could not be asked
    """

    status: str | None
    error: str | None

    @classmethod
    def of(cls, report: ServiceReport, problem: str) -> ServiceRecord:
        return cls(report.status or None, report.error or problem or None)


@dataclass(frozen=True)
class TableRecord:
    """The state of a mirrored table; None stands for what it does not have.

    Args:
        node: unique id of its node
        lost: how the service has lost rows of it
    """

    table: str
    mirrored_table: str
    node: str | None
    state: str
    note: str | None
    publication: str | None
    published_at: str | None
    rows_inserted: int | None
    rows_updated: int | None
    rows_deleted: int | None
    table_rows: int | None
    last_file: int | None
    pending: str | None
    service_status: str | None
    service_error: str | None
    behind: bool
    lost: str | None
    applied_at: str | None
    visible_at: str | None

    @classmethod
    def of(cls, status: TableStatus, report: ServiceReport, node: str | None) -> TableRecord:
        journal, applied = status.journal, status.applied(report)
        batch = journal.batch if journal else None
        pending = status.landed.pending if status.landed else None
        return cls(
            table=status.table,
            mirrored_table=status.mirrored_table,
            node=node,
            state=status.state,
            note=status.note or None,
            publication=batch.publication if batch else None,
            published_at=_time(datetime.fromisoformat(journal.published_at)) if journal else None,
            rows_inserted=batch.rows.inserted if batch else None,
            rows_updated=batch.rows.updated if batch else None,
            rows_deleted=batch.rows.deleted if batch else None,
            table_rows=batch.table_rows if batch else None,
            last_file=batch.last_file if batch else None,
            pending=pending.batch.summary if pending else None,
            service_status=applied.status or None,
            service_error=applied.error or None,
            behind=status.is_behind(report),
            lost=status.loss(report) or None,
            applied_at=_time(applied.last_sync),
            visible_at=_time(applied.visible),
        )


@dataclass(frozen=True)
class StatusDocument:
    """What `mirror_status` prints."""

    service: ServiceRecord
    tables: list[TableRecord]


@dataclass(frozen=True)
class BatchRecord:
    """A publication of a table."""

    table: str
    published_at: str
    publication: str
    reason: str | None
    rows_inserted: int
    rows_updated: int
    rows_deleted: int
    table_rows: int
    files_written: int
    bytes_written: int
    invocation_id: str

    @classmethod
    def of(cls, table: str, batch: PastBatch) -> BatchRecord:
        return cls(
            table=table,
            published_at=_utc(datetime.fromisoformat(batch.published_at)),
            publication=batch.publication,
            reason=batch.reason or None,
            rows_inserted=batch.rows.inserted,
            rows_updated=batch.rows.updated,
            rows_deleted=batch.rows.deleted,
            table_rows=batch.table_rows,
            files_written=batch.files_written,
            bytes_written=batch.bytes_written,
            invocation_id=batch.invocation_id,
        )


@dataclass(frozen=True)
class HistoryDocument:
    """What `mirror_history` prints."""

    batches: list[BatchRecord]


@dataclass(frozen=True)
class ProblemRecord:
    """A problem of a mirrored table.

    Args:
        problem: `failed`, `blocked`, `held`, `behind` or `stale`
        message: what is wrong, and what to do
    """

    table: str
    problem: str
    message: str


@dataclass(frozen=True)
class CheckDocument:
    """What `mirror_check` prints.

    Args:
        ok: whether it succeeds
    """

    ok: bool
    problems: list[ProblemRecord]
    service: ServiceRecord
    tables: list[TableRecord]


def table_records(
    tables: ProjectTables, statuses: Iterable[TableStatus], report: ServiceReport
) -> list[TableRecord]:
    nodes = {node.table: node.unique_id for node in tables.mirrored}
    return [TableRecord.of(status, report, nodes.get(status.table)) for status in statuses]


def to_json(document: StatusDocument | HistoryDocument | CheckDocument) -> str:
    """Return a document as one line, so that its reader can tell it from lines of dbt's log.

    It is ASCII, which every terminal and encoding can print.
    """
    return json.dumps({"version": VERSION, **asdict(document)})


def _time(time: datetime | None) -> str | None:
    return _utc(time) if time else None


def _utc(time: datetime) -> str:
    """Return a time in the form of ISO 8601 that jq reads: UTC, whole seconds, `Z`."""
    return f"{time.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
