"""4. Writing the files of a batch to the scratch pad, and counting their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from dbt.adapters.openmirroring.landing_zone.batch import StagedFile
from dbt.adapters.openmirroring.landing_zone.layout import ROW_MARKER
from dbt.adapters.openmirroring.landing_zone.plan import FileRows
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.staged_files import ROWS
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.plan import SparkPlan
from dbt.adapters.openmirroring.node.progress import WRITING
from dbt.adapters.openmirroring.node.snapshot.ready_files import link_files, ready_files
from dbt.adapters.openmirroring.node.snapshot.reuse import NextSnapshot
from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.spark.table import TableDescription, local_path, parquet_reader


def stage(
    warehouse: Warehouse,
    publication: Publication,
    plan: SparkPlan,
    options: NodeConfig,
    built: NextSnapshot,
) -> list[StagedFile]:
    """Write the files of a batch: a full load or a change set.

    Args:
        built: the next snapshot

    Returns:
        the files in publication order, without files that have no rows. If no file has rows, the
        first one is kept: it tells the service the columns of an empty table, or a new column
        without values

    Raises:
        MirrorError: if the files do not have the planned rows
    """
    if plan.publication == "unchanged":
        return []
    warehouse.show_step(WRITING)
    if not _link_ready_files(warehouse, publication, plan, options, built.description):
        _write(warehouse, publication, plan, options, built)
    files = publication.staged_files
    staged = files.written(plan)
    return files.verified(plan, staged, _count(warehouse, publication, plan, staged))


def _link_ready_files(
    warehouse: Warehouse,
    publication: Publication,
    plan: SparkPlan,
    options: NodeConfig,
    description: TableDescription,
) -> bool:
    """Hard-link the next snapshot's files as a full load. Return False if they are not ready."""
    staging = local_path(publication.staging_url(ROWS))
    folder = description.folder
    if not (plan.starts_folder and staging and folder and warehouse.is_driven_here):
        return False
    if description.layout.format != "parquet":
        return False
    ready = ready_files(folder, plan.definition, options.compression, options.target_file_size)
    return ready is not None and link_files(ready, staging)


def _write(
    warehouse: Warehouse,
    publication: Publication,
    plan: SparkPlan,
    options: NodeConfig,
    built: NextSnapshot,
) -> None:
    table, columns = built.table, built.columns
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
    if options.delimited:
        rows = warehouse.sql(
            "mirror_lines",
            rows=rows,
            columns=columns,
            plan=plan,
            rows_per_file=rows_per_file,
        )
    url = publication.staging_url(ROWS)
    warehouse.run(
        "mirror_write_files",
        url=url,
        rows=rows,
        text=plan.text,
        compression=options.compression,
        rows_per_file=rows_per_file,
    )


def _count(
    warehouse: Warehouse, publication: Publication, plan: SparkPlan, staged: Sequence[StagedFile]
) -> list[FileRows]:
    url = publication.staging_url(ROWS)
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
