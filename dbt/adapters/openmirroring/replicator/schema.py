"""The columns of a file, compared with those of its mirrored table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa
from deltalake import Field, Schema

from dbt.adapters.openmirroring.replicator.errors import TableError


def added_columns(
    known: Mapping[str, Field],
    file: str,
    schema: pa.Schema,
    keys: tuple[str, ...],
    new_load: Callable[[], str],
) -> list[Field]:
    """Return the columns that only the file has, as nullable columns.

    Args:
        known: the columns of the table, by name
        file: the name of the file, for messages
        schema: the schema of the file
        keys: the key columns
        new_load: returns the way out if the table cannot take the file

    Raises:
        TableError: if the file lacks a key column or a column that is not nullable, or if a column
            differs from one of the table in its type or only in the case of its name
    """
    missing_keys = [key for key in keys if key not in schema.names]
    if missing_keys:
        raise TableError(
            "SchemaMergeFailure",
            f"{file} has no column {missing_keys[0]!r}, which keyColumns names. It has: "
            f"{', '.join(schema.names)}.",
        )
    by_case = {name.lower(): name for name in known}
    found = {column.name: column for column in Schema.from_arrow(schema).fields}
    for name, column in found.items():
        other = by_case.get(name.lower())
        if other is not None and other != name:
            raise TableError(
                "SchemaMergeFailure",
                f"{file} has the column {name!r}, and the table has {other!r}: names that differ "
                f"only in case. {new_load()}",
            )
        if other is not None and column.type != known[name].type:
            raise TableError(
                "SchemaMergeFailure",
                f"{file}: the column {name!r} has the type {_type(column)}, and the table has "
                f"{_type(known[name])}. {new_load()}",
            )
    for name, column in known.items():
        if name not in found and not column.nullable:
            raise TableError(
                "SchemaMergeFailure",
                f"{file} has no column {name!r}; a missing column must be nullable.",
            )
    return [
        Field(name, column.type, nullable=True)
        for name, column in found.items()
        if name not in known
    ]


def _type(column: Field) -> str:
    return str(getattr(column.type, "type", column.type))
