"""The codes of messages, by which people search for them and alerts count them.

Each has a section in docs/messages.md. A code keeps its meaning: of a message that goes, it is not
used again.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note


def with_code(text: str, code: str) -> str:
    """Return a message with its code and where its section is; as it is if the code is empty."""
    return f"{text} [{code}: {_page()}#{code.lower()}]" if code else text


def note(text: str) -> None:
    """Print a line in dbt's log."""
    fire_event(Note(msg=text))


@cache
def _page() -> str:
    """Return the page of messages: its address, if the package was built with one.

    Only the build knows the address of the repository (`hatch_build.py`).
    """
    try:
        urls = metadata("dbt-openmirroring").get_all("Project-URL") or []
    except PackageNotFoundError:
        urls = []
    for name, _, url in (each.partition(", ") for each in urls):
        if name == "Documentation":
            return str(url).replace("index.md", "messages.md")
    return "docs/messages.md"
