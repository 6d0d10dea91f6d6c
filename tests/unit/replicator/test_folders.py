"""Tables come and go with their folders; a replicator may end at any moment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.openmirroring.replicator import table_scan
from dbt.adapters.openmirroring.replicator.folder import TableFolder
from dbt.adapters.openmirroring.replicator.mirrored_table import MirroredTable
from tests.unit.replicator.item import Item, rows


def test_a_dropped_folder_drops_its_table(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.metadata("shop.schema/parts")
    item.land(1, rows((1, "a")), "shop.schema/parts")
    item.replicator.scan()
    item.drop()

    reports = item.replicator.scan()

    assert [(report.table, report.status) for report in reports] == [
        ("parts", "Replicating"),
        ("orders", "Dropped"),
    ]
    assert [path.name for path in (item.path / "Tables" / "shop").iterdir()] == ["parts"]


def test_a_recreated_folder_is_noticed_though_both_happened_between_two_scans(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "old"), (2, "old")))
    item.scan()
    first = item.delta().metadata().id
    item.drop()
    item.metadata(keyColumns=["name"])
    item.land(1, rows((1, "new")))

    report = item.scan()

    assert report.status == "Replicating"
    assert item.rows() == [(1, "new")]
    assert item.delta().metadata().id != first


def test_a_recreated_folder_is_noticed_with_the_same_number_of_files(item: Item) -> None:
    item.keyed()
    for name in ("old", "new"):
        item.land(1, rows((1, name)))
        item.land(2, rows((2, name, 4)))
        item.scan()
        assert item.rows() == [(1, name), (2, name)]
        item.drop()
        item.keyed()


def test_a_recreated_folder_without_data_is_an_empty_table_no_more(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.scan()
    item.drop()
    item.keyed()

    assert item.scan().status == "Snapshotting"
    assert not (item.path / "Tables" / "shop" / "orders").exists()


def test_a_table_that_was_wiped_is_not_filled_with_what_happens_to_be_left(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.land(2, rows((2, "b", 4)))
    item.scan()
    shutil.rmtree(item.path / "Tables")

    assert item.scan().waits_for == "00000000000000000001.parquet"


def test_a_folder_of_somebody_else_under_tables_is_never_touched(item: Item) -> None:
    other = item.path / "Tables" / "shop" / "orders"
    other.mkdir(parents=True)
    (other / "file").write_text("precious")
    item.keyed()
    item.land(1, rows((1, "a")))

    report = item.scan()

    assert report.error
    assert report.error.code == "TargetExists"
    item.drop()
    item.replicator.scan()
    assert (other / "file").read_text() == "precious"


def test_two_folders_cannot_be_one_table(item: Item) -> None:
    for folder in ("dbo.schema/orders", "orders"):
        item.metadata(folder)
        item.land(1, rows((1, folder)), folder)

    reports = item.replicator.scan()

    assert [report.status for report in reports] == ["Replicating", "Failed"]
    assert "are both the table dbo.orders" in reports[1].note
    assert item.rows("dbo/orders") == [(1, "dbo.schema/orders")]


class Killed(BaseException):
    """As a signal: nothing in between cleans up."""


STEPS = {
    "before the table is there": (MirroredTable, "create"),
    "before the folder is claimed": (TableFolder, "fills"),
    "before rows are appended": (MirroredTable, "append"),
    "before rows are merged": (MirroredTable, "apply"),
    "before files are moved": (TableFolder, "retire"),
    "while files are moved": (os, "rename"),
    "before former versions are deleted": (MirroredTable, "clean"),
    "before a column is added": (MirroredTable, "merge_schema"),
}


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("afterwards", [False, True], ids=["before", "after"])
def test_a_replicator_that_was_killed_goes_on_where_it_was(
    item: Item, step: str, afterwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name = STEPS[step]
    original = getattr(owner, name)

    def killed(*args: Any, **kwargs: Any) -> Any:
        if afterwards:
            original(*args, **kwargs)
        raise Killed

    item.metadata(keyColumns=["id"])
    item.land(1, rows((1, "a"), (2, "b")))
    item.land(2, rows((3, "c")))
    item.land(3, rows((1, "z", 0), (2, None, 2), (3, "d", 1)))

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        with pytest.raises(Killed):
            item.scan()
    report = item.scan()

    assert report.status == "Replicating"
    assert item.rows() == [(1, "a"), (1, "z"), (3, "d")]
    assert item.left() == ["3.parquet"]


def test_a_replicator_that_was_killed_while_it_dropped_a_table_ends_that(
    item: Item, monkeypatch: pytest.MonkeyPatch
) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.scan()
    item.drop()

    def killed(path: Path) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(Killed):
            item.replicator.scan()
    item.replicator.scan()

    assert list((item.path / "Tables" / "shop").iterdir()) == []


def test_change_sets_are_merged_together_but_in_their_order(
    item: Item, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kept in (1, 2**20):
        monkeypatch.setattr(table_scan, "_KEPT", kept)
        item.keyed()
        item.land(1, rows((1, "a")))
        for number in range(2, 8):
            item.land(number, rows((1, str(number), 1), (number, "x", 4)))

        before = item.scan()

        assert before.files == 7
        assert item.rows()[0] == (1, "7")
        assert len(item.rows()) == 7
        item.drop()


def test_a_folder_dropped_while_it_is_read_leaves_its_successor_alone(
    item: Item, monkeypatch: pytest.MonkeyPatch
) -> None:
    item.keyed()
    item.land(1, rows((1, "old")))
    item.land(2, rows((2, "old", 4)))
    append = MirroredTable.append

    def recreated_meanwhile(self: MirroredTable, *args: Any) -> int | None:
        count = append(self, *args)
        item.drop()
        item.keyed()
        item.land(1, rows((1, "new")))
        item.land(2, rows((2, "new", 4)))
        return count

    with monkeypatch.context() as patch:
        patch.setattr(MirroredTable, "append", recreated_meanwhile)
        item.replicator.scan()
    item.scan()

    assert item.rows() == [(1, "new"), (2, "new")]


def test_threads_of_arrow_read_no_file_of_python(
    item: Item, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would abort a process that ends meanwhile."""
    original, opened = pq.ParquetFile, []

    def parquet_file(file: pa.NativeFile, **options: Any) -> pq.ParquetFile:
        opened.append(type(file))
        return original(file, **options)

    monkeypatch.setattr(pq, "ParquetFile", parquet_file)
    item.keyed()
    item.land(1, rows((1, "a")))

    item.scan()

    assert set(opened) == {pa.OSFile}
