"""Errors for models that cannot be mirrored because of their keys or types."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.delimited import data_type
from dbt.adapters.openmirroring.node.columns import LandingColumn
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.node.value_checks import ValueCheck

if TYPE_CHECKING:
    import agate

# how many columns a message names
_FEW = 5


def bad_keys(keys: Sequence[str], examples: agate.Table) -> DbtRuntimeError:
    """Return the error for keys that are NULL or not unique.

    Args:
        examples: the number of such keys in the first column, then a few of the keys, each with
            the number of its rows
    """
    how_many, *_ = examples.rows[0]
    found = shown(keys, examples.exclude([examples.column_names[0]]))
    return DbtRuntimeError(
        f"{how_many} of the keys ({', '.join(keys)}) are NULL or not unique, e.g. "
        f"{found}. The service would apply a later change to the wrong rows, so nothing was "
        "published. Make the model's rows unique, or set another `unique_key`."
    )


def bad_values(
    checks: Sequence[ValueCheck], keys: Sequence[str], examples: agate.Table
) -> DbtRuntimeError:
    """Return the error for values that some readers of the mirrored table cannot read.

    Args:
        examples: a few rows of each check that failed: the number of the check, how many values
            have failed it, one of them, and the key of its row
    """
    told = []
    for number, rows in groupby((tuple(row) for row in examples.rows), lambda row: int(row[0])):
        check, found = checks[number], list(rows)
        how_many = "1 row" if int(found[0][1]) == 1 else f"{found[0][1]} rows"
        shown = "; ".join(_value_of_row(keys, key, value) for _, _, value, *key in found)
        told.append(
            f"The column {check.column.quoted} has {check.finding} in {how_many}, e.g. {shown}. "
            f"{check.remedy}."
        )
    few, more = told[:_FEW], len(told) - _FEW
    if more > 0:
        few.append(f"The same holds for {more} more.")
    return DbtRuntimeError(
        " ".join([*few, "Not everybody could read them in the mirror, so nothing was published."])
    )


def _value_of_row(names: Sequence[str], key: Sequence[object], value: object) -> str:
    shown = ", ".join(f"{name}={part}" for name, part in zip(names, key, strict=True))
    return f"{value} ({shown})" if shown else str(value)


def ambiguous_new_rows(keys: Sequence[str], examples: agate.Table) -> DbtRuntimeError:
    """Return the error for several new rows of an incremental model with the same key.

    Args:
        examples: a few of the keys, each with the number of its rows
    """
    return DbtRuntimeError(
        f"Several new rows have the same key ({', '.join(keys)}), e.g. {shown(keys, examples)}: "
        "a row of the table can be merged with one of them only. Nothing was changed. Make the "
        "new rows unique, or set another `unique_key`."
    )


def check_landing_format(columns: Sequence[LandingColumn], options: NodeConfig) -> None:
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


def shown(names: Sequence[str], examples: agate.Table) -> str:
    shown = []
    for *values, count in (tuple(row) for row in examples.rows):
        key = ", ".join(
            f"{name}={'NULL' if value is None else value}"
            for name, value in zip(names, values, strict=True)
        )
        shown.append(f"{key} ({count} {'row' if count == 1 else 'rows'})")
    return "; ".join(shown)
