"""The end of a command: what Fabric has applied, and the refresh of the SQL analytics endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from dbt.adapters.events.logging import AdapterLogger

from dbt.adapters.openmirroring.destination import destination as of_command
from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.destination.sql_endpoint import (
    RECORD,
    refresh_sql_endpoint,
    with_visible_times,
)
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase
from dbt.adapters.openmirroring.service.monitoring import Service
from dbt.adapters.openmirroring.service.reports import ServiceReport, TableReport
from tests.fabric_server import Credential, Database, FabricServer, sync, table

PUBLISHED = datetime(2025, 1, 1, 12, tzinfo=timezone.utc)
APPLIED = PUBLISHED + timedelta(seconds=20)
VISIBLE = PUBLISHED + timedelta(seconds=40)
BEFORE = PUBLISHED - timedelta(hours=1)


def as_fabric_writes(time: datetime) -> str:
    return f"{time:%Y-%m-%dT%H:%M:%S}.0000000Z"


@pytest.fixture
def fabric(monkeypatch: pytest.MonkeyPatch) -> FabricServer:
    created = FabricServer()
    created.connect(monkeypatch)
    database = Database("shop")
    created.workspace("Sales", database)
    applied = table("sales.orders", last_sync=as_fabric_writes(APPLIED))
    database.scan = lambda: [applied]
    return created


@pytest.fixture
def told() -> Iterator[list[str]]:
    """The warnings."""
    lines: list[str] = []
    with patch.object(AdapterLogger, "warning", lambda _, text: lines.append(text)):
        yield lines


def asked_of(fabric: FabricServer) -> MirroredDatabase:
    return MirroredDatabase("Sales", "shop.MirroredDatabase", Credential(), fabric.clock)


def refresh(
    fabric: FabricServer, storage: Storage, *syncs: dict[str, Any], may_ask: bool = True
) -> None:
    [database] = fabric.workspaces[0].databases
    database.refresh = lambda: list(syncs)
    asked = asked_of(fabric)
    service = Service(asked.report) if may_ask else Service(lambda: None)
    refresh_sql_endpoint(asked, service, storage, {"sales.orders": PUBLISHED})


def visible(storage: Storage, name: str = "sales.orders") -> datetime | None:
    """Return the time that `mirror_status` shows later."""
    report = ServiceReport("Running", "", {name: TableReport("Replicating")})
    return with_visible_times(report, storage).tables[name].visible


def at(time: datetime) -> dict[str, Any]:
    return sync("orders", ended=as_fabric_writes(time))


LATE = as_fabric_writes(VISIBLE)
SUCCESS_BEFORE = "the endpoint reports Success (last refreshed: 2025-01-01 11:00:00 UTC)"


@pytest.mark.parametrize(
    ("syncs", "may_ask", "problem"),
    [
        ([sync("sales.orders", "Success", last=LATE)], True, ""),
        ([sync("orders", "Success", last=LATE)], True, ""),
        ([sync("sales.orders", "NotRun", last=LATE)], True, ""),
        ([sync("orders", "NotRun", last=LATE)], True, ""),
        ([], True, "the endpoint does not list it"),
        ([sync("sales.returns")], True, "the endpoint does not list it"),
        (
            [sync("orders", "Failure", last=as_fabric_writes(BEFORE), error="No token.")],
            True,
            "AdalRetryException: No token. (last refreshed: 2025-01-01 11:00:00 UTC)",
        ),
        (
            [sync("orders", "NotRun", last=as_fabric_writes(PUBLISHED))],
            True,
            "the endpoint reports NotRun (last refreshed: 2025-01-01 12:00:00 UTC)",
        ),
        (
            [sync("orders", "Failure")],
            True,
            "the endpoint reports Failure (last refreshed: never)",
        ),
        # two schemas have such a table, and nobody knows which is ours
        ([at(VISIBLE), at(BEFORE)], True, SUCCESS_BEFORE),
        ([at(VISIBLE)], False, ""),
        ([at(BEFORE)], False, SUCCESS_BEFORE),
    ],
)
def test_a_table_is_visible_when_the_endpoint_has_taken_over_what_was_applied(
    fabric: FabricServer,
    storage: Storage,
    told: list[str],
    syncs: list[dict[str, Any]],
    may_ask: bool,
    problem: str,
) -> None:
    """If the identity may not ask the service, its publication is what was applied."""
    refresh(fabric, storage, *syncs, may_ask=may_ask)

    if problem:
        (line,) = told
        assert line.startswith(
            f"Published, but not visible to reports: sales.orders: {problem} [OM"
        )
    else:
        assert (told, visible(storage)) == ([], VISIBLE)


def test_rows_that_are_not_applied_cannot_be_visible(
    fabric: FabricServer, storage: Storage, told: list[str]
) -> None:
    behind = table("sales.orders", last_sync=as_fabric_writes(BEFORE))
    fabric.workspaces[0].databases[0].scan = lambda: [behind]

    refresh(fabric, storage, at(VISIBLE))

    assert "sales.orders: Fabric has not applied it yet [OM" in told[0]


@pytest.mark.parametrize("path", ["getMirroringStatus", "refreshMetadata"])
def test_a_refresh_that_is_refused_names_the_tables_and_fails_nothing(
    fabric: FabricServer, storage: Storage, told: list[str], path: str
) -> None:
    fabric.fail(path, 403, "InsufficientPrivileges")

    refresh(fabric, storage)

    assert "InsufficientPrivileges" in told[0]
    assert told[0].endswith("Reports may not see the new rows yet: sales.orders")
    assert storage.read(RECORD) is None


@pytest.mark.parametrize("record", [b"", b"{", b"[]", b'{"orders": "soon"}', b"\xff"])
def test_a_record_that_cannot_be_read_tells_nothing(storage: Storage, record: bytes) -> None:
    storage.write(RECORD, record)

    assert visible(storage) is None


def test_a_table_that_was_never_refreshed_has_no_time(
    fabric: FabricServer, storage: Storage, told: list[str]
) -> None:
    refresh(fabric, storage, sync("orders", "Failure"), sync("returns"))

    assert visible(storage) is None
    assert visible(storage, "sales.returns") is not None


@pytest.mark.parametrize("is_applied", [True, False])
def test_a_command_that_waits_tells_whether_fabric_has_applied_what_it_published(
    fabric: FabricServer, told: list[str], tmp_path: Path, is_applied: bool
) -> None:
    target = Target(landing_zone=str(tmp_path), wait_for_mirror=0.01)
    command = Destination(target, lambda: tmp_path, lambda: None)
    command.service = Service(asked_of(fabric).report)
    command.published = {"sales.orders": PUBLISHED if is_applied else VISIBLE}
    notes: list[str] = []

    with patch.object(of_command, "note", notes.append):
        command.end_command()

    waits = "Waiting up to 0.01 seconds until all published files are applied"
    if is_applied:
        assert (notes, told) == ([waits, "All published files are applied (1 table)"], [])
        return
    [warning] = told
    assert warning.startswith("Published, but not applied: sales.orders")
    assert "OM714" in warning
    assert notes == [waits]
