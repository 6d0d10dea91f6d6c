"""How a value of one type becomes a value of another one, what it could lose, and common types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.parsed import (
    FLOATS,
    INTEGERS,
    ArrayType,
    DataType,
    MapType,
    StructType,
    decimal_of,
    length_of,
    mapped,
    parsed,
    scalar_name,
    sql_of,
    text_of,
)

_EXACT = {*INTEGERS, "decimal"}
_TIMES = {"timestamp", "timestamp_ntz"}
_MAX_DIGITS = 38

# types whose values a double holds exactly
_IN_DOUBLE = {"tinyint", "smallint", "int", *FLOATS}
# types whose values become the same text on every machine and in every session
_IN_TEXT = {*INTEGERS, "boolean", "date"}


class Field(NamedTuple):
    """A field of a struct, with its quoted names in the target and in the source.

    It has no name in the source if it is NULL.
    """

    name: str
    source: str | None
    cast: Cast


@dataclass(frozen=True)
class Cast:
    """A conversion of values. Fields of structs are found by their names.

    Args:
        is_exact: whether a value that would lose something is refused
    """

    source: DataType
    target: DataType
    is_exact: bool = True

    @classmethod
    def of(cls, source: str, target: str, is_exact: bool = True) -> Cast:
        """Return a conversion between two types as Spark describes them."""
        return cls(parsed(source), parsed(target), is_exact)

    @property
    def type(self) -> str:
        """The SQL of the target type."""
        return sql_of(self.target)

    @property
    def source_type(self) -> str:
        """The SQL of the source type."""
        return sql_of(self.source)

    @property
    def is_void(self) -> bool:
        """Whether values stay as they are."""
        return self.source == self.target

    @property
    def element(self) -> Cast | None:
        """The conversion of the elements of arrays; None for other types."""
        if isinstance(self.source, ArrayType) and isinstance(self.target, ArrayType):
            return self._part(self.source.element, self.target.element)
        return None

    @property
    def entry(self) -> tuple[Cast, Cast] | None:
        """The conversions of the keys and values of maps; None for other types."""
        if isinstance(self.source, MapType) and isinstance(self.target, MapType):
            return (
                self._part(self.source.key, self.target.key),
                self._part(self.source.value, self.target.value),
            )
        return None

    @property
    def fields(self) -> list[Field] | None:
        """The fields of structs; None for other types."""
        if not isinstance(self.source, StructType) or not isinstance(self.target, StructType):
            return None
        fields = []
        for name, target in self.target.fields:
            found, source = self.source.field(name) or (None, "void")
            fields.append(Field(quoted(name), found and quoted(found), self._part(source, target)))
        return fields

    @property
    def loss(self) -> str:
        """The loss that a successful cast may cause; empty if it causes none.

        `digits`: it can be seen by casting back. `whole`: the part before the point, in a type
        that is approximate after it. `infinite`: a number becomes infinite. `text_digits` and
        `text_time`: digits after the point, or a time of day, that a text has.
        """
        scalars = isinstance(self.source, str) and isinstance(self.target, str)
        if not self.is_exact or not scalars:
            return ""
        source, target = (
            # a collated text is compared in its own way
            str(type_) if "collate" in str(type_).lower() else scalar_name(str(type_))
            for type_ in (self.source, self.target)
        )
        is_wider = source in INTEGERS and INTEGERS[source] <= INTEGERS.get(target, 0)
        if source in {*_EXACT, *FLOATS} and target in {*_EXACT, "boolean"} and not is_wider:
            return "digits"
        if source in _TIMES and target in {*_TIMES, *INTEGERS, "date"}:
            return "digits"
        if source in _EXACT and target in FLOATS:
            return "whole"
        if (source, target) == ("double", "float"):
            return "infinite"
        if source == "string":
            return {"decimal": "text_digits", "date": "text_time"}.get(target, "")
        return ""

    @property
    def scale(self) -> int:
        """The number of digits after the point of a target that is a decimal."""
        return (decimal_of(str(self.target)) or (0, 0))[1]

    @property
    def length(self) -> int | None:
        """The length of a target to which a table pads texts; None for other types."""
        text = str(self.target).lower()
        return length_of(text) if text.startswith("char(") else None

    def _part(self, source: DataType, target: DataType) -> Cast:
        return Cast(source, target, self.is_exact)


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
    return text_of(mapped(parsed(dtype), _unlimited))


def _unlimited(scalar: str) -> str:
    return scalar if length_of(scalar) is None else "string"


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
    types = {_unlimited(stored), _unlimited(new)}
    if "string" in types:
        is_text = all(type_ in _IN_TEXT or decimal_of(type_) for type_ in types - {"string"})
        return "string" if is_text else None
    if types <= INTEGERS.keys():
        return max(types, key=lambda type_: INTEGERS[type_])
    if types <= _IN_DOUBLE:
        return "double"
    if types == {"date", "timestamp_ntz"}:
        return "timestamp_ntz"
    decimals = [(INTEGERS[t], 0) if t in INTEGERS else decimal_of(t) for t in types]
    known = [digits for digits in decimals if digits]
    if len(known) < len(types):
        return None
    after = max(scale for _, scale in known)
    precision = after + max(digits - scale for digits, scale in known)
    return f"decimal({precision},{after})" if precision <= _MAX_DIGITS else None
