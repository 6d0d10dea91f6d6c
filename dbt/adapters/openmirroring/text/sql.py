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


def unquoted(identifier: str) -> str:
    """Return the name that an identifier of Spark SQL stands for, quoted or not."""
    name = identifier.strip()
    is_quoted = len(name) > 2 and name[0] == name[-1] == "`"
    return name[1:-1].replace("``", "`") if is_quoted else name
