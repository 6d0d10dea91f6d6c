"""Tables of text, which operations print, and the console on which they are shown."""

from __future__ import annotations

import codecs
import io
import shutil
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate

from dbt.adapters.openmirroring.text.shown import printable

_GAP = "  "
_INDENT = "    "
# `textwrap` does not break lines at it, and no cell contains it, because it is not printable
_NO_BREAK = "\xa0"

# the name of what replaces the characters
_REPLACE = "openmirroring.replace"

# substitutes for characters of this adapter's own texts
_INSTEAD = {"·": "-"}

# characters of the time that dbt prints before each line of its log
LOG_PREFIX = len("12:00:00  ")


def terminal_width(prefix: int = 0) -> int | None:
    """Return the width of the terminal in characters, or None if stdout is no terminal.

    Args:
        prefix: the number of characters that are printed before each line
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
    """Format rows as lines with aligned columns, without empty columns.

    Args:
        rows: the headline and the rows, all of the same length. Characters that are not printable,
            which names of folders may contain, are replaced
        numbers: the positions of the columns that are aligned to the right
        width: the maximum characters of a line; None for no limit. Columns that do not fit follow
            below each row, with their names
        paint: by column position, a function that adds colour to a cell
    """
    headline, *body = ([printable(cell) for cell in row] for row in rows)
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
    """Return a format string that pads a cell.

    Padding the coloured cell would be wrong, because the characters of a colour have no width.
    """
    blanks = " " * (width - len(cell))
    return f"{blanks}{{}}" if is_number else f"{{}}{blanks}"


def _wrapped(cells: Iterator[tuple[str, str]], width: int) -> list[str]:
    """Return lines with names and cells, as many on each line as fit."""
    named = (f"{name} {cell}".replace(" ", _NO_BREAK) if name else cell for name, cell in cells)
    lines = textwrap.wrap(
        ", ".join(named),
        # a terminal may be too narrow for readable text
        max(width, 40),
        initial_indent=_INDENT,
        subsequent_indent=_INDENT,
        break_on_hyphens=False,
    )
    return [line.replace(_NO_BREAK, " ") for line in lines]


def print_any_text() -> None:
    """Let the console show other characters for those that its encoding lacks.

    In a console with ASCII, dbt's logger would print a traceback instead of a line with `·`, or
    with the name of a table that has an umlaut.
    """
    codecs.register_error(_REPLACE, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors=_REPLACE)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(_INSTEAD.get(each, "?") for each in found), error.end
