"""The history of a journal: the batches before the last."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.landing_zone.local.storage import LocalStorage
from dbt.adapters.openmirroring.landing_zone.records import Journal, _checksum
from tests.unit.landing_zone.test_publisher import TABLE, commit, publication, publish, recover


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def journal(storage: LocalStorage) -> Journal:
    content = storage.read(TABLE.journal)
    assert content
    return Journal.from_json(content, TABLE.journal)


def test_batches_are_remembered_the_last_first(storage: LocalStorage) -> None:
    ids = [publish(storage, kind, [b"x"]) for kind in ("initial", "changes", "changes")]

    assert [batch.id for batch in journal(storage).batches] == ids[::-1]


def test_a_hundred_batches_are_remembered(storage: LocalStorage) -> None:
    publish(storage, "initial", [b"x"])
    ids = [publish(storage, "changes", [b"x"]) for _ in range(105)]

    assert [batch.id for batch in journal(storage).batches] == ids[:-101:-1]


def test_a_rebuild_keeps_the_history_of_the_folder_that_it_drops(storage: LocalStorage) -> None:
    ids = [publish(storage, kind, [b"x"]) for kind in ("initial", "changes", "rebuild", "changes")]

    assert [batch.id for batch in journal(storage).batches] == ids[::-1]


@pytest.mark.parametrize("dropped", [False, True])
def test_a_rebuild_that_another_run_finishes_keeps_it_too(
    storage: LocalStorage, dropped: bool
) -> None:
    first = publish(storage, "initial", [b"x"])
    with publication(storage) as opened:
        manifest = commit(storage, opened, "rebuild", [b"y"])
    if dropped:
        storage.delete(TABLE.path)

    assert recover(storage)

    assert [batch.id for batch in journal(storage).batches] == [manifest.batch.id, first]


def test_a_journal_of_an_earlier_version_has_its_last_batch(storage: LocalStorage) -> None:
    id_ = publish(storage, "initial", [b"x"])
    data = json.loads(storage.read(TABLE.journal) or b"")
    del data["checksum"], data["history"], data["batch"]["owner"]["invocation_id"]
    written = json.dumps({**data, "checksum": _checksum(data)}).encode()

    assert [batch.id for batch in Journal.from_json(written, TABLE.journal).batches] == [id_]
