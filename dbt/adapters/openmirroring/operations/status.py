"""The state of the mirrored database and of its tables, as lines of text."""

from __future__ import annotations

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.operations.project_tables import Outcome, ProjectTables
from dbt.adapters.openmirroring.replicator.text_table import terminal_width


def status(tables: ProjectTables, destination: Destination) -> Outcome:
    """List the mirrored tables. Change nothing, and send no statement to Spark."""
    report, lines = destination.report()
    return Outcome((*lines, *tables.status_lines(report, terminal_width())))
