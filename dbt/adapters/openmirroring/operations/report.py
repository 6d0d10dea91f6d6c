"""A page with the state and the history of each mirrored table, and its rendering as HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from dbt_common.exceptions import DbtRuntimeError
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from dbt.adapters.openmirroring.destination.destination import Destination
from dbt.adapters.openmirroring.landing_zone.batch import STARTS_FOLDER
from dbt.adapters.openmirroring.landing_zone.records import PastBatch
from dbt.adapters.openmirroring.operations.project_tables import (
    Outcome,
    ProjectTables,
    TableStatus,
    utc_text,
)
from dbt.adapters.openmirroring.service.reports import FAILED, ServiceReport
from dbt.adapters.openmirroring.text.shown import shown

# the states with their colors; states that need the user's attention come first. Only the service
# knows of a table that is failing or behind
_TONES = {
    "failing": "bad",
    "blocked": "bad",
    "missing": "bad",
    "unfinished": "warn",
    "held": "warn",
    "behind": "warn",
    "orphan": "warn",
    "elsewhere": "plain",
    "not published": "plain",
    "published": "good",
}

# A page with more batches has no titles at the bars of its charts, and lists only the last batches
# of each table, so that a browser opens it and it can be mailed.
_MANY_BATCHES = 3_000
_LISTED = 5

# size of the drawing; each bar takes _STEP with the gap after it, so there is room for 100 bars
WIDTH, HEIGHT = 300, 40
_STEP = 3

# the smallest visible height
_LEAST = 1.5


def report(
    tables: ProjectTables, destination: Destination, heading: Heading, folder: Path
) -> Outcome:
    """Write the page to a folder, which is dbt's target path.

    Raises:
        DbtRuntimeError: if the page cannot be written
    """
    page = report_page(tables, heading, *destination.report())
    path = folder / "mirror_report.html"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(html(page), encoding="utf-8")
    except OSError as error:
        raise DbtRuntimeError(f"The report could not be written to {path}: {error}") from error
    count = len(page.tables)
    return Outcome((f"Report on {count:,} table{'' if count == 1 else 's'}: {path}",))


def report_page(
    tables: ProjectTables, heading: Heading, service: ServiceReport, problem: str = ""
) -> Page:
    """Return the data of the page. Tables with problems come first.

    Args:
        problem: why the service has no report; empty if it has one
    """
    order = list(_TONES)
    on_page = [TableOnPage(_state(status), status) for status in tables.statuses(service)]
    return Page(
        heading,
        datetime.now(timezone.utc),
        service.description or problem,
        service.status == "Running" and not service.error,
        tuple(sorted(on_page, key=lambda table: (order.index(table.state), table.status.table))),
    )


@dataclass(frozen=True)
class Heading:
    """The names of the project and its target, and the landing zone as the profile names it."""

    project: str
    target: str
    landing_zone: str


@dataclass(frozen=True)
class Chart:
    """Changes over time. Deleted rows go down from the axis, other changes go up.

    A full load takes the whole height and does not affect the scale. On its scale, changes would
    be too small to see.

    Args:
        axis: distance of the axis from the top
        paths: the path of the vertical lines of each kind of change: `inserted`, `updated`,
            `deleted`, `unchanged`, `initial` or `rebuild`
        titles: for each bar its place and a line that describes its batch. The last batch is at
            the right edge
    """

    axis: float
    paths: Mapping[str, str]
    titles: Sequence[tuple[int, str]]

    @classmethod
    def of(cls, batches: Sequence[PastBatch]) -> Chart:
        """Draw the last hundred batches. The last batch must come first in `batches`."""
        drawn = batches[: WIDTH // _STEP]
        changes = [batch.rows for batch in drawn if batch.publication not in STARTS_FOLDER]
        up = max((rows.inserted + rows.updated for rows in changes), default=0)
        down = max((rows.deleted for rows in changes), default=0)
        # each side of the axis needs room for its smallest pieces
        axis = HEIGHT - (min(HEIGHT / 2, max(HEIGHT * down / (up + down), 3)) if down else 1)
        scale = min(axis / up if up else axis, (HEIGHT - axis) / down if down else axis)
        paths: dict[str, str] = {}
        titles = []
        for x, batch in zip(range(WIDTH - 1, 0, -_STEP), drawn, strict=False):
            titles.append((x, _title(batch)))
            for kind, y, height in _pieces(batch, axis, scale):
                paths[kind] = paths.get(kind, "") + f"M{x} {round(y, 1):g}v{round(height, 1):g}"
        return cls(round(axis, 1), paths, titles[::-1])


def _pieces(batch: PastBatch, axis: float, scale: float) -> Iterator[tuple[str, float, float]]:
    """Yield the pieces of a bar: kind, distance from the top, and height."""
    rows = batch.rows
    if batch.publication in STARTS_FOLDER:
        yield batch.publication, 0, HEIGHT
        return
    if not rows:
        yield "unchanged", axis - 1, 1
        return
    top = axis
    for kind, count in (("inserted", rows.inserted), ("updated", rows.updated)):
        if count:
            height = max(count * scale, _LEAST)
            top -= height
            yield kind, max(top, 0), height
    if rows.deleted:
        yield "deleted", axis, max(rows.deleted * scale, _LEAST)


def _title(batch: PastBatch) -> str:
    return f"{_time(batch.published_at)} · {batch.publication} · {_changes(batch)}"


def _changes(batch: PastBatch) -> str:
    rows = batch.rows
    return f"+{rows.inserted:,} ~{rows.updated:,} -{rows.deleted:,}"


@dataclass(frozen=True)
class TableOnPage:
    """A table on the page.

    Args:
        state: one word for the most important fact about the table
    """

    state: str
    status: TableStatus

    @property
    def tone(self) -> str:
        """The color of the state: `bad`, `warn`, `plain` or `good`."""
        return _TONES[self.state]

    @property
    def notes(self) -> list[str]:
        status, pending = self.status, self.status.pending
        unfinished = f"pending: {pending.batch.summary}" if pending else ""
        return list(filter(None, (status.note, unfinished, status.applied.error, status.loss)))

    @property
    def batches(self) -> tuple[PastBatch, ...]:
        return self.status.journal.batches if self.status.journal else ()

    @property
    def last(self) -> str:
        """The changes of the last batch, as text."""
        batch = self.batches[0]
        if batch.publication in STARTS_FOLDER:
            return f"{batch.publication} +{batch.rows.inserted:,}"
        return _changes(batch) if batch.rows else batch.publication

    @cached_property
    def chart(self) -> Chart:
        return Chart.of(self.batches)


def _state(status: TableStatus) -> str:
    if status.applied.status == FAILED or status.loss:
        return "failing"
    return "behind" if status.state == "published" and status.is_behind else status.state


@dataclass(frozen=True)
class Page:
    """All data of the page.

    Args:
        written_at: time in UTC
        database: the state of the mirrored database, or why it is unknown; empty if no service
            reports anything
        is_running: whether the mirrored database applies published files
        tables: in the order of the page
    """

    heading: Heading
    written_at: datetime
    database: str
    is_running: bool
    tables: tuple[TableOnPage, ...]

    @property
    def states(self) -> Counter[tuple[str, str]]:
        """The number of tables for each state and its tone, in the order of the page."""
        return Counter((table.state, table.tone) for table in self.tables)

    @property
    def listed(self) -> int | None:
        """The number of batches to list of each table; None for all."""
        count = sum(len(table.batches) for table in self.tables)
        return _LISTED if count > _MANY_BATCHES else None

    @property
    def rows(self) -> int:
        return sum(table.batches[0].table_rows for table in self.tables if table.batches)

    @property
    def last_published_at(self) -> str:
        """The time of the last publication in ISO 8601; empty if nothing was published."""
        return max((t.batches[0].published_at for t in self.tables if t.batches), default="")


def html(page: Page) -> str:
    """Return the page as HTML. It loads no other files and has no script."""
    environment = Environment(
        autoescape=True,
        # names and texts come from records that other people can write
        finalize=_fit,
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(count="{:,}".format, size=_size, time=_time)
    source = resources.files(__package__).joinpath("report.html").read_text(encoding="utf-8")
    template = environment.from_string(source)
    return template.render(page=page, width=WIDTH, height=HEIGHT)


def _fit(value: Any) -> Any:
    return value if isinstance(value, (Markup, int, float)) else shown(value)


def _size(number: int) -> str:
    """Return a number of bytes as text, in the unit that leaves the fewest digits."""
    if number < 1000:
        return f"{number} B"
    size = float(number)
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 999.95:
            return f"{size:,.1f} {unit}"
    return f"{size / 1000:,.1f} TB"


def _time(time: datetime | str) -> str:
    return utc_text(datetime.fromisoformat(time) if isinstance(time, str) else time)
