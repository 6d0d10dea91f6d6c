"""A page with the state and the history of each mirrored table."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.operations.project_tables import (
    BLOCKED,
    ELSEWHERE,
    HELD,
    NOT_PUBLISHED,
    ORPHAN,
    PUBLISHED,
    UNFINISHED,
    Outcome,
    ProjectTables,
    TableStatus,
)
from dbt.adapters.openmirroring.operations.report_page import (
    Heading,
    Page,
    TableOnPage,
    html,
)
from dbt.adapters.openmirroring.service.reports import FAILED, ServiceReport

FILE = "mirror_report.html"

# status of a mirrored database that applies published files
RUNNING = "Running"

# states of a table that only the service knows
FAILING = "failing"
BEHIND = "behind"

# the states with their colors; states that need the user's attention come first
_TONES = {
    FAILING: "bad",
    BLOCKED: "bad",
    UNFINISHED: "warn",
    HELD: "warn",
    BEHIND: "warn",
    ORPHAN: "warn",
    ELSEWHERE: "plain",
    NOT_PUBLISHED: "plain",
    PUBLISHED: "good",
}


def report(
    tables: ProjectTables, destination: Destination, heading: Heading, folder: Path
) -> Outcome:
    """Write the page. Change nothing else, and send no statement to Spark.

    Args:
        folder: the folder to write to, which is dbt's target path

    Raises:
        DbtRuntimeError: if the page cannot be written
    """
    found, lines = destination.report()
    page = report_page(tables, heading, found, " ".join(lines).strip())
    path = folder / FILE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(html(page), encoding="utf-8")
    except OSError as error:
        raise DbtRuntimeError(f"The report could not be written to {path}: {error}") from error
    count = len(page.tables)
    return Outcome((f"Report on {count:,} table{'' if count == 1 else 's'}: {path}",))


def report_page(
    tables: ProjectTables, heading: Heading, found: ServiceReport, problem: str = ""
) -> Page:
    """Return the data of the page. Tables with problems come first.

    Args:
        found: the report of the service
        problem: why the service has no report; empty if it has one
    """
    order = list(_TONES)
    on_page = [_table(status, found) for status in tables.statuses()]
    return Page(
        heading,
        datetime.now(timezone.utc),
        found.description or problem,
        found.status == RUNNING and not found.error,
        tuple(sorted(on_page, key=lambda table: (order.index(table.state), table.status.table))),
    )


def _table(status: TableStatus, found: ServiceReport) -> TableOnPage:
    applied, loss = status.applied(found), status.loss(found)
    state = status.state
    if applied.status == FAILED or loss:
        state = FAILING
    elif state == PUBLISHED and status.is_behind(found):
        state = BEHIND
    return TableOnPage(state, _TONES[state], status, applied, loss)
