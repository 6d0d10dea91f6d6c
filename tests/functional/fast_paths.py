"""Ways to do less for the same result, each of which can be forced off."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.node import next_rows, planning, stage
from dbt.adapters.openmirroring.node.snapshot import swap


def take_tables_for_large(project: Path) -> None:
    """Let tables of few rows be published as those of many are."""
    (project / "macros").mkdir(exist_ok=True)
    (project / "macros" / "size.sql").write_text(
        "{% macro openmirroring__mirror_is_small(bytes, rows) %}{{ return(false) }}{% endmacro %}"
    )


def _never(*_: object) -> None:
    return None


def _compare_identical_files(project: Path, patched: pytest.MonkeyPatch) -> None:
    patched.setattr(planning, "same_files", _never)


def _write_loads_again(project: Path, patched: pytest.MonkeyPatch) -> None:
    patched.setattr(stage, "ready_files", _never)


def _link_no_files(project: Path, patched: pytest.MonkeyPatch) -> None:
    patched.setattr(next_rows, "can_keep_files", _never)


def _look_at_all_rows(project: Path, patched: pytest.MonkeyPatch) -> None:
    patched.setattr(next_rows, "can_merge", _never)


def _know_no_ranges(project: Path, patched: pytest.MonkeyPatch) -> None:
    for module in (next_rows, swap):
        patched.setattr(module, "key_ranges", lambda *_: ())


def _take_tables_for_large(project: Path, patched: pytest.MonkeyPatch) -> None:
    take_tables_for_large(project)


OFF: dict[str, Callable[[Path, pytest.MonkeyPatch], None]] = {
    "identical files left out": _compare_identical_files,
    "ready files linked as a load": _write_loads_again,
    "unchanged files linked": _link_no_files,
    "touched rows": _look_at_all_rows,
    "ranges of keys": _know_no_ranges,
    "small tables": _take_tables_for_large,
}


@contextmanager
def without(project: Path, paths: Collection[str]) -> Iterator[None]:
    """Force fast paths off in a project."""
    with pytest.MonkeyPatch.context() as patched:
        for path in paths:
            OFF[path](project, patched)
        yield
