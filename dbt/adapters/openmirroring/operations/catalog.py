"""What dbt asks of tables: statistics of their last publication, and when they were written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

import agate
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.clients.agate_helper import DEFAULT_TYPE_TESTER
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.inventory import last_published
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation

logger = AdapterLogger("OpenMirroring")

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

_STAT_PARTS = ("label", "value", "description", "include")


def table_of(rows: Iterable[Mapping[str, Any]]) -> agate.Table:
    """Return the rows of dbt's catalog as a table, one row for each column of a relation."""
    return agate.Table.from_object(list(rows), column_types=DEFAULT_TYPE_TESTER)


def published_statistics(storage: Storage, schema: str, identifier: str) -> dict[str, Any]:
    """Return a table's last publication as statistics for dbt's catalog; empty without one."""
    try:
        published = last_published(storage, schema, identifier)
    except MirrorError as error:  # the documentation is useful without these statistics
        logger.debug(f"{schema}.{identifier}: {error}")
        return {}
    if published is None:
        return {}
    table, journal = published
    batch = journal.batch
    rows = batch.rows
    format_ = batch.definition.landing_format
    # file names by time belong to one batch, so a batch without files has no such name
    named = batch.first_file or not batch.definition.is_by_time
    last = batch.file_name(batch.last_file) if named else None
    keys = ", ".join(batch.definition.key_columns) or "none"
    figures = (
        ("folder", "Table folder", table.path, "within the landing zone"),
        ("keys", "Key columns", keys, "`keyColumns` of the mirrored table"),
        ("format", "Landing format", format_, "of the data files"),
        ("last_file", "Last file", last, "with the highest number that was published"),
        ("rows", "Rows", batch.table_rows, "in the mirrored table"),
        ("published_at", "Last publication", journal.published_at, "UTC"),
        ("publication", "Kind of publication", batch.publication, batch.reason or "of the last"),
        ("rows_inserted", "Rows new", rows.inserted, "in the last publication"),
        ("rows_updated", "Rows updated", rows.updated, "in the last publication"),
        ("rows_deleted", "Rows deleted", rows.deleted, "in the last publication"),
    )
    return {
        f"stats:mirror_{name}:{part}": content
        for name, label, value, description in figures
        for part, content in zip(_STAT_PARTS, (label, value, description, True), strict=True)
    }


def last_written(warehouse: Warehouse, source: OpenMirroringRelation) -> datetime | None:
    """Return the time when rows of a source were last written; None if it has no rows.

    Raises:
        DbtRuntimeError: if the source does not exist, is a view, or is in a format whose rows lie
            in no files
    """
    description = warehouse.describe(source)
    if description.layout.format == "iceberg":
        query = warehouse.sql("mirror_last_commit", table=source)
    else:
        query = warehouse.sql("mirror_last_file", table=source)
    try:
        # not as a timestamp, which would depend on the time zone of the session
        [(microseconds,)] = warehouse.query(query).rows
    except DbtRuntimeError as error:
        kind = description.layout.format or "view"
        raise DbtRuntimeError(
            f"Spark does not know when the rows of {source} ({kind}) were last written. Set "
            "`loaded_at_field` or `loaded_at_query` for this source."
        ) from error
    return None if microseconds is None else _EPOCH + timedelta(microseconds=int(microseconds))
