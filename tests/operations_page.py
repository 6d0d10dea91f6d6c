"""The page of all operations, made from their macros and the checks of their arguments.

`python -m tests.operations_page` writes docs/commands.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from inspect import Parameter, getclosurevars, isfunction, signature
from textwrap import dedent, fill
from typing import Any

from dbt.adapters.openmirroring.operations.run_operations import (
    NAME,
    DatabaseOperations,
    Kind,
    RunOperations,
)
from tests.pages import ROOT

PAGE = ROOT / "docs" / "commands.md"
MACROS = ROOT / "macros" / "operations" / "operations.sql"

# above it, the page is written by hand
MARK = "<!-- The rest is made by `python -m tests.operations_page`. -->"

# dbt calls it at the end of each command
_HOOKS = ("mirror_publish_tested",)

_MACRO = re.compile(r"\{#-((?:(?!-#\}).)*)-#\}\s*\{% macro (mirror_\w+)\((.*?)\) %\}", re.DOTALL)
_ARGUMENT = re.compile(r"^(\w+): (.+?)(?=^\w+: |\Z)", re.MULTILINE | re.DOTALL)


def operations_page() -> str:
    """Return the page, with its part that is written by hand."""
    head = PAGE.read_text().partition(MARK)[0]
    return f"{head}{MARK}\n\n" + "\n\n".join(_sections()) + "\n"


def _sections() -> Iterator[str]:
    checked = _checked_operations()
    for comment, name, names in _MACRO.findall(MACROS.read_text()):
        if name not in checked or name in _HOOKS:
            continue
        text, _, arguments = comment.partition("Args:")
        told = dict(_ARGUMENT.findall(dedent(arguments.strip("\n")).strip()))
        kinds, defaults = checked[name]
        assert [each for each in names.split(", ") if each] == list(told) == list(kinds), name
        lines = [
            f"- `{each}`{_value(kinds[each], defaults[each])}: {_one_line(told[each])}"
            for each in told
        ]
        yield "\n".join([f"## {name}", "", _filled(text), *[""] * bool(lines), *lines])


def _value(kind: Kind, default: Any) -> str:
    """The default of an argument, or the kind of value that it takes if none tells it."""
    if default is Parameter.empty:
        return " (required)"
    if default is not None:
        return f" (`{str(default).replace('True', 'true')}`)"
    return "" if kind is NAME else f", {kind.told}"


def _checked_operations() -> Mapping[str, tuple[Mapping[str, Kind], Mapping[str, Any]]]:
    """By name: the kinds of an operation's arguments, and their defaults."""
    found: dict[str, Any] = {}
    for function in (*vars(RunOperations).values(), *vars(DatabaseOperations).values()):
        checked = getclosurevars(function).nonlocals if isfunction(function) else {}
        if "kinds" in checked:
            parameters = signature(function).parameters
            defaults = {each: parameters[each].default for each in checked["kinds"]}
            found[checked["name"]] = checked["kinds"], defaults
    return found


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _filled(text: str) -> str:
    return fill(_one_line(text), 120, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(operations_page())
