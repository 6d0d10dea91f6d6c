"""How a value of one type becomes a value of another one, and what it could lose."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from dbt.adapters.openmirroring.spark.data_types import (
    ArrayType,
    DataType,
    MapType,
    StructType,
    parsed,
    sql_of,
)
from dbt.adapters.openmirroring.spark.relation import quoted

_NAMES = {
    **{"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"},
    **{"dec": "decimal", "numeric": "decimal", "real": "float", "timestamp_ltz": "timestamp"},
    **{"char": "string", "varchar": "string"},
}
_INTEGERS = {"tinyint", "smallint", "int", "bigint"}
_EXACT = {*_INTEGERS, "decimal"}
_FLOATS = {"float", "double"}
_TIMES = {"timestamp", "timestamp_ntz"}
_SCALE = re.compile(r"\(\s*\d+\s*,\s*(\d+)\s*\)")


class Field(NamedTuple):
    """A field of a struct.

    Args:
        name: its name in the target, quoted
        source: its name in the source, quoted; None if it is NULL
        cast: how its values are converted
    """

    name: str
    source: str | None
    cast: Cast


@dataclass(frozen=True)
class Cast:
    """A conversion of values. Fields of structs are found by their names.

    Args:
        source: the type of the values
        target: the type that they get
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
        source, target = _name(str(self.source)), _name(str(self.target))
        numbers = source in _EXACT | _FLOATS
        if numbers and target in {*_EXACT, "boolean"} and (source, target) not in _WIDER:
            return "digits"
        if source in _TIMES and target in {*_TIMES, *_INTEGERS, "date"}:
            return "digits"
        if source in _EXACT and target in _FLOATS:
            return "whole"
        if (source, target) == ("double", "float"):
            return "infinite"
        if source == "string":
            return {"decimal": "text_digits", "date": "text_time"}.get(target, "")
        return ""

    @property
    def scale(self) -> int:
        """The number of digits after the point of a target that is a decimal."""
        found = _SCALE.search(str(self.target))
        return int(found[1]) if found else 0

    @property
    def length(self) -> int | None:
        """The length of a target to which a table pads texts; None for other types."""
        found = re.fullmatch(r"char\((\d+)\)", str(self.target).lower())
        return int(found[1]) if found else None

    def _part(self, source: DataType, target: DataType) -> Cast:
        return Cast(source, target, self.is_exact)


# pairs of integers of which the second one holds the first
_ORDERED = ("tinyint", "smallint", "int", "bigint")
_WIDER = {(one, other) for n, one in enumerate(_ORDERED) for other in _ORDERED[n:]}


def _name(dtype: str) -> str:
    """Return the usual name of a type, without its arguments."""
    name = dtype.strip().lower()
    if "collate" in name:
        return name
    name = re.split(r"[\s(]", name)[0]
    return _NAMES.get(name, name)
