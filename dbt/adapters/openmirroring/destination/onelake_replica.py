"""A mirrored table in OneLake that is compared with its model."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

from azure.core.credentials import TokenCredential
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.destination.replica import Replica, ReplicaColumn
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.onelake.storage import StagingFolder
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.rest import scopes
from dbt.adapters.openmirroring.text.shown import shown, without_colors

if TYPE_CHECKING:
    from deltalake import DeltaTable

# storage options of deltalake
OPTIONS = {"use_fabric_endpoint": "true"}

_FILE = "rows.parquet"


@contextmanager
def onelake_replica(
    place: OneLakeUrl,
    credential: TokenCredential,
    table: TableFolder,
    keys: tuple[str, ...],
    staging: StagingFolder | None,
    download: Callable[[int, int], None] | None = None,
) -> Iterator[Replica]:
    """Let Spark read the latest version of a mirrored table in OneLake.

    Args:
        credential: the credential of an identity that may read the table
        keys: the key columns of the table
        staging: where dbt copies the rows for Spark; None if Spark reads the Delta table itself
        download: called with the copied rows and bytes, if anybody wants to know

    Raises:
        DbtRuntimeError: if deltalake cannot read the table
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    name, url = table.mirrored_table, place.mirrored_table(table.mirrored_table)
    options = {**OPTIONS, "bearer_token": credential.get_token(scopes.STORAGE).token}
    folder = f"compared-{uuid.uuid4().hex}"
    try:
        try:
            delta = DeltaTable(quote(url, safe=":/@"), storage_options=options)
            version, fields = delta.version(), delta.schema().fields
            if staging:
                _copy(delta, staging, f"{folder}/{_FILE}", download or (lambda *_: None))
        except (DeltaError, OSError) as error:
            raise DbtRuntimeError(
                f"The mirrored table {name} cannot be read: {shown(without_colors(error))}. The "
                "identity needs the permission to read all OneLake data of the mirrored database."
            ) from error
        fire_event(Note(msg=f"Reading version {version} of the Delta table of {name}"))
        columns = tuple(ReplicaColumn(field.name, str(field.type.type)) for field in fields)
        if staging:
            yield Replica(columns, keys, staging.url(folder), (_FILE,))
        else:
            yield Replica(columns, keys, url, (), version)
    finally:
        if staging:
            staging.clear(folder)


def _copy(
    delta: DeltaTable, staging: StagingFolder, path: str, download: Callable[[int, int], None]
) -> None:
    """Copy the rows to a Parquet file that Spark can read, one record batch at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    scan = delta.scan()
    # deltalake reads view types, which some versions of pyarrow cannot write
    plain = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
    fields = [
        field.with_type(plain.get(field.type, field.type)) for field in pa.schema(scan.schema)
    ]
    rows = pa.RecordBatchReader.from_stream(scan, pa.schema(fields))
    with staging.create(path) as file, pq.ParquetWriter(file, rows.schema) as writer:
        copied = 0
        for batch in rows:
            writer.write_batch(batch)
            copied += len(batch)
            download(copied, file.tell())
