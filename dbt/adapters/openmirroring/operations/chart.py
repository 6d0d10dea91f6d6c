"""A bar chart of the batches of a table, for an SVG drawing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from dbt.adapters.openmirroring.landing_zone.batch import STARTS_FOLDER
from dbt.adapters.openmirroring.landing_zone.records import PastBatch
from dbt.adapters.openmirroring.operations.project_tables import utc_text

# size of the drawing; each bar takes _STEP with the gap after it, so there is room for 100 bars
WIDTH, HEIGHT = 300, 40
_STEP, _BAR = 3, 2

# the smallest visible height
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
        """The path of a line, which is as wide as a bar."""
        return f"M{self.x + _BAR // 2} {self.y:g}v{self.height:g}"


@dataclass(frozen=True)
class Bar:
    """The bar of a batch.

    Args:
        title: a line that describes the batch
    """

    title: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Chart:
    """Changes over time. Deleted rows go down from the axis, other changes go up.

    A full load takes the whole height and does not affect the scale. On its scale, changes would
    be too small to see.

    Args:
        axis: distance of the axis from the top
        bars: the bars from the first batch to the last, which is at the right edge
    """

    axis: float
    bars: tuple[Bar, ...]

    @property
    def paths(self) -> dict[str, str]:
        """The path of all pieces of a kind, by kind. It takes fewer characters than the bars."""
        paths: dict[str, str] = {}
        for bar in self.bars:
            for piece in bar.pieces:
                paths[piece.kind] = paths.get(piece.kind, "") + piece.path
        return paths

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
