"""Files of a snapshot that a full load can publish unchanged, so that no row is written twice.

Spark writes the files of a Parquet table as the landing zone needs them, unless a column must be
converted or is not nullable. The footers of the files show this.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dbt.adapters.openmirroring.landing_zone.batch import TableDefinition
from dbt.adapters.openmirroring.spark.table import data_files, parquet_reader
from dbt.adapters.openmirroring.types.parsed import decimal_of

if TYPE_CHECKING:
    from pyarrow import Schema
    from pyarrow.parquet import ParquetFile

# Arrow's names for Spark's types as stored in a file
_ARROW_TYPES = {
    "boolean": "bool",
    "tinyint": "int8",
    "smallint": "int16",
    "int": "int32",
    "bigint": "int64",
    "string": "string",
    "binary": "binary",
    "float": "float",
    "double": "double",
    "date": "date32[day]",
    "timestamp": "timestamp[us, tz=UTC]",
}
_CODECS = {"none": "UNCOMPRESSED"}

# decimals with more digits are stored as bytes
_INTEGER_DIGITS = 18

# If there are more files than _FEW, and they are on average smaller than this fraction of the
# target size, they are joined. Joining fewer files is not worth a Spark job.
_FEW = 8
_SMALL = 0.25


def link_files(paths: Sequence[Path], folder: Path) -> bool:
    """Hard-link files into a folder, in their order. Return False if the file system refuses."""
    folder.mkdir(parents=True, exist_ok=True)
    links = [folder / f"part-{number:05}.parquet" for number in range(len(paths))]
    try:
        for path, link in zip(paths, links, strict=True):
            os.link(path, link)
    except OSError:
        for link in links:
            link.unlink(missing_ok=True)
        return False
    return True


def ready_files(
    folder: Path, definition: TableDefinition, compression: str, target_bytes: int
) -> list[Path] | None:
    """Return the files of a table if a full load would write equivalent files, otherwise None.

    They are files with rows, or one file without rows. Reading their footers requires pyarrow.

    Args:
        folder: the folder of the table's files
        definition: the definition of the mirrored table
        compression: the compression as in the node's configuration
        target_bytes: target size of a file, in bytes
    """
    parquet = parquet_reader()
    if definition.landing_format != "parquet" or not parquet:
        return None
    if any(column.type != column.landed_type for column in definition.columns):
        return None
    found = []
    for path in sorted(data_files(folder)):
        if path.parent != folder:  # files of a partition lack the partition's value
            return None
        with parquet.ParquetFile(path) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            codecs = {
                group.column(i).compression for group in groups for i in range(group.num_columns)
            }
            if not _has_columns(file.schema_arrow, definition) or _is_legacy(file):
                return None
            if codecs - {_CODECS.get(compression, compression.upper())}:
                return None
            found.append((path, file.metadata.num_rows))
    paths = [path for path, rows in found if rows] or [path for path, _ in found[:1]]
    return paths if _fit([path.stat().st_size for path in paths], target_bytes) else None


def _has_columns(schema: Schema, definition: TableDefinition) -> bool:
    found = [(field.name, str(field.type), field.nullable) for field in schema]
    return found == [
        (column.name, _arrow_type(column.landed_type), True) for column in definition.columns
    ]


def _is_legacy(file: ParquetFile) -> bool:
    """Check whether a file was written as older versions of Spark and Hive do.

    The user's own code may have set that. Spark notes a Julian calendar in the footer, and stores
    every decimal as bytes.
    """
    names = file.metadata.metadata or {}
    if any(name.startswith(b"org.apache.spark.legacy") for name in names):
        return True
    leaves = [file.schema.column(i) for i in range(len(file.schema))]
    return any(
        leaf.logical_type.type == "DECIMAL"
        and leaf.precision <= _INTEGER_DIGITS
        and leaf.physical_type not in ("INT32", "INT64")
        for leaf in leaves
    )


def _arrow_type(spark_type: str) -> str:
    decimal = decimal_of(spark_type)
    if decimal:
        return f"decimal128({decimal[0]}, {decimal[1]})"
    return _ARROW_TYPES.get(spark_type, "")


def _fit(sizes: list[int], target_bytes: int) -> bool:
    if not sizes or max(sizes) > 2 * target_bytes:
        return False
    return len(sizes) <= _FEW or sum(sizes) >= _SMALL * target_bytes * len(sizes)
