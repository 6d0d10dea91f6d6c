"""The arguments of the operations, checked before an operation does anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar

from dbt_common.exceptions import CompilationError
from jinja2 import Undefined

from dbt.adapters.openmirroring.text.shown import shown

Result = TypeVar("Result")

_UNCHANGED = "Nothing was changed."

# a span of time, as `timedelta` and as users write it
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_SPAN = re.compile(r"(\d{1,6})([mhd])", re.ASCII)


@dataclass(frozen=True)
class Kind:
    """The kind of value that an argument must have.

    Args:
        told: the kind in words, for messages
        allows: returns whether a value is of this kind
    """

    told: str
    allows: Callable[[Any], bool]


def number(least: int, most: int | None = None) -> Kind:
    """Return the kind of a whole number within limits."""
    told = f"of {least} or more" if most is None else f"from {least} to {most}"
    return Kind(
        f"a whole number {told}",
        # True is an int
        lambda value: type(value) is int and least <= value and (most is None or value <= most),
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_list(value: Any, of: Callable[[Any], bool]) -> bool:
    return isinstance(value, (list, tuple)) and all(map(of, value))


NAME = Kind("a name that is not empty", _is_name)
NAMES = Kind(
    "a name that is not empty, or a list of such names",
    lambda value: _is_name(value) or (bool(value) and _is_list(value, _is_name)),
)
LIMIT = number(1)
FLAG = Kind("true or false", lambda value: isinstance(value, bool))
FORMAT = Kind("`text` or `json`", lambda value: value in ("text", "json"))
SPAN = Kind(
    "a number of minutes, hours or days, such as `30m`, `2h` or `7d`",
    lambda value: isinstance(value, str) and bool(_SPAN.fullmatch(value)),
)
RESULTS = Kind(
    "the `results` of an on-run-end hook",
    lambda value: _is_list(value, lambda each: hasattr(each, "status") and hasattr(each, "node")),
)


def timedelta_of(span: str) -> timedelta:
    match = _SPAN.fullmatch(span)
    assert match, "the argument was checked"
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def operation(
    name: str, **kinds: Kind
) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Let a function take the arguments of an operation as a mapping, its last argument.

    An argument that is left out may mean all, so NULL, an empty text (an unset variable of the
    shell) and an undefined variable of Jinja do not count as left out.

    Args:
        name: the name of the operation, for messages
        kinds: the kind of each keyword-only parameter of the function
    """

    def checked(function: Callable[..., Result]) -> Callable[..., Result]:
        parameters = signature(function).parameters
        needed = {each for each in kinds if parameters[each].default is Parameter.empty}

        @wraps(function)
        def run(*context: Any) -> Result:
            *others, given = context
            return function(*others, **_checked(name, kinds, needed, given))

        return run

    return checked


def _checked(
    name: str, kinds: Mapping[str, Kind], needed: set[str], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the arguments that were given."""
    found = {each: value for each, value in given.items() if not _is_left_out(each, value)}
    for each, value in found.items():
        if each not in kinds:
            allowed = ", ".join(f"`{each}`" for each in kinds) or "none"
            raise CompilationError(
                f"{name} has no argument `{shown(each)}`. Its arguments: {allowed}. {_UNCHANGED}"
            )
        if not kinds[each].allows(value):
            raise CompilationError(
                f"`{each}` of {name} is {shown(repr(value))}. It must be {kinds[each].told}. "
                f"{_UNCHANGED}"
            )
    for each in needed - found.keys():
        raise CompilationError(
            f"{name} needs `{each}`: {kinds[each].told}, as in "
            f"--args '{{{each}: ...}}'. {_UNCHANGED}"
        )
    return found


def _is_left_out(name: str, value: Any) -> bool:
    """Check whether a macro, which passes on each of its arguments, did not get this one."""
    hint = f"parameter {name!r} was not provided"  # Jinja's, which an undefined variable lacks
    return isinstance(value, Undefined) and value._undefined_hint == hint
