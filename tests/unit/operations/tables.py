"""Published tables of the project `shop`, and its nodes, without dbt and Spark."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.landing_zone.storage import Storage

ONE_ROW = RowCounts(1)


def node(name: str, kind: str = "model", schema: str = "sales", **config: Any) -> dict[str, Any]:
    """A node as in dbt's graph."""
    return {
        "unique_id": f"{kind}.shop.{name}",
        "name": name,
        "alias": config.pop("alias", name),
        "schema": schema,
        "resource_type": kind,
        "config": {"materialized": "table", **config},
    }


def opened(storage: Storage, table: TableFolder, **owner: str) -> Publication:
    """Open a table to publish it; `owner` replaces fields of its owner."""
    given = {
        "project": "shop",
        "node": f"model.shop.{table.identifier}",
        "schema": table.schema or "sales",
    }
    return Publication(storage, table, Owner(**{**given, **owner}))


def publish(
    storage: Storage,
    table: str = "orders",
    kind: str = "",
    rows: RowCounts = ONE_ROW,
    *,
    schema: str = "sales",
    reason: str = "",
    completes: bool = True,
    **owner: str,
) -> datetime:
    """Publish a batch of one file, or of none if it has no rows. Return when.

    Args:
        kind: of the publication; a load and then changes, if it is not given
        schema: empty for a table without a schema folder
        completes: do not die when the batch is committed
    """
    publication = opened(storage, TableFolder(schema, table), **owner)
    manifest = commit(storage, publication, kind, rows, reason)
    if completes:
        publication.publish(manifest)
        publication.record(manifest)
        publication.complete(manifest)
    publication.close()
    return publication.published_at or datetime.now(timezone.utc)


def commit(
    storage: Storage,
    publication: Publication,
    kind: str = "",
    rows: RowCounts = ONE_ROW,
    reason: str = "",
    held: str | None = None,
) -> Manifest:
    if rows:
        staging = publication.table.staging(publication.batch_id)
        storage.write(f"{staging}/rows/0.parquet", b"rows" * 300)
    definition = TableDefinition((MirroredColumn("id", "int", "int"),), ("id",), "parquet")
    journal = publication.journal()
    kind = kind or ("changes" if journal else "initial")
    plan = Plan(kind, reason, definition, rows, journal=journal)
    files = publication.staged_files.written(plan) if rows else []
    return publication.commit(plan, files, held)


def apply_first_file(storage: Storage, table: TableFolder) -> None:
    """Let the service move a file away, as it does once it has applied a later one."""
    name = f"{1:020d}.parquet"
    storage.rename(f"{table.path}/{name}", f"{table.path}/_ProcessedFiles/{name}")
