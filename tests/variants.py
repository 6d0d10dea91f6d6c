"""Parameters of tests of which some are enough for each change."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Parameters, all but the first only for `make test-all`.

    Args:
        values: of a parameter
        count: that are always taken
    """
    first, rest = (listed := list(values))[:count], listed[count:]
    others = [v if isinstance(v, tuple) else (v,) for v in rest]
    return [*first, *(pytest.param(*v, marks=pytest.mark.slow) for v in others)]


def parts(values: Iterable[Any], count: int) -> list[Any]:
    """Two parameters: so many of the values, and for `make test-all` the others."""
    listed = list(values)
    others = pytest.param(listed[count:], marks=pytest.mark.slow, id="others")
    return [pytest.param(listed[:count], id="some"), others]
