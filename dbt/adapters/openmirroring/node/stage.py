"""4. Writing the files of a batch to the scratch pad, or linking ready ones, and counting rows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dbt.adapters.openmirroring.landing_zone.batch import StagedFile, TableDefinition
from dbt.adapters.openmirroring.landing_zone.layout import ROW_MARKER
from dbt.adapters.openmirroring.landing_zone.plan import ROWS, FileRows
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.node.node import Node
from dbt.adapters.openmirroring.node.plan import SparkPlan
from dbt.adapters.openmirroring.node.progress import WRITING
from dbt.adapters.openmirroring.node.snapshot.reuse import NextSnapshot
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.table import (
    TableDescription,
    data_files,
    local_path,
    parquet_reader,
)
from dbt.adapters.openmirroring.types.parsed import decimal_of

if TYPE_CHECKING:
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


def stage(
    node: Node, publication: Publication, plan: SparkPlan, built: NextSnapshot
) -> list[StagedFile]:
    """Write the files of a batch: a full load or a change set.

    Returns:
        the files in publication order, without files that have no rows. If no file has rows, the
        first one is kept: it tells the service the columns of an empty table, or a new column
        without values

    Raises:
        MirrorError: if the files do not have the planned rows
    """
    if plan.publication == "unchanged":
        return []
    node.warehouse.adapter.progress.show_step(WRITING)
    url, files = publication.staging_url(ROWS), publication.staged_files
    if not _link_ready_files(node, url, plan, built.description):
        _write(node, url, plan, built)
    staged = files.written(plan)
    return files.verified(plan, staged, _count(node.warehouse, url, plan, staged))


def _link_ready_files(node: Node, url: str, plan: SparkPlan, built: TableDescription) -> bool:
    """Hard-link the next snapshot's files as a full load. Return False if they are not ready."""
    staging, folder, options = local_path(url), built.folder, node.options
    if not (plan.starts_folder and staging and folder and node.warehouse.is_driven_here):
        return False
    if built.layout.format != "parquet":
        return False
    ready = ready_files(folder, plan.definition, options.compression, options.target_file_size)
    return ready is not None and link_files(ready, staging)


def _write(node: Node, url: str, plan: SparkPlan, built: NextSnapshot) -> None:
    warehouse, options, table, columns = node.warehouse, node.options, built.table, built.columns
    size = warehouse.known_bytes(table, built.description)
    if size is None:
        size = warehouse.count("mirror_table_bytes", table=table)
    table_rows = plan.row_count
    if not plan.starts_folder and size > options.target_file_size:
        table_rows = warehouse.count_rows(table)
    count, rows_per_file = plan.files(size, table_rows, options.target_file_size)
    if plan.starts_folder:
        rows = warehouse.sql("mirror_load", table=table, columns=columns, files=count)
    else:
        keyed = "keyed" if plan.definition.key_columns else "keyless"
        changed = built.reuse.after(table)
        rows = warehouse.sql(
            f"mirror_changes_{keyed}", rows=changed, columns=columns, plan=plan, files=count
        )
    if plan.text:
        rows = warehouse.sql(
            "mirror_lines", rows=rows, columns=columns, plan=plan, rows_per_file=rows_per_file
        )
    warehouse.run(
        "mirror_write_files",
        url=url,
        rows=rows,
        text=plan.text,
        compression=options.compression,
        rows_per_file=rows_per_file,
    )


def _count(
    warehouse: Warehouse, url: str, plan: SparkPlan, staged: Sequence[StagedFile]
) -> list[FileRows]:
    if plan.definition.delimited:
        # a query cannot pass options to the reader of a folder, but a view can
        warehouse.run("mirror_staged_lines", url=url, plan=plan)
        counts = warehouse.read("mirror_count_lines", plan=plan)
    else:
        folder = local_path(url)
        found = rows_in(folder, staged) if folder and folder.is_dir() else None
        if found is not None:
            return found
        counts = warehouse.read("mirror_count_files", url=url, plan=plan)
    return [
        FileRows(
            str(row["file"]),
            None if row["marker"] is None else int(row["marker"]),
            int(row["found"]),
        )
        for row in counts.rows
    ]


def rows_in(folder: Path, files: Sequence[StagedFile]) -> list[FileRows] | None:
    """Count the rows of each row marker in files. Return None without pyarrow, which reads them.

    Footers tell how many rows a file has. Of its columns only the row markers are read.
    """
    if not parquet_reader():
        return None
    return [found for file in files for found in _rows_of(folder / file.name)]


def _rows_of(path: Path) -> list[FileRows]:
    counts: Counter[int | None] = Counter()
    with parquet_reader().ParquetFile(path) as file:
        if ROW_MARKER in file.schema_arrow.names:
            for batch in file.iter_batches(columns=[ROW_MARKER]):
                for each in batch.column(0).value_counts().to_pylist():
                    counts[each["values"]] += each["counts"]
        else:
            counts[None] = file.metadata.num_rows
    return [FileRows(path.name, marker, rows) for marker, rows in counts.items() if rows]


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

    Spark writes the files of a Parquet table as the landing zone needs them, unless a column must
    be converted or is not nullable. Their footers show this, so that no row is written twice.
    They are files with rows, or one file without rows. Reading their footers requires pyarrow.
    """
    parquet = parquet_reader()
    if definition.landing_format != "parquet" or not parquet:
        return None
    if any(column.type != column.landed_type for column in definition.columns):
        return None
    columns = [(c.name, _arrow_type(c.landed_type), True) for c in definition.columns]
    found = []
    for path in sorted(data_files(folder)):
        if path.parent != folder:  # files of a partition lack the partition's value
            return None
        with parquet.ParquetFile(path) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            codecs = {
                group.column(i).compression for group in groups for i in range(group.num_columns)
            }
            fields = [(each.name, str(each.type), each.nullable) for each in file.schema_arrow]
            if fields != columns or _is_legacy(file):
                return None
            if codecs - {_CODECS.get(compression, compression.upper())}:
                return None
            found.append((path, file.metadata.num_rows))
    paths = [path for path, rows in found if rows] or [path for path, _ in found[:1]]
    sizes = [path.stat().st_size for path in paths]
    if not sizes or max(sizes) > 2 * target_bytes:
        return None
    are_large = sum(sizes) >= _SMALL * target_bytes * len(sizes)
    return paths if len(sizes) <= _FEW or are_large else None


def _is_legacy(file: ParquetFile) -> bool:
    """Check whether a file is as older versions of Spark and Hive write it, if users set that."""
    names = file.metadata.metadata or {}
    # a Julian calendar is noted in the footer, and every decimal is stored as bytes
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
