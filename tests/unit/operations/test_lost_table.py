"""A table that was published, and that Fabric no longer lists."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dbt.adapters.openmirroring.destination import lost_table
from dbt.adapters.openmirroring.destination.lost_table import refuse_lost
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.service.reports import ServiceError, ServiceReport, TableReport
from tests.unit.operations.tables import publish

ORDERS = TableFolder("sales", "orders")

NOTHING = ServiceReport("Running")
OTHERS = ServiceReport("Running", "", {"sales.returns": TableReport("Replicating")})


@pytest.fixture(autouse=True)
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is new."""
    monkeypatch.setattr(lost_table, "NEW", timedelta())


def apply(storage: Storage, table: TableFolder, number: int) -> None:
    """Let the service move a file away, as it does once it has applied a later one."""
    name = f"{number:020d}.parquet"
    storage.rename(f"{table.path}/{name}", f"{table.path}/_ProcessedFiles/{name}")


def is_refused(storage: Storage, report: ServiceReport, table: TableFolder = ORDERS) -> bool:
    try:
        refuse_lost(storage, table, report)
    except ServiceError:
        return True
    return False


@pytest.mark.parametrize("report", [NOTHING, OTHERS, ServiceReport("Initialized")])
@pytest.mark.parametrize("is_purged", [False, True])
def test_changes_to_rows_that_fabric_has_lost_are_refused(
    storage: Storage, report: ServiceReport, is_purged: bool
) -> None:
    publish(storage)
    publish(storage)
    apply(storage, ORDERS, 1)
    if is_purged:
        storage.delete(f"{ORDERS.path}/_ProcessedFiles")

    with pytest.raises(ServiceError) as refused:
        refuse_lost(storage, ORDERS, report)

    told = str(refused.value.msg)
    assert told.startswith("Fabric no longer mirrors sales.orders")
    assert "Nothing was changed" in told
    assert "dbt run-operation mirror_rebuild --args '{table: sales.orders}'" in told


def test_a_table_that_fabric_has_not_begun_with_gets_its_changes(storage: Storage) -> None:
    assert not is_refused(storage, NOTHING)
    for _ in range(3):
        publish(storage)
        assert not is_refused(storage, NOTHING)


def test_a_table_that_fabric_can_begin_again_gets_its_changes(storage: Storage) -> None:
    """Fabric leaves the last file in the folder; a full load in one file is all that it needs."""
    publish(storage)

    assert not is_refused(storage, OTHERS)


def test_a_new_table_is_not_missed_yet(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_table, "NEW", timedelta(minutes=15))
    publish(storage)
    publish(storage)
    apply(storage, ORDERS, 1)

    assert not is_refused(storage, NOTHING)


@pytest.mark.parametrize(
    ("schema", "listed"), [("sales", "Sales.Orders"), ("", "dbo.orders"), ("", "shop.orders")]
)
def test_a_table_that_is_listed_is_not_lost(storage: Storage, schema: str, listed: str) -> None:
    table = TableFolder(schema, "orders")
    publish(storage, schema=schema)
    publish(storage, schema=schema)
    apply(storage, table, 1)
    report = ServiceReport("Running", "", {listed: TableReport("Replicating")})

    assert not is_refused(storage, report, table)
    assert is_refused(storage, OTHERS, table)
