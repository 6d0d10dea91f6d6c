"""The ranges in which the keys of new rows lie.

Delta, Iceberg and Parquet keep the least and the greatest value of a column for each file or
group of rows. A condition on a range lets Spark skip those that have no key of a new row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn, OpenMirroringRelation

# Types whose values are equal only if they are the same, with their literals. A literal of another
# type would be compared after a cast, and then Delta skips no files in a MERGE.
_LITERALS = {
    "tinyint": "{}Y",
    "smallint": "{}S",
    "int": "{}",
    "bigint": "{}L",
    "date": "date '{}'",
}

_EPOCH = date(1970, 1, 1).toordinal()
# With Spark's settings for the calendar of old dates, Delta's statistics may tell of another day
# than the table has, if it is in October 1582 or earlier.
_FIRST_DAY, _LAST_DAY = (day.toordinal() - _EPOCH for day in (date(1583, 1, 1), date.max))


@dataclass(frozen=True)
class KeyRange:
    """The range of a key column in new rows.

    Args:
        column: its quoted name
        first: the least value, as a literal of SQL
        last: the greatest value, as a literal of SQL
    """

    column: str
    first: str
    last: str


def ranged_columns(
    columns: Sequence[OpenMirroringColumn], keys: Sequence[str]
) -> list[OpenMirroringColumn]:
    """Return the integers and dates among the keys of a snapshot, which can have ranges.

    Args:
        columns: all columns of the snapshot
    """
    by_name = {column.name.lower(): column for column in columns}
    # a session that is case-sensitive may have two columns of one name
    if len(by_name) < len(columns):
        return []
    names = {key.lower() for key in keys}
    return [each for name, each in by_name.items() if name in names and each.dtype in _LITERALS]


def key_ranges(
    warehouse: Warehouse, new_rows: OpenMirroringRelation, ranged: Sequence[OpenMirroringColumn]
) -> tuple[KeyRange, ...]:
    """Return the ranges of keys in new rows.

    A row outside of a range has the key of no new row, unless its key has NULL there.

    Args:
        ranged: the columns of the snapshot, as `ranged_columns` returns them
    """
    if not ranged:
        return ()
    [bounds] = warehouse.read("mirror_key_bounds", new_rows=new_rows, columns=ranged).rows
    ranges = []
    for column, least, greatest in zip(ranged, bounds[0::2], bounds[1::2], strict=True):
        first, last = _literal(column.dtype, least), _literal(column.dtype, greatest)
        if first and last:
            ranges.append(KeyRange(column.quoted, first, last))
    return tuple(ranges)


def _literal(dtype: str, value: Any) -> str | None:
    """Return a literal of SQL; None for NULL, and for a date before 1583 or after 9999.

    Args:
        value: of a date the days since 1970
    """
    if value is None:
        return None
    number = int(value)
    if dtype != "date":
        return _LITERALS[dtype].format(number)
    if not _FIRST_DAY <= number <= _LAST_DAY:
        return None
    return _LITERALS[dtype].format(date.fromordinal(_EPOCH + number))
