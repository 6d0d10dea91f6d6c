"""Draw the first table of docs/performance.md, as docs/performance.svg."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"

_LABEL, _WIDTH, _ROW = 330, 720, 26
# readable on light and on dark pages
_TEXT, _BAR, _LINE = "#80868b", "#009485", "#c5221f"


def ratios(page: str) -> dict[str, float]:
    """The last column of the first table of a page in Markdown, by what was run."""
    table = page.partition("\n|---")[2].partition("\n\n")[0]
    found, what = {}, ""
    for line in table.splitlines()[1:]:
        first, run, *_, ratio = (cell.strip() for cell in line.split("|")[1:-1])
        what = re.split("[:,]", first)[0] or what
        found[f"{what}: {run}"] = float(ratio)
    return found


def svg(found: dict[str, float]) -> str:
    """Horizontal bars, with a line where dbt-spark is."""
    unit = (_WIDTH - _LABEL - 60) / max(found.values())
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
            f'<text x="{_LABEL + ratio * unit + 6:.0f}" y="{y + 17}">{ratio:.2f}</text>',
        ]
    x, end = _LABEL + unit, len(found) * _ROW
    parts += [
        f'<line x1="{x:.0f}" y1="0" x2="{x:.0f}" y2="{end + 6}" stroke="{_LINE}"/>',
        f'<text x="{x:.0f}" y="{end + 22}" text-anchor="middle">dbt-spark = 1</text>',
        "</svg>\n",
    ]
    return "\n".join(parts)


if __name__ == "__main__":
    (DOCS / "performance.svg").write_text(svg(ratios((DOCS / "performance.md").read_text())))
