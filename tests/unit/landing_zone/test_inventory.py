"""The tables of a landing zone, and how one is dropped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.inventory import (
    drop_table,
    landed_table,
    last_published,
    table_folders,
)
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.storage import Storage

ORDERS = TableFolder("sales.eu", "orders")
DEFINITION = TableDefinition((MirroredColumn("id", "int", "int"),), ("id",), "parquet")


def publish(storage: Storage, complete: bool = True) -> None:
    publication = Publication(storage, ORDERS, Owner("shop", "model.shop.orders", ORDERS.schema))
    storage.write(f"{ORDERS.staging(publication.batch_id)}/rows/part-0.parquet", b"rows")
    journal = publication.journal()
    kind = "changes" if journal else "initial"
    plan = Plan(kind, "", DEFINITION, RowCounts(inserted=1), journal=journal)
    manifest = publication.commit(plan, publication.staged_files.written(plan))
    if complete:
        publication.publish(manifest)
        publication.record(manifest)
        publication.complete(manifest)
    publication.close()


class Dying:
    """An operation that ends the process, once it was carried out some times."""

    def __init__(self, operation: Callable[[str], None], times: int) -> None:
        self._operation = operation
        self._left = times

    def __call__(self, path: str) -> None:
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        self._operation(path)


def test_tables_are_found_by_their_folders_and_on_the_scratch_pad(storage: Storage) -> None:
    publish(storage, complete=False)
    storage.write("a.schema/b/_metadata.json", b"{}")
    storage.write("a.schema/_ignored/file", b"")
    storage.write("c/file", b"")
    storage.write("_scratchPad/_debug/file", b"")

    assert table_folders(storage) == {ORDERS, TableFolder("a", "b"), TableFolder("", "c")}


def test_a_table_is_recognised_by_its_records(storage: Storage) -> None:
    publish(storage)
    publish(storage, complete=False)

    table = landed_table(storage, ORDERS)

    assert table.journal
    assert table.pending
    assert (table.journal.batch.publication, table.pending.batch.publication) == (
        "initial",
        "changes",
    )
    assert (table.is_of("shop"), table.is_pending_of("shop"), table.is_of("other")) == (
        *(True, True),
        False,
    )


def test_a_relation_is_where_it_was_published_last_whatever_else_has_its_name(
    storage: Storage,
) -> None:
    at_root = TableFolder("", ORDERS.identifier)
    assert last_published(storage, ORDERS.schema, ORDERS.identifier) == (ORDERS, None)
    publish(storage)
    journal = landed_table(storage, ORDERS).journal
    assert journal
    owner = replace(journal.batch.owner, schema="archive")
    for earlier in (
        replace(journal, published_at="2020-01-01T00:00:00+00:00"),
        replace(
            journal,
            batch=replace(journal.batch, owner=owner),
            published_at="9999-01-01T00:00:00+00:00",
        ),
    ):
        storage.write(at_root.journal, earlier.to_json())
        assert last_published(storage, ORDERS.schema, ORDERS.identifier) == (ORDERS, journal)

    later = replace(journal, published_at="9999-01-01T00:00:00+00:00")
    storage.write(at_root.journal, later.to_json())
    assert last_published(storage, ORDERS.schema, ORDERS.identifier) == (at_root, later)


def test_a_record_that_cannot_be_read_is_a_problem_of_its_table(storage: Storage) -> None:
    storage.write(ORDERS.journal, b"{")

    table = landed_table(storage, ORDERS)

    assert "damaged" in table.problem
    assert not table.is_of("shop")


def test_a_dropped_table_leaves_nothing(storage: Storage) -> None:
    publish(storage)
    publish(storage, complete=False)

    assert drop_table(storage, landed_table(storage, ORDERS))

    assert not table_folders(storage)


def test_a_table_that_was_published_meanwhile_is_not_dropped(storage: Storage) -> None:
    publish(storage)
    before = landed_table(storage, ORDERS)
    publish(storage)
    now = landed_table(storage, ORDERS)

    assert not drop_table(storage, before)

    assert landed_table(storage, ORDERS) == now


def test_a_drop_that_was_killed_can_be_done_again(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until nothing is left the table is known as ours."""
    for allowed in range(20):
        publish(storage)
        publish(storage, complete=False)
        with monkeypatch.context() as patched:
            patched.setattr(storage, "delete", Dying(storage.delete, allowed))
            try:
                drop_table(storage, landed_table(storage, ORDERS))
                break
            except KeyboardInterrupt:
                pass
        if storage.list(ORDERS.path):
            assert landed_table(storage, ORDERS).is_of("shop")
            assert drop_table(storage, landed_table(storage, ORDERS))
        assert not table_folders(storage)
    assert allowed > 4
