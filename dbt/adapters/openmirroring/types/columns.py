"""The columns of a table as they land in the mirror (specification, "Column types").

Complex values land as JSON, including the keys of their maps. Some readers of a mirrored table
cannot read all values of Spark, which keeps text that is not UTF-8, and dates in any year: Delta's
text is UTF-8, and most readers know the years 1 to 9999 only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.text.errors import RefusedError
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.parsed import (
    PLAIN,
    ArrayType,
    DataType,
    MapType,
    StructType,
    mapped,
    parse,
    parsed,
    scalar_name,
    sql_of,
)

_NESTED = ("array<", "map<", "struct<", "variant")
_TEXT = ("string collate", "char(", "varchar(")
_STRINGS = ("string", "char(", "varchar(")
_SHAPES = ("geometry(", "geography(")
_INCOMPARABLE = ("variant", "geometry", "geography")
_SAME = {
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double"),
    *("string", "binary", "date", "timestamp"),
}

# `T` in quotes, without a backslash: a setting of Spark turns off the escapes in strings
_TIME = "'yyyy-MM-dd', chr(39L), 'T', chr(39L), 'HH:mm:ss.SSSSSS'"

# by default Spark drops NULL fields and microseconds
_OPTIONS = (
    "map('ignoreNullFields', 'false', 'timeZone', 'UTC', "
    f"'timestampFormat', concat({_TIME}, 'XXX'), 'timestampNTZFormat', concat({_TIME}))"
)

# `from_json` otherwise returns NULL for a text that is not of the type
_READING_OPTIONS = _OPTIONS.replace("map(", "map('mode', 'FAILFAST', ", 1)

_PLAIN_KEY = re.compile(PLAIN, re.IGNORECASE)
# types that `from_json` does not know
_KIND_OF_STRING = re.compile(r"string collate [\w.]+|(?:var)?char\(\d+\)", re.IGNORECASE)
_OTHER_MAP = re.compile(rf"map<(?!{PLAIN},)", re.IGNORECASE)

# the first and the last value, whatever the time zone of the session
_BOUNDS = {
    "date": ("date'0001-01-01'", "date'9999-12-31'"),
    "timestamp": (
        "timestamp_ltz'0001-01-01 00:00:00Z'",
        "timestamp_ltz'9999-12-31 23:59:59.999999Z'",
    ),
    "timestamp_ntz": (
        "timestamp_ntz'0001-01-01 00:00:00'",
        "timestamp_ntz'9999-12-31 23:59:59.999999'",
    ),
}

# returns the SQL condition for a value, given its scalar type and its SQL; empty for none
Leaf = Callable[[str, str], str]


@dataclass(frozen=True)
class TypedColumn:
    """A column of a table, with its type in Spark."""

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
    """A column of a table, with its type in the mirror as Spark SQL spells it."""

    landed_type: str

    @classmethod
    def of(cls, column: Any) -> LandingColumn:
        """Return a column, which has `name` and `dtype`, as it lands.

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

    def mirrored(self) -> str:
        """Return the SQL expression of the landed value from that of the mirrored table.

        The service may store it in a wider type than it landed in.
        """
        return f"cast({self.quoted} as {sql_of(self.landed_type)})"

    def restored(self) -> str:
        """Return the SQL expression of the value from that of the mirrored table.

        Raises:
            CompilationError: if the type cannot be parsed
        """
        landed = self.mirrored()
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
    """Return columns, which have `name` and `dtype`, as they land.

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
    raise RefusedError(
        f"The column {quoted(name)} has the type {dtype}, which cannot be mirrored. Cast it in "
        f"the model, e.g. cast({quoted(name)} as string).",
        code="OM314",
    )


def is_comparable(dtype: str) -> bool:
    """Check whether Spark can compare two values of a type."""
    return _is_comparable(parsed(dtype))


def _is_comparable(type_: DataType) -> bool:
    if isinstance(type_, ArrayType):
        return _is_comparable(type_.element)
    if isinstance(type_, StructType):
        return all(_is_comparable(field) for _, field in type_.fields)
    return isinstance(type_, str) and scalar_name(type_) not in _INCOMPARABLE


def require_comparable(option: str, value: str, dtype: str) -> None:
    """Check that Spark can compare the values that an option of a node names.

    Args:
        value: SQL of it

    Raises:
        CompilationError: if it cannot
    """
    if not is_comparable(dtype):
        raise CompilationError(
            f"`{option}` is {value} of the type {dtype}, and Spark cannot compare such values. "
            f"Nothing was changed. Select {comparable(dtype, value)} under a name, and set that."
        )


def comparable(dtype: str, value: str) -> str:
    """Return SQL of a value that Spark can compare in place of one that it cannot.

    Raises:
        ValueError: if the type has maps and cannot be parsed
    """
    if dtype.lower().startswith(_SHAPES):
        return f"st_asbinary({value})"
    if "timestamp" in dtype.lower():  # without options, `to_json` drops microseconds
        return json_text(dtype, value)
    return f"to_json({with_keys_as_text(dtype, value)})"


def json_text(dtype: str, value: str) -> str:
    """Return SQL that converts a complex value to JSON.

    Raises:
        ValueError: if the type has maps and cannot be parsed
    """
    return _json(with_keys_as_text(dtype, value))


def json_value(dtype: str, text: str) -> str:
    """Return SQL that converts JSON, as `json_text` writes it, back to a complex value.

    Raises:
        ValueError: if the type cannot be parsed
    """
    return _read(parse(dtype), text, 1)


def with_keys_as_text(dtype: str, value: str) -> str:
    """Return SQL that converts the keys of a value's maps to text, as `to_json` writes values.

    `to_json` itself writes keys with Java's `toString`: a date as a number of days, and bytes as
    an address in memory. The SQL of the value is returned unchanged if no key needs a conversion.

    Raises:
        ValueError: if the type has maps and cannot be parsed
    """
    if not _OTHER_MAP.search(dtype):
        return value
    return _converted(parse(dtype), value, 1)


def _json(value: str) -> str:
    return f"to_json({value}, {_OPTIONS})"


# returns the SQL of a part of a value, given its type, its own SQL, and the depth of lambdas
_Part = Callable[[DataType, str, int], str]


def _with_parts(
    type_: ArrayType | MapType, value: str, depth: int, part: _Part, key: _Part
) -> str:
    """Return the SQL of an array or a map whose parts are converted; unchanged if none is.

    The nesting depth of lambdas makes the names of their variables unique.
    """
    if isinstance(type_, ArrayType):
        name = f"element_{depth}"
        element = part(type_.element, name, depth + 1)
        return value if element == name else f"transform({value}, {name} -> {element})"
    name = f"entry_{depth}"
    before = (f"{name}.key", f"{name}.value")
    after = (key(type_.key, before[0], depth + 1), part(type_.value, before[1], depth + 1))
    if after == before:
        return value
    return (
        f"map_from_entries(transform(map_entries({value}), "
        f"{name} -> struct({after[0]} as key, {after[1]} as value)))"
    )


def _struct(value: str, fields: Iterable[str]) -> str:
    return f"if({value} is null, null, struct({', '.join(fields)}))"


def _converted(type_: DataType, value: str, depth: int) -> str:
    """Return the SQL of a value whose keys of maps are text; unchanged if they are already."""
    if isinstance(type_, str):
        return value
    if not isinstance(type_, StructType):
        return _with_parts(type_, value, depth, _converted, _key)
    names = [quoted(name) for name, _ in type_.fields]
    before = [f"{value}.{name}" for name in names]
    after = [
        _converted(field, part, depth)
        for (_, field), part in zip(type_.fields, before, strict=True)
    ]
    if after == before:
        return value
    return _struct(value, map("{} as {}".format, after, names))


def _key(type_: DataType, key: str, depth: int) -> str:
    if not isinstance(type_, str):
        return _json(_converted(type_, key, depth))
    if _PLAIN_KEY.fullmatch(type_):
        return key
    # `to_json` takes no scalar, so wrap the key in an array and trim the brackets. A cast to a
    # string would depend on the time zone of the session.
    return "trim(both '[\"]' from " + _json(f"array({key})") + ")"


def _read(type_: DataType, text: str, depth: int) -> str:
    if type_ == "variant":
        return f"parse_json({text})"
    schema = _literal(sql_of(_readable(type_)))
    return _typed(type_, f"from_json({text}, {schema}, {_READING_OPTIONS})", depth)


def _readable(type_: DataType) -> DataType:
    """Return the type that `from_json` reads in place of a type."""
    return mapped(type_, lambda s: "string" if _KIND_OF_STRING.fullmatch(s) else s, key="string")


def _typed(type_: DataType, value: str, depth: int) -> str:
    """Return the SQL of a value that `from_json` has read, in its own type."""
    if type_ == _readable(type_):
        return value
    if isinstance(type_, str):
        return f"cast({value} as {type_})"
    if not isinstance(type_, StructType):
        return _with_parts(type_, value, depth, _typed, _read_key)
    # a lambda, so that the text is read only once
    name = f"struct_{depth}"
    fields = (
        f"{_typed(field, f'{name}.{quoted(field_name)}', depth + 1)} as {quoted(field_name)}"
        for field_name, field in type_.fields
    )
    return f"transform(array({value}), {name} -> {_struct(name, fields)})[0]"


def _read_key(type_: DataType, key: str, depth: int) -> str:
    if not isinstance(type_, str):
        return _read(type_, key, depth)
    if _PLAIN_KEY.fullmatch(type_):
        return f"cast({key} as {type_})"
    element = f"concat('[\"', {key}, '\"]')"
    return f"{_read(ArrayType(type_), element, depth)}[0]"


def _literal(text: str) -> str:
    """Return a constant text, without a backslash or quote in a string."""
    parts = re.split(r"(['\\])", text)
    literals = [f"chr({ord(part)}L)" if part in "'\\" else f"'{part}'" for part in parts if part]
    return literals[0] if len(literals) == 1 else f"concat({', '.join(literals)})"


@dataclass(frozen=True)
class ValueCheck:
    """A check of the values of a column, which can have two checks.

    Args:
        condition: SQL that is true for a value that cannot be read; it may be NULL for others
        example: SQL that returns such a value as text
        finding: what such values are
        remedy: what to change in the model
        code: the code of the message
    """

    column: LandingColumn
    condition: str
    example: str
    finding: str
    remedy: str
    code: str


def value_checks(
    columns: Sequence[LandingColumn], is_delimited: bool, spark_major: int
) -> tuple[ValueCheck, ...]:
    """Return the checks of the columns of a table.

    Args:
        is_delimited: whether the values land as delimited text, which has bytes as text
    """

    def not_text(value: str) -> str:
        if spark_major >= 4:
            return f"not is_valid_utf8({value})"
        # the detour replaces what is not UTF-8
        return f"decode(encode({value}, 'UTF-16BE'), 'UTF-16BE') <> {value}"

    checks = []
    for column in columns:
        if is_delimited and column.landed_type == "binary":
            condition = not_text(f"cast({column.quoted} as string)")
            remedy = f"Let the model select base64({column.quoted})"
            finding, example = "bytes that are no text", _start_of_bytes(column)
            checks.append(ValueCheck(column, condition, example, finding, remedy, "OM305"))
        text = _anywhere(column, lambda kind, v: not_text(v) if kind.startswith(_STRINGS) else "")
        if text:
            checks.append(_text_check(column, text))
        times = _anywhere(column, _out_of_bounds)
        if times:
            checks.append(_times_check(column, times))
    return tuple(checks)


def _text_check(column: LandingColumn, condition: str) -> ValueCheck:
    name, where, example = column.quoted, "", _start_of_bytes(column)
    if _is_nested(column):
        name, where, example = "x", " for each x", _start_of_json(column)
    remedy = f"Decode it in the model, e.g. decode(cast({name} as binary), 'ISO-8859-1'){where}"
    return ValueCheck(column, condition, example, "text that is not UTF-8", remedy, "OM303")


def _times_check(column: LandingColumn, condition: str) -> ValueCheck:
    finding = "values before the year 1 or after 9999"
    how = "Make them NULL in the model"
    case = "case when {0} between {1} and {2} then {0} end".format
    if _is_nested(column):
        remedy = f"{how}, e.g. {case('x', *_BOUNDS['date'])} for each date x"
        return ValueCheck(column, condition, _start_of_json(column), finding, remedy, "OM304")
    remedy = f"{how}: {case(column.quoted, *_BOUNDS[column.dtype.lower()])}"
    return ValueCheck(column, condition, _time_in_utc(column), finding, remedy, "OM304")


def _is_nested(column: LandingColumn) -> bool:
    return column.dtype.lower().startswith(_NESTED)


def _start_of_bytes(column: LandingColumn) -> str:
    """Return SQL for the first bytes of a value, as a literal."""
    value = f"cast({column.quoted} as binary)"
    rest = f"if(octet_length({value}) > 20, '...', '')"
    # how a literal has a quote in it depends on the version of Spark and on its settings
    return f"concat('X', chr(39L), hex(substring({value}, 1, 20)), {rest}, chr(39L))"


def _start_of_json(column: LandingColumn) -> str:
    return f"left({column.landed()}, 60)"


def _time_in_utc(column: LandingColumn) -> str:
    if column.dtype.lower() != "timestamp":
        return f"cast({column.quoted} as string)"
    seconds = f"cast(unix_micros({column.quoted}) as decimal(20, 0)) / 1000000"
    epoch = "timestamp_ntz'1970-01-01 00:00:00'"
    return f"concat(cast({epoch} + make_dt_interval(0, 0, 0, {seconds}) as string), 'Z')"


def _out_of_bounds(type_: str, value: str) -> str:
    bounds = _BOUNDS.get(type_)
    return f"{value} not between {bounds[0]} and {bounds[1]}" if bounds else ""


def _anywhere(column: LandingColumn, leaf: Leaf) -> str:
    """Return the condition for a value of a column, and for every value inside it."""
    if not _is_nested(column):
        return leaf(column.dtype.lower(), column.quoted)
    try:
        return condition_inside(parse(column.dtype), column.quoted, leaf)
    except ValueError:  # a type that this version does not know
        return leaf("string", f"cast({column.quoted} as string)")


def condition_inside(type_: DataType, value: str, leaf: Leaf, depth: int = 1) -> str:
    """Return the condition for a value of a parsed type, and for every value inside it.

    Args:
        value: SQL of the value
        depth: the nesting depth of lambdas, which makes their variable names unique
    """

    def exists(values: str, element: DataType) -> str:
        name = f"value_{depth}"
        condition = condition_inside(element, name, leaf, depth + 1)
        return f"exists({values}, {name} -> {condition})" if condition else ""

    if isinstance(type_, ArrayType):
        return exists(value, type_.element)
    if isinstance(type_, MapType):
        keys, values = f"map_keys({value})", f"map_values({value})"
        parts = [exists(keys, type_.key), exists(values, type_.value)]
    elif isinstance(type_, StructType):
        parts = [
            condition_inside(field, f"{value}.{quoted(name)}", leaf, depth)
            for name, field in type_.fields
        ]
    else:
        parts = [leaf(type_.lower(), value)]
    return " or ".join(filter(None, parts))
