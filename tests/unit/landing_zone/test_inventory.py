"""The tables of a landing zone, how many there may be, and how one is dropped."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import MirroredColumn, TableDefinition
from dbt.adapters.openmirroring.landing_zone.errors import MirrorError
from dbt.adapters.openmirroring.landing_zone.inventory import (
    NewTables,
    drop_table,
    held_rows,
    landed_table,
    last_published,
    table_folders,
)
from dbt.adapters.openmirroring.landing_zone.layout import PUBLISHED, TableFolder
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from tests.unit.landing_zone.publishing import (
    DEFINITION,
    TABLE,
    DyingStorage,
    Killed,
    leave,
    publish,
)


def test_tables_are_found_by_their_folders_and_on_the_scratch_pad(storage: Storage) -> None:
    storage.write("_scratchPad/sales.eu.orders/manifest.json", b"{}")
    storage.write("a.schema/b/_metadata.json", b"{}")
    storage.write("a.schema/_ignored/file", b"")
    storage.write("c/file", b"")
    storage.write("_scratchPad/_debug/file", b"")

    assert table_folders(storage) == {
        TableFolder("sales.eu", "orders"),
        TableFolder("a", "b"),
        TableFolder("", "c"),
    }


def test_a_table_is_recognised_by_its_records(storage: Storage) -> None:
    first = publish(storage, "initial", [b"rows"])
    second = leave(storage, "changes", [b"rows"])

    table = landed_table(storage, TABLE)

    assert table.journal
    assert (table.journal.batch.id, table.pending) == (first, second)
    assert table.is_of("shop")
    assert table.is_pending_of("shop")
    assert not table.is_of("other")


def test_a_relation_is_where_it_was_published_last_whatever_else_has_its_name(
    storage: Storage,
) -> None:
    at_root = TableFolder("", TABLE.identifier)
    assert last_published(storage, TABLE.schema, TABLE.identifier) is None
    publish(storage, "initial", [b"rows"])
    journal = landed_table(storage, TABLE).journal
    assert journal
    earlier = replace(journal, published_at="2020-01-01T00:00:00+00:00")
    later = replace(journal, published_at="9999-01-01T00:00:00+00:00")
    owner = replace(journal.batch.owner, schema="archive")
    of_others = replace(later, batch=replace(journal.batch, owner=owner))

    for found, expected in (
        (earlier, (TABLE, journal)),
        (of_others, (TABLE, journal)),
        (later, (at_root, later)),
    ):
        storage.write(at_root.journal, found.to_json())
        assert last_published(storage, TABLE.schema, TABLE.identifier) == expected


def test_a_relation_whose_name_can_be_no_folder_was_never_published(storage: Storage) -> None:
    publish(storage, "initial", [b"rows"])

    assert last_published(storage, TABLE.schema, f"_{TABLE.identifier}") is None
    assert held_rows(storage, TABLE.schema, f"_{TABLE.identifier}") is None


def test_a_table_without_a_schema_folder_may_have_a_schema_that_can_be_no_folder(
    storage: Storage,
) -> None:
    publish(storage, "initial", [b"rows"])
    journal = landed_table(storage, TABLE).journal
    assert journal
    owner = replace(journal.batch.owner, schema="_of_a_developer")
    at_root = TableFolder("", TABLE.identifier)
    published = replace(journal, batch=replace(journal.batch, owner=owner))
    storage.write(at_root.journal, published.to_json())

    assert last_published(storage, owner.schema, TABLE.identifier) == (at_root, published)


def test_a_record_that_cannot_be_read_is_a_problem_of_its_table(storage: Storage) -> None:
    storage.write(TABLE.journal, b"{")

    table = landed_table(storage, TABLE)

    assert "damaged" in table.problem
    assert not table.is_of("shop")


# Dropping


def test_a_table_that_was_published_meanwhile_is_not_dropped(storage: Storage) -> None:
    publish(storage, "initial", [b"rows"])
    before = landed_table(storage, TABLE)
    publish(storage, "changes", [b"rows"])
    now = landed_table(storage, TABLE)

    assert not drop_table(storage, before)

    assert landed_table(storage, TABLE) == now


def test_a_drop_that_was_killed_can_be_done_again(storage: Storage) -> None:
    """Until nothing is left the table is known as ours."""
    for point in range(1, 20):
        publish(storage, "initial", [b"rows"])
        leave(storage, "changes", [b"rows"])
        dying: Any = DyingStorage(storage, point)
        with suppress(Killed):
            assert drop_table(dying, landed_table(storage, TABLE))
            break
        if storage.list(TABLE.path):
            assert landed_table(storage, TABLE).is_of("shop")
            assert drop_table(storage, landed_table(storage, TABLE))
        assert not table_folders(storage)
    assert point > 7
    assert not table_folders(storage)
    assert storage.list(f"{PUBLISHED}/shop") == []


# New tables


def fill(storage: Storage, tables: range) -> None:
    """Half of them in a schema, half without one, whoever has published them."""
    for i in tables:
        storage.write(f"{'old.schema/' if i % 2 else ''}t{i}/_metadata.json", b"{}")


def add(storage: Storage, new: NewTables, *names: str) -> list[str]:
    """Add tables, and return the warnings."""
    folders = [TableFolder("sales", name) for name in names]
    return [warning for folder in folders for warning in new.add(storage, folder, DEFINITION)]


def test_a_landing_zone_that_gets_full_is_reported_once_a_run_until_a_table_is_too_many(
    storage: Storage,
) -> None:
    fill(storage, range(898))
    assert add(storage, NewTables(), "a") == []

    (warning,) = add(storage, NewTables(), "a", "b", "c")

    assert "sales.b the landing zone has 900 tables" in warning
    fill(storage, range(898, 999))
    new = NewTables()
    add(storage, new, "a")

    with pytest.raises(MirrorError, match=r"sales\.b would be table number 1,001"):
        add(storage, new, "b")

    assert add(storage, new, "a") == [], "the one that is there already is not one more"


@pytest.mark.parametrize(("keys", "is_warned_of"), [(4, False), (5, True)])
def test_a_key_of_many_columns_is_warned_of(
    storage: Storage, keys: int, is_warned_of: bool
) -> None:
    names = tuple(f"k{i}" for i in range(keys))
    columns = tuple(MirroredColumn(name, "int", "int") for name in names)
    definition = TableDefinition(columns, names, "parquet")

    warnings = NewTables().add(storage, TABLE, definition)

    assert len(warnings) == is_warned_of
    assert all("The key of sales.orders has 5 columns" in text for text in warnings)
