"""Errors for models that cannot be mirrored because of their keys or types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.openmirroring.landing_zone.delimited import data_type
from dbt.adapters.openmirroring.node.columns import LandingColumn
from dbt.adapters.openmirroring.node.config import NodeConfig

if TYPE_CHECKING:
    import agate


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
        shown.append(f"{_key(names, values)} ({count} {'row' if count == 1 else 'rows'})")
    return "; ".join(shown)


def _key(names: Sequence[str], values: Sequence[object]) -> str:
    return ", ".join(
        f"{name}={'NULL' if value is None else value}"
        for name, value in zip(names, values, strict=True)
    )
