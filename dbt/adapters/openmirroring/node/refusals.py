"""Errors for models that cannot be mirrored because of their keys or types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.delimited import data_type
from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.spark.relation import OpenMirroringRelation
from dbt.adapters.openmirroring.spark.table import RECORDING_FORMATS, TableDescription
from dbt.adapters.openmirroring.text.sql import quoted
from dbt.adapters.openmirroring.types.columns import LandingColumn
from dbt.adapters.openmirroring.types.value_checks import ValueCheck

if TYPE_CHECKING:
    import agate

# ways out for a value that its column cannot hold
CAST_IN_MODEL = (
    "Cast it in the model, or run with --full-refresh: then the table gets the types of the model."
)
CAST_IN_SOURCE = "Cast it in the source of the dbt snapshot."
CORRECT_SEED = "Correct the seed, or set another type in `column_types`."
# how many columns a message names
_FEW = 5


def bad_keys(keys: Sequence[str], examples: agate.Table) -> DbtRuntimeError:
    """Return the error for keys that are NULL or not unique.

    Args:
        examples: the number of such keys in the first column, then a few of the keys, each with
            the number of its rows
    """
    how_many, *_ = examples.rows[0]
    found = listed(keys, examples.exclude([examples.column_names[0]]))
    return DbtRuntimeError(
        f"{how_many} of the keys ({', '.join(keys)}) are NULL or not unique, e.g. "
        f"{found}. The service would apply a later change to the wrong rows, so nothing was "
        "published. Make the model's rows unique, or set another `unique_key`."
    )


@dataclass(frozen=True)
class LeftRows:
    """Why an incremental model may leave a published row beside a new row with the same key.

    Args:
        why: the end of a sentence about the published row
        remedy: a sentence
    """

    why: str
    remedy: str

    @classmethod
    def of(cls, options: NodeConfig, predicates: Sequence[str]) -> LeftRows | None:
        """Return why the new rows do not replace all rows with their keys; None if they do.

        Args:
            predicates: SQL conditions that a new row must meet to match a row of the snapshot
        """
        strategy = options.incremental_strategy
        if strategy in ("insert_overwrite", "microbatch"):
            return cls(
                f"is in another partition, so that {strategy} leaves it",
                "Set `incremental_strategy` to merge or delete+insert, which find the published "
                "row by its key; or let the model select all rows of its old partition too.",
            )
        if strategy == "append":
            return cls(
                "the strategy append leaves",
                "Set `incremental_strategy: merge`, or let the model select rows with new keys "
                "only.",
            )
        if predicates:
            return cls(
                "`incremental_predicates` leave out",
                "Let them include all rows that new rows replace, or remove them.",
            )
        return None


def left_rows(keys: Sequence[str], examples: agate.Table, left: LeftRows) -> DbtRuntimeError:
    """Return the error for new rows with the keys of published rows that stay.

    Args:
        examples: the number of such keys in the first column, then a few of the keys, each with
            the partitions of the published row and of the new one
    """
    how_many, *_ = examples.rows[0]
    found = []
    for _, *values, published, new in (tuple(row) for row in examples.rows):
        places = f"published in {published}, new in {new}" if new else "published and new"
        found.append(f"{_key(keys, values)} ({places})")
    return DbtRuntimeError(
        f"{how_many} of the keys ({', '.join(keys)}) are in two rows: a new row, and the "
        f"published row, which {left.why}, e.g. {'; '.join(found)}. Nothing was published. "
        f"{left.remedy}"
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


def no_common_type(column: str, stored: str, new: str) -> CompilationError:
    """Return the error for a column of a dbt snapshot whose type has changed too much."""
    return CompilationError(
        f"The column {column} has the type {stored} in the dbt snapshot, and {new} in its source. "
        "No type holds the values of both as they are. Nothing was changed. Cast the column in "
        f"the source, e.g. cast({column} as {stored}), or give it a new name there: then it "
        "becomes a new column, and the history keeps the old one."
    )


def refuse_zone_of_session(relation: OpenMirroringRelation, table: TableDescription) -> None:
    """Check that every session of Spark reads the same times in the partitions of a table.

    Raises:
        CompilationError: if a partition is a time that each session reads in its own zone
    """
    if table.layout.zone or table.layout.format in RECORDING_FORMATS:
        return
    times = [quoted(name) for name, dtype in table.partition_types if dtype == "timestamp"]
    if times:
        raise CompilationError(
            f"{relation} is partitioned by the timestamp {', '.join(times)}, and has no option "
            "`timeZone`: each session of Spark would read its partitions in another time zone. "
            "Nothing was published. If a hook creates the table, let it set `options (timeZone "
            "'UTC')`. Otherwise set `file_format: delta` or `iceberg`, or partition by "
            f"cast({times[0]} as string)."
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


def listed(names: Sequence[str], examples: agate.Table) -> str:
    """Return a few keys, each with the number of its rows."""
    keys = []
    for *values, count in (tuple(row) for row in examples.rows):
        keys.append(f"{_key(names, values)} ({count} {'row' if count == 1 else 'rows'})")
    return "; ".join(keys)


def _key(names: Sequence[str], values: Sequence[object]) -> str:
    return ", ".join(
        f"{name}={'NULL' if value is None else value}"
        for name, value in zip(names, values, strict=True)
    )
