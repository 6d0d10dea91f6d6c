"""The mirrored tables on this machine, as dbt's commands use them."""

from __future__ import annotations

import importlib.util
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.shown import shown
from dbt.adapters.openmirroring.replicator.text_table import terminal_width

if TYPE_CHECKING:
    from dbt.adapters.openmirroring.replicator.mirrored_table import MirroredTable
    from dbt.adapters.openmirroring.replicator.replicator import Replicator

# seconds between two looks at what another process applies
_PAUSE = 0.5


@dataclass(frozen=True)
class ReplicaColumn:
    """A column of a mirrored table.

    Args:
        type: as Spark's SQL spells it
    """

    name: str
    type: str


@dataclass(frozen=True)
class Replica:
    """A mirrored Delta table at one version.

    Args:
        folder: of the table, absolute, or its URL
        files: in it, the Parquet files that hold its rows
        version: for Spark to read the table itself; None if it reads the files, without Delta
    """

    columns: tuple[ReplicaColumn, ...]
    key_columns: tuple[str, ...]
    folder: str
    files: tuple[str, ...]
    version: int | None = None

    @classmethod
    def of(cls, table: MirroredTable) -> Replica:
        columns = [ReplicaColumn(c.name, str(c.type.type)) for c in table.columns.values()]
        return cls(tuple(columns), table.key_columns, str(table.path), tuple(table.file_names()))


@dataclass(frozen=True)
class Replication:
    """What a replication did.

    Args:
        lines: of a table
        failed: names of the tables that something is wrong with
    """

    lines: tuple[str, ...]
    failed: tuple[str, ...]


def is_installed() -> bool:
    return all(importlib.util.find_spec(name) for name in ("deltalake", "pyarrow"))


def check_installed() -> None:
    """Make sure that mirrored tables can be read.

    Raises:
        DbtRuntimeError: they cannot
    """
    if not is_installed():
        raise DbtRuntimeError(
            "Mirrored tables are read by deltalake and pyarrow: "
            "pip install 'dbt-openmirroring[replicator]'"
        )


def replicator(landing_zone: Path) -> Replicator:
    """The stand-in for the service.

    Raises:
        DbtRuntimeError: what it needs is not installed, or this is no place for it
    """
    check_installed()
    from dbt.adapters.openmirroring.replicator.replicator import Replicator

    return Replicator(landing_zone)


def applied(
    landing_zone: Path, schema: str, table: str, replicate: bool, seconds: float
) -> Replica:
    """The mirrored table, once all that was published of it is applied.

    Args:
        schema: empty for a table without a schema folder
        replicate: apply it here and now, instead of waiting for another process that does
        seconds: how long to wait for that

    Raises:
        DbtRuntimeError: the table cannot be replicated, or is not within that time
    """
    service = replicator(landing_zone)
    report = service.replicate(schema, table) if replicate else None
    if replicate and not report:
        raise DbtRuntimeError(
            f"{schema}.{table} has no folder in the landing zone: it is not mirrored"
        )
    if report and (report.error or report.waits_for):
        raise DbtRuntimeError(
            f"The mirrored table is behind what was published: {shown(report.note)}"
        )
    deadline = time.monotonic() + seconds
    while not (found := service.mirrored(schema, table)):
        if replicate or time.monotonic() >= deadline:
            raise DbtRuntimeError(
                f"What was published to {schema}.{table} was not applied within {seconds:g} "
                "seconds. `dbt run-operation mirror_replicate` applies it and says what is wrong; "
                "`replicate: true` in the profile does so by itself."
            )
        time.sleep(_PAUSE)
    return Replica.of(found)


def replicate(landing_zone: Path, prefix: int = 0) -> Replication:
    """Apply all that was published.

    Args:
        prefix: characters that are printed before each line
    """
    from dbt.adapters.openmirroring.replicator.monitoring import lines

    reports = replicator(landing_zone).scan()
    failed = [shown(report.name) for report in reports if report.error]
    return Replication(tuple(lines(reports, terminal_width(prefix))), tuple(failed))
