"""The rows of a data file, in the types that the mirrored table has for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from dbt.adapters.openmirroring.replicator.errors import TableError, unreadable
from dbt.adapters.openmirroring.replicator.metadata import TextColumn, TextFormat, clash

ROW_MARKER = "__rowMarker__"

# rows, of a file that is streamed
_BATCH = 32_768

# bytes of delimited text that are read at once: no row can be larger
_BLOCK = 32 * 2**20

_UTC = pa.timestamp("us", "UTC")

_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}

# what Arrow's reader makes of delimited text, and what becomes of some of that
_CONVERTED = {"DateTime": _UTC, "ITime": pa.string()}
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
    # Arrow's reader wants all of them with a zone, or none
    "DateTime": pa.string(),
}


@dataclass
class Rows:
    """A data file that has been opened.

    Args:
        name: of the file
        schema: of the mirrored columns
        marked: whether the row marker follows, as INT32
    """

    name: str
    schema: pa.Schema
    marked: bool
    _batches: Iterator[pa.RecordBatch]

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in the file's order, with the row marker if there is one.

        Raises:
            TableError: the file is corrupt
        """
        schema = self.schema
        if self.marked:
            schema = schema.append(pa.field(ROW_MARKER, pa.int32()))
        try:
            for batch in self._batches:
                yield batch.cast(schema)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise unreadable(self.name, error) from None


def parquet_rows(name: str, file: BinaryIO) -> Rows:
    """Open a Parquet file.

    Raises:
        TableError: it is not one, or has columns that cannot be mirrored
    """
    try:
        # INT96 has no unit and no zone of its own
        parquet = pq.ParquetFile(file, coerce_int96_timestamp_unit="us", pre_buffer=False)
        schema = parquet.schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise unreadable(name, error) from None
    _check_names(name, schema.names)
    physical = {
        column.path: column.physical_type
        for column in map(parquet.schema.column, range(len(parquet.schema)))
    }
    mirrored = [
        pa.field(
            column.name, _mirrored_type(name, column, physical.get(column.name)), column.nullable
        )
        for column in schema
        if column.name != ROW_MARKER
    ]
    batches = parquet.iter_batches(batch_size=_BATCH, use_threads=False)
    return Rows(name, pa.schema(mirrored), ROW_MARKER in schema.names, batches)


def text_rows(name: str, open_file: Callable[[], BinaryIO], text: TextFormat) -> Rows:
    """Open a delimited text file: its columns are those of `SchemaDefinition`.

    A column that is declared and not in the file is NULL; one that is not declared is not read.

    Raises:
        TableError: it has no header, or no line at all
    """
    quoted = bool(text.quote)
    parse = pacsv.ParseOptions(
        delimiter=text.column_separator,
        quote_char=text.quote if quoted else False,
        double_quote=quoted and text.escape == text.quote,
        escape_char=text.escape if text.escape and text.escape != text.quote else False,
        newlines_in_values=quoted,
    )
    read = pacsv.ReadOptions(encoding=text.encoding, use_threads=False, block_size=_BLOCK)
    try:
        with pacsv.open_csv(_uncompressed(name, open_file()), read, parse) as header:
            names = header.schema.names
        _check_names(name, names)
        marked = ROW_MARKER in names
        types = {column.name: _TEXT_TYPES[column.data_type] for column in text.columns}
        convert = pacsv.ConvertOptions(
            column_types={**types, ROW_MARKER: pa.int32()},
            include_columns=[*types, ROW_MARKER] if marked else [*types],
            include_missing_columns=True,
            null_values=[text.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            true_values=["true", "True", "TRUE", "1"],
            false_values=["false", "False", "FALSE", "0"],
        )
        batches = pacsv.open_csv(_uncompressed(name, open_file()), read, parse, convert)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(name, error) from None
    schema = pa.schema(
        pa.field(
            column.name, _CONVERTED.get(column.data_type, types[column.name]), column.nullable
        )
        for column in text.columns
    )
    return Rows(name, schema, marked, (_typed(batch, text.columns) for batch in batches))


def _uncompressed(name: str, file: BinaryIO) -> Any:
    for extension, codec in ((".gz", "gzip"), (".zst", "zstd")):
        if name.endswith(extension):
            return pa.CompressedInputStream(file, codec)
    return file


def _typed(batch: pa.RecordBatch, columns: tuple[TextColumn, ...]) -> pa.RecordBatch:
    """The columns that Arrow's reader cannot read as what they become."""
    for index, column in enumerate(columns):
        if column.data_type == "DateTime":
            text = batch.column(index)
            zoned = pc.match_substring_regex(text, r"(Z|[+-]\d\d:?\d\d)$")
            utc = pc.if_else(zoned, text, pc.binary_join_element_wise(text, "Z", ""))
            batch = batch.set_column(index, column.name, utc.cast(_UTC))
        elif column.data_type == "ITime":
            # Delta has no time of day
            batch = batch.set_column(index, column.name, batch.column(index).cast(pa.string()))
    return batch


def _check_names(file: str, names: list[str]) -> None:
    if ROW_MARKER in names and names[-1] != ROW_MARKER:
        raise TableError("InputValidationError", f"{file}: {ROW_MARKER} must be the last column.")
    clashing = clash(names)
    if clashing:
        one, other = clashing
        raise TableError(
            "SchemaMergeFailure",
            f"{file} has the columns {one!r} and {other!r}: one table cannot have both.",
        )


def _mirrored_type(file: str, column: pa.Field, physical: str | None) -> pa.DataType:
    """The type of a Parquet column in the mirrored table.

    Raises:
        TableError: a complex type, which the specification wants as a JSON string (section
            "Column types"), or one that Delta does not have
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if physical == "INT96":
        return _UTC
    if pa.types.is_timestamp(kind):
        return _UTC if kind.tz else pa.timestamp("us")
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
