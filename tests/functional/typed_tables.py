"""The types of Spark with their edge values, and models that have each value at each place."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Type(NamedTuple):
    """A type of Spark.

    Args:
        values: SQL of values, each of which is different from all others
        parquet: physical and logical type in Parquet, or the cast that an error shows
        delimited: type in `SchemaDefinition`, or the cast that an error shows
    """

    values: Sequence[str]
    parquet: tuple[str, str] | str
    delimited: str


def text(value: str) -> str:
    """SQL of a text, whatever a session does with escapes in strings."""
    return f"cast(X'{value.encode().hex()}' as string)"


def _all(type_: str, *values: str) -> list[str]:
    return [f"cast('{value}' as {type_})" for value in values]


TEXTS = [
    *("", " ", "a", "A", "a ", "a\u0301", "\u00e1", "null", "NULL", "2024-01-01", '{"a": 1}', "0"),
    *("it's", '"quoted"', "back\\slash", "\\", "line\nbreak\r\n", "tab\t", "a,b;c|d=e%f/g"),
    *("\x00", "\x01", "a\x00b", "\x7f", "\x80", "\u07ff", "\u0800", "\u2028", "\uffff"),
    *("\ufffd", "\ufeff", "\U00010000", "\U0001f600", "\U0010ffff"),
]
STRING = ("BYTE_ARRAY", "String")
INSTANT = ("INT64", "Timestamp(isAdjustedToUTC=true, timeUnit=microseconds")
WKB = "x'0101000000000000000000F03F0000000000000040'"
AS_STRING = "as string)"
DOUBLES = ("nan", "infinity", "0.0", "-0.0", "1", "1.0000000000000002", "4.9E-324", "1E300")
DAYS = ("0001-01-01", "1582-10-04", "1582-10-15", "1970-01-01", "9999-12-31")
TIMES = (
    *("0001-01-02 00:00:00", "1582-10-10 12:34:56.789012", "1969-12-31 23:59:59.999999"),
    # neither is on a clock in Berlin
    *("1970-01-01 00:00:00", "2024-03-31 02:30:00", "2024-03-31 02:30:00.000001"),
    "9999-12-31 23:59:59.999999",
)
# two instants in UTC that are the same time on a clock in Berlin
SAME_CLOCK = ("2024-10-27 00:30:00", "2024-10-27 01:30:00")

TYPES = {
    "boolean": Type(("true", "false"), ("BOOLEAN", "None"), "Boolean"),
    "tinyint": Type(("0Y", "-128Y", "127Y"), ("INT32", "Int(bitWidth=8, isSigned=true)"), "Int16"),
    "smallint": Type(
        ("0S", "-32768S", "32767S"), ("INT32", "Int(bitWidth=16, isSigned=true)"), "Int16"
    ),
    "int": Type(("0", "-2147483648", "2147483647"), ("INT32", "None"), "Int32"),
    "bigint": Type(
        ("0L", "9007199254740992L", "9007199254740993L", "-9223372036854775808L"),
        ("INT64", "None"),
        "Int64",
    ),
    "float": Type(
        _all("float", "nan", "infinity", "-infinity", "0.0", "-0.0", "1.1", "1.4E-45", "3.4E38"),
        ("FLOAT", "None"),
        "Single",
    ),
    "double": Type(_all("double", *DOUBLES), ("DOUBLE", "None"), "Double"),
    "decimal(3,2)": Type(
        ("1.50BD", "1.51BD", "-9.99BD"), ("INT32", "Decimal(precision=3, scale=2"), "as double)"
    ),
    "decimal(38,18)": Type(
        [f"{n}.123456789012345678BD" for n in ("12345678901234567890", "12345678901234567891")],
        ("FIXED_LEN_BYTE_ARRAY", "Decimal(precision=38, scale=18"),
        "as double)",
    ),
    "string": Type([text(value) for value in TEXTS], STRING, "String"),
    "char(3)": Type(("cast('x' as char(3))", "cast('y' as char(3))"), STRING, "String"),
    "varchar(3)": Type(("cast('x' as varchar(3))", "cast('y' as varchar(3))"), STRING, "String"),
    "string collate UTF8_LCASE": Type(
        ("'Aa' collate UTF8_LCASE", "'aA' collate UTF8_LCASE"), STRING, "String"
    ),
    "binary": Type(("x''", "x'00'", "x'0000'", "x'6162'"), ("BYTE_ARRAY", "None"), "ByteArray"),
    "date": Type(_all("date", *DAYS), ("INT32", "Date"), "IDate"),
    "timestamp": Type(
        _all("timestamp_ltz", *(f"{time}Z" for time in (*TIMES, *SAME_CLOCK))), INSTANT, "DateTime"
    ),
    "timestamp_ntz": Type(
        _all("timestamp_ntz", "0001-01-01 00:00:00", *TIMES), INSTANT, "DateTime"
    ),
    "time(6)": Type(("time'14:30:00.5'", "time'23:59:59.999999'"), AS_STRING, "ITime"),
    "interval day to second": Type(
        [f"interval '-1 02:03:04.00000{n}' day to second" for n in (5, 6)], AS_STRING, AS_STRING
    ),
    "interval year to month": Type(
        [f"interval '-1-{n}' year to month" for n in (2, 3)], AS_STRING, AS_STRING
    ),
    "array<int>": Type(("array(1, null)", "array(1)", "array()"), STRING, "String"),
    "map<string,int>": Type(("map('a', 1)", "map('a', null + 1)", "map()"), STRING, "String"),
    "struct<a:int,b:int>": Type(
        ("named_struct('a', 1, 'b', null + 1)", "named_struct('a', null + 1, 'b', 1)"),
        STRING,
        "String",
    ),
    "variant": Type(
        # the JSON of its null is that of NULL
        [f"parse_json('{value}')" for value in ("1.50", '{"a": null}', "null", '[1, {"a": 1}]')],
        STRING,
        "String",
    ),
    "geometry(0)": Type(
        [f"st_geomfromwkb({WKB})"], ("BYTE_ARRAY", "None"), "base64(st_asbinary(`geometry(0)`))"
    ),
    "geography(4326)": Type(
        [f"st_geogfromwkb({WKB})"],
        ("BYTE_ARRAY", "None"),
        "base64(st_asbinary(`geography(4326)`))",
    ),
    "void": Type(["null"], AS_STRING, AS_STRING),
}
# those that can be a key, or the value of a partition
SCALARS = [
    name for name in TYPES if name.partition("(")[0] not in ("time", "geometry", "geography")
]
SCALARS = SCALARS[: SCALARS.index("interval day to second")]
NESTED = [*SCALARS, "interval day to second", "interval year to month", "variant"]
# Spark has no others in keys of maps
KEYS_OF_MAPS = [name for name in NESTED if "collate" not in name and name != "variant"]

PLACES = {
    "column": "{}",
    "array": "array({}, null)",
    "map_value": "map('k', {})",
    "field": "named_struct(\"it's `odd`\", {}, 'n', 1)",
    "map_key": "map({}, 1)",
    "deep": "map('a', array(named_struct('a:b', map(named_struct('c,d', {}), 1))))",
}


def docs_name(type_: str) -> str:
    """The name of a type in the documentation."""
    return "string with a collation" if "collate" in type_ else re.split("[(<]", type_)[0]


def is_refused(outcome: object) -> bool:
    """Whether an error shows a cast."""
    return isinstance(outcome, str) and ")" in outcome


def types_at(place: str, file_format: str, *, in_text: bool = False) -> dict[str, Sequence[str]]:
    """The types that a table can have at a place, with their values.

    Args:
        file_format: of the table
        in_text: whether it lands as delimited text
    """
    if place == "column":
        names = [n for n, t in TYPES.items() if not is_refused(t[1 + in_text])]
    else:
        names = KEYS_OF_MAPS if place in ("map_key", "deep") else NESTED
    if file_format != "parquet":
        plain = {docs_name(name) for name in SCALARS} - {"string with a collation"}
        names = [n for n in names if docs_name(n) in {*plain, "array", "map", "struct", "variant"}]
    values = {name: TYPES[name].values for name in names}
    if place in ("map_key", "deep"):  # -0.0 and 0.0 are the same key
        return {name: _but_one_zero(found) for name, found in values.items()}
    return {name: [*found, "null"] for name, found in values.items()}


def _but_one_zero(values: Sequence[str]) -> list[str]:
    return [value for value in values if "-0.0" not in value]


def key_values(type_: str) -> list[str]:
    """The values of a key."""
    return _but_one_zero(TYPES[type_].values)


def one_of(values: Sequence[str], number: str) -> str:
    """SQL of the value with a number, which is SQL too."""
    cases = " ".join(f"when {n} then {value}" for n, value in enumerate(values))
    return f"case {number} {cases} end"


def rows(place: str, types: Mapping[str, Sequence[str]], step: int = 0) -> str:
    """A model with each value in a row of its own. At another step each row has another value."""
    columns, begin = [], 0
    for name, values in types.items():
        end = begin + len(values)
        value = PLACES[place].format(one_of(values, f"(id + {step}) % {len(values)}"))
        columns.append(f"if(id >= {begin} and id < {end}, {value}, null) as `{name}`")
        begin = end
    return f"select id, {', '.join(columns)} from range({begin})"
