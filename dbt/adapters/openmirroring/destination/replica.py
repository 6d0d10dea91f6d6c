"""The mirrored tables on this machine, for dbt's commands."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.text.shown import shown
from dbt.adapters.openmirroring.text.table import terminal_width

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.replicator.replicator import Replicator

# seconds between two checks of what another process has applied
_PAUSE = 0.5


@dataclass(frozen=True)
class ReplicaColumn:
    """A column of a mirrored table.

    Args:
        type: name of the type, as Spark SQL accepts it
    """

    name: str
    type: str


@dataclass(frozen=True)
class Replica:
    """A mirrored Delta table at one version.

    Args:
        folder: absolute path or URL of the table's folder
        files: names of the Parquet files in the folder that hold the rows
        version: version of the Delta table for Spark to read; None if Spark reads the files, which
            does not require Delta
    """

    columns: tuple[ReplicaColumn, ...]
    key_columns: tuple[str, ...]
    folder: str
    files: tuple[str, ...]
    version: int | None = None


def is_installed() -> bool:
    return all(importlib.util.find_spec(name) for name in ("deltalake", "pyarrow"))


def check_installed() -> None:
    """Check that mirrored tables can be read.

    Raises:
        DbtRuntimeError: if deltalake or pyarrow is not installed
    """
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
    columns = tuple(ReplicaColumn(c.name, str(c.type.type)) for c in found.columns.values())
    return Replica(columns, found.key_columns, str(found.path), tuple(found.file_names()))


def replicate(landing_zone: Path, prefix: int = 0) -> tuple[list[str], list[str]]:
    """Apply everything that was published.

    Args:
        prefix: the number of characters that dbt prints before each line

    Returns:
        lines about the tables, and the names of those that could not be replicated

    Raises:
        DbtRuntimeError: if a package is missing, or the path of the landing zone does not end in
            Files/LandingZone
    """
    from dbt.adapters.openmirroring.replicator.monitoring import lines

    reports = _replicator(landing_zone).scan()
    failed = [shown(report.name) for report in reports if report.error]
    return list(lines(reports, terminal_width(prefix))), failed
