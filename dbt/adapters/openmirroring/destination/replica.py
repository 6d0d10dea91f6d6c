"""The mirrored tables, for dbt's commands: on this machine, and in OneLake.

deltalake and pyarrow are slow to import, and few commands need them.
"""

from __future__ import annotations

import importlib.util
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.rest import scopes
from dbt.adapters.openmirroring.text.codes import note
from dbt.adapters.openmirroring.text.shown import shown, without_colors
from dbt.adapters.openmirroring.text.table import terminal_width
from dbt.adapters.openmirroring.types.columns import TypedColumn

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential
    from deltalake import DeltaTable

    from dbt.adapters.openmirroring.landing_zone.onelake.storage import StagingFolder
    from dbt.adapters.openmirroring.replicator.replicator import Replicator

# seconds between two checks of what another process has applied
_PAUSE = 0.5

# storage options of deltalake
OPTIONS = {"use_fabric_endpoint": "true"}

_FILE = "rows.parquet"


@dataclass(frozen=True)
class Replica:
    """A mirrored Delta table at one version.

    Args:
        folder: absolute path or URL of the table's folder
        files: names of the Parquet files in the folder that hold the rows
        version: version of the Delta table for Spark to read; None if Spark reads the files, which
            does not require Delta
    """

    columns: tuple[TypedColumn, ...]
    key_columns: tuple[str, ...]
    folder: str
    files: tuple[str, ...]
    version: int | None = None


def is_installed() -> bool:
    return all(importlib.util.find_spec(name) for name in ("deltalake", "pyarrow"))


def check_installed() -> None:
    """Refuse to go on without the packages that read mirrored tables."""
    if not is_installed():
        raise DbtRuntimeError(
            "Mirrored tables are read by deltalake and pyarrow: "
            "pip install 'dbt-openmirroring[replicator]'"
        )


def _replicator(landing_zone: Path) -> Replicator:
    check_installed()
    from dbt.adapters.openmirroring.replicator.replicator import Replicator

    return Replicator(landing_zone)


def applied(landing_zone: Path, table: TableFolder, replicate: bool, seconds: float) -> Replica:
    """Return a mirrored table, after everything that was published of it is applied.

    Args:
        replicate: whether to apply the files here; False waits for another process that does
        seconds: how long to wait for the other process

    Raises:
        DbtRuntimeError: if the files cannot be applied, or are not applied within that time
    """
    schema, identifier = table.schema, table.identifier
    service = _replicator(landing_zone)
    report = service.replicate(schema, identifier) if replicate else None
    if replicate and not report:
        raise DbtRuntimeError(
            f"{schema}.{identifier} has no folder in the landing zone: it is not mirrored"
        )
    if report and (report.error or report.waits_for):
        raise DbtRuntimeError(
            f"The mirrored table is behind what was published: {shown(report.note)}"
        )
    deadline = time.monotonic() + seconds
    while not (found := service.mirrored(schema, identifier)):
        if replicate or time.monotonic() >= deadline:
            raise DbtRuntimeError(
                f"What was published to {schema}.{identifier} was not applied within {seconds:g} "
                "seconds. `dbt run-operation mirror_replicate` applies it and says what is wrong; "
                "`replicate: true` in the profile does so by itself."
            )
        time.sleep(_PAUSE)
    columns = tuple(TypedColumn(c.name, str(c.type.type)) for c in found.columns.values())
    folder = found.path.as_posix()  # Spark takes no backslash
    return Replica(columns, found.key_columns, folder, tuple(found.file_names()))


def replicate(landing_zone: Path, prefix: int = 0) -> tuple[list[str], list[str]]:
    """Apply everything that was published.

    Args:
        prefix: the number of characters that dbt prints before each line

    Returns:
        lines about the tables, and the names of those that could not be replicated
    """
    from dbt.adapters.openmirroring.replicator.monitoring import lines

    reports = _replicator(landing_zone).scan()
    failed = [shown(report.name) for report in reports if report.error]
    return list(lines(reports, terminal_width(prefix))), failed


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
    from pyarrow.lib import ArrowException

    name, url = table.mirrored_table, place.mirrored_table(table.mirrored_table)
    options = {**OPTIONS, "bearer_token": credential.get_token(scopes.STORAGE).token}
    folder = f"compared-{uuid.uuid4().hex}"
    try:
        try:
            delta = DeltaTable(quote(url, safe=":/@"), storage_options=options)
            version, fields = delta.version(), delta.schema().fields
            if staging:
                _copy(delta, staging, f"{folder}/{_FILE}", download or (lambda *_: None))
        # the scan fails in Arrow's words, e.g. if Fabric has removed a file meanwhile
        except (DeltaError, ArrowException, OSError) as error:
            raise DbtRuntimeError(
                f"The mirrored table {name} cannot be read: {shown(without_colors(error))}. The "
                "identity needs the permission to read all OneLake data of the mirrored database."
            ) from error
        note(f"Reading version {version} of the Delta table of {name}")
        columns = tuple(TypedColumn(field.name, str(field.type.type)) for field in fields)
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
