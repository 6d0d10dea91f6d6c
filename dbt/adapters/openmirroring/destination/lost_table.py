"""Tables that were published, but whose rows Fabric has lost."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from dbt.adapters.openmirroring.landing_zone.batch import STARTS_FOLDER
from dbt.adapters.openmirroring.landing_zone.inventory import TableFiles
from dbt.adapters.openmirroring.landing_zone.layout import DEFAULT_SCHEMA, TableFolder
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.service.monitoring import REBUILD_TIMEOUT
from dbt.adapters.openmirroring.service.reports import ServiceError, ServiceReport

# how long after its first load a table may be missing in the reports of the service
NEW = timedelta(seconds=REBUILD_TIMEOUT)


def loss(table: TableFolder, journal: Journal, files: TableFiles, report: ServiceReport) -> str:
    """Return how Fabric has lost rows of a table; empty if it has not, as far as one can know.

    A table that is not listed may be new, or Fabric may not have begun with it. But if Fabric has
    applied and moved some of its files, then it had the table, and has it no more: a change set
    would be applied to nothing. If all files since the last full load are still there, Fabric
    can build the table from them.
    """
    if _is_listed(table, report) or files.has_all_since_load(journal):
        return ""
    loads = (b.published_at for b in journal.batches if b.publication in STARTS_FOLDER)
    first_load = next(loads, None)  # of the present table folder
    if first_load and datetime.now(timezone.utc) - datetime.fromisoformat(first_load) < NEW:
        return ""
    return (
        f"Fabric no longer mirrors {table.mirrored_table}, and has moved away files that it needs "
        "to begin again. The mirrored database was stopped and started, or created anew, or "
        "somebody has dropped the table there."
    )


def refuse_lost(storage: Storage, table: TableFolder, report: ServiceReport) -> None:
    """Check, before changes are published, that Fabric has the rows that they change.

    Raises:
        ServiceError: if Fabric has lost them
    """
    journal = None if _is_listed(table, report) else Journal.read(storage, table.journal)
    if journal is None:
        return
    found = loss(table, journal, TableFiles.of(storage, table), report)
    if found:
        raise ServiceError(
            f"{found} Changes would be applied to nothing. Nothing was changed. To publish a full "
            f"load of the rows that Spark has ({journal.batch.table_rows:,} were published last): "
            f"dbt run-operation mirror_rebuild --args '{{table: {table}}}'"
        )


def _is_listed(table: TableFolder, report: ServiceReport) -> bool:
    names = {name.casefold() for name in report.tables}
    if not table.schema:  # the service may name the default schema of the mirrored database
        names |= {f"{DEFAULT_SCHEMA}.{name.rpartition('.')[2]}" for name in names}
    return table.mirrored_table.casefold() in names
