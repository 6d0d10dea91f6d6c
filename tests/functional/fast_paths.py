"""Ways to do less for the same result, each of which can be forced off."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from dbt.adapters.openmirroring.node import decide, next_rows, stage
from dbt.adapters.openmirroring.node.snapshot import snapshot

SMALL = "small tables"
# the functions that find whether a way can be taken: their name, and the modules that call them
FUNCTIONS: dict[str, tuple[str, tuple[ModuleType, ...]]] = {
    "identical files left out": ("same_files", (decide,)),
    "ready files linked as a load": ("ready_files", (stage,)),
    "unchanged files linked": ("can_keep_files", (next_rows,)),
    "touched rows": ("can_merge", (next_rows,)),
    "ranges of keys": ("key_ranges", (next_rows, snapshot)),
}
OFF = (*FUNCTIONS, SMALL)


def take_tables_for_large(project: Path) -> None:
    """Let tables of few rows be published as those of many are."""
    (project / "macros").mkdir(exist_ok=True)
    (project / "macros" / "size.sql").write_text(
        "{% macro openmirroring__mirror_is_small(bytes, rows) %}{{ return(false) }}{% endmacro %}"
    )


def _find(nothing: object, *_: object) -> object:
    return nothing


@contextmanager
def without(project: Path, paths: Collection[str]) -> Iterator[None]:
    """Force fast paths off in a project."""
    with pytest.MonkeyPatch.context() as patched:
        for path in paths:
            if path == SMALL:
                take_tables_for_large(project)
                continue
            name, modules = FUNCTIONS[path]
            nothing = () if path == "ranges of keys" else None
            for module in modules:
                patched.setattr(module, name, partial(_find, nothing))
        yield
