"""What a user is shown of texts that may have something in them that nobody should see."""

from __future__ import annotations

import re

# a user whose password follows goes with it; an `@` further on is part of a path
_USER_INFO = re.compile(r"\A[^/@:]*(:.*)?@", re.DOTALL)

# here the part before the `@` is the container
_CONTAINER_SCHEMES = ("abfs", "abfss", "wasb", "wasbs")


# several lines are told in one
_LINE_ENDS = re.compile(r"\s*[\n\r\t\v\f\x1c-\x1f\x85\u2028\u2029]\s*")

# a message has room for what Fabric says of an error
_MOST_CHARACTERS = 1000


def shown(text: object) -> str:
    """A text from outside, fit for a message: one line, nothing that steers a terminal, not long.

    Records, names and what Fabric answers can be written by others.
    """
    line = _LINE_ENDS.sub(" ", str(text)[: 2 * _MOST_CHARACTERS]).strip()
    printable = "".join(each if each.isprintable() else "?" for each in line)
    if len(printable) <= _MOST_CHARACTERS:
        return printable
    return f"{printable[: _MOST_CHARACTERS - 3]}..."


def shown_url(url: str) -> str:
    """A URL without its user, password, query and parameters. Any other text stays as it is."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    place, *hidden = re.split(r"[?#;]", rest, maxsplit=1)
    if "@" in "".join(hidden) and "@" not in place:
        # nobody can say whether this is a query, or a password with a question mark
        place = "..."
    user = place.partition("@")[0]
    keeps_user = scheme in _CONTAINER_SCHEMES and ":" not in user
    return f"{scheme}://{place if keeps_user else _USER_INFO.sub('', place)}"
