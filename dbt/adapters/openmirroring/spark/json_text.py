"""SQL that converts complex values to JSON, including the keys of their maps."""

from __future__ import annotations

import re

from dbt.adapters.openmirroring.spark.data_types import (
    PLAIN,
    ArrayType,
    DataType,
    MapType,
    StructType,
    parse,
)
from dbt.adapters.openmirroring.spark.relation import quoted

# `T` in quotes, without a backslash: a setting of Spark turns off the escapes in strings
_TIME = "'yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS'"

# by default Spark drops NULL fields and microseconds
_OPTIONS = (
    "map('ignoreNullFields', 'false', 'timeZone', 'UTC', "
    f"'timestampFormat', concat({_TIME}, 'XXX'), 'timestampNTZFormat', concat({_TIME}))"
)

_PLAIN_KEY = re.compile(PLAIN, re.IGNORECASE)
_OTHER_MAP = re.compile(rf"map<(?!{PLAIN},)", re.IGNORECASE)


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
    return _converted(parse(dtype), value, 1)


def _json(value: str) -> str:
    return f"to_json({value}, {_OPTIONS})"


def _converted(type_: DataType, value: str, depth: int) -> str:
    """Return the SQL of a value with converted keys, or the value itself if none needs it.

    Args:
        type_: the parsed type of the value
        value: the SQL of the value
        depth: the nesting depth of lambdas, which makes their variable names unique
    """
    if isinstance(type_, ArrayType):
        name = f"element_{depth}"
        element = _converted(type_.element, name, depth + 1)
        return value if element == name else f"transform({value}, {name} -> {element})"
    if isinstance(type_, MapType):
        name = f"entry_{depth}"
        key = _key(type_.key, f"{name}.key", depth + 1)
        item = _converted(type_.value, f"{name}.value", depth + 1)
        if (key, item) == (f"{name}.key", f"{name}.value"):
            return value
        return (
            f"map_from_entries(transform(map_entries({value}), "
            f"{name} -> struct({key} as key, {item} as value)))"
        )
    if isinstance(type_, StructType):
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


def _key(type_: DataType, key: str, depth: int) -> str:
    if not isinstance(type_, str):
        return _json(_converted(type_, key, depth))
    if _PLAIN_KEY.fullmatch(type_):
        return key
    # `to_json` takes no scalar, so wrap the key in an array and trim the brackets. A cast to a
    # string would depend on the time zone of the session.
    return "trim(both '[\"]' from " + _json(f"array({key})") + ")"
