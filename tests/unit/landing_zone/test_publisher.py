"""The steps of a publication in the landing zone, and what is left when one does not end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
    new_batch_id,
)
from dbt.adapters.openmirroring.landing_zone.errors import (
    ConcurrentPublicationError,
    ForeignTableFolderError,
    LandingZoneUnavailableError,
    MirrorError,
    PathExistsError,
    SnapshotMismatchError,
)
from dbt.adapters.openmirroring.landing_zone.inventory import landed_table
from dbt.adapters.openmirroring.landing_zone.layout import SCRATCH_PAD, TableFolder
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.onelake import claim as onelake_claim
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.published_table import PublishedTable
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Journal, Manifest
from dbt.adapters.openmirroring.landing_zone.storage import Entry, Storage
from dbt.adapters.openmirroring.rest import azure_requests
from dbt.adapters.openmirroring.service.monitoring import Service
from dbt.adapters.openmirroring.service.reports import ServiceError, ServiceReport, TableReport
from tests.fabric_server import Clock
from tests.onelake_server import KINDS, TOKEN, OneLakeServer
from tests.variants import some

TABLE = TableFolder("sales", "orders")
OWNER = Owner("shop", "model.shop.orders", "sales")
DEFINITION = TableDefinition((MirroredColumn("id", "int", "int"),), ("id",), "parquet")
BY_TIME = replace(DEFINITION, file_detection="last_update_time")


@contextmanager
def publication(
    storage: Storage, owner: Owner = OWNER, service: Service | None = None
) -> Iterator[Publication]:
    opened = Publication(storage, TABLE, owner, service)
    try:
        yield opened
    finally:
        opened.close()


def landed(storage: Storage) -> list[str]:
    """What is in the landing zone, apart from a scratch pad without files."""
    return [
        entry.name
        for entry in storage.list("")
        if entry.name != SCRATCH_PAD or has_files(storage, SCRATCH_PAD)
    ]


def has_files(storage: Storage, folder: str) -> bool:
    return any(
        not entry.is_folder or has_files(storage, f"{folder}/{entry.name}")
        for entry in storage.list(folder)
    )


def stage(storage: Storage, opened: Publication, contents: list[bytes]) -> None:
    """Stand in for Spark: the files, and what it leaves beside them."""
    opened.staging_url("rows")  # Spark is told it
    for i, content in enumerate(contents):
        folder = f"{TABLE.staging(opened.batch_id)}/rows"
        storage.write(f"{folder}/part-{i:05d}-x.zstd.parquet", content)
        storage.write(f"{folder}/.part-{i:05d}-x.zstd.parquet.crc", b"")
        storage.write(f"{folder}/_SUCCESS", b"")


def commit(
    storage: Storage,
    opened: Publication,
    kind: str,
    contents: list[bytes],
    definition: TableDefinition = DEFINITION,
) -> Manifest:
    rows = RowCounts(inserted=len(contents))
    plan = Plan(kind, "", definition, rows, journal=opened.journal())
    stage(storage, opened, contents)
    return opened.commit(plan, opened.staged_files.written(plan) if contents else [])


def finish(opened: Publication, manifest: Manifest) -> None:
    opened.publish(manifest)
    opened.record(manifest)
    opened.complete(manifest)


def publish(
    storage: Storage, kind: str, contents: list[bytes], definition: TableDefinition = DEFINITION
) -> str:
    with publication(storage) as opened:
        finish(opened, commit(storage, opened, kind, contents, definition))
        return opened.batch_id


def recover(storage: Storage) -> bool:
    with publication(storage) as opened:
        manifest = opened.pending()
        if manifest:
            finish(opened, manifest)
        return manifest is not None


def verify(opened: Publication, snapshot: str | None, rebuilds: bool) -> Journal | None:
    assert not opened.pending()
    return opened.verify(snapshot, rebuilds)


def data_files(storage: Storage) -> dict[str, bytes | None]:
    return {
        entry.name: storage.read(f"{TABLE.path}/{entry.name}")
        for entry in storage.list(TABLE.path)
        if not entry.name.startswith("_")
    }


def number(n: int) -> str:
    return f"{n:020d}.parquet"


def test_an_initial_load_is_numbered_from_one_with_metadata_and_journal(storage: Storage) -> None:
    batch_id = publish(storage, "initial", [b"a", b"b"])

    assert data_files(storage) == {number(1): b"a", number(2): b"b"}
    assert json.loads(storage.read(TABLE.metadata) or b"") == {"keyColumns": ["id"]}
    journal = json.loads(storage.read(TABLE.journal) or b"")
    assert journal["batch"]["id"] == batch_id
    assert journal["batch"]["owner"] == {
        **{"project": "shop", "node": "model.shop.orders"},
        **{"schema": "sales", "invocation_id": "", "target": "", "user": ""},
    }
    assert (journal["batch"]["first_file"], journal["batch"]["last_file"]) == (1, 2)


def test_nothing_is_left_on_the_scratch_pad(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])

    assert landed(storage) == ["sales.schema"]


def test_changes_continue_the_numbers(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    publish(storage, "changes", [b"b", b"c"])

    assert data_files(storage) == {number(1): b"a", number(2): b"b", number(3): b"c"}


def test_a_batch_without_files_keeps_the_number(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    publish(storage, "unchanged", [])
    publish(storage, "changes", [b"b"])

    assert data_files(storage) == {number(1): b"a", number(2): b"b"}


def test_the_rows_of_the_table_are_counted_from_batch_to_batch(storage: Storage) -> None:
    def rows_after(kind: str, rows: RowCounts) -> int | None:
        with publication(storage) as opened:
            plan = Plan(kind, "", DEFINITION, rows, journal=opened.journal())
            finish(opened, opened.commit(plan, []))
            journal = opened.journal()
        assert journal
        return journal.batch.table_rows

    assert rows_after("initial", RowCounts(10)) == 10
    assert rows_after("changes", RowCounts(5, 3, 2)) == 13
    assert rows_after("unchanged", RowCounts()) == 13
    assert rows_after("rebuild", RowCounts(4)) == 4


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


def test_a_table_without_a_key_has_metadata_without_key_columns(storage: Storage) -> None:
    keyless = TableDefinition(DEFINITION.columns, (), "parquet")
    with publication(storage) as opened:
        stage(storage, opened, [b"a"])
        plan = Plan("initial", "", keyless, RowCounts(inserted=1))
        opened.publish(opened.commit(plan, opened.staged_files.written(plan)))

    assert json.loads(storage.read(TABLE.metadata) or b"") == {}


def test_before_the_commit_a_publication_leaves_no_trace(storage: Storage) -> None:
    with publication(storage) as opened:
        stage(storage, opened, [b"a"])

    assert landed(storage) == []


def test_staged_files_of_a_killed_run_are_deleted(storage: Storage) -> None:
    killed = Publication(storage, TABLE, OWNER)
    stage(storage, killed, [b"a"])
    killed.committed = True  # close() does nothing, as if it were never called
    killed.close()

    assert not recover(storage)

    assert landed(storage) == []


def test_half_written_records_of_a_killed_run_do_not_stay(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "LandingZone")
    publish(storage, "initial", [b"a"])
    storage.write(f"{TABLE.scratch}/_manifest.json.12345678", b"{")
    storage.write(f"{TABLE.path}/__journal.json.new", b"{")

    recover(storage)
    publish(storage, "changes", [b"b"])

    assert landed(storage) == ["sales.schema"]
    names = [entry.name for entry in storage.list(TABLE.path)]
    assert names == [number(1), number(2), "_journal.json", "_metadata.json"]


class Killed(BaseException):
    """The process ended here."""


class DyingStorage:
    """A storage whose process dies at its n-th change: before it, or just after."""

    def __init__(self, storage: Storage, dies_at: int, applied: bool) -> None:
        self._storage = storage
        self._left = dies_at
        self._applied = applied

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._storage, name)
        if name not in ("write", "create", "touch", "rename", "flush", "delete"):
            return method

        def change(*args: Any) -> Any:
            self._left -= 1
            if self._left < 0 or (self._left == 0 and not self._applied):
                raise Killed
            answer = method(*args)
            if self._left == 0:
                raise Killed
            return answer

        return change


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


@pytest.mark.parametrize("storage", ["local"], indirect=True)
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


@pytest.mark.parametrize("storage", ["local"], indirect=True)
def test_a_clock_that_was_set_back_does_not_change_the_order(storage: Storage) -> None:
    publish(storage, "initial", [b"a"], BY_TIME)
    (name,) = data_files(storage)
    storage.touch(f"{TABLE.path}/{name}", 2 * 10**18)

    publish(storage, "changes", [b"b", b"c"], BY_TIME)

    assert by_time(storage) == [b"a", b"b", b"c"]


def test_a_storage_that_does_not_keep_times_is_found_out(storage: Storage) -> None:
    class Forgetful(DyingStorage):
        def touch(self, path: str, after: int) -> int:
            return after + 1

        def list(self, folder: str) -> list[Entry]:
            return [replace(entry, modified=7) for entry in self._storage.list(folder)]

    forgetful: Any = Forgetful(storage, 1000, False)
    with pytest.raises(MirrorError, match="cannot know their order"):
        publish(forgetful, "initial", [b"a", b"b"], BY_TIME)


@pytest.mark.parametrize(
    ("storage", "definition"),
    [("local", DEFINITION), ("local", BY_TIME), ("onelake", DEFINITION)],
    indirect=["storage"],
    ids=["local", "local, by time", "onelake"],
)
@pytest.mark.parametrize("applied", some([True, False]))
@pytest.mark.parametrize("kind", ["initial", "changes", "rebuild"])
def test_a_run_killed_at_any_change_is_finished_or_undone_by_the_next(
    storage: Storage, kind: str, applied: bool, definition: TableDefinition
) -> None:
    points = 0
    while True:
        storage.delete("sales.schema")
        if kind != "initial":
            publish(storage, "initial", [b"old 1", b"old 2"], definition)
        before = data_files(storage)
        dying: Any = DyingStorage(storage, points + 1, applied)
        opened = Publication(dying, TABLE, OWNER)
        killed = False
        try:
            stage(storage, opened, [b"new 1", b"new 2", b"new 3"])
            rows = RowCounts(inserted=3)
            plan = Plan(kind, "", definition, rows, journal=opened.journal())
            finish(opened, opened.commit(plan, opened.staged_files.written(plan)))
            opened.close()
        except Killed:
            killed = True
            opened._lock.close()  # the kernel does it
        journal = opened.journal()
        completed = journal is not None and journal.batch.id == opened.batch_id
        committed = storage.read(TABLE.manifest) is not None

        recovered = recover(storage)

        first = 3 if kind == "changes" else 1
        unique = f"-{opened.batch_id}" if definition.is_by_time else ""
        new = {f"{first + i:020d}{unique}.parquet": f"new {i + 1}".encode() for i in range(3)}
        after = {**before, **new} if kind == "changes" else new
        assert recovered == committed
        assert data_files(storage) == (after if committed or completed else before)
        if definition.is_by_time:
            assert by_time(storage) == [*data_files(storage).values()]
        assert landed(storage) in ([], ["sales.schema"])
        assert not recover(storage), "one recovery is enough"
        if not killed:
            break
        points += 1
    assert points >= 7, "manifest, metadata, three files, journal and clearing were points"


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

    with monkeypatch.context() as patched, publication(storage) as opened:
        patched.setattr(storage, operation, {"create": lost, "read": refused}[operation])
        with pytest.raises(LandingZoneUnavailableError):
            commit(storage, opened, "initial", [b"a"])

    assert recover(storage)
    assert data_files(storage) == {number(1): b"a"}


def test_a_committed_batch_is_published_by_the_next_run(storage: Storage) -> None:
    with publication(storage) as opened:
        commit(storage, opened, "initial", [b"a"])

    assert recover(storage)

    assert data_files(storage) == {number(1): b"a"}


def test_recovery_does_not_need_files_that_the_service_has_taken(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        manifest = commit(storage, opened, "changes", [b"b", b"c"])
        opened.publish(manifest)
    storage.rename(TABLE.file(2, "parquet"), f"{TABLE.path}/_ProcessedFiles/{number(2)}")
    storage.delete(TABLE.file(1, "parquet"))

    assert recover(storage)

    assert data_files(storage) == {number(3): b"c"}


def test_a_staged_file_that_vanished_unpublished_is_an_error(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        manifest = commit(storage, opened, "changes", [b"b", b"c"])
        storage.delete(f"{TABLE.staging(opened.batch_id)}/rows/{manifest.files[1].name}")

        with pytest.raises(MirrorError, match=r"part-00001.* somebody else has deleted"):
            opened.publish(manifest)
    assert data_files(storage) == {number(1): b"a"}, "not the file before it either"


def test_a_second_publisher_of_a_table_stops(storage: Storage) -> None:
    with publication(storage), pytest.raises(ConcurrentPublicationError), publication(storage):
        pass


def test_a_publisher_that_lost_its_lock_does_not_commit_over_the_other(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        rows = RowCounts(inserted=1)
        plan = Plan("changes", "", DEFINITION, rows, journal=opened.journal())
        stage(storage, opened, [b"late"])
        stale = opened.staged_files.written(plan)
        opened._lock.close()  # as a lease that ran out
        with publication(storage) as other:
            commit(storage, other, "changes", [b"b"])

        with pytest.raises(ConcurrentPublicationError):
            opened.commit(plan, stale)

    assert recover(storage)
    assert data_files(storage) == {number(1): b"a", number(2): b"b"}


@pytest.mark.parametrize("kind", ["initial", "changes", "rebuild"])
def test_a_plan_made_before_another_run_completed_is_not_committed(
    storage: Storage, kind: str
) -> None:
    if kind != "initial":
        publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        rows = RowCounts(inserted=1)
        plan = Plan(kind, "", DEFINITION, rows, journal=opened.journal())
        stage(storage, opened, [b"late"])
        late = opened.staged_files.written(plan)
        opened._lock.close()  # as a lease that ran out
        publish(storage, "initial" if kind == "initial" else "changes", [b"b"])
        published = data_files(storage)

        with pytest.raises(ConcurrentPublicationError):
            opened.commit(plan, late)

    assert storage.read(TABLE.manifest) is None
    assert not recover(storage)
    assert data_files(storage) == published


def test_a_rebuild_of_rows_read_before_another_run_completed_is_not_committed(
    storage: Storage,
) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        opened.pending()
        stage(storage, opened, [b"rows from before"])
        opened._lock.close()  # as a lease that ran out
        published = publish(storage, "changes", [b"b"])
        journal = opened.verify(published, rebuilds=True)
        plan = Plan("rebuild", "", DEFINITION, RowCounts(inserted=1), journal=journal)

        with pytest.raises(ConcurrentPublicationError):
            opened.commit(plan, opened.staged_files.written(plan))

    assert data_files(storage) == {number(1): b"a", number(2): b"b"}


def test_a_manifest_planned_against_an_older_journal_is_withdrawn(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        late = commit(storage, opened, "changes", [b"late"])
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


def test_verify_finds_nothing_for_a_new_table(storage: Storage) -> None:
    with publication(storage) as opened:
        assert verify(opened, None, rebuilds=False) is None


def test_verify_accepts_the_snapshot_that_was_published(storage: Storage) -> None:
    batch_id = publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        journal = verify(opened, batch_id, rebuilds=False)
    assert journal
    assert journal.batch.id == batch_id


@pytest.mark.parametrize("snapshot", [None, "another"])
def test_verify_refuses_another_snapshot_unless_a_rebuild_is_asked_for(
    storage: Storage, snapshot: str | None
) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        with pytest.raises(SnapshotMismatchError, match="--full-refresh"):
            verify(opened, snapshot, rebuilds=False)
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


def test_verify_refuses_a_folder_without_a_journal(storage: Storage) -> None:
    storage.write(TABLE.file(1, "parquet"), b"foreign")
    with publication(storage) as opened:
        for rebuilds in (False, True):
            with pytest.raises(ForeignTableFolderError, match=r"no _journal\.json"):
                verify(opened, None, rebuilds)


def test_verify_refuses_the_folder_of_another_project(storage: Storage) -> None:
    batch_id = publish(storage, "initial", [b"a"])
    with publication(storage, Owner("other", "model.other.orders", "sales")) as opened:
        for rebuilds in (False, True):
            with pytest.raises(ForeignTableFolderError, match="'shop'"):
                verify(opened, batch_id, rebuilds)


def test_verify_refuses_the_folder_of_a_table_in_another_schema(storage: Storage) -> None:
    """At the root of the landing zone, where a name can be there once."""
    at_root = TableFolder("", "orders")
    with closing(Publication(storage, at_root, OWNER)) as opened:
        plan = Plan("initial", "", DEFINITION, RowCounts())
        finish(opened, opened.commit(plan, []))
    with closing(Publication(storage, at_root, replace(OWNER, schema="archive"))) as opened:
        for rebuilds in (False, True):
            with pytest.raises(ForeignTableFolderError, match="in the schema 'sales'"):
                verify(opened, None, rebuilds)


def test_verify_refuses_files_that_somebody_else_has_added(storage: Storage) -> None:
    batch_id = publish(storage, "initial", [b"a"])
    storage.write(TABLE.file(2, "parquet"), b"foreign")
    with publication(storage) as opened, pytest.raises(ForeignTableFolderError, match="number 2"):
        verify(opened, batch_id, rebuilds=False)


@pytest.mark.parametrize("kind", ["initial", "changes"])
def test_a_file_that_somebody_else_adds_after_the_plan_is_not_published_above(
    storage: Storage, kind: str
) -> None:
    if kind == "changes":
        publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        rows = RowCounts(inserted=1)
        plan = Plan(kind, "", DEFINITION, rows, journal=opened.journal())
        stage(storage, opened, [b"b"])
        storage.write(TABLE.file(7, "parquet"), b"foreign")
        before = data_files(storage)

        with pytest.raises(ForeignTableFolderError, match="Nothing was changed"):
            opened.commit(plan, opened.staged_files.written(plan))

    assert data_files(storage) == before
    assert storage.list(TABLE.scratch) == []


@pytest.mark.parametrize("storage", ["local"], indirect=True)
@pytest.mark.parametrize("folder", ["", "/_ProcessedFiles"])
@pytest.mark.parametrize(
    "foreign",
    ["foreign.parquet", f"{1:020d}-other.parquet", f"{2:020d}-{new_batch_id()}.parquet"],
    ids=["no number", "no batch", "a number twice"],
)
def test_verify_refuses_a_file_among_files_without_numbers_that_is_not_of_a_batch(
    storage: Storage, foreign: str, folder: str
) -> None:
    publish(storage, "initial", [b"a", b"b"], BY_TIME)
    batch_id = publish(storage, "changes", [b"c"], BY_TIME)
    storage.write(f"{TABLE.path}{folder}/{foreign}", b"foreign")

    with publication(storage) as opened, pytest.raises(ForeignTableFolderError) as error:
        verify(opened, batch_id, rebuilds=False)

    assert "was not published from here: somebody else writes" in str(error.value)


@pytest.mark.parametrize("storage", ["local"], indirect=True)
def test_verify_accepts_files_without_numbers_that_the_service_is_moving(storage: Storage) -> None:
    batch_id = publish(storage, "initial", [b"a", b"b"], BY_TIME)
    for name, content in data_files(storage).items():
        assert content
        storage.write(f"{TABLE.path}/_ProcessedFiles/{name}", content)
    storage.write(f"{TABLE.path}/.part-00000.crc", b"")

    with publication(storage) as opened:
        assert verify(opened, batch_id, rebuilds=False)


@pytest.mark.parametrize("storage", ["local"], indirect=True)
def test_files_without_numbers_are_later_than_any_other_file(storage: Storage) -> None:
    with publication(storage) as opened:
        manifest = commit(storage, opened, "initial", [b"b"], BY_TIME)
        foreign = f"{TABLE.path}/foreign.parquet"
        storage.write(foreign, b"a")
        storage.touch(foreign, 2 * 10**18)

        finish(opened, manifest)

    assert by_time(storage) == [b"a", b"b"]


def test_a_damaged_journal_is_an_error(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    storage.write(TABLE.journal, b"{")
    with publication(storage) as opened, pytest.raises(MirrorError, match="damaged"):
        verify(opened, None, rebuilds=False)


def test_a_record_of_a_later_version_is_an_error(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    storage.write(TABLE.journal, b'{"version": 99}')
    with publication(storage) as opened, pytest.raises(MirrorError, match="version 99"):
        verify(opened, None, rebuilds=False)


class LateService:
    """A service that knows of the table folder what was in it some questions ago.

    Args:
        late: so many questions
    """

    def __init__(self, storage: Storage, late: int) -> None:
        self.found: list[list[str]] = []
        self._storage = storage
        self._late = late
        self.service = Service(self._report, Clock())

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
    assert data_files(storage) == {number(1): b"b", number(2): b"c"}


@pytest.mark.parametrize("kind", ["initial", "changes"])
def test_loads_and_changes_ask_the_service_only_in_the_check_before_them(
    storage: Storage, kind: str
) -> None:
    if kind == "changes":
        publish(storage, "initial", [b"a"])
    late = LateService(storage, 2)
    late.service.check()

    with publication(storage, service=late.service) as opened:
        finish(opened, commit(storage, opened, kind, [b"b"]))

    assert len(late.found) == 1


def test_an_initial_load_waits_until_a_table_is_gone_whose_folder_was_dropped(
    storage: Storage,
) -> None:
    publish(storage, "initial", [b"a"])
    late = LateService(storage, 2)
    late.service.check()
    storage.delete(TABLE.path)

    with publication(storage, service=late.service) as opened:
        finish(opened, commit(storage, opened, "initial", [b"b"]))

    gone: list[str] = []
    assert late.found == [[number(1)], gone, gone, gone]
    assert data_files(storage) == {number(1): b"b"}


def test_an_initial_load_that_has_waited_in_vain_makes_no_folder(storage: Storage) -> None:
    stuck = Service(lambda: ServiceReport("Running", "", {str(TABLE): TableReport()}), Clock())

    with publication(storage, service=stuck) as opened:
        manifest = commit(storage, opened, "initial", [b"b"])
        with pytest.raises(ServiceError, match="has not dropped"):
            opened.publish(manifest)

    assert storage.list(TABLE.path) == []
    assert recover(storage)
    assert data_files(storage) == {number(1): b"b"}


def test_an_initial_load_does_not_wait_until_its_own_table_is_gone(storage: Storage) -> None:
    """The service may have it as soon as there is metadata."""
    with publication(storage) as opened:
        commit(storage, opened, "initial", [b"b"])
    storage.write(TABLE.metadata, b"{}")
    there = Service(lambda: ServiceReport("Running", "", {str(TABLE): TableReport()}), Clock())

    with publication(storage, service=there) as opened:
        manifest = opened.pending()
        assert manifest
        finish(opened, manifest)

    assert data_files(storage) == {number(1): b"b"}


@pytest.mark.parametrize("stuck", ["Paused", "gone", "back"])
def test_a_rebuild_that_has_waited_in_vain_is_brought_to_its_end_later(
    storage: Storage, stuck: str
) -> None:
    publish(storage, "initial", [b"a"])
    tables = {str(TABLE): TableReport()}
    stuck_with = {
        "Paused": ServiceReport("Paused", "", tables),
        "gone": ServiceReport("Running", "", tables),
        "back": ServiceReport("Running"),
    }[stuck]

    with publication(storage, service=Service(lambda: stuck_with, Clock())) as opened:
        manifest = commit(storage, opened, "rebuild", [b"b", b"c"])
        with pytest.raises(ServiceError):
            opened.publish(manifest)

    assert recover(storage)
    assert data_files(storage) == {number(1): b"b", number(2): b"c"}
    assert landed(storage) == ["sales.schema"]


def test_a_publication_tells_when_its_files_appeared(storage: Storage) -> None:
    before = datetime.now(timezone.utc)
    with publication(storage) as opened:
        manifest = commit(storage, opened, "initial", [b"a"])
        opened.publish(manifest)
        assert opened.published_at is None
        after = datetime.now(timezone.utc)
        opened.record(manifest)
        opened.complete(manifest)

        assert opened.published_at
        assert before <= opened.published_at <= after
        journal = opened.journal()
        assert journal
        told = datetime.fromisoformat(journal.published_at)
        assert timedelta() <= opened.published_at - told < timedelta(milliseconds=1)


def test_a_publication_is_as_late_as_the_last_of_its_files(storage: Storage) -> None:
    renamed: list[datetime] = []

    class Watched(DyingStorage):
        def rename(self, source: str, target: str) -> None:
            renamed.append(datetime.now(timezone.utc))
            self._storage.rename(source, target)

    watched: Any = Watched(storage, 1000, False)
    with publication(watched) as opened:
        finish(opened, commit(watched, opened, "initial", [b"a", b"b", b"c"]))

        assert opened.published_at
        assert renamed[1] <= opened.published_at <= renamed[2]


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


def test_a_publication_without_files_has_no_time(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        finish(opened, commit(storage, opened, "unchanged", []))

        assert opened.published_at is None


# In OneLake, where an operation is several requests


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_one_failure_of_any_request_goes_unnoticed(server: OneLakeServer, kind: str) -> None:
    storage = server.storage()
    point = 0
    while True:
        storage.delete("sales.schema")
        publish(storage, "initial", [b"old"])
        fault = server.fail(kind, after=point)

        publish(storage, "rebuild", [b"new 1", b"new 2"])

        assert data_files(storage) == {number(1): b"new 1", number(2): b"new 2"}
        assert landed(storage) == ["sales.schema"]
        if fault.times:
            break
        point += 1
    assert point > 20


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
    assert "Check `authentication`" in told
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["initial", "changes", "rebuild"])
def test_a_process_that_dies_at_any_request_is_finished_or_undone_by_the_next(
    server: OneLakeServer, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    storage = server.storage()
    point = 0
    while True:
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
                publish(server.storage(), kind, [b"new 1", b"new 2"])
        died = dying.times < 10**6
        dying.times = 0
        server.advance(300)
        committed = storage.read(TABLE.manifest) is not None
        journal = json.loads(storage.read(TABLE.journal) or b'{"batch": {}}')["batch"]
        completed = journal.get("publication") == kind and journal.get("files_written") == 2

        assert recover(server.storage()) == committed

        first = 2 if kind == "changes" else 1
        new = {number(first): b"new 1", number(first + 1): b"new 2"}
        after = {**before, **new} if kind == "changes" else new
        assert data_files(storage) == (after if committed or completed else before)
        assert landed(storage) in ([], ["sales.schema"])
        if not died:
            break
        point += 1
    assert point > 20


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
            verify(opened, last, rebuilds=False)
            finish(opened, commit(storage, opened, "changes", contents))
            last = opened.batch_id
        # the stand-in for Spark writes three files for one, and the plan reads the journal again
        return server.counts() - Counter({"put blob": 3 * len(contents), "read": 1})

    one, two = requests([b"1"]), requests([b"1", b"2"])

    assert two - one == Counter({"properties": 2, "rename": 1})
    assert one == Counter(
        {
            "read": 2,
            "list": 5,
            "put blob": 3,
            "properties": 2,
            "rename": 1,
            "delete": 3,
            "delete blob": 1,
        }
    )


# Held rows


def test_a_record_shows_held_rows_until_they_are_published(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        opened.pending()
        opened.hold(opened.batch_id, "until its tests pass", None)

    with publication(storage) as opened:
        assert opened.pending() is None
        found = landed_table(storage, TABLE).held
        assert found
        assert (found.owner, found.why) == (OWNER, "until its tests pass")
        finish(opened, commit(storage, opened, "changes", [b"b"]))

    assert landed_table(storage, TABLE).held is None
    assert storage.list(TABLE.scratch) == []


def test_a_held_record_is_deleted_without_a_publication(storage: Storage) -> None:
    with publication(storage) as opened:
        opened.pending()
        opened.hold(opened.batch_id, "because a test failed", None)
    with publication(storage) as opened:
        opened.pending()
        opened.delete_held_record()

    assert storage.list(TABLE.scratch) == []


def test_an_edited_record_of_what_is_held_is_a_problem_of_the_record_alone(
    storage: Storage,
) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        opened.pending()
        opened.hold(opened.batch_id, "until its tests pass", None)
    content = storage.read(TABLE.held)
    assert content
    storage.write(TABLE.held, content.replace(b"tests", b"texts"))

    landed = landed_table(storage, TABLE)

    assert "was edited" in landed.held_problem
    assert landed.journal
    assert not landed.problem


def test_a_reader_changes_nothing_and_finishes_nothing(storage: Storage) -> None:
    publish(storage, "initial", [b"a"])
    with publication(storage) as opened:
        manifest = commit(storage, opened, "changes", [b"b"])

    looked_at = PublishedTable(storage, TABLE, OWNER)
    with pytest.raises(MirrorError, match="mirror_recover"):
        looked_at.open()

    assert storage.read(TABLE.manifest) == manifest.to_json()
    with publication(storage) as opened:
        assert opened.pending() == manifest
