"""The state of the service of a landing zone, and the publications that follow it."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest.mock import patch

import pytest

from dbt.adapters.openmirroring.landing_zone.inventory import MAX_TABLES
from dbt.adapters.openmirroring.landing_zone.onelake.storage import OneLakeClient, OneLakeStorage
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.service.authentication import Identity, token_credential
from dbt.adapters.openmirroring.service.mirrored_database import FabricError, MirroredDatabase
from dbt.adapters.openmirroring.service.monitoring import (
    CHECK_AGE,
    Service,
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
CREDENTIAL = token_credential(Identity("token", token=TOKEN))

ORDERS = "sales.orders"
TIME = datetime(2026, 11, 21, 17, 0, tzinfo=timezone.utc)

RUNNING = ServiceReport("Running")
REPLICATING = ServiceReport("Running", "", {ORDERS: TableReport("Replicating", "", TIME)})
FAILED = ServiceReport("Running", "", {ORDERS: TableReport("Failed", "a type has changed")})


NOT_STARTED = ServiceReport("Initialized")
DOWN = ServiceUnavailableError("Fabric does not answer.")


class Answers:
    """A service that gives each answer once, and the last one for ever; errors are raised."""

    def __init__(self, *answers: ServiceReport | ServiceError | None) -> None:
        self.asked = 0
        self.clock = Clock()
        self.service = Service(self._ask, self.clock)
        self._answers = answers

    def _ask(self) -> ServiceReport | None:
        answer = self._answers[min(self.asked, len(self._answers) - 1)]
        self.asked += 1
        if isinstance(answer, ServiceError):
            self.clock.now += 24  # the retries of a request
            raise answer
        return answer


def service(*answers: ServiceReport | ServiceError | None) -> Service:
    return Answers(*answers).service


def warnings(*calls: Callable[[], object]) -> list[str]:
    with patch.object(logger, "warning") as warning:
        for call in calls:
            call()
    return [call.args[0] for call in warning.call_args_list]


def refusal(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(ServiceError) as caught:
        call(*arguments)
    return str(caught.value.msg)


# Checks before publications


@pytest.mark.parametrize("status", ["Running", "Starting", "SomethingNew"])
def test_a_mirrored_database_that_runs_is_published_to(status: str) -> None:
    assert warnings(service(ServiceReport(status)).check) == []


@pytest.mark.parametrize(
    ("status", "way_out"),
    [("Paused", "`Resume replication`"), ("Stopped", "mirror_start"), ("Stopping", "Run again")],
)
def test_a_mirrored_database_that_has_stopped_is_not_published_to(
    status: str, way_out: str
) -> None:
    asked = service(ServiceReport(status, "the reason"))

    for told in (refusal(asked.check), refusal(asked.check_all)):
        assert f"{status} (the reason)" in told
        assert way_out in told


@pytest.mark.parametrize("status", ["Initializing", "Initialized"])
def test_before_it_is_started_files_are_published_with_a_warning(status: str) -> None:
    asked = service(ServiceReport(status))

    [warning] = warnings(asked.check, asked.check)

    assert "mirror_start" in warning


def test_a_state_that_cannot_be_known_is_a_warning_and_nothing_is_waited_for() -> None:
    answers = Answers(None)
    asked = answers.service

    assert len(warnings(asked.check, asked.check)) == 1
    asked.check_table(ORDERS, rebuilds=False)
    asked.wait_until_gone(ORDERS)
    asked.wait_until_back(ORDERS)
    assert asked.not_applied({ORDERS: TIME}, 60) == [
        "sales.orders: the service does not report it"
    ]
    assert answers.clock.slept == []


@pytest.mark.parametrize("first", [RUNNING, ServiceError("There is no such database.")])
def test_the_service_is_asked_once_a_minute_before_publications(
    first: ServiceReport | ServiceError,
) -> None:
    answers = Answers(first, ServiceReport("Paused"))
    check = answers.service.check

    for seconds in (0, CHECK_AGE - 1):
        answers.clock.now += seconds
        if first is RUNNING:
            check()
        else:
            assert "no such database" in refusal(check)
    answers.clock.now += 1

    assert "Paused" in refusal(check)


def test_a_table_that_has_failed_can_only_be_rebuilt() -> None:
    asked = service(FAILED)

    told = refusal(asked.check_table, ORDERS, False)

    assert "stopped applying sales.orders: a type has changed" in told
    assert "--full-refresh" in told
    asked.check_table(ORDERS, rebuilds=True)
    asked.check_table("sales.others", rebuilds=False)
    [warning] = warnings(asked.check_all)
    assert "sales.orders (a type has changed) [OM708: " in warning


def test_a_table_with_an_error_that_goes_on_is_warned_of() -> None:
    throttled = TableReport("Replicating", "The replication is being throttled")
    asked = service(ServiceReport("Running", "", {ORDERS: throttled}))

    [warning] = warnings(lambda: asked.check_table(ORDERS, False))

    assert "throttled" in warning


def test_no_table_is_published_that_is_one_too_many() -> None:
    names = [ORDERS, *(f"sales.t{i}" for i in range(1, MAX_TABLES))]
    asked = service(ServiceReport("Running", "", dict.fromkeys(names, TableReport())))

    asked.check_table(ORDERS, rebuilds=False)
    assert "1,000 tables" in refusal(asked.check_table, "sales.more", False)


def test_a_service_that_does_not_answer_is_asked_once_and_changes_are_published() -> None:
    answers = Answers(DOWN)

    def publish_300_tables() -> None:
        for i in range(300):
            answers.clock.now += 10
            answers.service.check()
            answers.service.check_table(f"sales.t{i}", rebuilds=False)

    [warning] = warnings(publish_300_tables)

    assert answers.asked == 1
    assert warning.startswith("Fabric does not answer. So dbt cannot know")
    assert "Changes and new tables are published. Rebuilds are refused" in warning
    assert "does not answer" in refusal(service(DOWN).check_all)


def test_many_nodes_at_once_ask_a_service_that_does_not_answer_once() -> None:
    answers = Answers(DOWN)
    with ThreadPoolExecutor(8) as pool:
        [_] = warnings(lambda: [*pool.map(lambda _: answers.service.check(), range(50))])

    assert answers.asked == 1


def test_a_rebuild_is_refused_until_the_service_answers() -> None:
    answers = Answers(DOWN, DOWN, REPLICATING)
    warnings(answers.service.check)

    for _ in range(300):
        told = refusal(answers.service.check_table, ORDERS, True)
    assert answers.asked == 1
    answers.clock.now += CHECK_AGE
    refusal(answers.service.check_table, ORDERS, True)
    answers.clock.now += CHECK_AGE
    answers.service.check_table(ORDERS, True)

    assert told.startswith("sales.orders cannot be rebuilt now")
    assert "Fabric does not answer. The table folder was left as it is. Run again" in told
    assert answers.asked == 3


# Waiting for a table


def gone(asked: Service) -> None:
    asked.wait_until_gone(ORDERS)


def gone_without_a_folder(asked: Service) -> None:
    asked.wait_until_gone(ORDERS, dropped=False)


def back(asked: Service) -> None:
    asked.wait_until_back(ORDERS)


@pytest.mark.parametrize(
    ("wait", "is_checked", "answers", "asked", "waits"),
    [
        pytest.param(gone, False, [REPLICATING, REPLICATING, RUNNING], 3, 2, id="dropped"),
        pytest.param(back, False, [RUNNING, RUNNING, REPLICATING], 3, 2, id="new"),
        pytest.param(back, False, [RUNNING, DOWN, DOWN, REPLICATING], 4, 13, id="no answer twice"),
        pytest.param(back, True, [RUNNING, REPLICATING, RUNNING], 2, 0, id="no older answer"),
        pytest.param(back, False, [NOT_STARTED], 1, 0, id="before mirroring starts"),
        pytest.param(gone_without_a_folder, True, [RUNNING, REPLICATING], 1, 0, id="not there"),
        pytest.param(
            *(gone_without_a_folder, True, [REPLICATING, REPLICATING, RUNNING], 3, 2),
            id="there without a folder",
        ),
        pytest.param(gone_without_a_folder, False, [DOWN], 1, 0, id="a load without an answer"),
    ],
)
def test_a_table_is_waited_for_until_it_is_as_its_folder_is(
    wait: Callable[[Service], None],
    is_checked: bool,
    answers: list[ServiceReport | ServiceError],
    asked: int,
    waits: int,
) -> None:
    following = Answers(*answers)
    if is_checked:
        following.service.check()

    wait(following.service)

    assert following.asked == asked
    assert following.clock.slept == [10] * waits


@pytest.mark.parametrize(
    ("wait", "answers", "told", "seconds"),
    [
        (gone, [FAILED], "15 minutes after its folder was dropped, the service has not ", 900),
        (gone, [FAILED], "is Running; the table is Failed; its error is a type has changed", 900),
        (back, [RUNNING], "recreated, the service does not mirror sales.orders again", 900),
        (gone, [REPLICATING, replace(REPLICATING, status="Paused")], "Paused", 10),
        (back, [RUNNING, ServiceReport("Paused")], "Paused", 10),
        (gone, [DOWN], "Fabric does not answer. Nothing is lost: the next run of the node", 24),
        (back, [DOWN], "Fabric does not answer. Nothing is lost: the next run of the node", 24),
        (back, [RUNNING, DOWN], "Fabric does not answer. Nothing is lost", 900),
    ],
)
def test_waiting_in_vain_ends_with_what_is_known(
    wait: Callable[[Service], None],
    answers: list[ServiceReport | ServiceError],
    told: str,
    seconds: float,
) -> None:
    following = Answers(*answers)

    assert told in refusal(wait, following.service)
    assert following.clock.now == seconds


# Waiting until all is applied

LATER = TIME + timedelta(seconds=1)
APPLIED = ServiceReport("Running", "", {ORDERS: TableReport("Replicating", "", LATER)})
RETURNS = {"sales.returns": TableReport("Failed", "a type has changed", LATER)}


@pytest.mark.parametrize(
    ("answers", "published", "behind", "slept"),
    [
        ([RUNNING, REPLICATING, APPLIED], {ORDERS: LATER}, [], [10, 10]),
        (
            [REPLICATING],
            {ORDERS: LATER, "sales.new": TIME},
            ["sales.orders: Replicating", "sales.new: not mirrored yet"],
            [10, 10, 5],
        ),
        ([FAILED], {ORDERS: TIME}, ["sales.orders: a type has changed"], []),
        (
            [replace(REPLICATING, tables={**REPLICATING.tables, **RETURNS})],
            {ORDERS: TIME, "sales.returns": TIME},
            ["sales.returns: a type has changed"],
            [],
        ),
    ],
    ids=["in time", "too late", "failed", "failed after it was synchronized"],
)
def test_tables_are_waited_for_until_they_are_applied_or_have_failed(
    answers: list[ServiceReport],
    published: dict[str, datetime],
    behind: list[str],
    slept: list[float],
) -> None:
    following = Answers(*answers)

    assert following.service.not_applied(published, 25) == behind
    assert following.clock.slept == slept


# Where reports come from


def files(**contents: str) -> Callable[[str], bytes | None]:
    stored = {f"{name}.json": text.encode() for name, text in contents.items()}
    return stored.get


TABLE = {"sourceSchemaName": "sales", "sourceTableName": "orders", "status": "Failed"}


@pytest.mark.parametrize("last_sync", ["lastSyncTimeUtc", "lastSyncDateTime"])
def test_the_files_of_the_service_are_read(last_sync: str) -> None:
    metrics = {last_sync: "2026-11-21T17:00:00.0000000Z"}
    told = {"errorMessage": "no\n good\x1b", "status": "Fai\x1bled", "metrics": metrics}
    tables = {"tables": [{**TABLE, **told}]}
    replicator = {"status": "Running\x07", "errorMessage": "bad\x07"}

    report = monitoring_report(files(tables=json.dumps(tables), replicator=json.dumps(replicator)))

    table_ = TableReport("Fai?led", "no good?", TIME)
    assert report == ServiceReport("Running?", "bad?", {ORDERS: table_})


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
        report = fabric_report(database, PLACE, CREDENTIAL)
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
        assert fabric_report(database, PLACE, CREDENTIAL) is None
    else:
        with pytest.raises(ServiceUnavailableError, match="Cannot read"):
            fabric_report(database, PLACE, CREDENTIAL)


def test_a_failed_login_is_told_as_one_and_not_as_a_file_that_cannot_be_read(
    server: FabricServer, onelake: OneLakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    credential = token_credential(Identity("cli"))
    item = MirroredDatabase("Sales", "shop.MirroredDatabase", credential)

    with pytest.raises(ServiceUnavailableError, match="there is no token for Fabric") as error:
        fabric_report(item, PLACE, credential)

    assert "Azure CLI not found" in str(error.value)
    assert ".json" not in str(error.value)


@pytest.mark.parametrize("status", [408, 429, 500, 503, None])
def test_a_rest_api_that_is_down_is_not_taken_for_one_that_refuses(
    server: FabricServer, database: MirroredDatabase, onelake: OneLakeServer, status: int | None
) -> None:
    if status:
        server.fail("getMirroringStatus", status, times=99)
    else:
        server.workspaces[0].capacity_paused = True

    expected = ServiceUnavailableError if status else FabricError
    with pytest.raises(expected, match="Fabric says"):
        fabric_report(database, PLACE, CREDENTIAL)
    assert onelake.requests == []


def test_a_table_without_a_schema_is_in_the_default_schema(
    server: FabricServer, database: MirroredDatabase
) -> None:
    server.workspaces[0].databases[0].scan = lambda: [table("orders")]
    written = {"tables": [{**TABLE, "sourceSchemaName": ""}]}

    for report in (
        fabric_report(database, PLACE, CREDENTIAL),
        monitoring_report(files(tables=json.dumps(written))),
    ):
        assert report
        assert list(report.tables) == ["dbo.orders"]
