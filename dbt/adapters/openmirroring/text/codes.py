"""The codes of messages, by which people search for them and alerts count them.

A message stands where it is raised. It gets its code where it leaves for dbt.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note
from dbt_common.exceptions import DbtRuntimeError

# The words that only this message has, as in the headings of docs/messages.md; `...` stands for
# names and numbers. A code keeps its meaning: of a message that goes, it is not used again.
CODES = {
    # The operations
    "OM101": "`...` of ... is ... It must be",
    "OM102": "has no argument",
    "OM103": "Nobody knows which tables have failed",
    "OM104": "This target has `dry_run: true`",
    # The configuration
    "OM201": "Unknown option ... Did you mean",
    "OM202": "is not supported, and without it the table would have other rows",
    "OM203": "but is no URL",
    "OM204": "Files in a landing zone are published",
    "OM205": "its item is a",
    "OM206": "are one table for Spark, which ignores case",
    "OM207": "would both be the mirrored table",
    "OM208": "is not mirrored: its materialization",
    "OM209": "cannot be a folder of the landing zone",
    "OM210": "but the model has no such column",
    "OM211": "Publishing this needs a rebuild of the mirrored table",
    "OM212": "`file_detection: last_update_time` is for local landing zones",
    # The rows of the model
    "OM301": "are NULL or not unique",
    "OM302": "are in two rows: a new row, and the published row",
    "OM303": "text that is not UTF-8",
    "OM304": "values before the year 1 or after 9999",
    "OM305": "bytes that are no text",
    "OM306": "Several new rows have the same key",
    "OM307": "has the value ... which is no",
    "OM308": "Spark cannot cast one to the other",
    "OM309": "with which fields are not added or left out",
    "OM310": "No type holds the values of both as they are",
    "OM311": "their order may differ",
    "OM312": "The model breaks its contract",
    "OM313": "The source and target schemas on this incremental model are out of sync",
    "OM314": "which cannot be mirrored. Cast it in the model",
    "OM315": "would end too soon, or be taken for NULL",
    "OM316": "has the quote character in it",
    "OM317": "A row has a character that ... does not have",
    "OM318": "An earlier run was interrupted",
    "OM319": "rows would be deleted, and `max_deleted` is",
    "OM320": "since its tests started, so it stays held",
    # The table folder
    "OM401": "exists, but has no _journal.json",
    "OM402": "belongs to the dbt project",
    "OM403": "belongs to ... in the schema",
    "OM404": "is a mirrored table, and",
    "OM405": "was published last ... but Spark has",
    "OM406": "The mirrored table of ... has",
    "OM407": "is gone, with all rows that Spark has of",
    "OM408": "is gone, but",
    "OM409": "were not used together last",
    "OM410": "its Spark has Iceberg tables",
    "OM411": "had files, but Spark had no table",
    "OM412": "were published: somebody else has written to the table in Spark",
    "OM413": "are not those that were published last",
    "OM414": "A hook has dropped",
    "OM415": "A post-hook failed",
    "OM416": "somebody else writes to this folder",
    "OM417": "any more: somebody else has deleted it",
    "OM418": "somebody else has changed them",
    "OM419": "is damaged or was edited",
    "OM420": "this dbt-openmirroring reads version",
    "OM421": "names the partner",
    "OM422": "would be table number",
    "OM423": "so the service cannot know their order",
    "OM424": "The table folder is ... than the mirrored table",
    "OM425": "has a number that was applied before",
    "OM426": "A landing zone has only plain folders and files",
    "OM427": "somebody has removed old versions of the table",
    # Several runs
    "OM501": "Another run holds",
    "OM502": "Another run has published",
    "OM503": "This run no longer holds",
    "OM504": "is mounted with the option",
    # Spark
    "OM601": "Another process has used the embedded Spark of this project",
    "OM602": "Another dbt command of this process uses the embedded Spark of",
    "OM603": "Spark has ended while it was in use",
    "OM604": "Spark did not start",
    "OM605": "The embedded Spark cannot write to its folder",
    "OM606": "No Spark Connect server answered",
    "OM607": "Functions need Spark 4 or newer",
    "OM608": "This Spark has no driver for abfss",
    "OM609": "the two do not share this folder",
    "OM610": "have, as far as dbt sees them",
    # OneLake and Fabric
    "OM701": "gets no token for OneLake",
    "OM702": "Check `authentication` in the profile",
    "OM703": "The identity needs write access to the mirrored database",
    "OM704": "the name ... cannot be resolved",
    "OM705": "Fabric may be reading it now",
    "OM706": "that this identity can see",
    "OM707": "it does not apply published files",
    "OM708": "The service has stopped applying",
    "OM709": "no longer mirrors",
    "OM710": "This command has run no node that needs the table",
    "OM711": "cannot be rebuilt now",
    "OM712": "Batch ... is committed",
    "OM713": "minutes after its folder was",
    "OM714": "Published, but not applied",
    "OM715": "Published, but not visible to reports",
}

_CODED = re.compile(r"\[OM\d{3}: \S+\]")


def with_code(text: str) -> str:
    """Add its code to a message, and where its page is.

    Each line is a message, as several nodes or tables may have failed. A line that has a code, or
    is not in docs/messages.md, stays as it is.
    """
    return "\n".join(map(_line_with_code, text.split("\n")))


def add_code(error: DbtRuntimeError) -> None:
    """Add its code to the message of an error."""
    text = str(error.msg)
    told = with_code(text)
    if told != text:
        error.msg = told


@contextmanager
def coded() -> Iterator[None]:
    """Add their codes to the messages of errors that leave for dbt; also a decorator."""
    try:
        yield
    except DbtRuntimeError as error:
        add_code(error)
        raise


def note(text: str) -> None:
    """Print a line in dbt's log."""
    fire_event(Note(msg=text))


class CodedLogger(AdapterLogger):
    """dbt's logger for adapters, whose warnings have their codes."""

    def warning(self, msg: Any, *args: Any) -> None:
        super().warning(with_code(str(msg)), *args)


def _line_with_code(line: str) -> str:
    if _CODED.search(line):
        return line
    found = {code: _position(phrase, line) for code, phrase in CODES.items()}
    there = [code for code, position in found.items() if position >= 0]
    if not there:
        return line
    # a message may quote its cause, another message, behind its own words
    code = min(there, key=found.__getitem__)
    return f"{line} [{code}: {_page()}#{code.lower()}]"


def _position(phrase: str, line: str) -> int:
    """Return where a phrase begins in a line; -1 if it is not there."""
    first, *others = phrase.split("...")
    begin = line.find(first)
    end = begin + len(first)
    for part in others:
        position = line.find(part, end)
        if position < 0:
            return -1
        end = position + len(part)
    return begin


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
