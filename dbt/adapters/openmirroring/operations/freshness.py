"""When the rows of a source were last written, for `dbt source freshness`."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


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
        # not as a timestamp, which would depend on the time zone of this process
        [(microseconds,)] = warehouse.query(query).rows
    except DbtRuntimeError as error:
        kind = description.layout.format or "view"
        raise DbtRuntimeError(
            f"Spark does not know when the rows of {source} ({kind}) were last written. Set "
            "`loaded_at_field` or `loaded_at_query` for this source."
        ) from error
    return None if microseconds is None else _EPOCH + timedelta(microseconds=int(microseconds))
