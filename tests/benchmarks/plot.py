"""Draw the first table on speed in docs/contributing/guarantees.md, as docs/performance.svg."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from tests.pages import text_of

DOCS = Path(__file__).parents[2] / "docs"

_FIGURE = re.compile(r"[\d,.]+( s)?")

_LABEL, _WIDTH, _ROW = 330, 720, 26
# readable on light and on dark pages
_TEXT, _BAR, _LINE = "#80868b", "#009485", "#c5221f"


def ratios(table: str) -> dict[str, float]:
    """Return the ratio in each row of a table in Markdown, by the cells before the first figure.

    A blank cell means what the cell above it says.
    """
    header, _, *rows = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table.split("\n")
    )
    column = next(i for i, name in enumerate(header) if name.startswith("ratio"))
    # the column before the first figure that was measured
    last = max((i for i in range(column) if not _FIGURE.fullmatch(rows[0][i])), default=0)
    found, above = {}, rows[0]
    for row in rows:
        above = [cell or of_above for cell, of_above in zip(row, above, strict=True)]
        found[", ".join(above[: last + 1])] = float(row[column])
    return found


def svg(found: dict[str, float]) -> str:
    """Horizontal bars, with a line where dbt-spark is."""
    unit = (_WIDTH - _LABEL - 8) / max(found.values())
    height = len(found) * _ROW + 36
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="12" fill="{_TEXT}">'
    ]
    for i, (label, ratio) in enumerate(found.items()):
        y = i * _ROW
        parts += [
            f'<text x="{_LABEL - 8}" y="{y + 17}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{_LABEL}" y="{y + 4}" width="{ratio * unit:.0f}" height="18" '
            f'fill="{_BAR}"/>',
            f'<text x="{_LABEL + 8}" y="{y + 17}" fill="#ffffff">{ratio:.2f}</text>',
        ]
    x, end = _LABEL + unit, len(found) * _ROW
    parts += [
        f'<line x1="{x:.0f}" y1="0" x2="{x:.0f}" y2="{end + 6}" stroke="{_LINE}"/>',
        f'<text x="{x:.0f}" y="{end + 22}" text-anchor="middle">dbt-spark = 1</text>',
        "</svg>\n",
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    section = text_of(DOCS / "contributing" / "guarantees.md", "Speed")
    first_table = section[section.index("|") :].partition("\n\n")[0]
    (DOCS / "performance.svg").write_text(svg(ratios(first_table)))
