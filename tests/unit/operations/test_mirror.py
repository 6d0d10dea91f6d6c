"""What somebody sees who looks at a run."""

from __future__ import annotations

import io

import pytest

from dbt.adapters.openmirroring.operations.mirror import _show_upload

MB = 2**20


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_upload_is_a_line_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)

    for done in (8, 1024):
        _show_upload(done * MB, 1024 * MB)

    first, last = terminal.getvalue().split("\r")[1:]
    assert first == "8 of 1,024 MB uploaded to OneLake"
    assert last == "1,024 of 1,024 MB uploaded to OneLake\n"


@pytest.mark.parametrize(("stream", "total"), [(Terminal, 8), (io.StringIO, 1024)])
def test_nothing_is_shown_of_a_short_one_nor_in_a_log(
    monkeypatch: pytest.MonkeyPatch, stream: type[io.StringIO], total: int
) -> None:
    shown = stream()
    monkeypatch.setattr("sys.stderr", shown)

    _show_upload(4 * MB, total * MB)

    assert not shown.getvalue()
