"""How tables look, on terminals of several widths and in a file."""

from __future__ import annotations

import io

import pytest

from dbt.adapters.openmirroring.text.table import terminal_width, text_table

ROWS = [
    ("mirrored table", "state", "rows", "published (UTC)", "changes", ""),
    ("sales.orders", "published", "1,998", "2026-11-23 22:55:52", "+20 ~0 -0", ""),
    ("sales.regions", "held", "", "", "", "because not_null_regions_name failed"),
]


def test_text_is_aligned() -> None:
    rows = [("name", "n", ""), ("a", "10", "a note"), ("longer", "1", "")]

    assert list(text_table(rows, numbers=(1,))) == [
        "name     n",
        "a       10  a note",
        "longer   1",
    ]


def test_a_column_in_which_no_row_has_anything_is_left_out() -> None:
    rows = [("name", "pending", "n"), ("a", "", "1"), ("b", "", "20")]

    assert list(text_table(rows, numbers=(2,))) == ["name   n", "a      1", "b     20"]


def test_columns_that_do_not_fit_follow_below_their_row_with_their_names() -> None:
    assert list(text_table(ROWS, (2,), width=50)) == [
        "mirrored table  state       rows",
        "sales.orders    published  1,998",
        "    published (UTC) 2026-11-23 22:55:52,",
        "    changes +20 ~0 -0",
        "sales.regions   held",
        "    because not_null_regions_name failed",
    ]


@pytest.mark.parametrize("width", [None, 200])
def test_a_table_that_fits_has_a_line_for_each_row(width: int | None) -> None:
    assert list(text_table(ROWS, (2,), width)) == [
        "mirrored table  state       rows  published (UTC)      changes",
        "sales.orders    published  1,998  2026-11-23 22:55:52  +20 ~0 -0",
        "sales.regions   held"
        "                                              because not_null_regions_name failed",
    ]


@pytest.mark.parametrize("width", [60, 80, 100, 140])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    assert max(map(len, text_table(ROWS, (2,), width))) <= width


@pytest.mark.parametrize("width", [1, 20])
def test_nothing_is_lost_in_a_terminal_that_is_too_narrow(width: int) -> None:
    text = " ".join(" ".join(text_table(ROWS, (2,), width)).split())

    assert all(cell in text for row in ROWS[1:] for cell in row)


def test_colours_do_not_move_the_columns() -> None:
    paint = {1: lambda state: f"\x1b[32m{state}\x1b[0m"}

    painted = list(text_table(ROWS, (2,), None, paint))

    assert "\x1b[32mheld\x1b[0m" in painted[2]
    plain = [line.replace("\x1b[32m", "").replace("\x1b[0m", "") for line in painted]
    assert plain == list(text_table(ROWS, (2,)))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_table_is_as_wide_as_the_terminal_less_what_is_printed_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", Terminal())

    assert (terminal_width(), terminal_width(10)) == (80, 70)


def test_lines_are_whole_where_no_terminal_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", io.StringIO())

    assert terminal_width() is None
