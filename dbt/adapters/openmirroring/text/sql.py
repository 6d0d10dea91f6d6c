"""Names and conditions as parts of SQL."""

from __future__ import annotations

from functools import lru_cache


@lru_cache(maxsize=1000)  # each statement has the same few names
def quoted(name: str) -> str:
    """Return a name as a quoted identifier of Spark SQL."""
    return "`{}`".format(name.replace("`", "``"))


def ended(condition: str) -> str:
    """Return a condition so that SQL can follow, even if it ends with a comment."""
    return f"{condition}\n" if "--" in condition else condition
