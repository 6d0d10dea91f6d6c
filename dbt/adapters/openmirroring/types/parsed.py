"""Types of Spark, parsed from what `describe` says of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from dbt.adapters.openmirroring.text.sql import quoted

# types that `to_json` writes in the same way as a key and as a value
PLAIN = (
    r"(?:string(?: collate [\w.]+)?|(?:var)?char\(\d+\)|boolean|tinyint|smallint|int|bigint|float"
    r"|double|decimal\(\d+, ?-?\d+\))"
)
_OTHER = (
    r"(?:binary|date|timestamp(?:_[nl]tz)?(?:\(\d+\))?|time(?:\(\d+\))?"
    r"|interval(?: \w+(?: to \w+)?)?|variant|void|geometry\([^)]*\)|geography\([^)]*\))"
)
_SCALAR = re.compile(rf"(?:{PLAIN}|{_OTHER})(?=[,>]|$)", re.IGNORECASE)
_NESTED = re.compile(r"(array|map|struct)<", re.IGNORECASE)
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", re.IGNORECASE)
_TIMESTAMP = re.compile(r"^timestamp\b", re.IGNORECASE)
_LENGTH = re.compile(r"(?:var)?char\((\d+)\)")

# integers by their digits, in the order of their size
INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
FLOATS = ("float", "double")
# the usual names of types, by others that SQL has for them
_NAMES = {
    **{"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"},
    **{"dec": "decimal", "numeric": "decimal", "real": "float", "timestamp_ltz": "timestamp"},
    **{"char": "string", "varchar": "string"},
}


@dataclass(frozen=True)
class ArrayType:
    element: DataType


@dataclass(frozen=True)
class MapType:
    key: DataType
    value: DataType


@dataclass(frozen=True)
class StructType:
    fields: tuple[tuple[str, DataType], ...]

    @property
    def is_ambiguous(self) -> bool:
        """Whether names of fields differ only in case, so that Spark cannot find these fields."""
        return len({name.lower() for name, _ in self.fields}) < len(self.fields)

    def field(self, name: str) -> tuple[str, DataType] | None:
        """Return the field of a name, in any case; None if there is none."""
        return next((f for f in self.fields if f[0].lower() == name.lower()), None)


# the text of a scalar type, or a nested type
DataType = str | ArrayType | MapType | StructType


def parse(dtype: str) -> DataType:
    """Parse a type as Spark describes it, which does not quote the names of fields.

    Raises:
        ValueError: if it is no type
    """
    type_, end = _parse(dtype, 0)
    if end < len(dtype):
        raise ValueError(f"{dtype} is no type: {dtype[end:]}")
    return type_


def parsed(dtype: str) -> DataType:
    """Parse a type. A type that cannot be parsed is returned as it is."""
    try:
        return parse(dtype)
    except ValueError:
        return dtype


def scalar_name(dtype: str) -> str:
    """Return the usual name of a type, without its precision, length and collation."""
    name = re.split(r"[\s(<]", dtype.strip().lower())[0]
    return _NAMES.get(name, name)


def decimal_of(dtype: str) -> tuple[int, int] | None:
    """Return the precision and the scale of a decimal; None for another type."""
    found = _DECIMAL.fullmatch(dtype.strip())
    return (int(found[1]), int(found[2] or 0)) if found else None


def length_of(dtype: str) -> int | None:
    """Return how many characters a text may have; None for other types."""
    found = _LENGTH.fullmatch(dtype)
    return int(found[1]) if found else None


def mapped(type_: DataType, change: Callable[[str], str], key: str | None = None) -> DataType:
    """Return a type with other scalar types in it.

    Args:
        key: the type of the keys of all maps; None to change these too
    """
    if isinstance(type_, ArrayType):
        return ArrayType(mapped(type_.element, change, key))
    if isinstance(type_, MapType):
        keys = key or mapped(type_.key, change)
        return MapType(keys, mapped(type_.value, change, key))
    if isinstance(type_, StructType):
        fields = ((name, mapped(field, change, key)) for name, field in type_.fields)
        return StructType(tuple(fields))
    return change(type_)


def text_of(type_: DataType, spelled: Callable[[str], str] = str) -> str:
    """Return a type as Spark describes it, with the names of fields spelled in some way."""
    if isinstance(type_, ArrayType):
        return f"array<{text_of(type_.element, spelled)}>"
    if isinstance(type_, MapType):
        return f"map<{text_of(type_.key, spelled)},{text_of(type_.value, spelled)}>"
    if isinstance(type_, StructType):
        fields = (f"{spelled(name)}:{text_of(field, spelled)}" for name, field in type_.fields)
        return f"struct<{','.join(fields)}>"
    return type_


def sql_of(type_: DataType) -> str:
    """Return a type as SQL can contain it, with the names of fields quoted.

    Settings of Spark decide what `timestamp` means there (`spark.sql.timestampType`).
    """
    named = mapped(type_, lambda scalar: _TIMESTAMP.sub("timestamp_ltz", scalar))
    return text_of(named, quoted)


def _parse(text: str, start: int) -> tuple[DataType, int]:
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
        return ArrayType(element), _after(text, end, ">")
    if kind == "map":
        key, end = _parse(text, nested.end())
        value, end = _parse(text, _after(text, end, ","))
        return MapType(key, value), _after(text, end, ">")
    fields: list[tuple[str, DataType]] = []
    end = nested.end()
    while text[end - 1] != ">":
        if text.startswith(">", end):  # a struct without fields
            end += 1
            break
        name, type_, end = _parse_field(text, end)
        fields.append((name, type_))
        end += 1
    return StructType(tuple(fields)), end


def _parse_field(text: str, start: int) -> tuple[str, DataType, int]:
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
