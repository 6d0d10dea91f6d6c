"""A published table, without dbt and Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from dbt.adapters.openmirroring.landing_zone.storage import Storage


def publish(
    storage: Storage, files: int = 1, schema: str = "sales", table: str = "orders"
) -> datetime:
    """Publish a table of the project `shop`, or without a schema folder; returns when."""
    with _opened(storage, TableFolder(schema, table)) as opened:
        manifest = _commit(storage, opened, files)
        opened.publish(manifest)
        opened.record(manifest)
        opened.complete(manifest)
        return opened.published_at or datetime.now(timezone.utc)


def commit(storage: Storage, table: TableFolder) -> Manifest:
    """Commit a batch, and die before it is published."""
    with _opened(storage, table) as opened:
        return _commit(storage, opened, 1)


@contextmanager
def _opened(storage: Storage, table: TableFolder) -> Iterator[Publication]:
    owner = Owner("shop", f"model.shop.{table.identifier}", "sales")
    opened = Publication(storage, table, owner)
    yield opened
    opened.close()


def _commit(storage: Storage, opened: Publication, files: int) -> Manifest:
    for i in range(files):
        storage.write(f"{opened.table.staging(opened.batch_id)}/rows/{i}.parquet", b"rows")
    definition = TableDefinition((MirroredColumn("id", "int", "int"),), ("id",), "parquet")
    journal = opened.journal()
    kind = "changes" if journal else "initial"
    plan = Plan(kind, "", definition, RowCounts(1), journal=journal)
    return opened.commit(plan, opened.staged_files.written(plan) if files else [])
