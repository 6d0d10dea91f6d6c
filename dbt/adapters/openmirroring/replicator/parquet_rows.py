"""The rows of a Parquet file."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dbt.adapters.openmirroring.replicator.errors import TableError, unreadable
from dbt.adapters.openmirroring.replicator.rows import (
    AT_ONCE,
    ROW_MARKER,
    UTC,
    OpenFile,
    Rows,
    check_names,
    most_bytes,
    too_large,
)

# rows that are read at once, unless they are large
_BATCH = 32_768

# bytes of a file that are read at once if only a column's beginning is needed
_BUFFER = 64 * 2**10

# minimum bytes that are assumed for a value
_FIXED_WIDTH = 8

# A column chunk above this size is refused if it is compressed more than real values can be.
_LARGE_CHUNK = 256 * 2**20
_LARGEST_RATIO = 1_000

# This encoding stores a value as its difference to the previous one, so the lengths of the values
# are unknown before reading. Spark does not write it by default.
_DIFFERENCES = "DELTA_BYTE_ARRAY"
_BATCH_OF_DIFFERENCES = 256

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def parquet_rows(name: str, size: int, open_file: OpenFile) -> Rows:
    """Open a Parquet file.

    Raises:
        TableError: if it is not a Parquet file, or if a column cannot be mirrored
    """
    try:
        with open_file() as file:
            # INT96 declares no unit; Arrow would read nanoseconds
            parquet = pq.ParquetFile(file, coerce_int96_timestamp_unit="us", pre_buffer=False)
            schema = parquet.schema_arrow
            footer = parquet.metadata
    except (pa.ArrowException, OSError) as error:
        raise unreadable(name, error) from None
    check_names(name, schema.names)
    leaves = map(footer.schema.column, range(footer.num_columns))
    physical = {leaf.path: leaf.physical_type for leaf in leaves}
    mirrored = [
        pa.field(
            column.name, _mirrored_type(name, column, physical.get(column.name)), column.nullable
        )
        for column in schema
        if column.name != ROW_MARKER
    ]

    def batches() -> Iterator[pa.RecordBatch]:
        at_once = _rows_at_once(name, size, open_file, footer)
        with open_file() as file:
            parquet = pq.ParquetFile(
                file, metadata=footer, coerce_int96_timestamp_unit="us", pre_buffer=False
            )
            yield from parquet.iter_batches(batch_size=at_once, use_threads=False)

    return Rows(name, size, pa.schema(mirrored), ROW_MARKER in schema.names, batches)


def _rows_at_once(name: str, size: int, open_file: OpenFile, footer: pq.FileMetaData) -> int:
    """Return how many rows to read at once, so that they have about AT_ONCE bytes.

    Raises:
        TableError: if the file declares many more bytes than real values would have
    """
    leaves = map(footer.schema.column, range(footer.num_columns))
    fixed = sum(max(int(leaf.length), _FIXED_WIDTH) for leaf in leaves)
    rows = min(_BATCH, AT_ONCE // max(1, fixed))
    left = most_bytes(size)
    for number in range(footer.num_row_groups):
        group = footer.row_group(number)
        chunks = [group.column(index) for index in range(footer.num_columns)]
        left -= sum(map(_uncompressed, chunks))
        if left < 0 or any(map(_is_too_large, chunks)):
            raise too_large(name, size)
        texts = [chunk for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"]
        if min(_BATCH, group.num_rows) * sum(map(_uncompressed, texts)) > AT_ONCE:
            rows = min(rows, _texts_at_once(open_file, footer, number, texts))
    return max(1, rows)


def _texts_at_once(
    open_file: OpenFile, footer: pq.FileMetaData, group: int, texts: list[pq.ColumnChunkMetaData]
) -> int:
    """Return how many rows of a row group have about AT_ONCE bytes of text.

    A dictionary stores a value once, however many rows repeat it. A small file can therefore have
    large rows, so the longest value of each dictionary is added to the average size.
    """
    if any(_DIFFERENCES in text.encodings for text in texts):
        return _BATCH_OF_DIFFERENCES
    width = sum(_uncompressed(text) // max(1, text.num_values) for text in texts)
    columns = [text.path_in_schema for text in texts if text.has_dictionary_page]
    if columns:
        with open_file() as file:
            parquet = pq.ParquetFile(
                file,
                metadata=footer,
                read_dictionary=columns,
                buffer_size=_BUFFER,
                pre_buffer=False,
            )
            first = next(parquet.iter_batches(1, [group], columns, use_threads=False))
            width += sum(map(_longest, first.columns))
    return int(AT_ONCE // max(1, width))


def _longest(values: pa.DictionaryArray) -> int:
    return int(pc.max(pc.binary_length(values.dictionary)).as_py() or 0)


def _uncompressed(chunk: pq.ColumnChunkMetaData) -> int:
    return max(0, int(chunk.total_uncompressed_size))


def _is_too_large(chunk: pq.ColumnChunkMetaData) -> bool:
    size = _uncompressed(chunk)
    return size > max(_LARGE_CHUNK, _LARGEST_RATIO * int(chunk.total_compressed_size))


def _mirrored_type(file: str, column: pa.Field, physical: str | None) -> pa.DataType:
    """Return the type of a Parquet column in the mirrored table.

    Raises:
        TableError: if the type is complex, since the specification requires a JSON string then
            (section "Column types"), or if Delta does not have the type
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if physical == "INT96":
        return UTC
    if pa.types.is_timestamp(kind):
        return UTC if kind.tz else pa.timestamp("us")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    ):
        return pa.binary()
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    if (
        pa.types.is_signed_integer(kind)
        or pa.types.is_boolean(kind)
        or kind in (pa.float32(), pa.float64(), pa.date32())
    ):
        return kind
    if kind in _WIDER:
        return _WIDER[kind]
    raise TableError(
        "UnsupportedType",
        f"{file}: the column {column.name!r} has the type {column.type}, which cannot be "
        "mirrored. Complex types land as JSON strings.",
    )
