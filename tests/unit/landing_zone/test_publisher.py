"""The steps of a publication in the landing zone, and what is left when one does not end."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import Owner, RowCounts, TableDefinition
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    ForeignTableFolderError,
    LandingZoneUnavailableError,
    MirrorError,
    PathExistsError,
    SnapshotMismatchError,
)
from dbt.adapters.openmirroring.landing_zone.inventory import landed_table
from dbt.adapters.openmirroring.landing_zone.layout import PUBLISHED, SCRATCH_PAD, TableFolder
from dbt.adapters.openmirroring.landing_zone.onelake import claim as onelake_claim
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.landing_zone.storage import Entry, Storage
from dbt.adapters.openmirroring.protocol.facts import Held
from dbt.adapters.openmirroring.rest import azure_requests
from dbt.adapters.openmirroring.service.monitoring import Service
from dbt.adapters.openmirroring.service.reports import ServiceError, ServiceReport, TableReport
from tests.fabric_server import Clock
from tests.onelake_server import KINDS, TOKEN, OneLakeServer
from tests.unit.landing_zone.publishing import (
    BY_TIME,
    DEFINITION,
    OWNER,
    TABLE,
    DyingStorage,
    Files,
    Killed,
    commit,
    data_files,
    files_after,
    finish,
    leave,
    number,
    planned,
    publication,
    publish,
    recover,
    stage,
)

AT_ROOT = TableFolder("", "orders")
LOCAL = pytest.mark.parametrize("storage", ["local"], indirect=True)


def landed(storage: Storage) -> list[str]:
    """What is in the landing zone, apart from marks and a scratch pad without files."""
    return [
        entry.name
        for entry in storage.list("")
        if entry.name not in (PUBLISHED, SCRATCH_PAD)
        or (entry.name == SCRATCH_PAD and has_files(storage, SCRATCH_PAD))
    ]


def has_files(storage: Storage, folder: str) -> bool:
    return any(
        not entry.is_folder or has_files(storage, f"{folder}/{entry.name}")
        for entry in storage.list(folder)
    )


def verify(opened: Publication, snapshot: str | None, rebuilds: bool = False) -> Journal | None:
    assert not opened.pending()
    return opened.verify(snapshot, rebuilds)


# Numbers and records


def test_an_initial_load_is_numbered_from_one_with_metadata_and_journal(storage: Storage) -> None:
    batch_id = publish(storage, "initial", [b"a", b"b"])

    assert landed(storage) == ["sales.schema"], "nothing is left on the scratch pad"
    assert storage.read("_published/shop/sales.orders") == batch_id.encode()
    assert data_files(storage) == {number(1): b"a", number(2): b"b"}
    assert json.loads(storage.read(TABLE.metadata) or b"") == {"keyColumns": ["id"]}
    batch = json.loads(storage.read(TABLE.journal) or b"")["batch"]
    assert batch["id"] == batch_id
    assert batch["owner"] == {
        **{"project": "shop", "node": "model.shop.orders"},
        **{"schema": "sales", "invocation_id": "", "target": "", "user": ""},
    }
    assert (batch["first_file"], batch["last_file"]) == (1, 2)


def test_changes_continue_the_numbers_also_after_a_batch_without_files(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    publish(storage, "unchanged", [])
    publish(storage, "changes", [b"b", b"c"])

    assert data_files(storage) == {number(1): b"a", number(2): b"b", number(3): b"c"}


@pytest.mark.parametrize("folder", ["_ProcessedFiles", "_FilesReadyToDelete"])
def test_files_that_the_service_has_moved_or_deleted_keep_their_numbers(
    storage: Storage, folder: str
) -> None:
    publish(storage, "initial", [b"a", b"b"])
    storage.rename(TABLE.file(2, "parquet"), f"{TABLE.path}/{folder}/{number(2)}")
    storage.delete(TABLE.file(1, "parquet"))

    publish(storage, "changes", [b"c"])

    assert data_files(storage) == {number(3): b"c"}


def test_a_rebuild_begins_a_new_folder(storage: Storage) -> None:
    publish(storage, "initial", [b"a", b"b"])
    storage.rename(TABLE.file(1, "parquet"), f"{TABLE.path}/_ProcessedFiles/{number(1)}")

    publish(storage, "rebuild", [b"c"])

    assert data_files(storage) == {number(1): b"c"}
    assert storage.list(f"{TABLE.path}/_ProcessedFiles") == []


# Files without numbers


def by_time(storage: Storage) -> list[bytes | None]:
    """The contents of the data files in the order of their times, which no two have in common."""
    folders = (TABLE.path, f"{TABLE.path}/_ProcessedFiles")
    files = [
        (entry.modified, f"{folder}/{entry.name}")
        for folder in folders
        for entry in storage.list(folder)
        if not entry.name.startswith("_")
    ]
    assert len({modified for modified, _ in files}) == len(files)
    return [storage.read(path) for _, path in sorted(files)]


@LOCAL
def test_files_without_numbers_have_unique_names_and_times_in_their_order(
    storage: Storage,
) -> None:
    first = publish(storage, "initial", [b"a", b"b"], BY_TIME)
    names = list(data_files(storage))
    assert names == [f"{n:020d}-{first}.parquet" for n in (1, 2)]
    storage.rename(f"{TABLE.path}/{names[0]}", f"{TABLE.path}/_ProcessedFiles/{names[0]}")
    second = publish(storage, "changes", [b"c", b"d", b"e"], BY_TIME)
    assert list(data_files(storage))[1:] == [f"{n:020d}-{second}.parquet" for n in (3, 4, 5)]
    assert by_time(storage) == [b"a", b"b", b"c", b"d", b"e"]


@LOCAL
def test_files_without_numbers_are_later_than_any_other_whatever_the_clock_says(
    storage: Storage,
) -> None:
    publish(storage, "initial", [b"a"], BY_TIME)
    (name,) = data_files(storage)
    storage.touch(f"{TABLE.path}/{name}", 2 * 10**18)  # the clock was set back since
    manifest = leave(storage, "changes", [b"c", b"d"], BY_TIME)
    storage.write(f"{TABLE.path}/foreign.parquet", b"b")
    storage.touch(f"{TABLE.path}/foreign.parquet", 3 * 10**18)

    with publication(storage) as opened:
        finish(opened, manifest)

    assert by_time(storage) == [b"a", b"b", b"c", b"d"]


def test_a_storage_that_does_not_keep_times_is_found_out(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = storage.list

    def forgetful(folder: str) -> list[Entry]:
        return [replace(entry, modified=7) for entry in listed(folder)]

    monkeypatch.setattr(storage, "touch", lambda _, after: after + 1)
    monkeypatch.setattr(storage, "list", forgetful)

    with pytest.raises(MirrorError, match="cannot know their order"):
        publish(storage, "initial", [b"a", b"b"], BY_TIME)


# Runs that do not end


def assert_finished_or_undone(
    storage: Storage,
    before: Files,
    kind: str,
    new: list[bytes],
    definition: TableDefinition = DEFINITION,
) -> None:
    """After the next run has recovered; the batch has another number of files than the last."""
    committed = storage.read(TABLE.manifest) is not None
    last = Journal.read(storage, TABLE.journal)
    completed = last is not None and last.batch.files_written == len(new)

    assert recover(storage) == committed

    assert landed(storage) in ([], ["sales.schema"])
    assert not recover(storage), "one recovery is enough"
    if not (committed or completed):
        assert data_files(storage) == before
        return
    last = Journal.read(storage, TABLE.journal)
    assert last
    unique = f"-{last.batch.id}" if definition.is_by_time else ""
    assert data_files(storage) == files_after(before, kind, new, unique)
    if definition.is_by_time:
        assert by_time(storage) == [*data_files(storage).values()]


@pytest.mark.parametrize(
    ("storage", "definition"),
    [("local", DEFINITION), ("local", BY_TIME)],
    indirect=["storage"],
    ids=["by number", "by time"],
)
@pytest.mark.parametrize("kind", ["initial", "changes", "rebuild"])
def test_a_run_killed_at_any_change_is_finished_or_undone_by_the_next(
    storage: Storage, kind: str, definition: TableDefinition
) -> None:
    new = [b"new 1", b"new 2", b"new 3"]
    for point in range(1, 100):
        storage.delete("sales.schema")
        if kind != "initial":
            publish(storage, "initial", [b"old 1", b"old 2"], definition)
        before = data_files(storage)
        dying: Any = DyingStorage(storage, point)
        opened = Publication(dying, TABLE, OWNER)
        try:
            finish(opened, commit(dying, opened, kind, new, definition))
            opened.close()
            break
        except Killed:
            opened._lock.close()  # the kernel does it

        assert_finished_or_undone(storage, before, kind, new, definition)
    assert 16 < point < 99, "staging, manifest, metadata, files, journal and clearing were points"


@pytest.mark.parametrize("operation", ["create", "read"])
def test_a_manifest_that_may_be_there_keeps_what_it_needs(
    storage: Storage, operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to its creation is lost, or the journal cannot be read after it."""
    create, read = storage.create, storage.read

    def lost(path: str, content: bytes) -> None:
        create(path, content)
        raise LandingZoneUnavailableError("no answer")

    def refused(path: str) -> bytes | None:
        if read(TABLE.manifest):
            raise LandingZoneUnavailableError("not now")
        return read(path)

    with monkeypatch.context() as patched:
        patched.setattr(storage, operation, {"create": lost, "read": refused}[operation])
        with pytest.raises(LandingZoneUnavailableError):
            leave(storage, "initial", [b"a"])

    assert recover(storage)
    assert data_files(storage) == {number(1): b"a"}


def test_recovery_does_not_need_files_that_the_service_has_taken(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        opened.publish(commit(storage, opened, "changes", [b"b", b"c"]))
    storage.rename(TABLE.file(2, "parquet"), f"{TABLE.path}/_ProcessedFiles/{number(2)}")
    storage.delete(TABLE.file(1, "parquet"))

    assert recover(storage)

    assert data_files(storage) == {number(3): b"c"}


@pytest.mark.parametrize("is_truncated", [False, True])
def test_a_staged_file_that_vanished_unpublished_is_an_error(
    storage: Storage, is_truncated: bool
) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        manifest = commit(storage, opened, "changes", [b"b", b"c"])
        path = f"{TABLE.staging(opened.batch_id)}/rows/{manifest.files[1].name}"
        storage.delete(path)
        if is_truncated:
            storage.write(path, b"")

        with pytest.raises(MirrorError, match=r"part-1.* somebody else has deleted"):
            opened.publish(manifest)
    assert data_files(storage) == {number(1): b"a"}, "not the file before it either"


def test_a_reader_changes_nothing_and_finishes_nothing(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    manifest = leave(storage, "changes", [b"b"])

    assert PublishedTable(storage, TABLE, OWNER).pending() == manifest

    assert storage.read(TABLE.manifest) == manifest.to_json()
    with publication(storage) as opened:
        assert opened.pending() == manifest


@pytest.mark.parametrize("former", [TableFolder("sales", "ORDERS"), TableFolder("old", "orders")])
def test_rows_are_known_by_their_build_if_their_node_had_another_schema_or_case(
    storage: Storage, former: TableFolder
) -> None:
    owner = replace(OWNER, schema=former.schema)
    build = publish(storage, "initial", [b"1"], owner=owner, table=former)
    publish(storage, "initial", [b"1"], table=TableFolder("sales", "other"))
    table = PublishedTable(storage, TABLE, OWNER)

    assert table.former_folder(build) == former
    assert table.former_folder("another") is None
    storage.write(former.journal, b"damaged")
    assert table.former_folder(build) is None


# Other runs


def test_a_second_publisher_of_a_table_stops(storage: Storage) -> None:
    with publication(storage), pytest.raises(ConcurrentPublicationError), publication(storage):
        pass


@pytest.mark.parametrize(
    ("kind", "completes"),
    [("changes", False), ("initial", True), ("changes", True), ("rebuild", True)],
    ids=["committed", "initial", "changes", "rebuild"],
)
def test_a_publisher_that_lost_its_lock_does_not_commit_over_another(
    storage: Storage, kind: str, completes: bool
) -> None:
    if kind != "initial":
        publish(storage, "initial", [b"a"])
    before, other = data_files(storage), "initial" if kind == "initial" else "changes"
    with publication(storage) as opened:
        opened.pending()
        stage(storage, opened, [b"rows from before"])
        opened._lock.close()  # as a lease that ran out
        if completes:
            publish(storage, other, [b"b"])
        else:
            leave(storage, other, [b"b"])
        # also a rebuild that is verified now has rows from before
        journal = None if kind == "initial" else opened.verify(None, rebuilds=True)
        plan = Plan(kind, "", DEFINITION, RowCounts(1), journal)

        with pytest.raises(ConcurrentPublicationError):
            opened.commit(plan, opened.staged_files.written(plan))

    assert recover(storage) != completes
    assert data_files(storage) == files_after(before, other, [b"b"])


def test_a_manifest_planned_against_an_older_journal_is_withdrawn(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    late = leave(storage, "changes", [b"late"])
    storage.delete(TABLE.manifest)
    publish(storage, "changes", [b"b"])
    storage.create(TABLE.manifest, late.to_json())

    assert not recover(storage)

    assert data_files(storage) == {number(1): b"a", number(2): b"b"}
    assert storage.read(TABLE.manifest) is None


def test_a_number_taken_by_somebody_else_is_never_overwritten(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        manifest = commit(storage, opened, "changes", [b"b"])
        storage.write(TABLE.file(2, "parquet"), b"foreign")

        with pytest.raises(PathExistsError):
            opened.publish(manifest)

    assert data_files(storage)[number(2)] == b"foreign"


# Tables, snapshots and files of others


def test_only_the_snapshot_that_was_published_last_is_accepted_unless_it_is_rebuilt(
    storage: Storage,
) -> None:
    with publication(storage) as opened:
        assert verify(opened, None) is None
    batch_id = publish(storage, "initial", [b"a"])

    with publication(storage) as opened:
        journal = verify(opened, batch_id)
        assert journal
        assert journal.batch.id == batch_id
        for snapshot in (None, "another"):
            with pytest.raises(SnapshotMismatchError, match="--full-refresh"):
                verify(opened, snapshot)
            assert verify(opened, snapshot, rebuilds=True)


@pytest.mark.parametrize(("rows", "is_proposed"), [(0, False), (1, True), (3, True)])
def test_no_way_out_empties_the_mirrored_table(
    storage: Storage, rows: int, is_proposed: bool
) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        opened.pending()
        assert opened.last
        published = replace(opened.last, batch=replace(opened.last.batch, table_rows=2))
        with pytest.raises(SnapshotMismatchError) as refused:
            opened.verify_rows(published, rows)

    assert "in place of the 2 rows that were published" in refused.value.msg
    assert (f"publishes the {rows} rows that Spark has" in refused.value.msg) == is_proposed
    assert ("mirror_rebuild" in refused.value.msg) == is_proposed


@pytest.mark.parametrize(
    ("table", "owner", "finding"),
    [
        (TABLE, None, r"no _journal\.json"),
        (TABLE, replace(OWNER, project="other"), "'other'"),
        (AT_ROOT, replace(OWNER, schema="archive"), "in the schema 'archive'"),
    ],
    ids=["nobody", "another project", "another schema, of which the root has no folder"],
)
def test_the_folder_of_others_is_refused_also_for_a_rebuild(
    storage: Storage, table: TableFolder, owner: Owner | None, finding: str
) -> None:
    if owner:
        publish(storage, "initial", [b"a"], owner=owner, table=table)
    else:
        storage.write(table.file(1, "parquet"), b"foreign")

    with publication(storage, table=table) as opened:
        for rebuilds in (False, True):
            with pytest.raises(ForeignTableFolderError, match=finding):
                verify(opened, opened.last_build, rebuilds)


@LOCAL
@pytest.mark.parametrize("folder", ["", "/_ProcessedFiles"])
@pytest.mark.parametrize(
    ("definition", "foreign"),
    [
        (DEFINITION, number(4)),
        (BY_TIME, "foreign.parquet"),
        (BY_TIME, f"{1:020d}-other.parquet"),
        (BY_TIME, f"{2:020d}-2026112116421212345678.parquet"),
    ],
    ids=["a number more", "no number", "no batch", "a number twice"],
)
def test_a_file_that_somebody_else_has_added_is_refused(
    storage: Storage, definition: TableDefinition, foreign: str, folder: str
) -> None:
    publish(storage, "initial", [b"a", b"b"], definition)
    batch_id = publish(storage, "changes", [b"c"], definition)
    storage.write(f"{TABLE.path}{folder}/{foreign}", b"foreign")

    with publication(storage) as opened:
        assert verify(opened, batch_id, rebuilds=True)
        with pytest.raises(
            ForeignTableFolderError, match=r"somebody else writes to this folder.*OM416"
        ):
            verify(opened, batch_id)


@LOCAL
def test_files_without_numbers_that_the_service_is_moving_are_accepted(storage: Storage) -> None:
    batch_id = publish(storage, "initial", [b"a", b"b"], BY_TIME)
    for name, content in data_files(storage).items():
        assert content
        storage.write(f"{TABLE.path}/_ProcessedFiles/{name}", content)
    storage.write(f"{TABLE.path}/.part-00000.crc", b"")

    with publication(storage) as opened:
        assert verify(opened, batch_id)


@pytest.mark.parametrize("kind", ["initial", "changes"])
def test_a_file_that_somebody_else_adds_after_the_plan_is_not_published_above(
    storage: Storage, kind: str
) -> None:
    if kind == "changes":
        publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        plan = planned(opened, kind)
        stage(storage, opened, [b"b"])
        storage.write(TABLE.file(7, "parquet"), b"foreign")
        before = data_files(storage)

        with pytest.raises(ForeignTableFolderError, match="Nothing was changed"):
            opened.commit(plan, opened.staged_files.written(plan))

    assert data_files(storage) == before
    assert storage.list(TABLE.scratch) == []


# The service


class LateService:
    """A service that knows of the table folder what was in it some questions ago.

    Args:
        late: so many questions
    """

    def __init__(self, storage: Storage, late: int) -> None:
        self.found: list[list[str]] = []
        self._storage = storage
        self._late = late
        self.clock = Clock()
        self.service = Service(self._report, self.clock)

    def _report(self) -> ServiceReport:
        self.found.append(sorted(data_files(self._storage)))
        known = self.found[max(0, len(self.found) - 1 - self._late)]
        return ServiceReport("Running", "", {str(TABLE): TableReport()} if known else {})


def test_a_rebuild_waits_until_the_table_is_gone_and_until_it_is_back(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    late = LateService(storage, 2)
    late.service.report()

    with publication(storage, service=late.service) as opened:
        manifest = commit(storage, opened, "rebuild", [b"b", b"c"])
        opened.publish(manifest)
        assert storage.read(TABLE.manifest), "nobody else publishes to the table until it is back"
        opened.record(manifest)
        opened.complete(manifest)

    gone: list[str] = []
    old, back = [number(1)], [number(1), number(2)]
    assert late.found == [old, gone, gone, gone, back, back, back]
    assert late.clock.slept == [10] * 4, "each begins with a new question"
    assert data_files(storage) == {number(1): b"b", number(2): b"c"}


@pytest.mark.parametrize(
    ("kind", "is_dropped", "asked"),
    [("initial", False, 1), ("changes", False, 1), ("initial", True, 4)],
    ids=["load", "changes", "load in place of a dropped folder"],
)
def test_only_a_load_in_place_of_a_dropped_folder_waits_for_the_service(
    storage: Storage, kind: str, is_dropped: bool, asked: int
) -> None:
    if kind == "changes" or is_dropped:
        publish(storage, "initial", [b"a"])
    late = LateService(storage, 2)
    late.service.check()
    if is_dropped:
        storage.delete(TABLE.path)

    with publication(storage, service=late.service) as opened:
        finish(opened, commit(storage, opened, kind, [b"b"]))

    assert late.found[1:] == [[]] * (asked - 1), "no file appears before the table is gone"
    assert b"b" in data_files(storage).values()


THERE = ServiceReport("Running", "", {str(TABLE): TableReport()})


def test_an_initial_load_does_not_wait_until_its_own_table_is_gone(storage: Storage) -> None:
    """The service may have it as soon as there is metadata."""
    manifest = leave(storage, "initial", [b"b"])
    storage.write(TABLE.metadata, b"{}")

    with publication(storage, service=Service(lambda: THERE, Clock())) as opened:
        finish(opened, manifest)

    assert data_files(storage) == {number(1): b"b"}


@pytest.mark.parametrize(
    ("kind", "stuck"),
    [
        ("initial", THERE),
        ("rebuild", replace(THERE, status="Paused")),
        ("rebuild", THERE),
        ("rebuild", ServiceReport("Running")),
    ],
    ids=["a load before it is gone", "paused", "a rebuild before it is gone", "before it is back"],
)
def test_a_publication_that_has_waited_in_vain_is_brought_to_its_end_later(
    storage: Storage, kind: str, stuck: ServiceReport
) -> None:
    if kind == "rebuild":
        publish(storage, "initial", [b"a"])

    with publication(storage, service=Service(lambda: stuck, Clock())) as opened:
        manifest = commit(storage, opened, kind, [b"b", b"c"])
        with pytest.raises(ServiceError):
            opened.publish(manifest)

    assert kind == "rebuild" or storage.list(TABLE.path) == [], "a load makes no folder before"
    assert recover(storage)
    assert data_files(storage) == {number(1): b"b", number(2): b"c"}
    assert landed(storage) == ["sales.schema"]


# The time of a publication


def test_a_publication_tells_when_the_last_of_its_files_appeared(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = storage.rename
    renamed: list[datetime] = []

    def watched(source: str, target: str) -> None:
        renamed.append(datetime.now(timezone.utc))
        rename(source, target)

    monkeypatch.setattr(storage, "rename", watched)
    with publication(storage) as opened:
        manifest = commit(storage, opened, "initial", [b"a", b"b", b"c"])
        opened.publish(manifest)
        assert opened.published_at is None
        opened.record(manifest)

        assert opened.published_at
        assert renamed[1] <= opened.published_at <= renamed[2]
        journal = opened.journal()
        assert journal
        told = datetime.fromisoformat(journal.published_at)
        assert timedelta() <= opened.published_at - told < timedelta(milliseconds=1)
        opened.complete(manifest)

    with publication(storage) as opened:
        finish(opened, commit(storage, opened, "unchanged", []))
        assert opened.published_at is None, "a batch without files has no time"


def test_a_recovery_that_renames_no_file_tells_no_later_time_than_the_first_run(
    storage: Storage,
) -> None:
    with publication(storage) as opened:
        opened.publish(commit(storage, opened, "initial", [b"a"]))
    renamed = datetime.now(timezone.utc)

    with publication(storage) as later:
        manifest = later.pending()
        assert manifest
        finish(later, manifest)

        assert later.published_at
        assert later.published_at <= renamed
        journal = later.journal()
        assert journal
        assert datetime.fromisoformat(journal.published_at) <= renamed


# In OneLake, where an operation is several requests


@pytest.mark.slow
@pytest.mark.parametrize(
    "kinds", [["lost"], ["lost 503"], sorted({*KINDS} - {"lost", "lost 503"})], ids=",".join
)
def test_one_failure_of_any_request_goes_unnoticed(
    server: OneLakeServer, kinds: list[str]
) -> None:
    storage = server.storage()
    for point in range(100):
        storage.delete("sales.schema")
        publish(storage, "initial", [b"old"])
        fault = server.fail(kinds[point % len(kinds)], after=point)

        publish(storage, "rebuild", [b"new 1", b"new 2"])

        assert data_files(storage) == {number(1): b"new 1", number(2): b"new 2"}
        assert landed(storage) == ["sales.schema"]
        if fault.times:
            break
    assert 20 < point < 99


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["initial", "changes", "rebuild"])
def test_a_process_that_dies_at_any_request_is_finished_or_undone_by_the_next(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    storage = server.storage()
    new = [b"new 1", b"new 2"]
    for point in range(100):
        storage.delete("sales.schema")
        if kind != "initial":
            publish(storage, "initial", [b"old"])
        before = data_files(storage)
        dying = server.fail("reset", after=point, times=10**6)

        # a dead process neither renews its claim nor retries
        with monkeypatch.context() as dead:
            dead.setattr(onelake_claim, "RENEWAL", 1e6)
            dead.setattr(azure_requests.Retry, "is_retry", lambda *_: False)
            dead.setattr(azure_requests.Retry, "_is_method_retryable", lambda *_: False)
            with suppress(LandingZoneUnavailableError):
                publish(server.storage(), kind, new)
        died = dying.times < 10**6
        dying.times = 0
        server.advance(300)

        assert_finished_or_undone(server.storage(), before, kind, new)
        if not died:
            break
    assert 20 < point < 99


@pytest.mark.parametrize(
    ("operation", "after", "published"), [("rename", 0, 0), ("rename", 1, 1), ("delete", 0, 2)]
)
def test_a_token_that_expires_while_files_are_published_tells_how_many_are(
    server: OneLakeServer, operation: str, after: int, published: int
) -> None:
    storage = server.storage()
    with publication(storage) as opened:
        manifest = commit(storage, opened, "initial", [b"a", b"b"])
        server.expire_token(operation, after)
        with pytest.raises(LandingZoneUnavailableError) as refused:
            finish(opened, manifest)

    told = str(refused.value)
    assert refused.value.code == "OM702"
    assert f"Batch {manifest.batch.id} (initial +2 · #1-#2) is committed." in told
    assert f"{published} of its 2 files are published. The next run of the node" in told
    server.token = TOKEN
    server.advance(300)
    assert recover(storage)
    assert data_files(storage) == {number(1): b"a", number(2): b"b"}


def test_a_publication_whose_token_expires_before_the_commit_ends_without_another_error(
    server: OneLakeServer,
) -> None:
    storage = server.storage()
    with publication(storage) as opened:
        stage(storage, opened, [b"a"])
        server.token = "another"

    server.token = TOKEN
    server.advance(300)
    assert not recover(storage)
    assert landed(storage) == []


def test_a_publication_is_a_small_number_of_requests(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onelake_claim, "RENEWAL", 20)

    last = publish(server.storage(), "initial", [b"old"])

    def requests(contents: list[bytes]) -> Counter[str]:
        nonlocal last
        storage = server.storage()
        server.requests.clear()
        with publication(storage) as opened:
            verify(opened, last)
            finish(opened, commit(storage, opened, "changes", contents))
            last = opened.batch_id
        # the stand-in for Spark writes three files for one, and the plan reads the journal again
        return server.counts() - Counter({"put blob": 3 * len(contents), "read": 1})

    one, two = requests([b"1"]), requests([b"1", b"2"])

    assert two - one == Counter({"properties": 2, "rename": 1})
    expected = {"read": 2, "list": 5, "put blob": 3, "properties": 2, "rename": 1}
    assert one == Counter({**expected, "delete": 3, "delete blob": 1})


# Held rows


def hold(storage: Storage) -> None:
    with publication(storage) as opened:
        opened.pending()
        opened.hold(Held(opened.batch_id, why="until its tests pass"))


def test_a_record_shows_held_rows_until_they_are_published(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    hold(storage)

    with publication(storage) as opened:
        assert opened.pending() is None
        found = landed_table(storage, TABLE).held
        assert found
        assert (found.owner, found.held.why) == (OWNER, "until its tests pass")
        finish(opened, commit(storage, opened, "changes", [b"b"]))

    assert landed_table(storage, TABLE).held is None
    assert storage.list(TABLE.scratch) == []


def test_an_edited_record_of_what_is_held_is_a_problem_of_the_record_alone(
    storage: Storage,
) -> None:
    publish(storage, "initial", [b"a"])
    hold(storage)
    content = storage.read(TABLE.held)
    assert content
    storage.write(TABLE.held, content.replace(b"tests", b"texts"))

    landed = landed_table(storage, TABLE)

    assert "was edited" in landed.held_problem
    assert landed.journal
    assert not landed.problem
