"""A mirrored database is full before a table too many is asked for."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import MirroredColumn, TableDefinition
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.inventory import NewTables
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.storage import Storage


def definition(keys: int) -> TableDefinition:
    names = [f"k{i}" for i in range(keys)]
    columns = tuple(MirroredColumn(name, "int", "int") for name in names)
    return TableDefinition(columns, tuple(names), "parquet")


def fill(storage: Storage, tables: int) -> None:
    """Half of them in a schema, half without one, whoever has published them."""
    for i in range(tables):
        storage.write(f"{'old.schema/' if i % 2 else ''}t{i}/_metadata.json", b"{}")


def add(storage: Storage, new: NewTables, names: list[str]) -> list[str]:
    return [
        warning
        for name in names
        for warning in new.add(storage, TableFolder("sales", name), definition(1))
    ]


def test_a_landing_zone_with_room_is_silent(storage: Storage) -> None:
    fill(storage, 898)
    assert add(storage, NewTables(), ["a"]) == []


def test_a_landing_zone_that_gets_full_is_reported_once_a_run(storage: Storage) -> None:
    fill(storage, 898)

    (warning,) = add(storage, NewTables(), ["a", "b", "c"])

    assert "sales.b the landing zone has 900 tables" in warning


def test_the_table_after_the_thousandth_is_refused(storage: Storage) -> None:
    fill(storage, 999)
    new = NewTables()
    add(storage, new, ["a"])

    with pytest.raises(MirrorError, match=r"sales\.b would be table number 1,001"):
        add(storage, new, ["b"])

    assert add(storage, new, ["a"]) == [], "the one that is there already is not one more"


def test_a_key_of_many_columns_is_warned_of(storage: Storage) -> None:
    new = NewTables()
    assert new.add(storage, TableFolder("sales", "a"), definition(4)) == []
    (warning,) = new.add(storage, TableFolder("sales", "b"), definition(5))
    assert "The key of sales.b has 5 columns" in warning
