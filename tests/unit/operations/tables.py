"""Published tables of the project `shop`, and its nodes, without dbt and Spark."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from dbt.adapters.openmirroring.landing_zone.batch import Owner, RowCounts
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from tests.unit.landing_zone.publishing import DEFINITION, finish, publication, stage

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


def publish(
    storage: Storage,
    table: str = "orders",
    kind: str = "",
    rows: RowCounts = ONE_ROW,
    *,
    schema: str = "sales",
    reason: str = "",
    build: str | None = None,
    completes: bool = True,
    **owner: str,
) -> datetime:
    """Publish a batch of one file, or of none if it has no rows. Return when.

    Args:
        kind: of the publication; a load and then changes, if it is not given
        schema: empty for a table without a schema folder
        build: the id of the build whose rows are published, if they were held
        completes: do not die when the batch is committed
        owner: fields of the owner of the table that are others
    """
    given = {"project": "shop", "node": f"model.shop.{table}", "schema": schema or "sales"}
    folder = TableFolder(schema, table)
    with publication(storage, Owner(**{**given, **owner}), folder) as opened:
        journal = opened.journal()
        kind = kind or ("changes" if journal else "initial")
        plan = Plan(kind, reason, DEFINITION, rows, journal=journal)
        stage(storage, opened, [b"rows" * 300] if rows else [])
        files = opened.staged_files.written(plan) if rows else []
        manifest = opened.commit(plan, files, build)
        if completes:
            finish(opened, manifest)
        return opened.published_at or datetime.now(timezone.utc)


def apply_first_file(storage: Storage, table: TableFolder) -> None:
    """Let the service move a file away, as it does once it has applied a later one."""
    name = f"{1:020d}.parquet"
    storage.rename(f"{table.path}/{name}", f"{table.path}/_ProcessedFiles/{name}")
