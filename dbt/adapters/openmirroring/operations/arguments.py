"""The arguments of the operations, checked before an operation does anything."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

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


def _is_results(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(
        hasattr(each, "status") and hasattr(each, "node") for each in value
    )


# the types of arguments
Name = Annotated[str, Kind("a name that is not empty", _is_name)]
Names = Annotated[
    str | list[str],
    Kind(
        "a name that is not empty, or a list of such names",
        lambda value: (
            _is_name(value)
            or (isinstance(value, list) and bool(value) and all(map(_is_name, value)))
        ),
    ),
]
Limit = Annotated[int, number(1)]
Flag = Annotated[bool, Kind("true or false", lambda value: isinstance(value, bool))]
Format = Annotated[str, Kind("`text` or `json`", lambda value: value in ("text", "json"))]
Span = Annotated[
    str,
    Kind(
        "a number of minutes, hours or days, such as `30m`, `2h` or `7d`",
        lambda value: isinstance(value, str) and bool(_SPAN.fullmatch(value)),
    ),
]
Results = Annotated[list[Any], Kind("the `results` of an on-run-end hook", _is_results)]


def timedelta_of(span: Span) -> timedelta:
    match = _SPAN.fullmatch(span)
    assert match, "the argument was checked"
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def operation(name: str) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Let a function take the arguments of an operation as a mapping, its last argument.

    The keyword-only parameters of the function are the arguments of the operation. Each is checked
    against its type, one of those in this module. An argument that is left out may mean all, so
    NULL, an empty text (an unset variable of the shell) and an undefined variable of Jinja do not
    count as left out.

    Args:
        name: the name of the operation, for messages
    """

    def checked(function: Callable[..., Result]) -> Callable[..., Result]:
        @wraps(function)
        def run(*context: Any) -> Result:
            *others, given = context
            return function(*others, **_checked(name, function, given))

        return run

    return checked


def _checked(
    name: str, function: Callable[..., Any], given: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the arguments that were given."""
    known = {
        each.name: each
        for each in signature(function).parameters.values()
        if each.kind is Parameter.KEYWORD_ONLY
    }
    hints = get_type_hints(function, include_extras=True)
    kinds = {each: _kind(hints[each]) for each in known}
    found = {each: value for each, value in given.items() if not _is_left_out(each, value)}
    for each, value in found.items():
        if each not in known:
            allowed = ", ".join(f"`{each}`" for each in known) or "none"
            raise CompilationError(
                f"{name} has no argument `{shown(each)}`. Its arguments: {allowed}. {_UNCHANGED}"
            )
        if not kinds[each].allows(value):
            raise CompilationError(
                f"`{each}` of {name} is {shown(repr(value))}. It must be {kinds[each].told}. "
                f"{_UNCHANGED}"
            )
    for each, parameter in known.items():
        if parameter.default is Parameter.empty and each not in found:
            raise CompilationError(
                f"{name} needs `{each}`: {kinds[each].told}, as in "
                f"--args '{{{each}: ...}}'. {_UNCHANGED}"
            )
    return found


def _is_left_out(name: str, value: Any) -> bool:
    """Check whether a macro, which passes on each of its arguments, did not get this one."""
    hint = f"parameter {name!r} was not provided"  # Jinja's, which an undefined variable lacks
    return isinstance(value, Undefined) and value._undefined_hint == hint


def _kind(hint: Any) -> Kind:
    [kind] = {
        extra
        for each in (hint, *get_args(hint))
        for extra in getattr(each, "__metadata__", ())
        if isinstance(extra, Kind)
    }
    return kind
