"""A published table, without dbt and Spark."""

from __future__ import annotations

from datetime import datetime, timezone

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.storage import Storage


def publish(
    storage: Storage, files: int = 1, schema: str = "sales", table: str = "orders"
) -> datetime:
    """Publish a table of the project `shop`, or without a schema folder; returns when."""
    folder = TableFolder(schema, table)
    opened = Publication(storage, folder, Owner("shop", f"model.shop.{table}", "sales"))
    for i in range(files):
        storage.write(f"{folder.staging(opened.batch_id)}/rows/{i}.parquet", b"rows")
    definition = TableDefinition((MirroredColumn("id", "int", "int"),), ("id",), "parquet")
    journal = opened.journal()
    kind = "changes" if journal else "initial"
    plan = Plan(kind, "", definition, RowCounts(1), journal=journal)
    manifest = opened.commit(plan, opened.staged(plan) if files else [])
    opened.publish(manifest)
    opened.complete(manifest)
    opened.close()
    return opened.published_at or datetime.now(timezone.utc)
