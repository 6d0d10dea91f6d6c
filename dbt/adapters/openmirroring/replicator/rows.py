"""The rows of data files: with the column types of the mirrored table, and as net changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.folder import checked
from dbt.adapters.openmirroring.replicator.metadata import TEXT_TYPES, TextFormat, clash

ROW_MARKER = "__rowMarker__"
MARKER = pa.field(ROW_MARKER, pa.int32())

# Additional bytes per row while operations are reduced: the number of its key, its position, and
# the last position of this key.
_NUMBERS = 32

_UTC = pa.timestamp("us", "UTC")

# rows of a Parquet file that are read at once, and the maximum of their bytes in Arrow's format
_BATCH = 32_768
_AT_ONCE = 64 * 2**20

# bytes of text that are read at once, which is also the maximum size of a row
_BLOCK = 32 * 2**20

# the types of Parquet columns in the mirrored table, but for those with parameters
_MIRRORED_TYPES = {
    **{kind: kind for kind in (pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{kind: kind for kind in (pa.float32(), pa.float64(), pa.date32())},
    **dict.fromkeys((pa.string(), pa.large_string(), pa.string_view()), pa.string()),
    **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), pa.binary()),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}

# the types of text that differ from `TEXT_TYPES` in the mirrored table; Delta has no time of day
_MIRRORED_TEXT_TYPES = {"DateTime": _UTC, "ITime": pa.string()}


class Marker(IntEnum):
    """The row markers (specification, "Format requirements")."""

    INSERT = 0
    UPDATE = 1
    DELETE = 2
    UPSERT = 4


@dataclass(frozen=True)
class Rows:
    """A data file that has been opened.

    Args:
        name: the name of the file
        schema: the schema of the mirrored columns
        marked: whether the row marker follows these columns, as INT32
        read: reads the file from its beginning, in batches with these columns
        row_size: the average bytes of a row of a Parquet file
    """

    name: str
    schema: pa.Schema
    marked: bool
    read: Callable[[pa.Schema], Iterable[pa.RecordBatch]]
    row_size: float = 0

    @property
    def columns(self) -> pa.Schema:
        """The schema of the batches."""
        return self.schema.append(MARKER) if self.marked else self.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the order of the file, with the row marker if there is one.

        Raises:
            TableError: if the file is corrupt
        """
        with _readable(self.name):
            for batch in self.read(self.columns):
                yield batch.cast(self.columns)


def open_rows(path: Path, text: TextFormat | None) -> Rows:
    """Open a data file.

    Args:
        text: the format of delimited text; None for Parquet

    Raises:
        TableError: if it is no regular file, is empty or corrupt, or cannot be mirrored
    """
    if checked(path).lstat().st_size == 0:
        raise _unreadable(path.name, "it has zero bytes")
    return _text_rows(path, text) if text else _parquet_rows(path)


def _parquet_rows(path: Path) -> Rows:
    with _readable(path.name), _parquet(path) as parquet:
        schema, columns, footer = parquet.schema_arrow, parquet.schema, parquet.metadata
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
    groups = map(footer.row_group, range(footer.num_row_groups))
    row_size = max(1, sum(group.total_byte_size for group in groups) / max(1, footer.num_rows))
    at_once = max(1, min(_BATCH, int(_AT_ONCE / row_size)))

    def read(_: pa.Schema) -> Iterator[pa.RecordBatch]:
        with _parquet(path) as parquet:
            # batches of two row groups would need twice the memory
            for group in range(parquet.num_row_groups):
                yield from parquet.iter_batches(at_once, [group], use_threads=False)

    return Rows(path.name, pa.schema(mirrored), ROW_MARKER in schema.names, read, row_size)


@contextmanager
def _parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file.

    Arrow opens it itself. It also reads in threads that Python does not know, and these abort a
    process that ends while they read or close a file of Python's.
    """
    with pa.OSFile(str(path)) as file:
        # INT96 declares no unit; Arrow would read nanoseconds
        yield pq.ParquetFile(file, coerce_int96_timestamp_unit="us", pre_buffer=False)


def _mirrored_type(file: str, column: pa.Field) -> pa.DataType:
    """Return the type of a Parquet column in the mirrored table.

    Raises:
        TableError: if the type is complex, since the specification requires a JSON string then
            (section "Column types"), or if Delta does not have the type
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if kind in _MIRRORED_TYPES:
        return _MIRRORED_TYPES[kind]
    if pa.types.is_timestamp(kind):
        return _UTC if kind.tz else pa.timestamp("us")
    if pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_decimal(kind) and kind.precision <= 38:
        return pa.decimal128(kind.precision, kind.scale)
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
    types = {column.name: TEXT_TYPES[column.data_type] for column in text.columns}
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
        with _delimited(path, text, convert) as batches:
            for batch in batches:
                yield _as_declared(batch, schema)

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
        raise _unreadable(name, error) from None


def _unreadable(name: str, reason: object) -> TableError:
    return TableError(
        "InputValidationError",
        f"{name} cannot be read: {reason}. The files after it wait until a valid file of the same "
        "name is in its place.",
    )


def _check_names(file: str, names: list[str]) -> None:
    """Check that two names do not differ only in case, and that the row marker comes last."""
    if ROW_MARKER in names and names[-1] != ROW_MARKER:
        raise TableError("InputValidationError", f"{file}: {ROW_MARKER} must be the last column.")
    if both := clash(names):
        raise TableError("SchemaMergeFailure", f"{file} has the columns {both}.")


def check_operations(rows: pa.Table, keys: tuple[str, ...]) -> None:
    """Check that row markers are known, and that operations that need keys have them."""
    marker = rows[ROW_MARKER]
    unknown = pc.invert(pc.is_in(marker, pa.array([int(known) for known in Marker], pa.int32())))
    if pc.any(unknown).as_py():
        raise TableError(
            "InputValidationError", f"{marker.filter(unknown)[0]} is not a row marker."
        )
    if _all_are_inserts(marker):
        return
    if not keys:
        raise TableError(
            "InputValidationError",
            "Updates and deletes require keyColumns in _metadata.json.",
        )
    for key in keys:
        if rows[key].null_count:
            raise TableError("InputValidationError", f"The key column {key!r} is NULL in a row.")


def net_changes(rows: pa.Table, keys: tuple[str, ...]) -> pa.Table:
    """Reduce a sequence of operations to its net changes.

    For each key only its last update, upsert or delete counts, and the inserts after it. If
    inserts have added several rows with one key, an update leaves one row, and a delete none.

    Args:
        rows: the checked operations in the order of the files, with the row marker

    Returns:
        the operations that count; at most one for each key is no insert
    """
    marker = rows[ROW_MARKER].combine_chunks()
    if _all_are_inserts(marker):
        return rows
    key = _numbered([rows[name].combine_chunks() for name in keys])
    position = pc.cumulative_sum(pa.repeat(pa.scalar(1, pa.int64()), len(rows)))
    changed = pc.if_else(pc.equal(marker, int(Marker.INSERT)), 0, position)
    by_key = pa.table({"key": key, "changed": changed}).group_by("key")
    last = by_key.aggregate([("changed", "max")]).sort_by("key")["changed_max"]
    return rows.filter(pc.greater_equal(position, last.take(key)))


def _all_are_inserts(marker: pa.Array | pa.ChunkedArray) -> bool:
    return bool(pc.all(pc.equal(marker, int(Marker.INSERT)), min_count=0).as_py())


def weight(rows: pa.Table | pa.RecordBatch) -> int:
    """Return the bytes of memory needed to reduce rows to their net changes."""
    return int(rows.nbytes) + _NUMBERS * int(rows.num_rows)


def marked(rows: pa.Table, marker: Marker) -> pa.Table:
    """Append the same row marker to all rows, as their last column."""
    markers = pa.repeat(pa.scalar(int(marker), pa.int32()), len(rows))
    return rows.append_column(ROW_MARKER, markers)


def _numbered(columns: list[pa.Array]) -> pa.Array:
    """Return a number for each row. Rows with the same values have the same, from 0 upwards."""
    numbers = pa.repeat(pa.scalar(0, pa.int64()), len(columns[0]))
    for column in columns:
        values = column.dictionary_encode()
        pairs = pc.add(
            pc.multiply(numbers, len(values.dictionary)), values.indices.cast(pa.int64())
        )
        numbers = pairs.dictionary_encode().indices.cast(pa.int64())
    return numbers
