"""The statements that code of the user runs, and whether they change the table of its node.

A hook may be a macro that runs statements of its own, so each statement is looked at when it is
sent. Of a Python model, which may run on another machine, the text tells whether it writes.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import sqlparse

from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation

# the first words of statements that change no row of a table
_READING = {
    *("analyze", "cache", "clear", "comment", "desc", "describe", "explain", "optimize"),
    *("refresh", "reset", "select", "set", "show", "uncache", "use", "values"),
}
# a query may begin with these words, and so may a statement that inserts
_QUERYING = {"from", "with", "("}
_INSERTING = re.compile(r"\b(insert|update|delete|merge)\b")
# statements that create something else than a table
_OTHERS = re.compile(
    r"create\s+(or\s+replace\s+)?(global\s+)?(temp(orary)?\s+)?(view|function|schema|database)\b"
)
_NAME = r"(?:`(?:[^`]|``)*`|\w+)"
# a statement that changes a table, and the last part of the table's name
_CHANGING = re.compile(
    r"\b(?:insert\s+(?:into|overwrite)(?:\s+table)?|merge\s+(?:with\s+schema\s+evolution\s+)?into"
    r"|update|delete\s+from|truncate\s+table|(?:create|replace|drop|alter)(?:\s+or\s+replace)?"
    rf"\s+table(?:\s+if(?:\s+not)?\s+exists)?)\s+((?:{_NAME}\s*\.\s*)*)({_NAME})"
)
# Python code that writes to a table by a statement or by a DataFrame
_WRITING = re.compile(
    r"\b(insert\s+(into|overwrite)|merge\s+into|delete\s+from|truncate\s+table|drop\s+table"
    r"|alter\s+table|create\s+or\s+replace\s+table|update\s+\S+\s+set"
    r"|insertInto|saveAsTable|writeTo|mergeInto|DeltaTable)\b",
    re.IGNORECASE,
)


class UserCode(threading.local):
    """Whether code of the user runs in this thread, and who is asked about its statements."""

    def __init__(self) -> None:
        self._allows: Callable[[str], bool] | None = None

    @contextmanager
    def asks(self, allows: Callable[[str], bool]) -> Iterator[None]:
        """Ask before each statement in the block whether it may run, or is left out."""
        before, self._allows = self._allows, allows
        try:
            yield
        finally:
            self._allows = before

    def ends(self) -> None:
        """From now on, the statements of this thread are those of the adapter."""
        self._allows = None

    def allows(self, statement: str) -> bool:
        """Check whether a statement may run."""
        allows, self._allows = self._allows, None  # what it runs itself is not the user's
        try:
            return allows is None or allows(statement)
        finally:
            self._allows = allows


def may_change(statement: str, relation: OpenMirroringRelation) -> bool:
    """Check whether a statement may change a relation: it names it, and does not only read."""
    name, text = str(relation.identifier).lower(), statement.lower()
    if name not in text and name.replace("`", "``") not in text:
        return False
    bare = without_comments(text)
    word = first_word(bare)
    if word in _QUERYING:
        return bool(_INSERTING.search(bare))
    return word not in ("", *_READING) and not _OTHERS.match(bare)


def changes(statement: str, relation: OpenMirroringRelation) -> bool:
    """Check whether a statement certainly changes a relation."""
    for found in _CHANGING.finditer(without_comments(statement.lower())):
        schema, name = (_plain(part) for part in found.groups())
        is_there = schema in ("", str(relation.schema).lower().rpartition(".")[2])
        if is_there and name == str(relation.identifier).lower():
            return True
    return False


def writes(code: str) -> bool:
    """Check whether the code of a Python model seems to write to a table."""
    return bool(_WRITING.search(code))


def without_comments(statement: str) -> str:
    return str(sqlparse.format(statement, strip_comments=True)).strip()


def first_word(statement: str) -> str:
    """Return the first word of a statement without comments, or its parenthesis."""
    return statement[:1] if statement.startswith("(") else "".join(statement.split(None, 1)[:1])


def _plain(name: str) -> str:
    parts = re.findall(_NAME, name)
    return parts[-1].removeprefix("`").removesuffix("`").replace("``", "`") if parts else ""
