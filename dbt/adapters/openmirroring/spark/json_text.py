"""Complex values as JSON, with the keys of their maps."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbt.adapters.openmirroring.spark.relation import quoted

# keep what Spark's defaults drop: NULL fields, microseconds
_OPTIONS = (
    "map('ignoreNullFields', 'false', 'timeZone', 'UTC', "
    "'timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSSXXX', "
    "'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS')"
)

# what Java makes of such a key is what JSON has of such a value
_PLAIN = (
    r"(?:string(?: collate [\w.]+)?|(?:var)?char\(\d+\)|boolean|tinyint|smallint|int|bigint|float"
    r"|double|decimal\(\d+, ?-?\d+\))"
)
_OTHER = (
    r"(?:binary|date|timestamp(?:_[nl]tz)?(?:\(\d+\))?|time(?:\(\d+\))?"
    r"|interval(?: \w+(?: to \w+)?)?|variant|void|geometry\([^)]*\)|geography\([^)]*\))"
)
_PLAIN_KEY = re.compile(_PLAIN, re.IGNORECASE)
_OTHER_MAP = re.compile(rf"map<(?!{_PLAIN},)", re.IGNORECASE)
_SCALAR = re.compile(rf"(?:{_PLAIN}|{_OTHER})(?=[,>]|$)", re.IGNORECASE)
_NESTED = re.compile(r"(array|map|struct)<", re.IGNORECASE)


@dataclass(frozen=True)
class _Array:
    element: _Type


@dataclass(frozen=True)
class _Map:
    key: _Type
    value: _Type


@dataclass(frozen=True)
class _Struct:
    fields: tuple[tuple[str, _Type], ...]


# the text of a type that has no others in it, or a type that has
_Type = str | _Array | _Map | _Struct


def json_text(dtype: str, value: str) -> str:
    """The SQL of a complex value's JSON.

    Args:
        dtype: the value's, as Spark describes it
        value: as SQL

    Raises:
        ValueError: the type has maps, and cannot be read
    """
    return _json(with_keys_as_text(dtype, value))


def with_keys_as_text(dtype: str, value: str) -> str:
    """The SQL of a value whose maps have keys that `to_json` writes as it writes values.

    It writes keys as Java does: a date as a number of days, and bytes as an address in memory.

    Args:
        dtype: the value's, as Spark describes it
        value: as SQL; returned as it is if its keys are such

    Raises:
        ValueError: the type has maps, and cannot be read
    """
    if not _OTHER_MAP.search(dtype):
        return value
    type_, end = _parse(dtype, 0)
    if end < len(dtype):
        raise ValueError(f"{dtype} is no type: {dtype[end:]}")
    return _converted(type_, value, 1)


def _json(value: str) -> str:
    return f"to_json({value}, {_OPTIONS})"


def _converted(type_: _Type, value: str, depth: int) -> str:
    """The SQL of a value with other keys, or the value itself if it has none of them.

    Args:
        depth: of lambdas, each with a name of its own
    """
    if isinstance(type_, _Array):
        name = f"element_{depth}"
        element = _converted(type_.element, name, depth + 1)
        return value if element == name else f"transform({value}, {name} -> {element})"
    if isinstance(type_, _Map):
        name = f"entry_{depth}"
        key = _key(type_.key, f"{name}.key", depth + 1)
        item = _converted(type_.value, f"{name}.value", depth + 1)
        if (key, item) == (f"{name}.key", f"{name}.value"):
            return value
        return (
            f"map_from_entries(transform(map_entries({value}), "
            f"{name} -> struct({key} as key, {item} as value)))"
        )
    if isinstance(type_, _Struct):
        names = [quoted(name) for name, _ in type_.fields]
        before = [f"{value}.{name}" for name in names]
        after = [
            _converted(field, part, depth)
            for (_, field), part in zip(type_.fields, before, strict=True)
        ]
        if after == before:
            return value
        fields = (f"{part} as {name}" for name, part in zip(names, after, strict=True))
        return f"if({value} is null, null, struct({', '.join(fields)}))"
    return value


def _key(type_: _Type, key: str, depth: int) -> str:
    if not isinstance(type_, str):
        return _json(_converted(type_, key, depth))
    if _PLAIN_KEY.fullmatch(type_):
        return key
    # without the array around it: the text does not depend on the time zone of the session
    return "trim(both '[\"]' from " + _json(f"array({key})") + ")"


def _parse(text: str, start: int) -> tuple[_Type, int]:
    """The type that begins at a position of a text, and where it ends."""
    nested = _NESTED.match(text, start)
    if not nested:
        scalar = _SCALAR.match(text, start)
        if not scalar:
            raise ValueError(f"{text} is no type: {text[start:]}")
        return scalar[0], scalar.end()
    kind = nested[1].lower()
    if kind == "array":
        element, end = _parse(text, nested.end())
        return _Array(element), _after(text, end, ">")
    if kind == "map":
        key, end = _parse(text, nested.end())
        value, end = _parse(text, _after(text, end, ","))
        return _Map(key, value), _after(text, end, ">")
    fields: list[tuple[str, _Type]] = []
    end = nested.end()
    while text[end - 1] != ">":
        if text.startswith(">", end):  # no field at all
            end += 1
            break
        name, type_, end = _parse_field(text, end)
        fields.append((name, type_))
        end += 1
    return _Struct(tuple(fields)), end


def _parse_field(text: str, start: int) -> tuple[str, _Type, int]:
    """Spark does not quote names: one ends where a colon and a type follow."""
    colon = text.find(":", start)
    while colon >= 0:
        try:
            type_, end = _parse(text, colon + 1)
        except ValueError:
            end = len(text)
        if text[end : end + 1] in (",", ">"):
            return text[start:colon], type_, end
        colon = text.find(":", colon + 1)
    raise ValueError(f"{text} is no type: {text[start:]}")


def _after(text: str, position: int, character: str) -> int:
    if not text.startswith(character, position):
        raise ValueError(f"{text} is no type: {text[position:]}")
    return position + 1
