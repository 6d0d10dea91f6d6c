"""The type of a column that has one type in a table and another in new rows."""

from __future__ import annotations

import re
from collections.abc import Callable

from dbt.adapters.openmirroring.spark.data_types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    parsed,
    text_of,
)

_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)")
_MAX_DIGITS = 38
_LENGTH = re.compile(r"(?:var)?char\(\d+\)")

# integers by their digits, in the order of their size
_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
# types whose values a double holds exactly
_IN_DOUBLE = {"tinyint", "smallint", "int", "float", "double"}
# types whose values become the same text on every machine and in every session
_IN_TEXT = {*_INTEGERS, "boolean", "date"}

# Returns the type for two scalar types, or types of different kinds; None if there is none.
_Chooses = Callable[[DataType, DataType], DataType | None]


def common_type(stored: str, new: str) -> str | None:
    """Return the smallest type that holds the values of two types exactly, or None.

    Structs have the fields of both.
    """
    return _merged(stored, new, _common)


def with_new_fields(stored: str, new: str) -> str | None:
    """Return the stored type with the new fields of its structs.

    None if names of fields are ambiguous.
    """
    return _merged(stored, new, lambda stored, _: stored)


def with_fields_of(stored: str, new: str) -> str | None:
    """Return the new type with the fields of its structs in the order of the stored type.

    None if names of fields are ambiguous.
    """
    return _merged(stored, new, lambda old, new: old if new == "void" else new, False)


def has_same_fields(stored: str, new: str) -> bool:
    """Check whether all structs in two types have fields of the same names."""
    return _merged(stored, new, lambda stored, _: stored, keeps_fields=False) == stored


def without_length(dtype: str) -> str:
    """Return a type as Spark describes it for a query: texts of a limited length are strings."""
    return text_of(_map_scalars(parsed(dtype), lambda text: _LENGTH.sub("string", text)))


def _merged(stored: str, new: str, choose: _Chooses, keeps_fields: bool = True) -> str | None:
    """Merge two types, struct by struct.

    Args:
        choose: returns the type where the two are not of the same nested kind
        keeps_fields: whether a struct keeps fields that the new one does not have
    """
    if stored == new:
        return stored

    def merge(one: DataType, other: DataType) -> DataType | None:
        if isinstance(one, ArrayType) and isinstance(other, ArrayType):
            element = merge(one.element, other.element)
            return element and ArrayType(element)
        if isinstance(one, MapType) and isinstance(other, MapType):
            key, value = merge(one.key, other.key), merge(one.value, other.value)
            return key and value and MapType(key, value)
        if isinstance(one, StructType) and isinstance(other, StructType):
            return merge_structs(one, other)
        return one if one == other else choose(one, other)

    def merge_structs(one: StructType, other: StructType) -> DataType | None:
        if one.is_ambiguous or other.is_ambiguous:
            return one if one == other else None
        fields = []
        for name, field in one.fields:
            found = other.field(name)
            merged = merge(field, found[1]) if found else field
            if merged is None:
                return None
            if found or keeps_fields:
                fields.append((name, merged))
        return StructType((*fields, *(f for f in other.fields if not one.field(f[0]))))

    merged = merge(parsed(stored), parsed(new))
    return None if merged is None else text_of(merged)


def _common(stored: DataType, new: DataType) -> DataType | None:
    if "void" in (stored, new):  # a column of NULLs
        return new if stored == "void" else stored
    if not isinstance(stored, str) or not isinstance(new, str):
        return None
    types = {_LENGTH.sub("string", stored), _LENGTH.sub("string", new)}
    decimals = [_digits(type_) for type_ in types]
    if "string" in types:
        is_text = all(
            type_ in _IN_TEXT or digits or type_ == "string"
            for type_, digits in zip(types, decimals, strict=True)
        )
        return "string" if is_text else None
    if types <= _INTEGERS.keys():
        return max(types, key=lambda type_: _INTEGERS[type_])
    if types <= _IN_DOUBLE:
        return "double"
    if types == {"date", "timestamp_ntz"}:
        return "timestamp_ntz"
    if all(decimals):
        return _decimal([digits for digits in decimals if digits])
    return None


def _digits(type_: str) -> tuple[int, int] | None:
    """Return how many digits a number has before and after the point; None if it is no decimal."""
    if type_ in _INTEGERS:
        return _INTEGERS[type_], 0
    found = _DECIMAL.fullmatch(type_)
    return (int(found[1]) - int(found[2]), int(found[2])) if found else None


def _decimal(numbers: list[tuple[int, int]]) -> str | None:
    before, after = (max(digits) for digits in zip(*numbers, strict=True))
    return f"decimal({before + after},{after})" if before + after <= _MAX_DIGITS else None


def _map_scalars(type_: DataType, change: Callable[[str], str]) -> DataType:
    if isinstance(type_, ArrayType):
        return ArrayType(_map_scalars(type_.element, change))
    if isinstance(type_, MapType):
        return MapType(_map_scalars(type_.key, change), _map_scalars(type_.value, change))
    if isinstance(type_, StructType):
        fields = ((name, _map_scalars(field, change)) for name, field in type_.fields)
        return StructType(tuple(fields))
    return change(type_)
