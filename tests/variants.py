"""Parameters of tests of which some are enough for `make test`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Parameters, all but the first marked as variants.

    Args:
        values: of a parameter
        count: that `make test` takes
    """
    first, rest = (listed := list(values))[:count], listed[count:]
    variants = [v if isinstance(v, tuple) else (v,) for v in rest]
    return [*first, *(pytest.param(*v, marks=pytest.mark.variant) for v in variants)]
