"""Row counts of staged Parquet files, read from their footers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dbt.adapters.openmirroring.landing_zone.batch import StagedFile
from dbt.adapters.openmirroring.landing_zone.layout import ROW_MARKER
from dbt.adapters.openmirroring.landing_zone.plan import FileRows
from dbt.adapters.openmirroring.spark.table import parquet_reader


def rows_in(folder: Path, files: Sequence[StagedFile]) -> list[FileRows] | None:
    """Count the rows of each row marker in files. Return None if the footers do not tell.

    The footers tell if the files have no row markers, or if all rows of each row group have the
    same one. Reading footers requires pyarrow.

    Args:
        folder: the folder of the files
    """
    parquet = parquet_reader()
    if not parquet:
        return None
    found = []
    for file in files:
        footer = parquet.read_metadata(folder / file.name)
        names = [footer.schema.column(i).path for i in range(footer.num_columns)]
        if ROW_MARKER not in names:
            found.append(FileRows(file.name, None, footer.num_rows))
            continue
        for i in range(footer.num_row_groups):
            group = footer.row_group(i)
            statistics = group.column(names.index(ROW_MARKER)).statistics
            if not statistics or statistics.null_count or statistics.min != statistics.max:
                return None
            found.append(FileRows(file.name, statistics.min, group.num_rows))
    return [each for each in found if each.rows]
