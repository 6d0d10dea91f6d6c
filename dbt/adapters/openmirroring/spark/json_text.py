"""SQL that converts complex values to JSON, including the keys of their maps."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dbt.adapters.openmirroring.spark.relation import quoted

# by default Spark drops NULL fields and microseconds
_OPTIONS = (
    "map('ignoreNullFields', 'false', 'timeZone', 'UTC', "
    "'timestampFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSSXXX', "
    "'timestampNTZFormat', 'yyyy-MM-dd\\'T\\'HH:mm:ss.SSSSSS')"
)

# types that `to_json` writes in the same way as a key and as a value
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


# the text of a scalar type, or a nested type
_Type = str | _Array | _Map | _Struct


def json_text(dtype: str, value: str) -> str:
    """Return SQL that converts a complex value to JSON.

    Args:
        dtype: the type of the value, as Spark describes it
        value: the SQL of the value

    Raises:
        ValueError: if the type has maps and cannot be parsed
    """
    return _json(with_keys_as_text(dtype, value))


def with_keys_as_text(dtype: str, value: str) -> str:
    """Return SQL that converts the keys of a value's maps to text, as `to_json` writes values.

    `to_json` itself writes keys with Java's `toString`: a date as a number of days, and bytes as
    an address in memory.

    Args:
        dtype: the type of the value, as Spark describes it
        value: the SQL of the value; returned unchanged if no key needs a conversion

    Raises:
        ValueError: if the type has maps and cannot be parsed
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
    """Return the SQL of a value with converted keys, or the value itself if none needs it.

    Args:
        type_: the parsed type of the value
        value: the SQL of the value
        depth: the nesting depth of lambdas, which makes their variable names unique
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
    # `to_json` takes no scalar, so wrap the key in an array and trim the brackets. A cast to a
    # string would depend on the time zone of the session.
    return "trim(both '[\"]' from " + _json(f"array({key})") + ")"


def _parse(text: str, start: int) -> tuple[_Type, int]:
    """Parse the type that begins at a position of a text. Return it and its end position."""
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
        if text.startswith(">", end):  # a struct without fields
            end += 1
            break
        name, type_, end = _parse_field(text, end)
        fields.append((name, type_))
        end += 1
    return _Struct(tuple(fields)), end


def _parse_field(text: str, start: int) -> tuple[str, _Type, int]:
    """Parse the field that begins at a position of a text. Return its name, type and end.

    Spark does not quote field names, so a name ends where a colon and a type follow.
    """
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
