"""Calls that Windows refuses while another program has a file open."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

# seconds between the attempts
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


def patiently(call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Make a call again while another process holds the file, which only Windows refuses.

    A virus scanner or OneDrive may hold it. Windows then says that a permission is missing.
    """
    for seconds in _PAUSES if sys.platform == "win32" else ():
        try:
            return call(*args, **options)
        except PermissionError:
            time.sleep(seconds)
    return call(*args, **options)
