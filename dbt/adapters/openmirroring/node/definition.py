"""The definition of a table in the mirror."""

from __future__ import annotations

from collections.abc import Sequence

from dbt_common.exceptions import CompilationError

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    TableDefinition,
    data_type,
)
from dbt.adapters.openmirroring.landing_zone.layout import ROW_MARKER
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.types.columns import LandingColumn


def table_definition(columns: Sequence[LandingColumn], options: NodeConfig) -> TableDefinition:
    """Return the definition of a table.

    Args:
        columns: the columns of the next snapshot

    Raises:
        CompilationError: if a column name cannot be mirrored, a key is not a column, or the
            landing format does not have the type of a column
    """
    names = _names(columns)
    missing = [key for key in options.unique_key if key.lower() not in names]
    if missing:
        raise CompilationError(
            f"`unique_key` names {', '.join(map(repr, missing))}, but the model has no such "
            f"column. It has: {', '.join(names.values())}."
        )
    _check_landing_format(columns, options)
    return TableDefinition(
        columns=tuple(
            MirroredColumn(column.name, column.dtype, column.landed_type) for column in columns
        ),
        key_columns=tuple(names[key.lower()] for key in options.unique_key),
        landing_format=options.landing_format,
        delimited=options.delimited,
        file_detection=options.file_detection,
        default_row_marker=options.default_row_marker,
    )


def published_columns(definition: TableDefinition) -> list[LandingColumn]:
    """Return the columns of a snapshot as they were when it was published."""
    return [LandingColumn(c.name, c.type, c.landed_type) for c in definition.columns]


def _names(columns: Sequence[LandingColumn]) -> dict[str, str]:
    """Return the names of the columns, by the name in lower case."""
    names: dict[str, str] = {}
    for column in columns:
        if "\0" in column.name:
            raise CompilationError(
                f"The column {column.name!r} has a NUL in its name, and readers of Parquet cut "
                "the name there. Rename it in the model."
            )
        twin = names.setdefault(column.name.lower(), column.name)
        if twin != column.name:
            raise CompilationError(
                f"The columns {twin!r} and {column.name!r} differ only in case, and the service "
                "cannot tell them apart. Rename one of them in the model."
            )
    if ROW_MARKER.lower() in names:
        raise CompilationError(
            f"The column {names[ROW_MARKER.lower()]!r} has the name of the row marker, "
            "which the landing zone reserves. Rename it in the model."
        )
    if "_metadata" in names:
        raise CompilationError(
            f"The column {names['_metadata']!r} hides Spark's own column of that name. Rename it "
            "in the model."
        )
    return names


def _check_landing_format(columns: Sequence[LandingColumn], options: NodeConfig) -> None:
    """Check whether the landing format can hold the columns of a table.

    Raises:
        CompilationError: if the landing format does not have the type of a column (specification,
            "Delimited text requirements"; Delta has no type for a time of day), or if a row could
            become an empty line
    """
    for column in columns:
        if options.delimited and not data_type(column.landed_type):
            raise CompilationError(
                f"The column {column.quoted} has the type {column.dtype}, and delimited text has "
                f"no decimals. Cast it in the model: cast({column.quoted} as double), or "
                f"cast({column.quoted} as string) to keep all digits."
            )
        if options.delimited and column.dtype.startswith(("geometry", "geography")):
            raise CompilationError(
                f"The column {column.quoted} has the type {column.dtype}, whose bytes are not "
                f"text. Convert it in the model, e.g. base64(st_asbinary({column.quoted}))."
            )
        if column.landed_type.startswith("time(") and not options.delimited:
            raise CompilationError(
                f"The column {column.quoted} has the type {column.dtype}, which cannot be "
                f"mirrored from Parquet. Cast it in the model, e.g. cast({column.quoted} as "
                "string), or set `landing_format: csv`."
            )
    if options.delimited and len(columns) == 1 and not options.delimited.null_value:
        raise CompilationError(
            f"The model has one column, {columns[0].quoted}, so that a line that is NULL would be "
            "empty, and not be read. Set another `delimited.null_value`, e.g. null."
        )
