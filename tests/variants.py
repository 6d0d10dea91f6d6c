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
    return _marked(values, count, [pytest.mark.variant])


def few(values: Iterable[Any], count: int = 1) -> list[Any]:
    """Parameters, all but the first only for `make test-faults`: unit tests show them too.

    Args:
        values: of a parameter
        count: that `make test` takes
    """
    return _marked(values, count, [pytest.mark.slow, pytest.mark.exhaustive])


def _marked(values: Iterable[Any], count: int, marks: list[pytest.MarkDecorator]) -> list[Any]:
    first, rest = (listed := list(values))[:count], listed[count:]
    others = [v if isinstance(v, tuple) else (v,) for v in rest]
    return [*first, *(pytest.param(*v, marks=marks) for v in others)]
