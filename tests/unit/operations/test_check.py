"""`mirror_check`: when it fails, what it says, and its JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.openmirroring.destination import lost_table
from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.landing_zone.batch import Owner
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.landing_zone.storage import Storage
from dbt.adapters.openmirroring.operations.project_tables import Outcome, ProjectTables
from dbt.adapters.openmirroring.operations.run_operations import RunOperations
from dbt.adapters.openmirroring.service.monitoring import Service
from dbt.adapters.openmirroring.service.reports import ServiceReport, TableReport
from tests.onelake_server import URL, OneLakeServer
from tests.unit.operations.tables import commit, publish
from tests.unit.operations.test_report import node

ORDERS = TableFolder("sales", "orders")
NOW = datetime.now(timezone.utc)
UNREACHABLE = "Fabric does not answer."


def reported(
    status: str = "Replicating", error: str = "", last_sync: datetime | None = None
) -> ServiceReport:
    """What the service reports of `sales.orders`; without a time, it has applied everything."""
    applied = TableReport(status, error, last_sync or NOW + timedelta(hours=1))
    return ServiceReport("Running", "", {"sales.orders": applied})


FINE = reported()


def operations(storage: Storage, destination: Any, names: tuple[str, ...]) -> RunOperations:
    tables = ProjectTables(storage, "shop", "sales", [node(name) for name in names])
    command: Any = SimpleNamespace(tables=lambda _: tables)
    return RunOperations(command, command, destination, {"nodes": {}}, own_spark=command)


def reports(report: ServiceReport) -> Any:
    """A destination whose service reports this, or does not answer if it has no status."""
    lines = [] if report.status else [UNREACHABLE, ""]
    return SimpleNamespace(report=lambda: (report, lines))


@dataclass(frozen=True)
class Checked:
    """What `mirror_check` does: it fails if there are errors, and prints lines, or JSON."""

    errors: tuple[str, ...]
    lines: tuple[str, ...]
    json: Mapping[str, Any]

    @property
    def problems(self) -> list[tuple[str, str]]:
        return [(each["table"], each["problem"]) for each in self.json["problems"]]


def checked(
    storage: Storage,
    report: ServiceReport = FINE,
    names: tuple[str, ...] = ("orders",),
    **given: Any,
) -> Checked:
    ours = operations(storage, reports(report), names)
    told: Outcome = ours.check(given)
    printed = ours.check({**given, "format": "json"})
    assert printed.failed == told.failed
    (line,) = printed.lines
    assert "\n" not in line
    document = json.loads(line)
    assert document["version"] == 1
    assert document["ok"] == (not told.failed)
    messages = [f"{p['table']}: {p['problem']}: {p['message']}" for p in document["problems"]]
    assert messages == [each for each in told.failed if UNREACHABLE not in each]
    return Checked(told.failed, told.lines, document)


def age(storage: Storage, by: timedelta) -> datetime:
    """Let `sales.orders` have been published earlier; returns when it was published last."""
    journal = Journal.from_json(storage.read(ORDERS.journal) or b"", ORDERS.journal)
    last = datetime.fromisoformat(journal.published_at) - by
    history = tuple(
        replace(each, published_at=(datetime.fromisoformat(each.published_at) - by).isoformat())
        for each in journal.history
    )
    aged = replace(journal, published_at=last.isoformat(), history=history)
    storage.write(ORDERS.journal, aged.to_json())
    return last


def hold(storage: Storage, why: str) -> None:
    opened = Publication(storage, ORDERS, Owner("shop", "model.shop.orders", "sales"))
    opened.hold(opened.batch_id, why, None)
    opened.close()


# Fine


def test_tables_that_are_applied_are_fine(storage: Storage) -> None:
    published = publish(storage)

    found = checked(storage)

    assert found.errors == ()
    assert found.lines == (
        "1 mirrored table checked, all fine. The mirrored database is Running.",
    )
    assert found.json == {
        "version": 1,
        "ok": True,
        "problems": [],
        "service": {"status": "Running", "error": None},
        "tables": [
            {
                "table": "sales.orders",
                "mirrored_table": "sales.orders",
                "node": "model.shop.orders",
                "state": "published",
                "note": None,
                "publication": "initial",
                "published_at": f"{published:%Y-%m-%dT%H:%M:%SZ}",
                "rows_inserted": 1,
                "rows_updated": 0,
                "rows_deleted": 0,
                "table_rows": 1,
                "last_file": 1,
                "pending": None,
                "service_status": "Replicating",
                "service_error": None,
                "behind": False,
                "lost": None,
                "applied_at": f"{NOW + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}",
                "visible_at": None,
            }
        ],
    }


def test_a_table_that_was_never_published_is_no_problem(storage: Storage) -> None:
    found = checked(storage, names=("orders", "returns"))

    assert found.errors == ()
    assert found.lines[0].startswith("2 mirrored tables checked, all fine.")
    assert {table["published_at"] for table in found.json["tables"]} == {None}


def test_a_table_without_a_node_is_not_checked(storage: Storage) -> None:
    publish(storage, table="gone")

    found = checked(storage, names=())

    assert found.errors == ()
    assert found.json["tables"] == []


def test_the_times_until_a_report_sees_the_rows_are_in_the_json(storage: Storage) -> None:
    publish(storage)
    visible = NOW + timedelta(hours=2)
    applied = replace(FINE.tables["sales.orders"], visible=visible)

    found = checked(storage, replace(FINE, tables={"sales.orders": applied}))

    assert found.json["tables"][0]["visible_at"] == f"{visible:%Y-%m-%dT%H:%M:%SZ}"


# Failed


def test_a_table_that_the_service_has_stopped_applying_has_failed(storage: Storage) -> None:
    publish(storage)

    found = checked(storage, reported("Failed", "a file has zero bytes"))

    assert found.errors == (
        "sales.orders: failed: The service has stopped applying it: a file has zero bytes. Fix "
        "the cause, then rebuild the table with --full-refresh, or if its rows cannot be "
        "recomputed: dbt run-operation mirror_rebuild --args '{table: sales.orders}'",
    )
    assert found.lines == ()
    assert found.problems == [("sales.orders", "failed")]
    assert found.json["tables"][0]["service_error"] == "a file has zero bytes"


def test_a_table_of_which_the_service_reports_an_error_has_failed(storage: Storage) -> None:
    publish(storage)

    (error,) = checked(storage, reported(error="throttled")).errors

    assert error.startswith("sales.orders: failed: The service reports an error: throttled.")


def test_a_table_that_fabric_has_lost_has_failed(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lost_table, "NEW", timedelta())
    publish(storage)
    publish(storage)
    first = ORDERS.file(1, "parquet")
    storage.rename(first, first.replace("orders/", "orders/_ProcessedFiles/"))

    found = checked(storage, ServiceReport("Running"))

    assert found.problems == [("sales.orders", "failed")]
    assert "Fabric no longer mirrors sales.orders" in found.errors[0]
    assert "mirror_rebuild --args '{table: sales.orders}'" in found.errors[0]
    assert found.json["tables"][0]["lost"].startswith("Fabric no longer mirrors")


# Behind


def test_a_table_that_is_not_applied_for_longer_than_asked_for_is_behind(
    storage: Storage,
) -> None:
    publish(storage)
    published = age(storage, timedelta(hours=3))
    last_sync = published - timedelta(hours=1)
    report = reported(last_sync=last_sync)

    found = checked(storage, report)

    assert found.problems == [("sales.orders", "behind")]
    assert found.errors == (
        f"sales.orders: behind: Published at {published:%Y-%m-%d %H:%M:%S} UTC, not applied for "
        f"3 h 0 min (applied last at {last_sync:%Y-%m-%d %H:%M:%S} UTC). The mirrored database is "
        "Running; the table is Replicating. See its page in Fabric. For a local landing zone: dbt "
        "run-operation mirror_replicate",
    )
    assert found.json["tables"][0]["behind"] is True
    assert checked(storage, report, older_than="1h").errors == found.errors
    assert checked(storage, report, older_than="4h").errors == ()
    assert checked(storage, report, older_than="1d").errors == ()


def test_a_table_that_is_behind_says_which_rows_reports_see(storage: Storage) -> None:
    publish(storage)
    published = age(storage, timedelta(hours=3))
    last_sync, visible = published - timedelta(hours=2), published - timedelta(hours=1)
    applied = TableReport("Replicating", "", last_sync, visible)

    (error,) = checked(storage, ServiceReport("Running", "", {"sales.orders": applied})).errors

    assert (
        f"(applied last at {last_sync:%Y-%m-%d %H:%M:%S} UTC; "
        f"visible at {visible:%Y-%m-%d %H:%M:%S} UTC)"
    ) in error


def test_a_table_of_which_nothing_was_applied_has_no_other_times(storage: Storage) -> None:
    publish(storage)
    age(storage, timedelta(hours=3))
    applied = TableReport("Snapshotting")

    (error,) = checked(storage, ServiceReport("Running", "", {"sales.orders": applied})).errors

    assert "not applied for 3 h 0 min. The mirrored database" in error


def test_a_table_that_is_not_applied_yet_is_fine(storage: Storage) -> None:
    publish(storage)

    found = checked(storage, reported(last_sync=NOW - timedelta(days=1)))

    assert found.errors == ()
    assert found.json["tables"][0]["behind"] is True
    assert checked(storage, ServiceReport("Running")).errors == ()


def test_publications_since_do_not_hide_that_the_service_applies_nothing(
    storage: Storage,
) -> None:
    publish(storage)
    publish(storage)
    first = age(storage, timedelta(hours=5))
    publish(storage)

    found = checked(storage, reported(last_sync=first - timedelta(seconds=1)))

    assert found.problems == [("sales.orders", "behind")]
    assert "not applied for 5 h" in found.errors[0]


def test_what_was_published_before_the_last_load_does_not_count(storage: Storage) -> None:
    """Its folder was dropped, and the table in the mirror begins anew."""
    publish(storage)
    age(storage, timedelta(days=3))
    journal = Journal.from_json(storage.read(ORDERS.journal) or b"", ORDERS.journal)
    (past,) = journal.batches
    batch = replace(journal.batch, publication="rebuild")
    now = datetime.now(timezone.utc).isoformat()
    anew = replace(journal, batch=batch, published_at=now, history=(past,))
    storage.write(ORDERS.journal, anew.to_json())
    not_listed = ServiceReport("Running")

    assert checked(storage, not_listed).errors == ()
    assert checked(storage, not_listed, older_than="0m").problems == [("sales.orders", "behind")]


# Held


def test_a_table_whose_rows_wait_for_tests_or_a_request_is_held(storage: Storage) -> None:
    publish(storage)
    hold(storage, "because not_null_orders_name failed")

    found = checked(storage)

    assert found.errors == (
        "sales.orders: held: because not_null_orders_name failed. To publish it nevertheless: "
        "dbt run-operation mirror_publish --args '{table: sales.orders}'",
    )
    assert found.problems == [("sales.orders", "held")]
    assert found.json["tables"][0]["state"] == "held"


# Blocked


def test_a_table_that_the_next_run_refuses_is_blocked(storage: Storage) -> None:
    publish(storage)
    storage.write(ORDERS.journal, b"{}")

    found = checked(storage)

    assert found.problems == [("sales.orders", "blocked")]
    assert found.errors[0].startswith(
        "sales.orders: blocked: The next run refuses to publish it: "
        "sales.schema/orders/_journal.json is damaged or was edited"
    )
    assert found.json["tables"][0]["state"] == "blocked"


def test_a_table_that_an_interrupted_run_has_left_is_blocked(storage: Storage) -> None:
    publish(storage)
    begun = commit(storage, ORDERS).batch.begun_at

    found = checked(storage, older_than="0m")

    assert found.errors == (
        f"sales.orders: blocked: A run that began at {begun:%Y-%m-%d %H:%M:%S} UTC has left "
        "+1 ~0 -0 · #2. To finish it: dbt run-operation mirror_recover",
    )
    assert found.problems == [("sales.orders", "blocked")]
    assert found.json["tables"][0]["state"] == "unfinished"
    assert found.json["tables"][0]["pending"] == "+1 ~0 -0 · #2"


def test_a_run_that_may_still_be_publishing_is_fine(storage: Storage) -> None:
    publish(storage)
    commit(storage, ORDERS)

    assert checked(storage, older_than="2h").errors == ()


# Stale


def test_a_table_that_was_not_published_for_long_is_stale_if_the_user_asks(
    storage: Storage,
) -> None:
    publish(storage)
    published = age(storage, timedelta(hours=30))

    found = checked(storage, stale_after="26h")

    assert found.errors == (
        f"sales.orders: stale: Published last at {published:%Y-%m-%d %H:%M:%S} UTC, 30 h 0 min "
        "ago. Run its node, or see in dbt's log why its runs fail. Runs without changes publish "
        "nothing.",
    )
    assert found.problems == [("sales.orders", "stale")]
    assert checked(storage, stale_after="2d").errors == ()
    assert checked(storage).errors == ()


# Several, or none


def test_each_problem_of_each_table_has_a_line(storage: Storage) -> None:
    publish(storage)
    publish(storage, table="broken")
    storage.write(TableFolder("sales", "broken").journal, b"{}")
    hold(storage, "until mirror_publish")
    age(storage, timedelta(days=2))
    report = ServiceReport("Paused", "no capacity")

    found = checked(storage, report, ("orders", "broken"), stale_after="1d")

    assert found.problems == [
        ("sales.broken", "blocked"),
        ("sales.orders", "held"),
        ("sales.orders", "behind"),
        ("sales.orders", "stale"),
    ]
    assert (
        "The mirrored database is Paused (no capacity); the table is not listed"
        in (found.errors[2])
    )
    assert found.json["service"] == {"status": "Paused", "error": "no capacity"}


def test_a_check_fails_if_the_service_does_not_answer(storage: Storage) -> None:
    publish(storage)

    found = checked(storage, ServiceReport())

    assert found.errors == (
        "Nobody knows which tables have failed or are behind: Fabric does not answer.",
    )
    assert found.json["service"] == {"status": None, "error": "Fabric does not answer."}
    assert found.problems == []


def test_without_a_service_the_line_says_so(storage: Storage) -> None:
    """No replicator has run, or the identity may not see what Fabric reports."""
    publish(storage)
    silent = SimpleNamespace(report=lambda: (ServiceReport(), []))

    outcome = operations(storage, silent, ("orders",)).check({})

    assert outcome == Outcome(
        ("1 mirrored table checked, all fine. No service has reported on them.",)
    )


def test_the_status_is_printed_as_json_with_the_tables_that_have_no_node(
    storage: Storage,
) -> None:
    publish(storage)
    publish(storage, table="gone")

    (line,) = operations(storage, reports(FINE), ("orders",)).status({"format": "json"}).lines

    document = json.loads(line)
    assert list(document) == ["version", "service", "tables"]
    assert document["version"] == 1
    assert document["service"] == {"status": "Running", "error": None}
    assert {table["table"]: (table["state"], table["node"]) for table in document["tables"]} == {
        "sales.gone": ("elsewhere", None),
        "sales.orders": ("published", "model.shop.orders"),
    }
    assert document["tables"][1] == checked(storage).json["tables"][0]


def test_the_history_is_printed_as_json(storage: Storage) -> None:
    publish(storage)
    published = publish(storage)
    ours = operations(storage, reports(FINE), ("orders",))

    (line,) = ours.history({"format": "json", "limit": 1}).lines

    [size] = [e.size for e in storage.list(ORDERS.path) if e.name == f"{2:020d}.parquet"]
    assert json.loads(line) == {
        "version": 1,
        "batches": [
            {
                "table": "sales.orders",
                "published_at": f"{published:%Y-%m-%dT%H:%M:%SZ}",
                "publication": "changes",
                "reason": None,
                "rows_inserted": 1,
                "rows_updated": 0,
                "rows_deleted": 0,
                "table_rows": 2,
                "files_written": 1,
                "bytes_written": size,
                "invocation_id": "",
            }
        ],
    }


def test_a_history_of_nothing_is_json_too(storage: Storage) -> None:
    ours = operations(storage, reports(FINE), ("orders",))

    assert ours.history({"format": "json"}).lines == ('{"version": 1, "batches": []}',)


@pytest.mark.more
def test_a_check_of_a_thousand_tables_asks_onelake_no_more_than_their_status(
    server: OneLakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = server.storage()
    publish(storage)
    names = tuple(f"t{number}" for number in range(1000))
    for name in names:
        server.copy(ORDERS.path, TableFolder("sales", name).path)
    destination = Destination(
        Target(landing_zone=URL), project=lambda: tmp_path, warehouse=lambda: None
    )
    later = NOW + timedelta(hours=1)
    applied = {f"sales.{name}": TableReport("Replicating", "", later) for name in names}
    destination.service = Service(lambda: ServiceReport("Running", "", applied))
    monkeypatch.setattr(Destination, "storage", lambda _: storage)
    ours = operations(storage, destination, names)
    server.requests.clear()
    ours.status({})
    of_status = len(server.requests)
    server.requests.clear()

    outcome = ours.check({"stale_after": "1d", "format": "json"})

    assert outcome.failed == ()
    assert len(json.loads(outcome.lines[0])["tables"]) == 1000
    assert len(server.requests) == of_status <= 1010
