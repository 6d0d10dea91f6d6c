"""Rows as delta-rs takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

# rows that delta-rs gathers before it writes them, and what they may weigh
_GATHERED = 8_192
_GATHERED_BYTES = 64 * 2**20


class LargeRows(Exception):
    """Rows that delta-rs would gather in memory."""


def streamable(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same, as long as delta-rs can write them as they come.

    It gathers so many rows before it writes them, whatever they weigh.
    """
    rows = size = 0
    for batch in batches:
        if rows >= _GATHERED:
            rows = size = 0
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if size > _GATHERED_BYTES and rows < _GATHERED:
            raise LargeRows
        yield batch


def conforming(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows with all columns of the table, in its order."""
    for column in schema:
        if column.name not in rows.column_names:
            rows = rows.append_column(column.name, pa.nulls(len(rows), column.type))
    return rows.select(schema.names)


def nullable(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema([column.with_nullable(True) for column in rows.schema]))
