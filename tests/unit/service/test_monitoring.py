"""The state of the service of a landing zone, and the publications that follow it."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from itertools import chain, repeat
from pathlib import Path
from unittest.mock import patch

import pytest

from dbt.adapters.openmirroring.landing_zone.inventory import MAX_TABLES
from dbt.adapters.openmirroring.landing_zone.onelake.client import OneLakeClient
from dbt.adapters.openmirroring.landing_zone.onelake.storage import OneLakeStorage
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.service.authentication import Identity, token_credential
from dbt.adapters.openmirroring.service.fabric_api import FabricError
from dbt.adapters.openmirroring.service.mirrored_database import MirroredDatabase
from dbt.adapters.openmirroring.service.monitoring import CHECK_AGE, REBUILD_TIMEOUT, Service
from dbt.adapters.openmirroring.service.monitoring_files import (
    fabric_report,
    monitoring_report,
    replicator_report,
)
from dbt.adapters.openmirroring.service.reports import (
    ServiceError,
    ServiceReport,
    ServiceUnavailableError,
    TableReport,
    logger,
    utc_time,
)
from tests.fabric_server import Clock, Credential, Database, FabricServer, table
from tests.onelake_server import TOKEN, URL, OneLakeServer

PLACE = OneLakeUrl.parse(URL)
IDENTITY = Identity("token", token=TOKEN)

ORDERS = "sales.orders"
TIME = datetime(2026, 11, 21, 17, 0, tzinfo=timezone.utc)

RUNNING = ServiceReport("Running")
REPLICATING = ServiceReport("Running", "", {ORDERS: TableReport("Replicating", "", TIME)})
FAILED = ServiceReport("Running", "", {ORDERS: TableReport("Failed", "a type has changed")})


def service(*answers: ServiceReport | None) -> tuple[Service, Clock]:
    """A service that gives each answer once, and the last one for ever."""
    clock = Clock()
    following = chain(answers, repeat(answers[-1]))
    return Service(lambda: next(following), clock), clock


def warnings(*calls: Callable[[], object]) -> list[str]:
    with patch.object(logger, "warning") as warning:
        for call in calls:
            call()
    return [call.args[0] for call in warning.call_args_list]


def refusal(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(ServiceError) as caught:
        call(*arguments)
    return str(caught.value.msg)


@pytest.mark.parametrize("status", ["Running", "Starting", "SomethingNew"])
def test_a_mirrored_database_that_runs_is_published_to(status: str) -> None:
    asked, _ = service(ServiceReport(status))

    assert warnings(asked.check) == []


@pytest.mark.parametrize(
    ("status", "way_out"),
    [("Paused", "`Resume replication`"), ("Stopped", "mirror_start"), ("Stopping", "Run again")],
)
def test_a_mirrored_database_that_has_stopped_is_not_published_to(
    status: str, way_out: str
) -> None:
    asked, _ = service(ServiceReport(status, "the reason"))

    told = refusal(asked.check)

    assert f"{status} (the reason)" in told
    assert way_out in told


@pytest.mark.parametrize("status", ["Initializing", "Initialized"])
def test_before_it_is_started_files_are_published_with_a_warning(status: str) -> None:
    asked, _ = service(ServiceReport(status))

    [warning] = warnings(asked.check, asked.check)

    assert "mirror_start" in warning


def test_a_state_that_cannot_be_known_is_a_warning_and_nothing_is_waited_for() -> None:
    asked, clock = service(None)

    assert len(warnings(asked.check, asked.check)) == 1
    asked.check_table(ORDERS, rebuilds=False)
    asked.wait_until_gone(ORDERS)
    asked.wait_until_back(ORDERS)
    assert asked.not_applied({ORDERS: TIME}, 60) == [
        "sales.orders: the service does not report it"
    ]
    assert clock.slept == []


def test_the_service_is_asked_once_a_minute_before_publications() -> None:
    asked, clock = service(RUNNING, ServiceReport("Paused"))

    asked.check()
    clock.now += CHECK_AGE - 1
    asked.check()
    clock.now += 1

    assert "Paused" in refusal(asked.check)


def test_a_table_that_has_failed_can_only_be_rebuilt() -> None:
    asked, _ = service(FAILED)

    told = refusal(asked.check_table, ORDERS, False)

    assert "stopped applying sales.orders: a type has changed" in told
    assert "--full-refresh" in told
    asked.check_table(ORDERS, rebuilds=True)
    asked.check_table("sales.others", rebuilds=False)


def test_a_table_with_an_error_that_goes_on_is_warned_of() -> None:
    throttled = TableReport("Replicating", "The replication is being throttled")
    asked, _ = service(ServiceReport("Running", "", {ORDERS: throttled}))

    [warning] = warnings(lambda: asked.check_table(ORDERS, False))

    assert "throttled" in warning


def test_no_table_is_published_that_is_one_too_many() -> None:
    names = [ORDERS, *(f"sales.t{i}" for i in range(1, MAX_TABLES))]
    asked, _ = service(ServiceReport("Running", "", dict.fromkeys(names, TableReport())))

    asked.check_table(ORDERS, rebuilds=False)
    assert "1,000 tables" in refusal(asked.check_table, "sales.more", False)


def test_debug_warns_of_all_tables_that_have_failed() -> None:
    asked, _ = service(FAILED)

    [warning] = warnings(asked.check_all)

    assert "sales.orders (a type has changed)" in warning


def test_a_dropped_table_is_waited_for_until_it_has_disappeared() -> None:
    asked, clock = service(REPLICATING, REPLICATING, RUNNING)

    asked.wait_until_gone(ORDERS)

    assert clock.slept == [10, 10]


def test_a_table_without_a_folder_is_not_asked_for_again_that_was_not_there() -> None:
    asked, clock = service(RUNNING, REPLICATING)
    asked.check()

    asked.wait_until_gone(ORDERS, dropped=False)

    assert clock.slept == []
    assert asked.report(CHECK_AGE) == RUNNING


def test_a_table_without_a_folder_is_waited_for_until_a_new_answer_does_not_have_it() -> None:
    asked, clock = service(REPLICATING, REPLICATING, RUNNING)
    asked.check()

    asked.wait_until_gone(ORDERS, dropped=False)

    assert clock.slept == [10, 10]


def test_a_new_table_is_waited_for_until_it_is_there() -> None:
    asked, clock = service(RUNNING, RUNNING, REPLICATING)

    asked.wait_until_back(ORDERS)

    assert clock.slept == [10, 10]


def test_waiting_takes_no_answer_from_before() -> None:
    asked, _ = service(RUNNING, REPLICATING, RUNNING)
    asked.check()

    asked.wait_until_back(ORDERS)

    assert asked.report() == RUNNING


def test_waiting_ends_with_what_is_known() -> None:
    asked, clock = service(FAILED)

    told = refusal(asked.wait_until_gone, ORDERS)

    assert clock.now == REBUILD_TIMEOUT
    assert "has not dropped sales.orders 15 minutes" in told
    assert "is Running; the table is Failed; its error is a type has changed" in told
    assert "does not mirror sales.others" in refusal(asked.wait_until_back, "sales.others")


@pytest.mark.parametrize("wait", [Service.wait_until_gone, Service.wait_until_back])
def test_waiting_ends_when_the_mirrored_database_is_paused(
    wait: Callable[[Service, str], None],
) -> None:
    table_ = {} if wait is Service.wait_until_back else REPLICATING.tables
    asked, clock = service(
        ServiceReport("Running", "", table_), ServiceReport("Paused", "", table_)
    )

    assert "Paused" in refusal(wait, asked, ORDERS)
    assert clock.slept == [10]


def test_nothing_is_waited_for_before_the_mirrored_database_is_started() -> None:
    asked, clock = service(ServiceReport("Initialized"))

    asked.wait_until_back(ORDERS)

    assert clock.slept == []


def test_a_command_waits_until_its_publications_are_applied() -> None:
    later = TIME + timedelta(seconds=1)
    applied = ServiceReport("Running", "", {ORDERS: TableReport("Replicating", "", later)})
    asked, clock = service(RUNNING, REPLICATING, applied)

    assert asked.not_applied({ORDERS: later}, 60) == []
    assert clock.slept == [10, 10]


def test_tables_that_are_not_applied_in_time_are_reported() -> None:
    asked, clock = service(REPLICATING)

    behind = asked.not_applied({ORDERS: TIME + timedelta(seconds=1), "sales.new": TIME}, 25)

    assert behind == ["sales.orders: Replicating", "sales.new: not mirrored yet"]
    assert clock.slept == [10, 10, 5]


def test_a_table_that_has_failed_is_not_waited_for() -> None:
    asked, clock = service(FAILED)

    assert asked.not_applied({ORDERS: TIME}, 60) == ["sales.orders: a type has changed"]
    assert clock.slept == []


def test_a_table_that_has_failed_is_not_applied_whenever_it_was_synchronized() -> None:
    failed = TableReport("Failed", "a type has changed", TIME + timedelta(seconds=1))
    asked, clock = service(
        ServiceReport("Running", "", {**REPLICATING.tables, "sales.returns": failed})
    )

    behind = asked.not_applied({ORDERS: TIME, "sales.returns": TIME}, 60)

    assert behind == ["sales.returns: a type has changed"]
    assert clock.slept == []


DOWN = ServiceUnavailableError("Fabric does not answer.")


class Flaky:
    """A service that gives each answer once, and the last one for ever; errors are raised."""

    def __init__(self, *answers: ServiceReport | ServiceError) -> None:
        self.asked = 0
        self.clock = Clock()
        self.service = Service(self._ask, self.clock)
        self._answers = answers

    def _ask(self) -> ServiceReport:
        answer = self._answers[min(self.asked, len(self._answers) - 1)]
        self.asked += 1
        self.clock.now += 24  # the retries of a request
        if isinstance(answer, ServiceError):
            raise answer
        return answer


def test_a_service_that_does_not_answer_is_asked_once_and_changes_are_published() -> None:
    flaky = Flaky(DOWN)

    def publish_300_tables() -> None:
        for i in range(300):
            flaky.clock.now += 10
            flaky.service.check()
            flaky.service.check_table(f"sales.t{i}", rebuilds=False)

    [warning] = warnings(publish_300_tables)

    assert flaky.asked == 1
    assert warning.startswith("Fabric does not answer. So dbt cannot know")
    assert "Changes and new tables are published. Rebuilds are refused" in warning


def test_many_nodes_at_once_ask_a_service_that_does_not_answer_once() -> None:
    flaky = Flaky(DOWN)
    with ThreadPoolExecutor(8) as pool:
        [_] = warnings(lambda: [*pool.map(lambda _: flaky.service.check(), range(50))])

    assert flaky.asked == 1


def test_a_refusal_is_asked_for_again_after_a_minute() -> None:
    refused = ServiceError("There is no such database.")
    flaky = Flaky(refused, RUNNING)

    assert "no such database" in refusal(flaky.service.check)
    assert "no such database" in refusal(flaky.service.check)
    assert flaky.asked == 1
    flaky.clock.now += CHECK_AGE
    flaky.service.check()


def test_a_rebuild_is_refused_until_the_service_answers() -> None:
    flaky = Flaky(DOWN, DOWN, REPLICATING)
    warnings(flaky.service.check)

    for _ in range(300):
        told = refusal(flaky.service.check_table, ORDERS, True)
    assert flaky.asked == 1
    flaky.clock.now += CHECK_AGE
    refusal(flaky.service.check_table, ORDERS, True)
    flaky.clock.now += CHECK_AGE
    flaky.service.check_table(ORDERS, True)

    assert told.startswith("sales.orders cannot be rebuilt now")
    assert "Fabric does not answer. The table folder was left as it is. Run again" in told
    assert flaky.asked == 3


def test_debug_says_that_the_service_does_not_answer() -> None:
    assert "does not answer" in refusal(Flaky(DOWN).service.check_all)


def test_an_initial_load_does_not_wait_for_a_service_that_does_not_answer() -> None:
    flaky = Flaky(DOWN)

    flaky.service.wait_until_gone(ORDERS, dropped=False)

    assert flaky.clock.slept == []


@pytest.mark.parametrize("wait", [Service.wait_until_gone, Service.wait_until_back])
def test_waiting_does_not_begin_without_an_answer(wait: Callable[[Service, str], None]) -> None:
    flaky = Flaky(DOWN)

    told = refusal(wait, flaky.service, ORDERS)

    assert told.startswith("Fabric does not answer. Nothing is lost: the next run of the node")
    assert flaky.clock.slept == []


def test_waiting_survives_some_questions_without_an_answer() -> None:
    flaky = Flaky(RUNNING, DOWN, DOWN, REPLICATING)

    flaky.service.wait_until_back(ORDERS)

    assert flaky.asked == 4


def test_waiting_without_a_further_answer_ends_with_the_reason() -> None:
    flaky = Flaky(RUNNING, DOWN)

    told = refusal(flaky.service.wait_until_back, ORDERS)

    assert told.startswith("Fabric does not answer. Nothing is lost")
    assert flaky.clock.now >= REBUILD_TIMEOUT


def files(**contents: str) -> Callable[[str], bytes | None]:
    stored = {f"{name}.json": text.encode() for name, text in contents.items()}
    return stored.get


TABLE = {"sourceSchemaName": "sales", "sourceTableName": "orders", "status": "Failed"}


def test_the_files_of_the_service_are_read() -> None:
    metrics = {"lastSyncTimeUtc": "2026-11-21T17:00:00.0000000Z"}
    tables = {"tables": [{**TABLE, "errorMessage": "no\n good", "metrics": metrics}]}
    replicator = {"status": "Running", "errorMessage": ""}

    report = monitoring_report(files(tables=json.dumps(tables), replicator=json.dumps(replicator)))

    table_ = TableReport("Failed", "no good", TIME)
    assert report == ServiceReport("Running", "", {ORDERS: table_})


@pytest.mark.parametrize(
    "damaged",
    ["", "[]", '{"tables": [1]}', '{"tables": [{}]}', "[" * 200_000],
    ids=["empty", "list", "number", "nothing", "deep"],
)
def test_damaged_files_of_the_service_say_nothing(damaged: str) -> None:
    assert monitoring_report(files(tables=damaged)) is None


def test_the_files_beside_a_local_landing_zone_are_read(tmp_path: Path) -> None:
    landing_zone = tmp_path / "LandingZone"

    assert replicator_report(landing_zone) is None
    (tmp_path / "Monitoring").mkdir()
    (tmp_path / "Monitoring" / "tables.json").write_text(json.dumps({"tables": [TABLE]}))
    report = replicator_report(landing_zone)

    assert report == ServiceReport(tables={ORDERS: TableReport("Failed")})


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-11-21T17:00:00Z", TIME),
        ("2026-11-21T17:00:00.1Z", TIME + timedelta(microseconds=100000)),
        ("2026-11-21T17:00:00.1234567Z", TIME + timedelta(microseconds=123456)),
        (None, None),
        ("", None),
        ("yesterday", None),
        ("9" * 500, None),
        (17, None),
    ],
)
def test_times_of_the_service_are_read(text: object, time: datetime | None) -> None:
    assert utc_time(text) == time


@pytest.fixture
def onelake(monkeypatch: pytest.MonkeyPatch) -> OneLakeServer:
    created = OneLakeServer()
    created.connect(monkeypatch)
    return created


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FabricServer:
    created = FabricServer()
    created.connect(monkeypatch)
    created.workspace("Sales", Database("shop", scan=lambda: [table(ORDERS)]))
    return created


@pytest.fixture
def database(server: FabricServer) -> MirroredDatabase:
    item = "shop.MirroredDatabase"
    return MirroredDatabase("Sales", item, Credential(), server.clock)


@pytest.mark.parametrize("status", [401, 403])
def test_the_files_in_onelake_are_asked_where_the_rest_api_may_not_be(
    server: FabricServer, database: MirroredDatabase, onelake: OneLakeServer, status: int
) -> None:
    def statuses() -> list[str] | None:
        report = fabric_report(database, PLACE, IDENTITY)
        return [told.status for told in report.tables.values()] if report else None

    server.fail("getMirroringStatus", status, times=2)

    assert statuses() is None
    monitoring = OneLakeClient.connect(PLACE.monitoring, Credential())
    OneLakeStorage(monitoring).write("tables.json", json.dumps({"tables": [TABLE]}).encode())
    assert statuses() == ["Failed"]
    assert statuses() == ["Replicating"]


@pytest.mark.parametrize(("status", "is_refusal"), [(401, True), (403, True), (400, False)])
def test_an_identity_that_may_not_read_the_files_either_publishes_without_a_report(
    server: FabricServer,
    database: MirroredDatabase,
    onelake: OneLakeServer,
    status: int,
    is_refusal: bool,
) -> None:
    server.fail("getMirroringStatus", 403)
    onelake.fail("refused", status=status, times=99)

    if is_refusal:
        assert fabric_report(database, PLACE, IDENTITY) is None
    else:
        with pytest.raises(ServiceUnavailableError, match="Cannot read"):
            fabric_report(database, PLACE, IDENTITY)


def test_a_failed_login_is_told_as_one_and_not_as_a_file_that_cannot_be_read(
    server: FabricServer, onelake: OneLakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    identity = Identity("cli")
    item = MirroredDatabase("Sales", "shop.MirroredDatabase", token_credential(identity))

    with pytest.raises(ServiceUnavailableError, match="there is no token for Fabric") as error:
        fabric_report(item, PLACE, identity)

    assert "Azure CLI not found" in str(error.value)
    assert ".json" not in str(error.value)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_rest_api_that_is_down_is_not_taken_for_one_that_refuses(
    server: FabricServer, database: MirroredDatabase, status: int
) -> None:
    server.fail("getMirroringStatus", status, times=99)

    with pytest.raises(ServiceUnavailableError):
        fabric_report(database, PLACE, IDENTITY)


def test_a_table_without_a_schema_is_in_the_default_schema(
    server: FabricServer, database: MirroredDatabase
) -> None:
    server.workspaces[0].databases[0].scan = lambda: [table("orders")]
    written = {"tables": [{**TABLE, "sourceSchemaName": ""}]}

    for report in (
        fabric_report(database, PLACE, IDENTITY),
        monitoring_report(files(tables=json.dumps(written))),
    ):
        assert report
        assert list(report.tables) == ["dbo.orders"]


def test_a_fault_of_the_rest_api_is_not_hidden_by_the_files(
    server: FabricServer, database: MirroredDatabase, onelake: OneLakeServer
) -> None:
    server.workspaces[0].capacity_paused = True

    with pytest.raises(FabricError, match="capacity of the workspace is paused"):
        fabric_report(database, PLACE, IDENTITY)
    assert onelake.requests == []
