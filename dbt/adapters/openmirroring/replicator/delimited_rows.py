"""The rows of a delimited text file."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from dbt.adapters.openmirroring.replicator.errors import unreadable
from dbt.adapters.openmirroring.replicator.metadata import TextFormat
from dbt.adapters.openmirroring.replicator.rows import (
    ROW_MARKER,
    UTC,
    OpenFile,
    Rows,
    check_names,
)

# bytes of text that are read at once, which is also the maximum size of a row
_BLOCK = 32 * 2**20

# Maximum number of values in a batch. A limit in bytes is not enough, because a column that is
# missing in the file takes no bytes there.
_VALUES = 2**22

# The types that Arrow's reader converts text to, and the final types of columns that are
# converted again afterwards.
_CONVERTED = {"DateTime": UTC, "ITime": pa.string()}
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
    # Arrow's reader accepts a column only if all of its values have a zone, or none has
    "DateTime": pa.string(),
}


def text_rows(name: str, size: int, open_file: OpenFile, text: TextFormat) -> Rows:
    """Open a delimited text file with the columns of `SchemaDefinition`.

    A declared column that is missing in the file is NULL. An undeclared column is not read.

    Raises:
        TableError: if the file is empty or has no valid header
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
        with (
            open_file() as file,
            pacsv.open_csv(_uncompressed(name, file), read, parse) as header,
        ):
            names = header.schema.names
    except (pa.ArrowException, OSError, ValueError) as error:
        raise unreadable(name, error) from None
    check_names(name, names)
    marked = ROW_MARKER in names
    types = {column.name: _TEXT_TYPES[column.data_type] for column in text.columns}
    found = [column.name for column in text.columns if column.name in names]
    convert = pacsv.ConvertOptions(
        column_types={**types, ROW_MARKER: pa.int32()},
        include_columns=[*found, ROW_MARKER] if marked else found,
        null_values=[text.null],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=["true", "True", "TRUE", "1"],
        false_values=["false", "False", "FALSE", "0"],
    )

    def batches() -> Iterator[pa.RecordBatch]:
        at_once = max(1, _VALUES // (len(types) + 1))
        with (
            open_file() as file,
            pacsv.open_csv(_uncompressed(name, file), read, parse, convert) as reader,
        ):
            for batch in reader:
                for start in range(0, batch.num_rows, at_once):
                    yield _as_declared(batch.slice(start, at_once), text, marked)

    schema = pa.schema(
        pa.field(
            column.name, _CONVERTED.get(column.data_type, types[column.name]), column.nullable
        )
        for column in text.columns
    )
    return Rows(name, size, schema, marked, batches)


def _uncompressed(name: str, file: pa.NativeFile) -> pa.NativeFile:
    for extension, codec in ((".gz", "gzip"), (".zst", "zstd")):
        if name.endswith(extension):
            return pa.CompressedInputStream(file, codec)
    return file


def _as_declared(batch: pa.RecordBatch, text: TextFormat, marked: bool) -> pa.RecordBatch:
    columns = {}
    for column in text.columns:
        if column.name in batch.schema.names:
            columns[column.name] = _typed(batch.column(column.name), column.data_type)
        else:
            kind = _CONVERTED.get(column.data_type, _TEXT_TYPES[column.data_type])
            columns[column.name] = pa.nulls(batch.num_rows, kind)
    if marked:
        columns[ROW_MARKER] = batch.column(ROW_MARKER)
    return pa.RecordBatch.from_pydict(columns)


def _typed(values: pa.Array, data_type: str) -> pa.Array:
    """Convert a column whose final type Arrow's reader cannot read directly."""
    if data_type == "DateTime":
        zoned = pc.match_substring_regex(values, r"(Z|[+-]\d\d:?\d\d)$")
        utc = pc.if_else(zoned, values, pc.binary_join_element_wise(values, "Z", ""))
        return utc.cast(UTC)
    if data_type == "ITime":
        # Delta has no time of day
        return values.cast(pa.string())
    return values
