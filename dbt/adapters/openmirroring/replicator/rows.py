"""The rows of a data file, with the column types of the mirrored table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dbt.adapters.openmirroring.replicator.errors import TableError, unreadable
from dbt.adapters.openmirroring.replicator.folder import checked
from dbt.adapters.openmirroring.replicator.metadata import TextFormat, clash

ROW_MARKER = "__rowMarker__"
MARKER = pa.field(ROW_MARKER, pa.int32())

_UTC = pa.timestamp("us", "UTC")

# bytes of rows that are in memory at once, in Arrow's format
_AT_ONCE = 64 * 2**20

# rows of a Parquet file that are read at once unless they are large, and those that are measured
_BATCH = 32_768
_SAMPLE = 64

# bytes of text that are read at once, which is also the maximum size of a row
_BLOCK = 32 * 2**20

# Maximum number of values in a batch of text. A limit in bytes is not enough, because a column
# that is missing in the file takes no bytes there.
_VALUES = 2**22

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}

# the types that Arrow's reader converts text to
_TEXT_TYPES = {
    "Double": pa.float64(),
    "Single": pa.float32(),
    "Int16": pa.int16(),
    "Int32": pa.int32(),
    "Int64": pa.int64(),
    "IDate": pa.date32(),
    "Boolean": pa.bool_(),
    "ByteArray": pa.binary(),
    "ITime": pa.time64("us"),
    "String": pa.string(),
    # the reader accepts a column of timestamps only if all of them have a zone, or none has
    "DateTime": pa.string(),
}

# the types that differ from these in the mirrored table; Delta has no time of day
_MIRRORED_TEXT_TYPES = {"DateTime": _UTC, "ITime": pa.string()}


@dataclass(frozen=True)
class Rows:
    """A data file that has been opened.

    Args:
        name: the name of the file
        schema: the schema of the mirrored columns
        marked: whether the row marker follows these columns, as INT32
        read: reads the file from its beginning, in batches with these columns
    """

    name: str
    schema: pa.Schema
    marked: bool
    read: Callable[[pa.Schema], Iterable[pa.RecordBatch]]

    @property
    def columns(self) -> pa.Schema:
        """The schema of the batches."""
        return self.schema.append(MARKER) if self.marked else self.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the order of the file, with the row marker if there is one.

        A batch has about 64 MiB at most, or one row. The size of the rows of a Parquet file is
        estimated.

        Raises:
            TableError: if the file is corrupt
        """
        with _readable(self.name):
            for batch in self.read(self.columns):
                yield batch.cast(self.columns)


def open_rows(path: Path, text: TextFormat | None) -> Rows:
    """Open a data file.

    Args:
        path: the path of the file
        text: the format of delimited text; None for Parquet

    Raises:
        FileNotFoundError: if there is no such file
        TableError: if it is not a regular file, is empty or corrupt, or has columns that cannot be
            mirrored
    """
    if checked(path).lstat().st_size == 0:
        raise unreadable(path.name, "it has zero bytes")
    return _text_rows(path, text) if text else _parquet_rows(path)


def _parquet_rows(path: Path) -> Rows:
    with _readable(path.name), _parquet(path) as parquet:
        schema, columns = parquet.schema_arrow, parquet.schema
    _check_names(path.name, schema.names)
    leaves = map(columns.column, range(len(columns)))
    int96 = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
    mirrored = [
        pa.field(
            column.name,
            _UTC if column.name in int96 else _mirrored_type(path.name, column),
            column.nullable,
        )
        for column in schema
        if column.name != ROW_MARKER
    ]

    def read(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        with _parquet(path) as parquet:
            for group in range(parquet.num_row_groups):
                at_once = _rows_at_once(parquet, group, schema)
                yield from parquet.iter_batches(at_once, [group], use_threads=False)

    return Rows(path.name, pa.schema(mirrored), ROW_MARKER in schema.names, read)


@contextmanager
def _parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file.

    Arrow opens it itself. It also reads in threads that Python does not know, and these abort a
    process that ends while they read or close a file of Python's.
    """
    with pa.OSFile(str(path)) as file:
        # INT96 declares no unit; Arrow would read nanoseconds
        yield pq.ParquetFile(file, coerce_int96_timestamp_unit="us", pre_buffer=False)


def _rows_at_once(parquet: pq.ParquetFile, group: int, schema: pa.Schema) -> int:
    """Return how many rows of a row group have about _AT_ONCE bytes.

    A dictionary stores a value once, however many rows repeat it. So the average size in the file
    is not enough, and the first rows are measured too.
    """
    footer = parquet.metadata.row_group(group)
    sample = next(parquet.iter_batches(_SAMPLE, [group], use_threads=False), None)
    if not sample:
        return _BATCH
    size = max(
        sample.cast(schema).nbytes / sample.num_rows, footer.total_byte_size / footer.num_rows
    )
    return max(1, min(_BATCH, int(_AT_ONCE / max(1, size))))


def _mirrored_type(file: str, column: pa.Field) -> pa.DataType:
    """Return the type of a Parquet column in the mirrored table.

    Raises:
        TableError: if the type is complex, since the specification requires a JSON string then
            (section "Column types"), or if Delta does not have the type
    """
    kind, is_ = column.type, pa.types
    if is_.is_dictionary(kind):
        kind = kind.value_type
    if is_.is_timestamp(kind):
        return _UTC if kind.tz else pa.timestamp("us")
    if is_.is_string(kind) or is_.is_large_string(kind) or is_.is_string_view(kind):
        return pa.string()
    if is_.is_binary(kind) or is_.is_large_binary(kind) or is_.is_binary_view(kind):
        return pa.binary()
    if is_.is_fixed_size_binary(kind):
        return pa.binary()
    if is_.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
    same = (pa.bool_(), pa.float32(), pa.float64(), pa.date32())
    if is_.is_signed_integer(kind) or kind in same:
        return kind
    if kind in _WIDER:
        return _WIDER[kind]
    raise TableError(
        "UnsupportedType",
        f"{file}: the column {column.name!r} has the type {column.type}, which cannot be "
        "mirrored. Complex types land as JSON strings.",
    )


def _text_rows(path: Path, text: TextFormat) -> Rows:
    """Open a delimited text file with the columns of `SchemaDefinition`.

    A declared column that is missing in the file is NULL. An undeclared column is not read.
    """
    with _readable(path.name), _delimited(path, text) as header:
        names = header.schema.names
    _check_names(path.name, names)
    types = {column.name: _TEXT_TYPES[column.data_type] for column in text.columns}
    schema = pa.schema(
        pa.field(c.name, _MIRRORED_TEXT_TYPES.get(c.data_type, types[c.name]), c.nullable)
        for c in text.columns
    )

    def read(schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        convert = pacsv.ConvertOptions(
            column_types={**types, ROW_MARKER: pa.int32()},
            include_columns=[name for name in schema.names if name in names],
            null_values=[text.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["true", "True", "TRUE", "1"],
            false_values=["false", "False", "FALSE", "0"],
        )
        at_once = max(1, _VALUES // (len(schema) + 1))
        with _delimited(path, text, convert) as batches:
            for batch in batches:
                for start in range(0, batch.num_rows, at_once):
                    yield _as_declared(batch.slice(start, at_once), schema)

    return Rows(path.name, schema, ROW_MARKER in names, read)


@contextmanager
def _delimited(
    path: Path, text: TextFormat, convert: pacsv.ConvertOptions | None = None
) -> Iterator[pacsv.CSVStreamingReader]:
    quoted = bool(text.quote)
    parse = pacsv.ParseOptions(
        delimiter=text.column_separator,
        quote_char=text.quote if quoted else False,
        double_quote=quoted and text.escape == text.quote,
        escape_char=text.escape if text.escape and text.escape != text.quote else False,
        newlines_in_values=quoted,
    )
    read = pacsv.ReadOptions(encoding=text.encoding, use_threads=False, block_size=_BLOCK)
    codec = {".gz": "gzip", ".zst": "zstd"}.get(path.suffix)
    with (
        pa.input_stream(str(path), compression=codec) as file,
        pacsv.open_csv(file, read, parse, convert) as reader,
    ):
        yield reader


def _as_declared(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Add the declared columns that the file lacks, and convert timestamps."""
    columns = {}
    for column in schema:
        if column.name not in batch.schema.names:
            columns[column.name] = pa.nulls(batch.num_rows, column.type)
        else:
            values = batch.column(column.name)
            columns[column.name] = _in_utc(values) if column.type == _UTC else values
    return pa.RecordBatch.from_pydict(columns)


def _in_utc(times: pa.Array) -> pa.Array:
    """Convert the text of timestamps; those without a zone are in UTC."""
    zoned = pc.match_substring_regex(times, r"(Z|[+-]\d\d:?\d\d)$")
    return pc.if_else(zoned, times, pc.binary_join_element_wise(times, "Z", "")).cast(_UTC)


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Convert the errors of Arrow that a corrupt file causes."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(name, error) from None


def _check_names(file: str, names: list[str]) -> None:
    """Make sure that a table can have the columns of a file.

    Raises:
        TableError: if two names differ at most in case, or the row marker is not the last column
    """
    if ROW_MARKER in names and names[-1] != ROW_MARKER:
        raise TableError("InputValidationError", f"{file}: {ROW_MARKER} must be the last column.")
    if both := clash(names):
        raise TableError("SchemaMergeFailure", f"{file} has the columns {both}.")
