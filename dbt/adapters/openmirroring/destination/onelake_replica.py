"""A mirrored table in OneLake that is compared with its model."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import quote

from azure.core.credentials import TokenCredential
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.destination.replica import (
    Replica,
    ReplicaColumn,
    check_installed,
)
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.onelake.staging import StagingFolder
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.rest import scopes
from dbt.adapters.openmirroring.service.monitoring import Service
from dbt.adapters.openmirroring.text.shown import shown, without_colors

if TYPE_CHECKING:
    from deltalake import DeltaTable

# storage options of deltalake
OPTIONS = {"use_fabric_endpoint": "true"}

_FILE = "rows.parquet"


class OneLakeReplica:
    """A mirrored table in OneLake.

    Args:
        place: the landing zone
        credential: credential of an identity that may read the table
        table: the table folder
        staging: where dbt copies the rows for Spark; None if Spark reads the Delta table itself
        download: called with the copied rows and bytes, if anybody wants to know
    """

    def __init__(
        self,
        place: OneLakeUrl,
        credential: TokenCredential,
        table: TableFolder,
        staging: StagingFolder | None,
        download: Callable[[int, int], None] | None = None,
    ) -> None:
        self._place = place
        self._credential = credential
        self._table = table
        self._staging = staging
        self._download = download or (lambda *_: None)
        self._folder = f"compared-{uuid.uuid4().hex}"

    def applied(self, journal: Journal | None, service: Service, seconds: float) -> Replica:
        """Return the latest version of the table, after everything that was published is applied.

        Args:
            journal: the journal of the table; None if it has none
            service: reports which files are applied
            seconds: seconds to wait until they are applied

        Raises:
            DbtRuntimeError: if the table was never published, the files are not applied within
                that time, or deltalake cannot read the table
        """
        if not journal:
            raise DbtRuntimeError(
                f"{self._table} was not published yet, so there is no mirrored table to compare"
            )
        check_installed()
        self._wait(journal, service, seconds)
        return self._replica(journal.batch.definition.key_columns)

    def clear(self) -> None:
        """Remove the copied rows if possible."""
        if self._staging:
            self._staging.clear(self._folder)

    def _wait(self, journal: Journal, service: Service, seconds: float) -> None:
        times = (batch.published_at for batch in journal.batches if batch.files_written)
        last = next(times, None)
        if last is None:
            return
        published = {self._table.mirrored_table: datetime.fromisoformat(last)}
        if behind := service.not_applied(published, seconds):
            raise DbtRuntimeError(
                f"The last publication was not applied within {seconds:g} seconds: {behind[0]}"
            )

    def _replica(self, keys: tuple[str, ...]) -> Replica:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        table = self._table.mirrored_table
        url = self._place.mirrored_table(table)
        options = {**OPTIONS, "bearer_token": self._credential.get_token(scopes.STORAGE).token}
        try:
            delta = DeltaTable(quote(url, safe=":/@"), storage_options=options)
            version, fields = delta.version(), delta.schema().fields
            if self._staging:
                _copy(delta, self._staging, f"{self._folder}/{_FILE}", self._download)
        except (DeltaError, OSError) as error:
            raise DbtRuntimeError(
                f"The mirrored table {table} cannot be read: "
                f"{shown(without_colors(error))}. The identity needs the permission to read "
                "all OneLake data of the mirrored database."
            ) from error
        fire_event(Note(msg=f"Reading version {version} of the Delta table of {table}"))
        columns = tuple(ReplicaColumn(field.name, str(field.type.type)) for field in fields)
        if self._staging:
            return Replica(columns, keys, self._staging.url(self._folder), (_FILE,))
        return Replica(columns, keys, url, (), version)


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
