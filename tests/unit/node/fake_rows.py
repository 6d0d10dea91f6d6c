"""Rows of a Spark in memory, and of files on the scratch pad."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from dbt.adapters.openmirroring.types.columns import LandingColumn

Row = tuple[Any, ...]

_TYPES = {"int": pa.int32(), "bigint": pa.int64(), "string": pa.string()}


@dataclass(frozen=True)
class Rows:
    """Rows, with the names and types of their columns."""

    columns: Mapping[str, str]
    rows: tuple[Row, ...]

    def of(self, names: Sequence[str]) -> list[Row]:
        """The values of some columns."""
        places = [list(self.columns).index(name) for name in names]
        return [tuple(row[place] for place in places) for row in self.rows]

    def where(self, is_kept: Callable[[Row], bool], names: Sequence[str]) -> Rows:
        """The rows whose values of some columns meet a condition."""
        kept = zip(self.rows, self.of(names), strict=True)
        return replace(self, rows=tuple(row for row, values in kept if is_kept(values)))


def answer(names: Iterable[str], *rows: Row) -> Rows:
    """Rows that a query returns, whose types do not matter."""
    return Rows(dict.fromkeys(names, ""), rows)


def names_of(columns: Iterable[LandingColumn]) -> list[str]:
    return [column.name for column in columns]


def landed(columns: Iterable[LandingColumn], rows: Iterable[Row]) -> Rows:
    return Rows({column.name: column.landed_type for column in columns}, tuple(rows))


def write_file(path: Path, rows: Rows) -> None:
    """Write a Parquet file, whose columns are integers and texts."""
    fields = [pa.field(name, _TYPES[dtype]) for name, dtype in rows.columns.items()]
    arrays = [pa.array([row[i] for row in rows.rows], each.type) for i, each in enumerate(fields)]
    parquet.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path)


def read_file(path: Path) -> Rows:
    table = parquet.read_table(path, use_threads=False)
    columns = dict.fromkeys(table.column_names, "")
    return Rows(columns, tuple(tuple(row.values()) for row in table.to_pylist()))
