"""Tables of text, as operations print them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence


def text_table(rows: Sequence[Sequence[str]], numbers: Collection[int]) -> Iterator[str]:
    """Lines with aligned columns.

    Args:
        rows: the headline first, all of the same length; what does not print in them, as names
            of folders may have it, is replaced
        numbers: positions of the columns that are aligned to the right
    """
    printable = [[_printable(cell) for cell in row] for row in rows]
    # the last column is as long as it needs to be
    widths = [max(map(len, column)) for column in zip(*printable, strict=True)][:-1]
    for *cells, last in printable:
        aligned = (
            cell.rjust(width) if i in numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        yield "  ".join([*aligned, last]).rstrip()


def _printable(cell: str) -> str:
    return "".join(each if each.isprintable() else "?" for each in cell)
