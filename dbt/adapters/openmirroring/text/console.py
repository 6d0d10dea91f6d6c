"""The console of the user, whose encoding may lack some characters."""

from __future__ import annotations

import codecs
import io
import sys

# the name of what replaces the characters
_REPLACE = "openmirroring.replace"

# substitutes for characters of this adapter's own texts
_INSTEAD = {"·": "-"}


def print_any_text() -> None:
    """Let the console show other characters for those that its encoding lacks.

    In a console with ASCII, dbt's logger would print a traceback instead of a line with `·`, or
    with the name of a table that has an umlaut.
    """
    codecs.register_error(_REPLACE, _replaced)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors=_REPLACE)


def _replaced(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return "".join(_INSTEAD.get(each, "?") for each in found), error.end
