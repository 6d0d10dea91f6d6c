"""A console shows a text that it cannot encode."""

from __future__ import annotations

import io
import sys

import pytest

from dbt.adapters.openmirroring.text.table import print_any_text


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("ascii", "gr??e initial +3 - #1"), ("utf-8", "größe initial +3 · #1")],
)
def test_a_console_shows_what_its_encoding_has(
    encoding: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, encoding))

    print_any_text()
    print("größe initial +3 · #1", end="", flush=True)

    assert content.getvalue().decode(encoding) == shown


def test_a_choice_of_the_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    content = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, "ascii", "backslashreplace"))

    print_any_text()
    print("größe", end="", flush=True)

    assert content.getvalue() == rb"gr\xf6\xdfe"
