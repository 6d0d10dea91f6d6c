"""A mirrored table in OneLake, as dbt's tests compare it with its model."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from azure.core.credentials import TokenCredential
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.onelake_url import STORAGE_SCOPE, OneLakeUrl
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.landing_zone.shown import shown
from dbt.adapters.openmirroring.landing_zone.staging import StagingFolder
from dbt.adapters.openmirroring.operations.replica import (
    Replica,
    ReplicaColumn,
    check_installed,
)
from dbt.adapters.openmirroring.service.monitoring import Service

if TYPE_CHECKING:
    from deltalake import DeltaTable

# of deltalake
OPTIONS = {"use_fabric_endpoint": "true"}

_FILE = "rows.parquet"

_COLOR = re.compile(r"\x1b\[[0-9;]*m")


def wait_until_applied(
    service: Service, table: TableFolder, journal: Journal, seconds: float
) -> None:
    """Wait until the service says that it has applied what was published.

    Raises:
        DbtRuntimeError: it has not within that time, or will not
    """
    times = (batch.published_at for batch in journal.batches if batch.files_written)
    last = next(times, None)
    if last is None:
        return
    published = {table.mirrored_table: datetime.fromisoformat(last)}
    if behind := service.not_applied(published, seconds):
        raise DbtRuntimeError(
            f"What was published was not applied within {seconds:g} seconds: {behind[0]}"
        )


def onelake_replica(
    place: OneLakeUrl,
    credential: TokenCredential,
    table: TableFolder,
    keys: tuple[str, ...],
    staging: StagingFolder | None,
    folder: str,
) -> Replica:
    """The mirrored table, at its present version.

    Args:
        place: the landing zone
        credential: of somebody who may read the table
        keys: its key columns
        staging: where Spark gets the rows; None if it reads OneLake itself, and has Delta
        folder: of the rows, there

    Raises:
        DbtRuntimeError: deltalake is not installed, or cannot read the table
    """
    check_installed()
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    url = place.mirrored_table(table.mirrored_table)
    token = credential.get_token(STORAGE_SCOPE).token
    try:
        delta = DeltaTable(
            quote(url, safe=":/@"), storage_options={**OPTIONS, "bearer_token": token}
        )
        version = delta.version()
        fields = delta.schema().fields
        if staging:
            _copy(delta, staging, f"{folder}/{_FILE}")
    except (DeltaError, OSError) as error:
        reason = shown(_COLOR.sub("", str(error)))
        raise DbtRuntimeError(
            f"The mirrored table {table.mirrored_table} cannot be compared: {reason}. It is read "
            "with the permission to read all OneLake data of the mirrored database."
        ) from error
    told = f"version {version} of its Delta table, with all that was published of it"
    fire_event(Note(msg=f"{table.mirrored_table} is compared as of {told}"))
    columns = tuple(ReplicaColumn(field.name, str(field.type.type)) for field in fields)
    if staging:
        return Replica(columns, keys, staging.url(folder), (_FILE,))
    return Replica(columns, keys, url, (), version)


def _copy(delta: DeltaTable, staging: StagingFolder, path: str) -> None:
    """Have the rows where Spark can read them. They pass batch by batch."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    scan = delta.scan()
    # not every pyarrow writes the types that deltalake reads into
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    fields = [
        field.with_type(plain.get(field.type, field.type)) for field in pa.schema(scan.schema)
    ]
    rows = pa.RecordBatchReader.from_stream(scan, pa.schema(fields))
    with staging.create(path) as file, pq.ParquetWriter(file, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)
