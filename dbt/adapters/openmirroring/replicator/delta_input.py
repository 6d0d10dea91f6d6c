"""Rows in the form that delta-rs accepts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

# rows that delta-rs collects in memory before it writes them, and how many bytes are allowed
_GATHERED = 8_192
_GATHERED_BYTES = 64 * 2**20


class LargeRows(Exception):
    """The rows are so large that delta-rs would need too much memory to stream them."""


def streamable(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the batches unchanged while delta-rs can stream them.

    delta-rs collects 8,192 rows before it writes them, whatever their size.

    Raises:
        LargeRows: if fewer rows than that have more than 64 MiB
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
    """Return the rows with all columns of the table, in the table's order."""
    for column in schema:
        if column.name not in rows.column_names:
            rows = rows.append_column(column.name, pa.nulls(len(rows), column.type))
    return rows.select(schema.names)


def nullable(rows: pa.Table) -> pa.Table:
    return rows.cast(pa.schema([column.with_nullable(True) for column in rows.schema]))
