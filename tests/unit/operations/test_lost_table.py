"""A table that was published, and that Fabric no longer lists."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from dbt.adapters.openmirroring.landing_zone.inventory import landed_table
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.service import monitoring
from dbt.adapters.openmirroring.service.monitoring import loss, refuse_lost
from dbt.adapters.openmirroring.service.reports import ServiceError, ServiceReport, TableReport
from tests.unit.operations.tables import apply_first_file, publish

ORDERS = TableFolder("sales", "orders")

NOTHING = ServiceReport("Running")
OTHERS = ServiceReport("Running", "", {"sales.returns": TableReport("Replicating")})


@pytest.fixture(autouse=True)
def old(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is new."""
    monkeypatch.setattr(monitoring, "NEW", timedelta())


def refusal(storage: Storage, report: ServiceReport, table: TableFolder = ORDERS) -> str:
    """The error of a publication of changes; empty if it may go on."""
    try:
        refuse_lost(storage, table, report)
    except ServiceError as error:
        return str(error.msg)
    return ""


def test_changes_are_refused_only_if_fabric_has_lost_the_rows_and_cannot_begin_again(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can as long as it has moved no file away."""
    for _ in range(3):
        assert not refusal(storage, NOTHING)
        publish(storage)
        assert not refusal(storage, OTHERS)

    apply_first_file(storage, ORDERS)

    for report in (NOTHING, OTHERS, ServiceReport("Initialized")):
        told = refusal(storage, report)
        assert "[OM709: " in told
        assert told.startswith("Fabric no longer mirrors sales.orders")
        assert "Nothing was changed" in told
        assert "dbt run-operation mirror_rebuild --args '{table: sales.orders}'" in told
    storage.delete(f"{ORDERS.path}/_ProcessedFiles")
    assert refusal(storage, NOTHING)
    monkeypatch.setattr(monitoring, "NEW", timedelta(minutes=15))
    assert not refusal(storage, NOTHING), "a new table is not missed yet"


def test_a_table_is_new_for_a_while_after_its_load_and_not_after_its_changes(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "NEW", timedelta(minutes=15))
    for _ in range(2):
        publish(storage)
    apply_first_file(storage, ORDERS)
    found = landed_table(storage, ORDERS)
    assert found.journal
    (load,) = found.journal.history
    old = replace(load, published_at="2026-01-01T00:00:00+00:00")
    journals = [replace(found.journal, history=(each,)) for each in (old, load)]

    told = [loss(ORDERS, journal, found.files, OTHERS) for journal in journals]

    assert [bool(each) for each in told] == [True, False]


@pytest.mark.parametrize(
    ("schema", "listed"), [("sales", "Sales.Orders"), ("", "dbo.orders"), ("", "shop.orders")]
)
def test_a_table_that_is_listed_is_not_lost(storage: Storage, schema: str, listed: str) -> None:
    table = TableFolder(schema, "orders")
    publish(storage, schema=schema)
    publish(storage, schema=schema)
    apply_first_file(storage, table)
    report = ServiceReport("Running", "", {listed: TableReport("Replicating")})

    assert not refusal(storage, report, table)
    assert refusal(storage, OTHERS, table)
