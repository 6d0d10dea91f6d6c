"""A loss of power at any point of a publication leaves the old or the new state, whole."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import (
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.inventory import drop_table, landed_table
from dbt.adapters.openmirroring.landing_zone.layout import TableFolder
from dbt.adapters.openmirroring.landing_zone.local import storage
from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.publisher import Publication
from dbt.adapters.openmirroring.landing_zone.records import Manifest
from tests.unit.landing_zone.power_loss import Loss, Recorder
from tests.variants import some

TABLE = TableFolder("sales", "orders")
DEFINITION = TableDefinition((MirroredColumn("id", "int", "int"),), ("id",), "parquet")
OLD = ["old 1", "old 2"]
NEW = ["new 1", "new 2", "new 3"]

Files = dict[str, bytes]


# so many parts of what was not flushed are left at each point
EXHAUSTIVE = (pytest.mark.slow, pytest.mark.exhaustive)
SEEDS = pytest.mark.parametrize("seeds", [6, pytest.param(60, marks=EXHAUSTIVE)])


def number(n: int) -> str:
    return f"{n:020d}.parquet"


def numbered(first: int, contents: list[str]) -> Files:
    return {number(n): content.encode() for n, content in enumerate(contents, first)}


def data_files(root: Path) -> Files:
    return {path.name: path.read_bytes() for path in (root / TABLE.path).glob("*.parquet")}


class Run:
    """A run of dbt that publishes the table.

    Args:
        tell: how far it has come
        staged: after Spark has written the files, which flushes nothing
    """

    def __init__(
        self,
        root: Path,
        tell: Callable[[str], None] = lambda _: None,
        staged: Callable[[], None] = lambda: None,
    ) -> None:
        self._root = root
        self._storage = LocalStorage(root)
        self._tell = tell
        self._staged = staged

    def publish(
        self, kind: str, contents: list[str], definition: TableDefinition = DEFINITION
    ) -> None:
        opened, manifest = self.commit(kind, contents, definition)
        self._tell("committed")
        opened.publish(manifest)
        opened.record(manifest)
        opened.complete(manifest)
        opened.close()
        self._tell("completed")

    def withdraw(self, contents: list[str]) -> None:
        """Commit changes that Spark then refuses to store."""
        opened, manifest = self.commit("changes", contents)
        opened.withdraw(manifest)
        self._tell("withdrawn")
        opened.close()

    def commit(
        self, kind: str, contents: list[str], definition: TableDefinition = DEFINITION
    ) -> tuple[Publication, Manifest]:
        opened = self._open()
        self._stage(opened, contents)
        plan = Plan(kind, "", definition, RowCounts(len(contents)), journal=opened.journal())
        return opened, opened.commit(plan, opened.staged_files.written(plan))

    def drop(self) -> None:
        assert drop_table(self._storage, landed_table(self._storage, TABLE))

    def recover(self) -> None:
        opened = self._open()
        manifest = opened.pending()
        if manifest:
            opened.publish(manifest)
            opened.record(manifest)
            opened.complete(manifest)
        journal = opened.journal()
        opened.verify(journal.batch.id if journal else None, rebuilds=False)
        opened.close()

    def _open(self) -> Publication:
        return Publication(self._storage, TABLE, Owner("shop", "model.shop.orders", TABLE.schema))

    def _stage(self, opened: Publication, contents: list[str]) -> None:
        rows = self._root / TABLE.staging(opened.batch_id) / "rows"
        rows.mkdir(parents=True)
        for i, content in enumerate(contents):
            (rows / f"part-{i}.parquet").write_text(content)
        self._staged()


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    root = tmp_path / "LandingZone"
    root.mkdir()
    return Recorder(root)


def forget_flushes(patched: pytest.MonkeyPatch) -> None:
    """After the power is back the disk is quick again."""
    patched.setattr(storage, "flush", lambda path: None)


@SEEDS
@pytest.mark.parametrize("hard_links", some([True, False]), ids=["link and unlink", "rename"])
@pytest.mark.parametrize("kind", some(["changes", "rebuild", "initial"], 2))
def test_a_loss_of_power_leaves_the_old_or_the_new_state(
    recorder: Recorder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    hard_links: bool,
    seeds: int,
) -> None:
    before: Files = {}
    with monkeypatch.context() as patched:
        recorder.watch(patched, hard_links)
        run = Run(recorder.root, recorder.say, recorder.adopt)
        if kind != "initial":
            run.publish("initial", OLD)
            before = numbered(1, OLD)
        recorder.say("next")
        run.publish(kind, NEW)
    after = {**before, **numbered(3, NEW)} if kind == "changes" else numbered(1, NEW)
    assert data_files(recorder.root) == after
    forget_flushes(monkeypatch)

    for loss in recorder.losses(seeds):
        found = recovered(loss, tmp_path / "left")
        assert found in ([after] if loss.said else [before, after])


def recovered(loss: Loss, root: Path) -> Files:
    """The data files when the next run has recovered, and a further one has published."""
    loss.leave(root)
    Run(root).recover()
    found = data_files(root)
    assert not (root / "_scratchPad").exists()
    journal = landed_table(LocalStorage(root), TABLE).journal
    assert (journal.batch.last_file if journal else 0) == len(found)

    Run(root).publish("changes" if journal else "initial", ["next"])

    assert data_files(root) == {**found, number(len(found) + 1): b"next"}
    shutil.rmtree(root)
    return found


@SEEDS
@pytest.mark.parametrize("hard_links", some([True, False]), ids=["link and unlink", "rename"])
def test_a_batch_that_was_withdrawn_does_not_come_back_with_the_power(
    recorder: Recorder,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    hard_links: bool,
    seeds: int,
) -> None:
    with monkeypatch.context() as patched:
        recorder.watch(patched, hard_links)
        run = Run(recorder.root, recorder.say, recorder.adopt)
        run.publish("initial", OLD)
        recorder.say("next")
        run.withdraw(NEW)
    forget_flushes(monkeypatch)
    before = numbered(1, OLD)

    for loss in recorder.losses(seeds):
        found = recovered(loss, tmp_path / "left")
        assert found in ([before] if loss.said else [before, before | numbered(3, NEW)])


@SEEDS
def test_a_journal_never_speaks_of_files_that_are_not_there(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: int
) -> None:
    with monkeypatch.context() as patched:
        recorder.watch(patched)
        recorder.say("next")
        Run(recorder.root, staged=recorder.adopt).publish("initial", NEW)

    for loss in recorder.losses(seeds):
        root = tmp_path / "left"
        loss.leave(root)
        if (root / TABLE.journal).exists():
            assert data_files(root) == numbered(1, NEW)
        shutil.rmtree(root)


@SEEDS
def test_a_file_whose_time_is_its_order_is_never_there_without_those_before_it(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: int
) -> None:
    by_time = replace(DEFINITION, file_detection="last_update_time")
    with monkeypatch.context() as patched:
        recorder.watch(patched)
        recorder.say("next")
        Run(recorder.root, staged=recorder.adopt).publish("initial", NEW, by_time)

    for loss in recorder.losses(seeds):
        root = tmp_path / "left"
        loss.leave(root)
        found = sorted(data_files(root).values())
        assert found == [content.encode() for content in NEW[: len(found)]]
        shutil.rmtree(root)


@SEEDS
def test_a_table_that_was_being_dropped_when_the_power_was_lost_can_be_dropped_again(
    recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seeds: int
) -> None:
    with monkeypatch.context() as patched:
        recorder.watch(patched)
        run = Run(recorder.root, recorder.say, recorder.adopt)
        run.publish("initial", OLD)
        run.commit("changes", NEW)[0].close()
        recorder.say("next")
        run.drop()
    forget_flushes(monkeypatch)

    for loss in recorder.losses(seeds):
        root = tmp_path / "left"
        loss.leave(root)
        if landed_table(LocalStorage(root), TABLE).exists:
            Run(root).drop()
        table = landed_table(LocalStorage(root), TABLE)
        assert (table.exists, table.pending) == (False, None)
        shutil.rmtree(root)
