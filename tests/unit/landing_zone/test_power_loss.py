"""A loss of power at any point of a publication leaves the old or the new state, whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import TableDefinition
from dbt.adapters.openmirroring.landing_zone.inventory import drop_table, landed_table
from dbt.adapters.openmirroring.landing_zone.local import storage as local
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from tests.unit.landing_zone.power_loss import Loss, Recorder
from tests.unit.landing_zone.publishing import (
    BY_TIME,
    DEFINITION,
    TABLE,
    Files,
    data_files,
    files_after,
    finish,
    planned,
    publication,
    publish,
)
from tests.variants import some

OLD = [b"old 1", b"old 2"]
NEW = [b"new 1", b"new 2", b"new 3"]

HARD_LINKS = pytest.mark.parametrize(
    "hard_links", some([True, False]), ids=["link and unlink", "rename"]
)


class Disk:
    """A landing zone on a disk that may lose its power."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "LandingZone"
        self.root.mkdir()
        self.storage = LocalStorage(self.root)
        self.recorder = Recorder(self.root)
        self._left = folder / "left"

    def commit(
        self,
        opened: Publication,
        kind: str,
        contents: list[bytes],
        definition: TableDefinition = DEFINITION,
    ) -> Manifest:
        """Commit files that Spark has written, which flushes nothing."""
        rows = self.root / opened.staged_files.folder
        rows.mkdir(parents=True)
        for i, content in enumerate(contents):
            (rows / f"part-{i}.parquet").write_bytes(content)
        self.recorder.adopt()
        plan = planned(opened, kind, len(contents), definition)
        return opened.commit(plan, opened.staged_files.written(plan))

    def publish(
        self, kind: str, contents: list[bytes], definition: TableDefinition = DEFINITION
    ) -> None:
        with publication(self.storage) as opened:
            manifest = self.commit(opened, kind, contents, definition)
            self.recorder.say("committed")
            finish(opened, manifest)
        self.recorder.say("completed")

    def left(self, seeds: int) -> Iterator[tuple[Loss, LocalStorage]]:
        """Yield each loss of power, and the landing zone that it leaves."""
        for loss in self.recorder.losses(seeds):
            loss.leave(self._left)
            yield loss, LocalStorage(self._left)
            shutil.rmtree(self._left)


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


@pytest.fixture
def seeds(many: bool) -> int:
    """So many parts of what was not flushed are left at each point."""
    return 60 if many else 1


Watch = Callable[..., AbstractContextManager[None]]


@pytest.fixture
def watched(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> Watch:
    """What is done within it is recorded. After it the disk is quick again."""

    @contextmanager
    def watch(hard_links: bool = True) -> Iterator[None]:
        with monkeypatch.context() as patched:
            disk.recorder.watch(patched, hard_links)
            yield
        monkeypatch.setattr(local, "flush", lambda path: None)

    return watch


def recovered(storage: LocalStorage) -> Files:
    """The data files when the next run has recovered, and a further one has published."""
    with publication(storage) as opened:
        if pending := opened.pending():
            finish(opened, pending)
        opened.verify(opened.last_build, rebuilds=False)
    found = data_files(storage)
    assert "_scratchPad" not in [entry.name for entry in storage.list("")]
    journal = landed_table(storage, TABLE).journal
    assert (journal.batch.last_file if journal else 0) == len(found)
    kind = "changes" if journal else "initial"

    publish(storage, kind, [b"next"])

    assert data_files(storage) == files_after(found, "changes", [b"next"])
    names = [entry.name for entry in storage.list(TABLE.path) if entry.name not in found]
    assert names[-2:] == ["_journal.json", "_metadata.json"], "nothing that was half written"
    assert len(names) == 3
    return found


@HARD_LINKS
@pytest.mark.parametrize("kind", some(["changes", "rebuild", "initial"], 2))
def test_a_loss_of_power_leaves_the_old_or_the_new_state(
    disk: Disk, watched: Watch, kind: str, hard_links: bool, seeds: int
) -> None:
    before: Files = {}
    with watched(hard_links):
        if kind != "initial":
            disk.publish("initial", OLD)
            before = data_files(disk.storage)
        disk.recorder.say("next")
        disk.publish(kind, NEW)
    after = files_after(before, kind, NEW)
    assert data_files(disk.storage) == after

    for loss, storage in disk.left(seeds):
        assert recovered(storage) in ([after] if loss.said else [before, after])


@HARD_LINKS
def test_a_batch_that_was_withdrawn_does_not_come_back_with_the_power(
    disk: Disk, watched: Watch, hard_links: bool, seeds: int
) -> None:
    with watched(hard_links):
        disk.publish("initial", OLD)
        before = data_files(disk.storage)
        disk.recorder.say("next")
        with publication(disk.storage) as opened:
            opened.withdraw(disk.commit(opened, "changes", NEW))
            disk.recorder.say("withdrawn")

    after = files_after(before, "changes", NEW)
    for loss, storage in disk.left(seeds):
        assert recovered(storage) in ([before] if loss.said else [before, after])


@pytest.mark.parametrize("hard_links", [True, False], ids=["link and unlink", "rename"])
@pytest.mark.parametrize("definition", [DEFINITION, BY_TIME], ids=["by number", "by time"])
def test_what_is_there_after_a_loss_of_power_is_never_ahead_of_what_it_relies_on(
    disk: Disk, watched: Watch, definition: TableDefinition, hard_links: bool, seeds: int
) -> None:
    with watched(hard_links):
        disk.recorder.say("next")
        disk.publish("initial", NEW, definition)

    for _, storage in disk.left(seeds):
        found = list(data_files(storage).values())
        if storage.read(TABLE.journal):
            assert found == NEW, "a journal speaks of files that are there"
        if definition.is_by_time:
            assert found == NEW[: len(found)], "a file is not there without those before it"


def test_a_table_that_was_being_dropped_when_the_power_was_lost_can_be_dropped_again(
    disk: Disk, watched: Watch, seeds: int
) -> None:
    with watched():
        disk.publish("initial", OLD)
        with publication(disk.storage) as opened:
            disk.commit(opened, "changes", NEW)
        disk.recorder.say("next")
        assert drop_table(disk.storage, landed_table(disk.storage, TABLE))

    for _, storage in disk.left(seeds):
        if landed_table(storage, TABLE).exists:
            assert drop_table(storage, landed_table(storage, TABLE))
        table = landed_table(storage, TABLE)
        assert (table.exists, table.pending) == (False, None)
