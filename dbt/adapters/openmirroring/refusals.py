"""What is wrong with the keys of a model, told with examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dbt_common.exceptions import DbtRuntimeError

if TYPE_CHECKING:
    import agate


def bad_keys(keys: Sequence[str], how_many: int, examples: agate.Table) -> DbtRuntimeError:
    """Keys that are NULL or not unique.

    Args:
        how_many: such keys there are
        examples: a few of them, and how many rows have them
    """
    return DbtRuntimeError(
        f"{how_many} of the keys ({', '.join(keys)}) are NULL or not unique, e.g. "
        f"{shown(keys, examples)}. The service would apply a later change to the wrong rows, so "
        "nothing was published. Make the model's rows unique, or set another `unique_key`."
    )


def ambiguous_new_rows(keys: Sequence[str], examples: agate.Table) -> DbtRuntimeError:
    """Several new rows of an incremental model have the same key.

    Args:
        examples: a few of the keys, and how many rows have them
    """
    return DbtRuntimeError(
        f"Several new rows have the same key ({', '.join(keys)}), e.g. {shown(keys, examples)}: "
        "a row of the table can be merged with one of them only. Nothing was changed. Make the "
        "new rows unique, or set another `unique_key`."
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
