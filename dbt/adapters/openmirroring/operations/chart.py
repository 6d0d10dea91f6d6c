"""The batches of a table as bars, to be drawn as SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from dbt.adapters.openmirroring.landing_zone.batch import STARTS_FOLDER
from dbt.adapters.openmirroring.landing_zone.records import PastBatch
from dbt.adapters.openmirroring.operations.project_tables import utc_text

# of the drawing; a bar and the gap after it have 3, so there is room for 100
WIDTH, HEIGHT = 300, 40
_STEP, _BAR = 3, 2

# the least that can be seen
_LEAST = 1.5


@dataclass(frozen=True)
class Piece:
    """A rectangle of a bar.

    Args:
        kind: `inserted`, `updated`, `deleted`, `unchanged`, `initial` or `rebuild`
    """

    kind: str
    x: int
    y: float
    height: float

    @property
    def path(self) -> str:
        return f"M{self.x} {self.y:g}h{_BAR}v{self.height:g}h-{_BAR}z"


@dataclass(frozen=True)
class Bar:
    """A batch.

    Args:
        title: what it has done, in a line
    """

    title: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Chart:
    """Changes over time: deleted rows go down from the axis, other changes go up.

    A load has the whole height: beside one, no changes could be seen.

    Args:
        axis: its distance from the top
        bars: the first batch first; the last one is at the right edge
    """

    axis: float
    bars: tuple[Bar, ...]

    @classmethod
    def of(cls, batches: Sequence[PastBatch]) -> Chart:
        """Draw batches, of which the last comes first; a hundred at most."""
        drawn = batches[: WIDTH // _STEP]
        changes = [batch.rows for batch in drawn if batch.publication not in STARTS_FOLDER]
        up = max((rows.inserted + rows.updated for rows in changes), default=0)
        down = max((rows.deleted for rows in changes), default=0)
        # both sides keep room for their smallest pieces
        axis = HEIGHT - (min(HEIGHT / 2, max(HEIGHT * down / (up + down), 3)) if down else 1)
        scale = min(axis / up if up else axis, (HEIGHT - axis) / down if down else axis)
        bars = [
            Bar(_title(batch), tuple(_pieces(batch, WIDTH - i * _STEP - _BAR, axis, scale)))
            for i, batch in enumerate(drawn)
        ]
        return cls(round(axis, 1), tuple(reversed(bars)))


def _pieces(batch: PastBatch, x: int, axis: float, scale: float) -> Iterator[Piece]:
    rows = batch.rows
    if batch.publication in STARTS_FOLDER:
        yield Piece(batch.publication, x, 0, HEIGHT)
        return
    if not rows:
        yield Piece("unchanged", x, round(axis - 1, 1), 1)
        return
    top = axis
    for kind, count in (("inserted", rows.inserted), ("updated", rows.updated)):
        if count:
            height = max(count * scale, _LEAST)
            top -= height
            yield Piece(kind, x, round(max(top, 0), 1), round(height, 1))
    if rows.deleted:
        yield Piece("deleted", x, round(axis, 1), round(max(rows.deleted * scale, _LEAST), 1))


def _title(batch: PastBatch) -> str:
    rows = batch.rows
    time = utc_text(datetime.fromisoformat(batch.published_at))
    changes = f"+{rows.inserted:,} ~{rows.updated:,} -{rows.deleted:,}"
    return f"{time} · {batch.publication} · {changes}"
