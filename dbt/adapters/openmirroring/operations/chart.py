"""A bar chart of the batches of a table, for an SVG drawing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from dbt.adapters.openmirroring.landing_zone.batch import STARTS_FOLDER
from dbt.adapters.openmirroring.landing_zone.records import PastBatch
from dbt.adapters.openmirroring.operations.project_tables import utc_text

# size of the drawing; each bar takes _STEP with the gap after it, so there is room for 100 bars
WIDTH, HEIGHT = 300, 40
_STEP = 3

# the smallest visible height
_LEAST = 1.5


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
    rows = batch.rows
    time = utc_text(datetime.fromisoformat(batch.published_at))
    changes = f"+{rows.inserted:,} ~{rows.updated:,} -{rows.deleted:,}"
    return f"{time} · {batch.publication} · {changes}"
