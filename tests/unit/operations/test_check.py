"""`mirror_check`: when it fails, what it says, and its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import RowCounts
from dbt.adapters.openmirroring.landing_zone.inventory import drop_table, landed_table
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.records import Journal, Manifest
from dbt.adapters.openmirroring.landing_zone.storage import Entry, Storage
from dbt.adapters.openmirroring.operations.project_tables import ProjectTables, utc_text
from dbt.adapters.openmirroring.operations.run_operations import RunOperations
from dbt.adapters.openmirroring.operations.status import status_lines
from dbt.adapters.openmirroring.protocol.facts import Held
from dbt.adapters.openmirroring.service import monitoring
from dbt.adapters.openmirroring.service.reports import ServiceReport, TableReport
from dbt.adapters.openmirroring.text.codes import with_code
from tests.unit.landing_zone.publishing import TABLE as ORDERS
from tests.unit.landing_zone.publishing import publication
from tests.unit.operations.tables import apply_first_file, node, publish

UNREACHABLE = "Fabric does not answer."
FINE = "1 mirrored table checked, all fine. "


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "LandingZone")


def applied_all() -> ServiceReport:
    """The service has applied everything."""
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    applied = TableReport("Replicating", "", later, later + timedelta(hours=1))
    return ServiceReport("Running", "", {"sales.orders": applied})


def operations(storage: Storage, destination: Any, *names: str) -> RunOperations:
    tables = ProjectTables(storage, "shop", "sales", [node(name) for name in names])
    command: Any = SimpleNamespace(tables=lambda: tables)
    return RunOperations(command, command, destination, {"nodes": {}}, own_spark=command)


def reports(report: ServiceReport, problem: str = "") -> Any:
    """A destination whose service reports this, or does not answer, which lines say."""
    return SimpleNamespace(report=lambda: (report, problem), place="zone")


@dataclass(frozen=True)
class Checked:
    """What `mirror_check` does: it fails if there are errors, and prints lines, or JSON."""

    errors: tuple[str, ...]
    lines: tuple[str, ...]
    json: Mapping[str, Any]


def checked(
    storage: Storage, report: ServiceReport, names: tuple[str, ...] = ("orders",), **given: Any
) -> Checked:
    problem = "" if report.status else UNREACHABLE
    ours = operations(storage, reports(report, problem), *names)
    told = ours.check(given)
    printed = ours.check({**given, "format": "json"})
    assert printed.failed == told.failed
    (line,) = printed.lines
    assert "\n" not in line
    document = json.loads(line)
    assert document["version"] == 1
    assert document["ok"] == (not told.failed)
    messages = [f"{p['table']}: {p['problem']}: {p['message']}" for p in document["problems"]]
    without = (UNREACHABLE, "Nothing was checked")
    assert messages == [e for e in told.failed if not any(words in e for words in without)]
    assert bool(told.lines) == (not told.failed)
    return Checked(told.failed, told.lines, document)


def publish_at(storage: Storage, times: Sequence[datetime], last: str = "") -> None:
    """Publish `sales.orders` at these times, the last one first.

    Args:
        last: the kind of the last publication, if it is not changes
    """
    for _ in times:
        publish(storage)
    journal = Journal.read(storage, ORDERS.journal)
    assert journal
    first, *others = [time.isoformat() for time in times]
    pairs = zip(journal.history, others, strict=True)
    aged = replace(
        journal,
        batch=replace(journal.batch, publication=last or journal.batch.publication),
        published_at=first,
        history=tuple(replace(batch, published_at=time) for batch, time in pairs),
    )
    storage.write(ORDERS.journal, aged.to_json())


FAILED = (
    "failed: The service {}. Fix the cause, then rebuild the table with --full-refresh, or if its "
    "rows cannot be recomputed: dbt run-operation mirror_rebuild --args '{{table: sales.orders}}'"
)
BEHIND = (
    "behind: Published at <{0}> UTC, not applied for {0} h 0 min{1}. The mirrored database is "
    "Running; the table is {2}. See its page in Fabric. For a local landing zone: dbt "
    "run-operation mirror_replicate"
)
BEHIND_3_HOURS = BEHIND.format(3, " (applied last at <4> UTC)", "Replicating")
STALE = (
    "stale: Published last at <30> UTC, 30 h 0 min ago. Run its node, or see in dbt's log why its "
    "runs fail. Runs without changes publish nothing."
)
ZERO_BYTES = with_code(FAILED.format("has stopped applying it: a file has zero bytes"), "OM708")
THROTTLED = FAILED.format("reports an error: throttled")
VISIBLE = " (applied last at <5> UTC; visible at <4> UTC)"


@pytest.mark.parametrize(
    ("published", "service", "given", "problem"),
    [
        ((3,), {"status": "Failed", "error": "a file has zero bytes"}, {}, ZERO_BYTES),
        ((3,), {"applied": 0, "error": "throttled"}, {}, THROTTLED),
        ((3,), {"applied": 4}, {}, BEHIND_3_HOURS),
        ((3,), {"applied": 4}, {"older_than": "1h"}, BEHIND_3_HOURS),
        ((3,), {"applied": 4}, {"older_than": "4h"}, ""),
        ((3,), {"applied": 5, "visible": 4}, {}, BEHIND.format(3, VISIBLE, "Replicating")),
        ((3,), {"status": "Snapshotting"}, {}, BEHIND.format(3, "", "Snapshotting")),
        # it may be applied soon
        ((0,), {"applied": 24}, {}, ""),
        ((0,), {"status": ""}, {}, ""),
        # later publications do not hide that nothing is applied
        ((0, 3, 3), {"applied": 4}, {}, BEHIND_3_HOURS),
        # with a load, the table in the mirror begins anew
        ((0, 72), {"status": "", "last": "rebuild"}, {}, ""),
        (
            (0, 72),
            {"status": "", "last": "rebuild"},
            {"older_than": "0m"},
            BEHIND.format(0, "", "not listed"),
        ),
        ((30,), {"applied": 0}, {"stale_after": "26h"}, STALE),
        ((30,), {"applied": 0}, {"stale_after": "2d"}, ""),
        ((30,), {"applied": 0}, {}, ""),
    ],
)
def test_a_table_that_is_not_applied_or_not_published_is_a_problem(
    storage: Storage,
    published: tuple[int, ...],
    service: dict[str, Any],
    given: dict[str, Any],
    problem: str,
) -> None:
    """Numbers are hours before now, and stand in `<>` for their time in a message."""
    now = datetime.now(timezone.utc)
    hours = {number: now - timedelta(hours=number) for number in range(73)}
    publish_at(storage, [hours[number] for number in published], service.get("last", ""))
    times = [hours.get(service.get(name, -1)) for name in ("applied", "visible")]
    applied = TableReport(service.get("status", "Replicating"), service.get("error", ""), *times)
    listed = {"sales.orders": applied} if applied.status else {}

    found = checked(storage, ServiceReport("Running", "", listed), **given)

    told = re.sub(r"<(\d+)>", lambda each: utc_text(hours[int(each[1])]), problem)
    assert found.errors == ((f"sales.orders: {told}",) if told else ())
    assert found.json["tables"][0]["service_error"] == (applied.error or None)


@pytest.mark.parametrize("status", ["Replicating", ""])
def test_a_table_is_behind_if_files_before_the_last_batch_are_not_applied(
    storage: Storage, status: str
) -> None:
    """The last batch has no files, as if columns were reordered. Nothing was published in it."""
    now = datetime.now(timezone.utc)
    publish_at(storage, [now, now - timedelta(hours=30), now - timedelta(hours=40)])
    journal = Journal.read(storage, ORDERS.journal)
    assert journal
    empty: dict[str, Any] = {
        "first_file": None,
        "files_written": 0,
        "bytes_written": 0,
        "rows": RowCounts(),
    }
    last = replace(journal.batch, publication="unchanged", **empty)
    storage.write(ORDERS.journal, replace(journal, batch=last).to_json())
    applied = TableReport("Replicating", "", now - timedelta(hours=35))
    report = ServiceReport("Running", "", {"sales.orders": applied} if status else {})

    found = checked(storage, report, stale_after="26h")

    behind, stale = (error.split(": ", 2)[1:] for error in found.errors)
    assert behind[0] == "behind"
    assert f"not applied for {30 if status else 40} h 0 min" in behind[1]
    assert stale[0] == "stale"
    assert "30 h 0 min ago" in stale[1]
    assert found.json["tables"][0]["behind"]
    assert found.json["tables"][0]["published_at"] == f"{now:%Y-%m-%dT%H:%M:%SZ}"


def test_an_unfinished_publication_is_a_problem_after_some_time(storage: Storage) -> None:
    publish(storage)
    publish(storage, completes=False)
    pending = Manifest.read(storage, ORDERS.manifest)
    assert pending

    found = checked(storage, applied_all(), older_than="0m")

    assert found.errors == (
        f"sales.orders: blocked: A run that began at {utc_text(pending.batch.begun_at)} UTC has "
        "left +1 ~0 -0 · #2. To finish it: dbt run-operation mirror_recover",
    )
    assert found.json["tables"][0]["state"] == "unfinished"
    assert found.json["tables"][0]["pending"] == "+1 ~0 -0 · #2"
    assert checked(storage, applied_all(), older_than="2h").errors == (), "it may still run"


def test_a_table_that_fabric_has_lost_has_failed(storage: Storage) -> None:
    publish(storage)
    publish(storage)
    apply_first_file(storage, ORDERS)

    report = ServiceReport("Running")
    tables = ProjectTables(storage, "shop", "sales", [node("orders")])

    with patch.object(monitoring, "NEW", timedelta()):
        found = checked(storage, report)
        status = status_lines(tables, report)[1]

    assert "behind; Fabric no longer mirrors sales.orders" in status
    (error,) = found.errors
    assert error.startswith("sales.orders: failed: Fabric no longer mirrors sales.orders")
    assert "[OM709: " in error
    assert "mirror_rebuild --args '{table: sales.orders}'" in error
    assert found.json["tables"][0]["lost"].startswith("Fabric no longer mirrors")


def test_each_problem_of_each_table_has_a_line(storage: Storage) -> None:
    publish_at(storage, [datetime.now(timezone.utc) - timedelta(days=2)])
    with publication(storage) as opened:
        opened.hold(Held(opened.batch_id, why="because not_null_orders_name failed"))
    publish(storage, "broken")
    storage.write(TableFolder("sales", "broken").journal, b"{}")
    report = ServiceReport("Paused", "no capacity")

    found = checked(storage, report, ("orders", "broken"), stale_after="1d")

    assert [error.split(": ")[:2] for error in found.errors] == [
        ["sales.broken", "blocked"],
        *(["sales.orders", problem] for problem in ("held", "behind", "stale")),
    ]
    blocked, held, behind, _ = found.errors
    assert blocked.startswith(
        "sales.broken: blocked: The next run refuses to publish it: "
        "sales.schema/broken/_journal.json is damaged or was edited"
    )
    assert held == (
        "sales.orders: held: because not_null_orders_name failed. To publish it nevertheless: dbt "
        "run-operation mirror_publish --args '{table: sales.orders}'"
    )
    told = "The mirrored database is Paused (no capacity); the table is not listed"
    assert told in behind
    assert found.json["service"] == {"status": "Paused", "error": "no capacity"}
    assert [table["state"] for table in found.json["tables"]] == ["blocked", "held"]


def test_tables_that_are_applied_are_fine(storage: Storage) -> None:
    published = publish(storage)
    report = applied_all()
    applied = report.tables["sales.orders"]

    found = checked(storage, report)

    assert found.lines == (f"{FINE}The mirrored database is Running.",)
    table = {
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
        "applied_at": f"{applied.last_sync:%Y-%m-%dT%H:%M:%SZ}",
        "visible_at": f"{applied.visible:%Y-%m-%dT%H:%M:%SZ}",
    }
    service = {"status": "Running", "error": None}
    document = {"version": 1, "ok": True, "checked": 1, "problems": [], "service": service}
    assert found.json == {**document, "tables": [table]}


def test_tables_that_were_never_published_are_counted_apart_and_those_without_a_node_not(
    storage: Storage,
) -> None:
    publish(storage)
    publish(storage, "gone")

    found = checked(storage, applied_all(), ("orders", "returns", "lines"))

    assert found.lines == (f"{FINE}2 were never published. The mirrored database is Running.",)
    assert found.json["checked"] == 1
    assert [table["state"] for table in found.json["tables"]] == [
        *("not published", "published", "not published")
    ]


MISSING = (
    "sales.orders: missing: It was published, but sales.schema/orders is gone, so there is no "
    "mirrored table. To publish a full load of the rows that Spark has: dbt run-operation "
    "mirror_rebuild --args '{table: sales.orders}'",
)


def test_a_published_table_whose_folder_is_gone_is_missing(storage: Storage) -> None:
    for name in ("orders", "orders", "returns"):
        publish(storage, name)
    storage.delete(ORDERS.path)
    report = ServiceReport("Running", "", {"sales.returns": applied_all().tables["sales.orders"]})

    found = checked(storage, report, ("orders", "returns", "lines"))

    assert found.errors == MISSING
    assert [table["state"] for table in found.json["tables"]] == [
        *("not published", "missing", "published")
    ]
    assert found.json["checked"] == 2
    publish(storage)
    assert checked(storage, applied_all()).errors == ()


def test_a_table_that_only_the_service_knows_is_missing(storage: Storage) -> None:
    """The landing zone is empty, and the service has not dropped the tables yet."""
    found = checked(storage, applied_all())

    assert found.errors == MISSING
    assert found.json["tables"][0]["state"] == "missing"


def test_a_table_that_is_rebuilt_while_the_files_are_listed_is_not_missing(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(storage)
    monkeypatch.setattr(storage, "at_once", lambda: Before(storage))

    assert checked(storage, applied_all()).errors == ()


@dataclass(frozen=True)
class Before:
    """The files of a landing zone before the folder of a dropped table was made again."""

    now: Storage

    def list(self, folder: str) -> list[Entry]:
        return [] if folder == ORDERS.path else self.now.list(folder)

    def read(self, path: str) -> bytes | None:
        return None if path.startswith(ORDERS.path) else self.now.read(path)


def test_held_rows_do_not_hide_that_the_table_is_missing(storage: Storage) -> None:
    publish(storage)
    with publication(storage) as opened:
        opened.hold(Held(opened.batch_id, why="until mirror_publish"))
    storage.delete(ORDERS.path)

    assert checked(storage, ServiceReport("Running")).errors == MISSING


def nothing(_: Storage) -> None:
    """The landing zone of the profile is another one, or somebody has emptied it."""


def of_another_project(storage: Storage) -> None:
    publish(storage, project="another")
    storage.delete(ORDERS.path)


def of_a_dropped_orphan(storage: Storage) -> None:
    """Its node has come back since, and has not run."""
    publish(storage)
    assert drop_table(storage, landed_table(storage, ORDERS))


@pytest.mark.parametrize("before", [nothing, of_another_project, of_a_dropped_orphan])
def test_a_check_that_finds_no_table_fails(
    storage: Storage, before: Callable[[Storage], None]
) -> None:
    before(storage)

    found = checked(storage, ServiceReport("Running"), ("orders", "returns"))

    assert found.errors == (
        "Nothing was checked: zone has no table of the 2 mirrored nodes of this project. A run "
        "publishes them there. If one has done so, somebody has emptied the landing zone, or this "
        "is another one.",
    )
    assert (found.json["checked"], found.json["problems"]) == (0, [])


def test_a_check_of_a_deleted_item_fails_twice(storage: Storage) -> None:
    """OneLake lists no file of it, and Fabric does not know it."""
    found = checked(storage, ServiceReport())

    unknown, nothing = found.errors
    assert UNREACHABLE in unknown
    assert nothing.startswith("Nothing was checked: zone has no table of the 1 mirrored node of ")


def test_a_check_of_a_project_without_mirrored_nodes_fails(storage: Storage) -> None:
    publish(storage, "gone")

    [error] = checked(storage, applied_all(), ()).errors

    assert error == "Nothing was checked: this project has no mirrored node, with this target."


def test_a_check_fails_if_the_service_does_not_answer(storage: Storage) -> None:
    publish(storage)

    found = checked(storage, ServiceReport())

    told = f"Could not read table status from Fabric: {UNREACHABLE}"
    assert found.errors == (with_code(told, "OM103"),)
    assert found.json["service"] == {"status": None, "error": UNREACHABLE}
    assert found.json["problems"] == []


def test_without_a_service_the_line_says_so(storage: Storage) -> None:
    """No replicator has run, or the identity may not see what Fabric reports."""
    publish(storage)

    outcome = operations(storage, reports(ServiceReport()), "orders").check({})

    [line] = outcome.lines
    assert line == (
        "1 mirrored table checked in the landing zone alone: no service has reported on them."
    )
    assert outcome.failed == ()


def test_the_status_is_printed_as_json_with_the_tables_that_have_no_node(
    storage: Storage,
) -> None:
    publish(storage)
    publish(storage, "gone")
    report = applied_all()

    (line,) = operations(storage, reports(report), "orders").status({"format": "json"}).lines

    document = json.loads(line)
    assert list(document) == ["version", "service", "tables"]
    assert document["version"] == 1
    assert document["service"] == {"status": "Running", "error": None}
    assert {table["table"]: (table["state"], table["node"]) for table in document["tables"]} == {
        "sales.gone": ("elsewhere", None),
        "sales.orders": ("published", "model.shop.orders"),
    }
    assert document["tables"][1] == checked(storage, report).json["tables"][0]


def test_the_history_is_printed_as_json(storage: Storage) -> None:
    ours = operations(storage, reports(applied_all()), "orders")
    assert ours.history({"format": "json"}).lines == ('{"version": 1, "batches": []}',)
    assert ours.history({}).lines == ("Nothing was published.",)
    publish(storage)
    published = publish(storage)

    (line,) = ours.history({"format": "json", "limit": 1}).lines

    [size] = [e.size for e in storage.list(ORDERS.path) if e.name == f"{2:020d}.parquet"]
    batch = {
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
    assert json.loads(line) == {"version": 1, "batches": [batch]}
