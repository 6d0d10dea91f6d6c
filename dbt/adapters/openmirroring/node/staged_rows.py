"""Row counts of staged Parquet files that this process sees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dbt.adapters.openmirroring.landing_zone.batch import StagedFile
from dbt.adapters.openmirroring.landing_zone.layout import ROW_MARKER
from dbt.adapters.openmirroring.landing_zone.plan import FileRows
from dbt.adapters.openmirroring.spark.table import parquet_reader


def rows_in(folder: Path, files: Sequence[StagedFile]) -> list[FileRows] | None:
    """Count the rows of each row marker in files. Return None without pyarrow, which reads them.

    Footers tell how many rows a file has. Of its columns only the row markers are read.

    Args:
        folder: the folder of the files
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
