"""A landing zone in OneLake: what goes wrong with requests, and how a run holds a table.

What holds for every storage is in `test_storage.py`.
"""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import fsspec
import pytest
import trustme
from azure.core.credentials import AccessToken
from azure.core.exceptions import AzureError
from azure.core.pipeline.transport import RequestsTransport
from azure.identity import EnvironmentCredential
from fsspec.implementations.memory import MemoryFileSystem

from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    LandingZoneUnavailableError,
    PathExistsError,
)
from dbt.adapters.openmirroring.landing_zone.onelake import claim as onelake_claim
from dbt.adapters.openmirroring.landing_zone.onelake import storage as onelake_storage
from dbt.adapters.openmirroring.landing_zone.onelake.claim import (
    CLAIM,
    Claim,
)
from dbt.adapters.openmirroring.landing_zone.onelake.storage import (
    OneLakeClient,
    OneLakeStorage,
    StagingFolder,
)
from dbt.adapters.openmirroring.landing_zone.onelake.url import OneLakeUrl
from dbt.adapters.openmirroring.service.authentication import GivenToken
from tests.onelake_server import (
    HOST,
    KINDS,
    ROOT,
    TOKEN,
    URL,
    WORKSPACE,
    OneLakeServer,
    Request,
    Response,
    listening,
    session_with,
    through_sockets,
)

NUMBERED = f"a.schema/b/{1:020d}.parquet"


@pytest.fixture
def storage(server: OneLakeServer) -> OneLakeStorage:
    return server.storage()


def names(storage: OneLakeStorage, folder: str) -> list[str]:
    return [entry.name for entry in storage.list(folder)]


def lock(storage: OneLakeStorage) -> None:
    with storage.lock("_scratchPad/a.b"):
        storage.write("_scratchPad/a.b/x", b"")
        storage.delete("_scratchPad/a.b/x")


# an operation, and what is in the landing zone after it, by path
OPERATIONS: dict[str, tuple[Callable[[OneLakeStorage], Any], dict[str, bytes | None]]] = {
    "list": (lambda storage: names(storage, "a"), {"a/b": b"1"}),
    "read": (lambda storage: storage.read("a/b"), {"a/b": b"1"}),
    "write": (lambda storage: storage.write("a/b", b"2"), {"a/b": b"2"}),
    "create": (lambda storage: storage.create("a/c", b"2"), {"a/c": b"2"}),
    "rename": (lambda storage: storage.rename("a/b", "a/c"), {"a/b": None, "a/c": b"1"}),
    "rename to new folder": (
        lambda storage: storage.rename("a/b", "c/d/e"),
        {"a/b": None, "c/d/e": b"1"},
    ),
    "delete a file": (lambda storage: storage.delete("a/b"), {"a/b": None, "a/x": b"x"}),
    "delete a folder": (lambda storage: storage.delete("a"), {"a/b": None, "a/x": None}),
    "lock": (lock, {"a/b": b"1"}),
}


@pytest.mark.parametrize(
    "setting",
    [{}, {"source_first": True}, {"rename_changes_etag": False}],
    ids=["as documented", "the source of a rename first", "a rename keeps the ETag"],
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_succeeds_whatever_goes_wrong_with_one_of_its_requests(
    server: OneLakeServer, storage: OneLakeStorage, name: str, kind: str, setting: dict[str, bool]
) -> None:
    vars(server).update(setting)
    operation, expected = OPERATIONS[name]
    for point in range(100):
        storage.delete("a")
        storage.delete("c")
        storage.write("a/b", b"1")
        storage.write("a/x", b"x")
        fault = server.fail(kind, after=point)

        result = operation(storage)

        assert result in (None, ["b", "x"], b"1")
        assert {path: server.content(path) for path in expected} == expected
        assert server.content("_scratchPad/_claim.a.b") is None
        if fault.times:
            break
    assert 1 <= point < 99


@pytest.mark.parametrize("kind", ["throttled", "in use"])
def test_a_request_waits_as_long_as_onelake_asks_for_or_fabric_reads_the_folder(
    server: OneLakeServer, storage: OneLakeStorage, kind: str
) -> None:
    storage.write("a/b", b"1")
    server.fail(kind, "delete", times=5, retry_after=7)

    storage.delete("a")

    assert len(server.slept) == 5
    assert kind == "in use" or set(server.slept) == {7}
    assert storage.list("") == []


@pytest.mark.parametrize(("status", "code"), [(423, "Locked"), (412, "LeaseIdMissing")])
def test_a_folder_that_fabric_holds_in_any_way_is_deleted_when_it_is_free(
    server: OneLakeServer, storage: OneLakeStorage, status: int, code: str
) -> None:
    storage.write("a/b", b"1")
    server.fail("refused", "delete", times=3, status=status, code=code)

    storage.delete("a")

    assert storage.list("") == []


def test_a_listing_of_the_first_levels_only_is_completed(
    server: OneLakeServer, storage: OneLakeStorage
) -> None:
    paths = ("a/b/c/d/e", "a/b/f", "a/g", "h")
    for path in paths:
        storage.write(path, path.encode())
    whole = server.counts()["list"]
    complete = storage.at_once()
    assert server.counts()["list"] == whole + 1, "a listing that is complete is enough"

    server.depth = 2
    found = storage.at_once()

    for path in paths:
        assert found.read(path) == complete.read(path) == path.encode()
    assert found.list("a/b/c") == complete.list("a/b/c")


def test_a_throttled_request_does_not_wait_for_hours(server: OneLakeServer) -> None:
    server.fail("throttled", times=1, retry_after=3600)

    with pytest.raises(LandingZoneUnavailableError, match="TooManyRequests"):
        server.storage().write("a", b"1")

    assert server.slept == []


THROTTLED = "TooManyRequests (of the test) (HTTP 429, TooManyRequests)"


@pytest.mark.parametrize(
    ("kind", "operation", "retry_after", "told"),
    [
        ("throttled", "delete", 1, THROTTLED),
        ("throttled", "delete", 7, THROTTLED),
        ("throttled", "delete", 40, THROTTLED),
        ("busy", "delete", 1, "ServerBusy (of the test) (HTTP 503, ServerBusy)"),
        ("in use", "delete", 1, "PathInUse (of the test) (HTTP 409, PathInUse). Fabric may be"),
        ("reset", "read", 1, "reset"),
        ("slow", "read", 1, "no answer in time"),
        ("reset", "properties", 1, "reset"),
        ("slow", "properties", 1, "no answer in time"),
    ],
)
def test_the_last_answer_or_failure_is_reported_when_the_time_is_over(
    server: OneLakeServer,
    storage: OneLakeStorage,
    kind: str,
    operation: str,
    retry_after: int,
    told: str,
) -> None:
    storage.write("a/b", b"1")
    server.fail(kind, operation, times=1000, retry_after=retry_after)
    calls: dict[str, Callable[[], object]] = {
        "delete": lambda: storage.delete("a"),
        "read": lambda: storage.read("a/b"),
        "properties": lambda: storage.rename("a/b", "c"),
    }

    with pytest.raises(LandingZoneUnavailableError) as refused:
        calls[operation]()

    assert told in str(refused.value)
    assert "timeout" not in str(refused.value)
    assert 40 < sum(server.slept) < 90, "as long as it is worth it"
    assert ("Retries did not help" in str(refused.value)) == (kind != "in use")
    if kind != "throttled":
        assert len(server.requests) < 50
        assert len(set(server.slept)) == len(server.slept), "with jitter"
        assert max(server.slept) <= 15
    assert server.content("a/b") == b"1"


def test_a_name_that_cannot_be_resolved_is_reported_after_a_few_seconds(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def refuse(host: str, *_: Any) -> None:
        asked.append(host)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(onelake_storage, "RequestsTransport", RequestsTransport)
    blobs = HOST.replace("dfs", "blob")

    with pytest.raises(LandingZoneUnavailableError) as refused:
        server.storage().write("a", b"1")

    assert f"the name {blobs} cannot be resolved. Check the network" in str(refused.value)
    assert refused.value.code == "OM704"
    assert set(asked) == {blobs}
    assert sum(server.slept) <= 5


def test_a_name_that_was_resolved_before_may_be_away_for_a_moment(
    server: OneLakeServer, storage: OneLakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.write("a", b"1")
    fault = server.fail("unresolved", times=6)

    storage.write("a", b"2")

    assert fault.times == 0
    assert server.content("a") == b"2"


@pytest.mark.parametrize(
    ("status", "code", "remedy"),
    [
        (401, "InvalidAuthenticationInfo", "Check `authentication`.*OM702"),
        (403, "Forbidden", "write access.*OM703"),
        (404, "FilesystemNotFound", "are spelled like this"),
    ],
)
def test_a_refusal_says_what_can_be_done(
    server: OneLakeServer, status: int, code: str, remedy: str
) -> None:
    server.fail("refused", times=1000, status=status, code=code)

    with pytest.raises(LandingZoneUnavailableError, match=remedy) as refused:
        server.storage().write("a", b"1")

    assert code in str(refused.value)
    assert URL in str(refused.value)
    assert TOKEN not in str(refused.value)


def test_a_token_that_cannot_be_got_is_an_error_of_the_profile(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AZURE_TENANT_ID", "AZURE_CLIENT_ID"):
        monkeypatch.delenv(name, raising=False)
    client = OneLakeClient.connect(OneLakeUrl.parse(URL), EnvironmentCredential())

    with pytest.raises(LandingZoneUnavailableError, match="Check `authentication`"):
        OneLakeStorage(client).write("a", b"1")

    assert server.requests == []


def test_long_listings_and_deletions_come_in_pages(
    server: OneLakeServer, storage: OneLakeStorage
) -> None:
    server.page_size = server.delete_page_size = 2
    for i in range(7):
        storage.write(f"a/{i}", b"1")

    assert names(storage, "a") == [str(i) for i in range(7)]
    assert server.counts()["list"] == 4
    storage.delete("a")
    assert storage.list("") == []


@pytest.mark.parametrize("name", ["a b", "a%20b", "50%", "ü", "a+b&c=d", "a#b", "a'b"])
def test_names_are_names(storage: OneLakeStorage, name: str) -> None:
    storage.write(f"{name}/{name}", b"1")

    storage.rename(f"{name}/{name}", f"{name}/to/{name}")

    assert names(storage, "") == [name]
    assert names(storage, f"{name}/to") == [name]
    assert storage.read(f"{name}/to/{name}") == b"1"
    storage.delete(name)
    assert storage.list("") == []


def test_another_file_of_the_same_size_is_not_taken_for_a_lost_answer(
    server: OneLakeServer,
) -> None:
    storage, other = server.storage(), server.storage()
    storage.write("a/b", b"one")
    other.write("a/d", b"two")
    move = storage._move

    def late(*args: Any) -> bool:
        # between the look at the target and the rename, and the source is gone too
        other.rename("a/d", "a/c")
        other.delete("a/b")
        return move(*args)

    storage._move = late  # type: ignore[method-assign, assignment]
    with pytest.raises(PathExistsError):
        storage.rename("a/b", "a/c")

    assert server.content("a/c") == b"two"


def test_a_rename_of_nothing_is_an_error(server: OneLakeServer) -> None:
    with pytest.raises(LandingZoneUnavailableError, match="it is gone"):
        server.storage().rename("a/b", "a/c")


def test_ignored_conditions_do_not_stay_unnoticed(server: OneLakeServer) -> None:
    server.ignores = {"if-none-match"}

    with pytest.raises(LandingZoneUnavailableError, match="OneLake ignored if-none-match"):
        server.storage().create("a", b"1")


def test_a_rename_replaces_nothing_if_conditions_are_ignored_without_a_word(
    server: OneLakeServer, storage: OneLakeStorage
) -> None:
    server.ignores_silently = {"if-none-match"}
    storage.write("a/b", b"new")
    storage.write("a/c", b"old")

    with pytest.raises(PathExistsError):
        storage.rename("a/b", "a/c")

    assert server.content("a/c") == b"old"


# Holding a folder


def abandon(storage: OneLakeStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a process die, or fall asleep, that holds a folder."""
    with monkeypatch.context() as dying:
        dying.setattr(onelake_claim, "RENEWAL", 1e6)
        claim = Claim(storage._blobs.get_blob_client(f"{ROOT}/_scratchPad/{CLAIM}a.b"))
        assert claim.take()
        storage._claims.append(claim)


@pytest.mark.parametrize(("seconds", "looks"), [(0, 5), (300, 0)])
def test_a_run_waits_until_the_claim_of_a_killed_run_expires(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch, seconds: int, looks: int
) -> None:
    abandon(server.storage(), monkeypatch)
    server.advance(seconds)
    paused: list[float] = []

    def pause(seconds: float) -> None:
        paused.append(seconds)
        server.advance(60)

    monkeypatch.setattr("time.sleep", pause)
    told: list[str] = []
    with OneLakeStorage(server.client(), tell=told.append).lock("_scratchPad/a.b"):
        pass

    assert len(paused) == looks, "270 seconds"
    assert len(told) == bool(looks)
    assert all("_scratchPad/a.b is held by another run, or by one that was" in t for t in told)
    assert server.storage().list("_scratchPad") == []


def test_only_one_of_many_runs_takes_over_an_expired_claim(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandon(server.storage(), monkeypatch)
    server.advance(300)
    held, refused = [], []
    start, all_tried = threading.Barrier(6), threading.Barrier(6)

    def compete() -> None:
        storage = server.storage()
        start.wait()
        try:
            with storage.lock("_scratchPad/a.b"):
                held.append(storage)
                all_tried.wait(30)
        except ConcurrentPublicationError:
            refused.append(storage)
            all_tried.wait(30)

    threads = [threading.Thread(target=compete) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(held), len(refused)) == (1, 5)


def test_a_run_that_slept_past_its_claim_changes_nothing(
    storage: OneLakeStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.write("a/b", b"1")
    abandon(storage, monkeypatch)
    now = onelake_claim._now()
    monkeypatch.setattr(onelake_claim, "_now", lambda: now + 200)

    changes: list[Callable[[], None]] = [
        lambda: storage.write("a/c", b"1"),
        lambda: storage.create("a/c", b"1"),
        lambda: storage.rename("a/b", "a/c"),
        lambda: storage.delete("a/b"),
    ]
    for change in changes:
        with pytest.raises(ConcurrentPublicationError, match="no longer holds"):
            change()

    assert names(storage, "a") == ["b"]


class SlowLogin:
    """A credential whose tokens take a while, and expire at once."""

    def __init__(self, clock: list[float]) -> None:
        self._clock = clock

    def get_token(self, *_scopes: str, **_options: Any) -> AccessToken:
        self._clock.append(50)
        return AccessToken(TOKEN, 0)


# a change, and what goes wrong with which of its requests; all of them are slow
SLOW: dict[str, tuple[Callable[[OneLakeStorage], object], str, str]] = {
    "no answers": (lambda storage: storage.delete("a"), "slow", "delete"),
    "refusals": (lambda storage: storage.delete("a"), "busy", "delete"),
    "Retry-After": (lambda storage: storage.delete("a"), "throttled", "delete"),
    "pages": (lambda storage: storage.delete("a"), "", ""),
    "blocks": (lambda storage: storage.write("a/x", bytes(10_000)), "", ""),
    "a rename": (lambda storage: storage.rename("a/0", "a/x"), "slow", "rename"),
    "a new folder": (lambda storage: storage.rename("a/0", "b/x"), "", "rename"),
}


@pytest.mark.parametrize("has_token", [True, False])
@pytest.mark.parametrize("name", SLOW)
def test_no_request_of_a_change_is_under_way_when_its_claim_expires(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch, name: str, has_token: bool
) -> None:
    change, kind, operation = SLOW[name]
    clock = server.slept
    timeouts: dict[str, float] = {}
    ends: list[float] = []

    def slow(request: Request) -> Response:
        clock.append(sum(timeouts.values()))
        if request.method in ("PUT", "DELETE"):
            ends.append(sum(clock))
        return server.handle(request)

    def transport(**options: float) -> RequestsTransport:
        timeouts.update(options)
        return RequestsTransport(session=session_with(slow))

    for number in range(10):
        server.storage().write(f"a/{number}", b"1")
    server.delete_page_size = 1
    monkeypatch.setattr(onelake_storage, "BLOCK", 1000)
    monkeypatch.setattr(onelake_storage, "RequestsTransport", transport)
    monkeypatch.setattr(onelake_claim, "_now", lambda: sum(clock))
    login = GivenToken(TOKEN) if has_token else SlowLogin(clock)
    storage = OneLakeStorage(OneLakeClient.connect(OneLakeUrl.parse(URL), login))
    abandon(storage, monkeypatch)
    renewed = storage._claims[0]._renewed
    looks = 2 if operation == "rename" else 0
    begun = renewed + onelake_claim.LAST_CHANGE - 1 - looks * sum(timeouts.values())
    clock.append(begun - sum(clock))
    ends.clear()
    server.fail(kind, operation, times=1000, retry_after=40)

    with suppress(LandingZoneUnavailableError, ConcurrentPublicationError):
        change(storage)

    assert set(timeouts) == {"connection_timeout", "read_timeout"}
    assert [end for end in ends if end > renewed + onelake_claim.EXPIRY] == []
    assert bool(ends) == has_token, "a change that begins in time is sent"


def test_a_renewal_that_needs_all_its_retries_is_in_time(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = server.slept

    def slow(request: Request) -> Response:
        clock.append(onelake_claim.CONNECTING + onelake_claim.ANSWERING)
        return server.handle(request)

    monkeypatch.setattr(
        onelake_storage,
        "RequestsTransport",
        lambda **_: RequestsTransport(session=session_with(slow)),
    )
    monkeypatch.setattr(onelake_claim, "_now", lambda: sum(clock))
    storage = server.storage()
    abandon(storage, monkeypatch)
    (claim,) = storage._claims
    begun = claim._renewed + 20
    clock.append(begun - sum(clock))
    server.fail("slow", "put blob", times=1000)

    with suppress(AzureError):
        claim._put(claim._etag)

    assert sum(clock) <= claim._renewed + onelake_claim.LAST_CHANGE
    claim.check()


def test_a_run_that_lost_its_folder_to_another_changes_nothing(server: OneLakeServer) -> None:
    storage, other = server.storage(), server.storage()
    with storage.lock("_scratchPad/a.b"):
        other.delete("_scratchPad/_claim.a.b")
        with other.lock("_scratchPad/a.b"):
            wait_until(lambda: storage._claims[0]._lost)

            with pytest.raises(ConcurrentPublicationError, match="no longer holds"):
                storage.write("a", b"1")
            other.write("a", b"2")

    assert server.content("a") == b"2"


def test_a_claim_outlives_what_goes_wrong_with_its_renewal(
    server: OneLakeServer, storage: OneLakeStorage
) -> None:
    with storage.lock("_scratchPad/a.b"):
        for kind in KINDS:
            fault = server.fail(kind, "put blob")
            wait_until(lambda: fault.times == 0)  # noqa: B023 - it is called at once
        renewed = server.counts()["put blob"]
        wait_until(lambda: server.counts()["put blob"] > renewed + 1)
        storage.write("a", b"1")

    assert server.content("a") == b"1"


@pytest.mark.parametrize("code", ["BlobAlreadyExists", "ConditionNotMet"])
def test_a_claim_that_nobody_has_and_nobody_gets_is_an_error(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    if code == "ConditionNotMet":  # its holder is dead, but cannot be replaced
        abandon(server.storage(), monkeypatch)
        server.advance(300)
    refused = server.fail("refused", "put blob", times=1000, status=409, code=code)
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)

    with (
        pytest.raises(LandingZoneUnavailableError, match="no other run holds the folder"),
        server.storage().lock("_scratchPad/a.b"),
    ):
        pytest.fail("it is not held")

    tries = 1000 - refused.times
    assert tries < 20
    assert len(pauses) >= tries - 2


class BrokenStorage(MemoryFileSystem):  # type: ignore[misc] # it has no types
    """A storage in which files of Spark can be removed so many times."""

    protocol = "broken"
    removals = 0

    def rm(self, *_args: Any, **_options: Any) -> None:
        if BrokenStorage.removals == 0:
            raise ArithmeticError("an error that nobody expects")
        BrokenStorage.removals -= 1


@pytest.mark.parametrize("removals", [0, 1])
def test_a_folder_is_free_again_whatever_went_wrong_with_what_spark_has_written(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch, removals: int
) -> None:
    fsspec.register_implementation("broken", BrokenStorage, clobber=True)
    monkeypatch.setattr(BrokenStorage, "removals", removals)
    storage = OneLakeStorage(server.client(), StagingFolder("broken://staging"))

    with pytest.raises(ArithmeticError), storage.lock("_scratchPad/a.b"):
        pass

    assert server.content("_scratchPad/_claim.a.b") is None
    with server.storage().lock("_scratchPad/a.b"):
        pass


def test_a_folder_is_free_again_if_the_claim_cannot_be_renewed(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_more)
    with pytest.raises(RuntimeError), server.storage().lock("_scratchPad/a.b"):
        pytest.fail("it is not held")

    assert server.content("_scratchPad/_claim.a.b") is None


def test_an_empty_folder_that_a_run_could_not_remove_goes_with_the_next_one_that_sees_it(
    server: OneLakeServer,
) -> None:
    with server.storage().lock("_scratchPad/a.b"):
        storage = server.storage()
        storage.write("_scratchPad/a.b/manifest.json", b"1")
        storage.delete("_scratchPad/a.b/manifest.json")
    assert [entry.name for entry in storage.list("_scratchPad")] == ["a.b"]

    with (storage := server.storage()).lock("_scratchPad/a.b"):
        assert storage.list("_scratchPad/a.b") == []

    assert server.storage().list("_scratchPad") == []


def wait_until(happened: Callable[[], bool]) -> None:
    for _ in range(2000):
        if happened():
            return
        threading.Event().wait(0.01)
    pytest.fail("it does not happen")


# Uploads


def staged(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(parents=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


FILES = {f"part-{i}.parquet": bytes([i]) * (i * 700) for i in range(8)}


@pytest.mark.parametrize("kind", [None, *KINDS])
def test_files_that_spark_wrote_on_this_machine_are_uploaded(
    server: OneLakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str | None
) -> None:
    monkeypatch.setattr(onelake_storage, "BLOCK", 1000)
    storage = server.storage(staging=tmp_path)
    rows = "_scratchPad/a.b/1/rows"
    staged(tmp_path / rows, {**FILES, "_SUCCESS": b"", ".part-1.parquet.crc": b"x"})
    if kind:
        for after in range(0, 30, 5):
            server.fail(kind, after=after)

    collected = storage.collect(rows)

    assert storage.url(rows) == f"file://{tmp_path}/{rows}"
    assert {entry.name: entry.size for entry in collected} == {
        name: len(content) for name, content in FILES.items()
    }
    assert {name: server.content(f"{rows}/{name}") for name in FILES} == FILES
    assert max(len(request.body) for request in server.requests) <= 1000, "bounded memory"


def test_files_are_uploaded_from_wherever_spark_has_written_them(server: OneLakeServer) -> None:
    memory = fsspec.filesystem("memory")
    rows = "_scratchPad/a.b/1/rows"

    def write() -> None:
        for name, content in {**FILES, "_SUCCESS": b""}.items():
            memory.pipe(f"/bucket/staging/{rows}/{name}", content)

    told: list[tuple[int, int]] = []
    folder = StagingFolder("memory://bucket/staging")
    storage = OneLakeStorage(server.client(), folder, lambda *bytes_: told.append(bytes_))
    write()

    with storage.lock("_scratchPad/a.b/1"):  # files of an earlier run are not used
        assert not memory.find("/bucket/staging")
        write()
        collected = storage.collect(rows)

    assert storage.url("a/rows") == "memory://bucket/staging/a/rows"
    assert [entry.name for entry in collected] == sorted(FILES)
    assert server.content(f"{rows}/part-3.parquet") == FILES["part-3.parquet"]
    assert not memory.find("/bucket/staging")
    total = sum(map(len, FILES.values()))
    assert told[-1] == (total, total), "the progress is reported"
    assert {of for _, of in told} == {total}


def test_files_whose_upload_failed_are_uploaded_again_and_no_others(
    server: OneLakeServer, tmp_path: Path
) -> None:
    storage = server.storage(staging=tmp_path)
    staged(tmp_path / "rows", FILES)
    server.fail("refused", "put blob", after=5, times=3)

    storage.collect("rows")

    assert {name: server.content(f"rows/{name}") for name in FILES} == FILES
    assert server.counts()["put blob"] == len(FILES) + 3


@pytest.mark.parametrize(
    ("folder", "kind", "told"),
    [
        ("rows", "refused", "Cannot upload files to rows"),
        ("rows", "dropped", "bytes that it has in"),
        ("elsewhere", "reset", "that Spark and dbt share"),
    ],
)
def test_an_upload_that_is_not_whole_is_an_error(
    server: OneLakeServer, tmp_path: Path, folder: str, kind: str, told: str
) -> None:
    storage = server.storage(staging=tmp_path)
    staged(tmp_path / "rows", FILES)
    server.fail(kind, "put blob", after=5, times=1000)

    with pytest.raises(LandingZoneUnavailableError, match=told):
        storage.collect(folder)


def test_a_staged_file_that_cannot_be_read_is_an_error(
    server: OneLakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> IO[bytes]:
        raise PermissionError(errno.EACCES, "Permission denied")

    storage = server.storage(staging=tmp_path)
    staged(tmp_path / "rows", FILES)
    monkeypatch.setattr(StagingFolder, "open", refused)

    with pytest.raises(LandingZoneUnavailableError, match="that Spark and dbt share"):
        storage.collect("rows")


def test_spark_writes_to_onelake_itself_if_there_is_no_place_to_stage(
    server: OneLakeServer,
) -> None:
    url = server.storage().url("_scratchPad/a.b/1/rows")

    assert url == f"abfss://{WORKSPACE}@{HOST}/{ROOT}/_scratchPad/a.b/1/rows"


def test_the_storage_works_through_sockets_with_tls(server: OneLakeServer, tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with listening(server, authority) as port, through_sockets(port, tmp_path / "ca.pem"):
        storage = server.storage()
        server.fail("lost", "rename")
        server.fail("lost 503", "put blob")
        server.fail("throttled", "list")
        with storage.lock("_scratchPad/a.b"):
            storage.create("_scratchPad/a.b/x", b"rows")
            storage.rename("_scratchPad/a.b/x", NUMBERED)
        assert names(storage, "a.schema/b") == [f"{1:020d}.parquet"]
        assert storage.read(NUMBERED) == b"rows"
        storage.delete("a.schema")

    assert server.content(NUMBERED) is None
    assert {request.host for request in server.requests} == {HOST, HOST.replace("dfs", "blob")}
