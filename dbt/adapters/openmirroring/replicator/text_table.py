"""Tables of text, as operations print them."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate

_GAP = "  "
_INDENT = "    "
# Python does not break a line at it, and no cell has it: it does not count as printable
_NO_BREAK = "\xa0"

# characters that dbt prints before a line of its log: the time
LOG_PREFIX = len("12:00:00  ")


def terminal_width(prefix: int = 0) -> int | None:
    """The columns of the terminal; None if the output goes elsewhere.

    Args:
        prefix: characters that are printed before each line
    """
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns - prefix


def text_table(
    rows: Sequence[Sequence[str]],
    numbers: Collection[int],
    width: int | None = None,
    paint: Mapping[int, Callable[[str], str]] | None = None,
) -> Iterator[str]:
    """Lines with aligned columns, without the columns in which no row has anything.

    Args:
        rows: the headline first, all of the same length; what does not print in them, as names
            of folders may have it, is replaced
        numbers: positions of the columns that are aligned to the right
        width: characters that fit on a line. Columns beyond it follow below each row, with their
            names. None prints whole lines
        paint: gives the cells of a column their colour, by the column's position
    """
    headline, *body = ([_printable(cell) for cell in row] for row in rows)
    columns = [i for i in range(len(headline)) if not body or any(row[i] for row in body)]
    widths = {i: max(len(row[i]) for row in (headline, *body)) for i in columns}
    ends = accumulate(widths[i] + len(_GAP) for i in columns)
    fitting = sum(width is None or end - len(_GAP) <= width for end in ends)
    beside, below = columns[: max(fitting, 1)], columns[max(fitting, 1) :]

    def aligned(row: Sequence[str], paint: Mapping[int, Callable[[str], str]]) -> str:
        return _GAP.join(
            _padding(row[i], widths[i], i in numbers).format(paint.get(i, str)(row[i]))
            for i in beside
        ).rstrip()

    yield aligned(headline, {})
    for row in body:
        yield aligned(row, paint or {})
        yield from _wrapped(((headline[i], row[i]) for i in below if row[i]), width or 0)


def _padding(cell: str, width: int, is_number: bool) -> str:
    """A template: colours have characters that take no room."""
    blanks = " " * (width - len(cell))
    return f"{blanks}{{}}" if is_number else f"{{}}{blanks}"


def _wrapped(cells: Iterator[tuple[str, str]], width: int) -> list[str]:
    """Names and cells, as many on a line as fit."""
    named = (f"{name} {cell}".replace(" ", _NO_BREAK) if name else cell for name, cell in cells)
    lines = textwrap.wrap(
        ", ".join(named),
        # a terminal may be narrower than anything that can be read
        max(width, 40),
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_on_hyphens=False,
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]


def _printable(cell: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in cell)
