"""Safe display of texts from outside, which may contain secrets or control characters."""

from __future__ import annotations

import re

# the user, and the password if there is one; without a password, a later `@` belongs to the path
_USER_INFO = re.compile(r"\A[^/@:]*(:.*)?@", re.DOTALL)

# in these schemes the part before the `@` is the container
_CONTAINER_SCHEMES = ("abfs", "abfss", "wasb", "wasbs")

# line ends, which become spaces, so that a message stays in one line
_LINE_ENDS = re.compile(r"\s*[\n\r\t\v\f\x1c-\x1f\x85\u2028\u2029]\s*")

# colors of a terminal
_COLORS = re.compile(r"\x1b\[[0-9;]*m")

# enough for an error message from Fabric
_MOST_CHARACTERS = 1000

# more, because an escaped text may quote the content of a file
_MOST_ESCAPED = 2000


def shown(text: object) -> str:
    """Return a text from outside as one line of limited length, without control characters.

    Others can write the records, the names and the answers of Fabric.
    """
    line = printable(_LINE_ENDS.sub(" ", str(text)[: 2 * _MOST_CHARACTERS]).strip())
    if len(line) <= _MOST_CHARACTERS:
        return line
    return f"{line[: _MOST_CHARACTERS - 3]}..."


def without_colors(text: object) -> str:
    """Return the message of a library that colors its messages, without the colors."""
    return _COLORS.sub("", str(text))


def printable(text: str) -> str:
    """Return a text with question marks for its control characters and line ends."""
    return "".join(each if each.isprintable() else "?" for each in text)


def escaped(text: str) -> str:
    """Return a text as one line that every terminal and encoding can print, cut off if it is long.

    Escapes tell names apart, where question marks would make them equal.
    """
    line = text if len(text) <= _MOST_ESCAPED else f"{text[:_MOST_ESCAPED]}..."
    if line.isprintable():
        return line
    # file names that are not UTF-8 contain surrogates, which cannot be encoded
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line.replace("\n", " "))


def shown_url(url: str) -> str:
    """Return a URL without its user, password, query and parameters; other text as it is."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    place, *hidden = re.split(r"[?#;]", rest, maxsplit=1)
    if "@" in "".join(hidden) and "@" not in place:
        # this may be a query, or a password with a question mark
        place = "..."
    user = place.partition("@")[0]
    keeps_user = scheme in _CONTAINER_SCHEMES and ":" not in user
    return f"{scheme}://{place if keeps_user else _USER_INFO.sub('', place)}"
