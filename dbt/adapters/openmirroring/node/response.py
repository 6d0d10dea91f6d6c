"""The response of a node about its publication."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.contracts.connection import AdapterResponse

from dbt.adapters.openmirroring.landing_zone.batch import Batch
from dbt.adapters.openmirroring.landing_zone.plan import Plan


@dataclass
class MirrorResponse(AdapterResponse):
    """`adapter_response` in `run_results.json`. dbt logs its message for the node.

    Args:
        rows_inserted, rows_updated, rows_deleted: changes of the mirrored table by the files
        files_written, bytes_written: number and size of the data files
        first_file, last_file: names of the data files; None if there are none
        publication: initial, changes, rebuild, unchanged or held
        reason: why the table is rebuilt or held, or another note; None if there is none
    """

    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    files_written: int = 0
    bytes_written: int = 0
    first_file: str | None = None
    last_file: str | None = None
    publication: str | None = None
    reason: str | None = None

    @classmethod
    def of(cls, batch: Batch) -> MirrorResponse:
        rows = batch.rows
        return cls(
            _message=batch.summary,
            rows_affected=rows.inserted + rows.updated + rows.deleted,
            rows_inserted=rows.inserted,
            rows_updated=rows.updated,
            rows_deleted=rows.deleted,
            files_written=batch.files_written,
            bytes_written=batch.bytes_written,
            first_file=batch.file_name(batch.first_file) if batch.first_file else None,
            last_file=batch.file_name(batch.last_file) if batch.first_file else None,
            publication=batch.publication,
            reason=batch.reason or None,
        )

    @classmethod
    def held(cls, why: str) -> MirrorResponse:
        """Return the response for rows that are built, but held."""
        return cls(_message=f"held {why}", publication="held", reason=why)

    @classmethod
    def preview(cls, plan: Plan) -> MirrorResponse:
        """Return the response of a dry run."""
        rows = plan.rows
        told = "would publish nothing" if plan.is_void else f"would publish {plan.summary}"
        return cls(
            _message=told,
            rows_affected=plan.row_count,
            rows_inserted=rows.inserted,
            rows_updated=rows.updated,
            rows_deleted=rows.deleted,
            publication=plan.publication,
            reason=plan.reason or None,
        )

    @classmethod
    def unchanged(cls, plan: Plan) -> MirrorResponse:
        """Return the response for a node with nothing to publish."""
        assert plan.journal, "a table is unchanged only since it was published"
        last_file = plan.journal.batch.last_file
        return cls(_message=f"unchanged · #{last_file}", rows_affected=0, publication="unchanged")
