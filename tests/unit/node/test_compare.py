"""Rows that are refused, because some readers of the mirror could not read them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.openmirroring.node.compare import Comparer
from dbt.adapters.openmirroring.spark.relation import OpenMirroringColumn
from dbt.adapters.openmirroring.types.columns import LandingColumn

COLUMNS = [
    LandingColumn.of(OpenMirroringColumn(name, "string" if name != "day" else "date"))
    for name in ("id", "day", "a", "b", "c", "d", "e")
]


class Refusing:
    """A warehouse of a load in which rows are refused, and the examples that it finds of them."""

    adapter = SimpleNamespace(connections=SimpleNamespace(spark_major=lambda: 4))

    def __init__(self, *examples: tuple[Any, ...]) -> None:
        self.examples = examples

    def is_small(self, *_: object) -> bool:
        return True

    def read(self, name: str, **_: object) -> Any:
        rows: dict[str, Any] = {
            "mirror_count_load": [{"refused": True}],
            "mirror_bad_values": self.examples,
        }
        return SimpleNamespace(rows=rows[name])


def refusal(key_columns: tuple[str, ...], *examples: tuple[Any, ...]) -> str:
    compared: dict[str, Any] = {
        "warehouse": Refusing(*examples),
        "definition": SimpleNamespace(key_columns=key_columns, delimited=None),
        "built": SimpleNamespace(table="orders", columns=COLUMNS, description=None),
    }
    others: dict[str, Any] = dict.fromkeys(("scratch", "published", "options", "snapshot"))
    with pytest.raises(DbtRuntimeError) as raised:
        Comparer(**others, **compared).load()
    return str(raised.value.msg)


def test_each_check_that_values_fail_is_told_with_examples_and_their_keys() -> None:
    told = refusal(
        ("id",),
        (1, 2, "10000-01-01", "o1"),
        (1, 2, "10000-01-02", None),
        (2, 1, "\ufffd", "o3"),
    )

    assert (
        "`day` has values before the year 1 or after 9999 in 2 rows, e.g. "
        "10000-01-01 (id=o1); 10000-01-02 (id=NULL). "
    ) in told
    assert "`a` has text that is not UTF-8 in 1 row, e.g. \ufffd (id=o3). Decode it" in told
    assert "The same holds for" not in told
    assert "could read them in the mirror, so nothing was published. [OM304: " in told


def test_only_a_few_columns_are_told_in_full() -> None:
    told = refusal((), *((number, 1, "\ufffd") for number in (0, 2, 3, 4, 5, 6)))

    assert told.count("e.g. \ufffd. ") == 5
    assert "The same holds for 1 more." in told
