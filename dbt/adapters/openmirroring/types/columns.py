"""The columns of a table as they land in the mirror (specification, "Column types")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.json_text import json_text, json_value
from dbt.adapters.openmirroring.types.parsed import parsed, sql_of

_NESTED = ("array<", "map<", "struct<", "variant")
_TEXT = ("string collate", "char(", "varchar(")
_SHAPES = ("geometry(", "geography(")
_SAME = {
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double"),
    *("string", "binary", "date", "timestamp"),
}


@dataclass(frozen=True)
class TypedColumn:
    """A column of a table.

    Args:
        dtype: type in Spark
    """

    name: str
    dtype: str

    @property
    def quoted(self) -> str:
        return quoted(self.name)

    @property
    def sql_type(self) -> str:
        """The type in Spark, as SQL can contain it."""
        return sql_of(parsed(self.dtype))


@dataclass(frozen=True)
class LandingColumn(TypedColumn):
    """A column of a table, with its type in the mirror.

    Args:
        landed_type: type in the mirror, as Spark SQL spells it
    """

    landed_type: str

    @classmethod
    def of(cls, column: Any) -> LandingColumn:
        """Return a column as it lands.

        Args:
            column: an object with `name` and `dtype`

        Raises:
            CompilationError: if its type cannot be mirrored
        """
        return cls(column.name, column.dtype, _landed_type(column.name, column.dtype.lower()))

    @property
    def is_float(self) -> bool:
        return self.dtype in ("float", "double")

    def landed(self, table: str | None = None) -> str:
        """Return the SQL expression of the landed value.

        Args:
            table: alias of the table that has the column; None if the column name is enough

        Raises:
            CompilationError: if the column has a map whose keys cannot be written as text
        """
        source = f"{table}.{self.quoted}" if table else self.quoted
        type_ = self.dtype.lower()
        if type_.startswith(_NESTED):
            try:
                return json_text(self.dtype, source)
            except ValueError as error:
                raise CompilationError(
                    f"The keys of the maps in the column {self.quoted} cannot be written as JSON: "
                    f"{error}. Cast it in the model, e.g. to_json({self.quoted})."
                ) from error
        if type_ == "timestamp_ntz":
            # The result must be an instant in UTC. A cast would use the session's time zone.
            return (
                f"timestamp_micros(cast(cast(cast({source} - timestamp_ntz'1970-01-01 00:00:00' "
                "as interval second) as decimal(20, 6)) * 1000000 as bigint))"
            )
        if type_.startswith(_SHAPES):
            # the result is well-known binary, which has no reference system
            return f"st_asbinary({source})"
        if type_.startswith(_TEXT):
            return f"cast({source} as string)"
        return source

    def restored(self) -> str:
        """Return the SQL expression of the value from that of the mirrored table.

        The service may store it in a wider type than it landed in.

        Raises:
            CompilationError: if the type cannot be parsed
        """
        landed = f"cast({self.quoted} as {self.landed_type})"
        type_ = self.dtype.lower()
        if type_.startswith(_NESTED):
            try:
                return json_value(self.dtype, landed)
            except ValueError as error:
                raise CompilationError(
                    f"The column {self.quoted} cannot be restored from JSON: {error}"
                ) from error
        if type_ == "timestamp_ntz":
            seconds = f"cast(unix_micros({landed}) as decimal(20, 0)) / 1000000"
            return (
                "timestamp_ntz'1970-01-01 00:00:00' + "
                f"cast(cast({seconds} as decimal(20, 6)) as interval second)"
            )
        if type_.startswith(_SHAPES):
            return f"st_{'geom' if type_.startswith('geometry') else 'geog'}fromwkb({landed})"
        return landed if type_ == self.landed_type else f"cast({landed} as {self.dtype})"


def landing_columns(columns: Iterable[Any]) -> list[LandingColumn]:
    """Return columns as they land.

    Args:
        columns: objects with `name` and `dtype`

    Raises:
        CompilationError: if a type cannot be mirrored
    """
    return [LandingColumn.of(column) for column in columns]


def _landed_type(name: str, dtype: str) -> str:
    if dtype.startswith((*_NESTED, *_TEXT)):
        return "string"
    if dtype == "timestamp_ntz":
        return "timestamp"
    if dtype.startswith(_SHAPES):
        return "binary"
    if dtype in _SAME or dtype.startswith(("decimal(", "time(")):
        return dtype
    raise CompilationError(
        f"The column {quoted(name)} has the type {dtype}, which cannot be mirrored. Cast it in "
        f"the model, e.g. cast({quoted(name)} as string)."
    )
