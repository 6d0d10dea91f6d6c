"""How values of Spark reach Python, so that their text is the same value in Spark again.

A macro reads a value and writes its text into the next statement, as in `timestamp'{{ value }}'`.
So Spark itself converts what Python would change: PySpark returns a timestamp in the time zone of
this process, while a literal is in that of the session, and Python has no year after 9999.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

import agate
from dbt_common.clients.agate_helper import Number

from dbt.adapters.openmirroring.types.columns import json_text
from dbt.adapters.openmirroring.types.parsed import PLAIN

# types whose values Python has as they are
AS_THEY_ARE = rf"(?!float){PLAIN}|void"

_NESTED = ("array<", "map<", "struct<", "variant")
_SHAPES = ("geometry(", "geography(")
_EPOCH = dt.datetime(1970, 1, 1)

_have_offsets = ContextVar("have_offsets", default=False)


@contextmanager
def offsets() -> Iterator[None]:
    """Let all instants that this thread receives have their offset."""
    before = _have_offsets.set(True)
    try:
        yield
    finally:
        _have_offsets.reset(before)


def selection(types: Sequence[str]) -> dict[str, str]:
    """Return the SQL of each column of a query as Spark is to send it, by a name for the column.

    Names are new, because those of a query may be the same. The result is empty if all values are
    sent as they are.

    Args:
        types: of the columns, as Spark describes them
    """
    if all(re.fullmatch(AS_THEY_ARE, dtype) for dtype in types):
        return {}
    return {f"c{number}": _sent(dtype, f"c{number}") for number, dtype in enumerate(types)}


def received(types: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[tuple[Any, ...]]:
    """Return rows of Python, of which Spark has sent a `selection`.

    A date or a time that Python does not have stays a text.
    """
    columns = zip(*rows, strict=True)
    return list(zip(*map(_received, types, columns), strict=True))


class ExactNumber(Number):
    """A number that JSON has as a text if it is no float, for `dbt show --output json`."""

    def jsonify(self, d: Decimal | None) -> float | str | None:
        if d is None:
            return None
        number = float(d)
        return number if d.is_finite() and Decimal(repr(number)) == d else str(d)


def with_exact_numbers(table: agate.Table) -> agate.Table:
    """Return a table of dbt whose numbers are exact in JSON too."""
    types = [ExactNumber() if isinstance(each, Number) else each for each in table.column_types]
    return agate.Table(table.rows, table.column_names, types, _is_fork=True)


def _sent(dtype: str, value: str) -> str:
    text = f"cast({value} as string)"
    if re.fullmatch(AS_THEY_ARE, dtype):
        return value
    if dtype == "timestamp":
        # a local time occurs twice when clocks are set back, and Spark reads it as the first
        first = f"cast(cast({value} as timestamp_ntz) as timestamp_ltz)"
        return f"concat({text}, '|', unix_micros({value}), '|', {value} <=> {first})"
    if dtype == "float":  # Spark's Thrift server would round it
        return f"cast({value} as double)"
    if dtype == "binary":
        return f"hex({value})"
    if dtype.startswith(_SHAPES):
        return f"hex(st_asbinary({value}))"
    if dtype.startswith("interval "):
        fields = "year to month" if dtype.endswith(("year", "month")) else "day to second"
        # what is in the quotes of INTERVAL '1 02:03:04' DAY TO SECOND
        return f"split(cast(cast({value} as interval {fields}) as string), chr(39L))[1]"
    if dtype.startswith(_NESTED):
        try:
            return json_text(dtype, value)
        except ValueError:  # a type that this version does not know
            return text
    return text


def _received(dtype: str, values: Sequence[Any]) -> Sequence[Any]:
    if dtype == "timestamp":
        return _instants(values)
    if dtype.startswith("timestamp"):
        return [value and _time(value) for value in values]
    if dtype == "date":
        return [value and _date(value) for value in values]
    return values


def _instants(values: Sequence[str | None]) -> list[Any]:
    """Return instants in the time zone of the session.

    As in dbt-spark they have no offset, unless one of them is the second with its local time. Then
    all have one, because Python cannot compare a time that has an offset with one that has none.
    """
    found = [value and value.split("|") for value in values]
    if not _have_offsets.get() and all(not each or each[2] == "true" for each in found):
        return [each and _time(each[0]) for each in found]
    return [each and _with_offset(_time(each[0]), int(each[1])) for each in found]


def _with_offset(local: dt.datetime | str, micros: int) -> dt.datetime | str:
    if isinstance(local, str):
        return local
    offset = local - _EPOCH - dt.timedelta(microseconds=micros)
    return local.replace(tzinfo=dt.timezone(offset))


def _time(text: str) -> dt.datetime | str:
    whole, point, fraction = text.partition(".")
    try:
        # Python 3.10 reads only 3 or 6 digits after the point
        return dt.datetime.fromisoformat(f"{whole}.{fraction:0<6}" if point else whole)
    except ValueError:
        return text


def _date(text: str) -> dt.date | str:
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return text
