"""Checks for values that some readers of a mirrored table cannot read.

Spark keeps text that is not UTF-8, and dates in any year. Other readers fail at them: Delta's text
is UTF-8, and most readers know the years 1 to 9999 only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.columns import LandingColumn
from dbt.adapters.openmirroring.types.parsed import ArrayType, DataType, MapType, StructType, parse

_TEXT = ("string", "char(", "varchar(")

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
class ValueCheck:
    """A check of the values of a column, which can have two checks.

    Args:
        condition: SQL that is true for a value that cannot be read; it may be NULL for others
        example: SQL that returns such a value as text
        finding: what such values are
        remedy: what to change in the model
    """

    column: LandingColumn
    condition: str
    example: str
    finding: str
    remedy: str


def value_checks(
    columns: Sequence[LandingColumn], is_delimited: bool, spark_major: int
) -> tuple[ValueCheck, ...]:
    """Return the checks of the columns of a table.

    Args:
        is_delimited: whether the values land as delimited text, which has bytes as text
        spark_major: the major version of Spark
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
            example = _start_of_bytes(column)
            checks.append(ValueCheck(column, condition, example, "bytes that are no text", remedy))
        text = _anywhere(column, lambda type_, v: not_text(v) if type_.startswith(_TEXT) else "")
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
    return ValueCheck(column, condition, example, "text that is not UTF-8", remedy)


def _times_check(column: LandingColumn, condition: str) -> ValueCheck:
    finding = "values before the year 1 or after 9999"
    how = "Make them NULL in the model"
    case = "case when {0} between {1} and {2} then {0} end".format
    if _is_nested(column):
        remedy = f"{how}, e.g. {case('x', *_BOUNDS['date'])} for each date x"
        return ValueCheck(column, condition, _start_of_json(column), finding, remedy)
    remedy = f"{how}: {case(column.quoted, *_BOUNDS[column.dtype.lower()])}"
    return ValueCheck(column, condition, _time_in_utc(column), finding, remedy)


def _is_nested(column: LandingColumn) -> bool:
    return column.landed_type == "string" and not column.dtype.lower().startswith(_TEXT)


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
    dtype = column.dtype.lower()
    if not dtype.startswith(("array<", "map<", "struct<")):
        return leaf(dtype, column.quoted)
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
