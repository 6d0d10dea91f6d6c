"""Errors for rows that cannot be mirrored because of their keys or values."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.node.config import NodeConfig
from dbt.adapters.openmirroring.types.columns import ValueCheck

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
    found = listed(keys, examples.exclude([examples.column_names[0]]))
    return DbtRuntimeError(
        f"{how_many} of the keys ({', '.join(keys)}) are NULL or not unique, e.g. "
        f"{found}. The service would apply a later change to the wrong rows, so nothing was "
        "published. Make the model's rows unique, or set another `unique_key`."
    )


def why_left(options: NodeConfig, predicates: Sequence[str]) -> tuple[str, str] | None:
    """Return why an incremental model may leave a published row beside a new row with its key.

    Args:
        predicates: SQL conditions that a new row must meet to match a row of the snapshot

    Returns:
        the end of a sentence about the published row, and a remedy; None if new rows replace all
        rows with their keys
    """
    strategy = options.incremental_strategy
    if strategy in ("insert_overwrite", "microbatch"):
        return (
            f"is in another partition, so that {strategy} leaves it",
            "Set `incremental_strategy` to merge or delete+insert, which find the published "
            "row by its key; or let the model select all rows of its old partition too.",
        )
    if strategy == "append":
        return (
            "the strategy append leaves",
            "Set `incremental_strategy: merge`, or let the model select rows with new keys only.",
        )
    if predicates:
        return (
            "`incremental_predicates` leave out",
            "Let them include all rows that new rows replace, or remove them.",
        )
    return None


def left_rows(
    keys: Sequence[str], examples: agate.Table, why: str, remedy: str
) -> DbtRuntimeError:
    """Return the error for new rows with the keys of published rows that stay.

    Args:
        why, remedy: as `why_left` returns them
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
        f"published row, which {why}, e.g. {'; '.join(found)}. Nothing was published. "
        f"{remedy}"
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
