"""Tables come and go with their folders; a replicator may end at any moment."""

from __future__ import annotations

import os
import shutil
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.openmirroring.replicator.folder import TableFolder
from dbt.adapters.openmirroring.replicator.metadata import TableMetadata
from dbt.adapters.openmirroring.replicator.mirrored_table import MirroredTable
from tests.unit.replicator.item import Item, Killed, rows


def test_a_dropped_folder_drops_its_table(item: Item) -> None:
    for folder in ("shop.schema/orders", "shop.schema/parts"):
        item.metadata(folder)
        item.land(1, rows((1, "a")), folder)
    item.replicator.scan()
    item.drop()

    reports = item.replicator.scan()

    assert [(report.table, report.status) for report in reports] == [
        ("parts", "Replicating"),
        ("orders", "Dropped"),
    ]
    assert [path.name for path in (item.path / "Tables" / "shop").iterdir()] == ["parts"]


def test_a_recreated_folder_is_noticed_though_both_happened_between_two_scans(item: Item) -> None:
    """Also with as many files as before, and with none."""
    item.keyed()
    item.land_all(rows((1, "old"), (2, "old")), rows((3, "old", 4)))
    item.scan()
    first = item.delta().metadata().id
    item.drop()
    item.metadata(keyColumns=["name"])
    item.land_all(rows((1, "new")), rows((2, "newer", 4)))

    assert item.scan().status == "Replicating"

    assert item.rows() == [(1, "new"), (2, "newer")]
    assert item.delta().metadata().id != first
    item.drop()
    item.keyed()
    assert item.scan().status == "Snapshotting"
    assert not (item.path / "Tables" / "shop" / "orders").exists()


def test_a_table_that_was_wiped_is_not_filled_with_what_happens_to_be_left(item: Item) -> None:
    item.keyed()
    item.land_all(rows((1, "a")), rows((2, "b", 4)))
    item.scan()
    shutil.rmtree(item.path / "Tables")

    assert item.scan().waits_for == "00000000000000000001.parquet"


def test_two_folders_cannot_be_one_table(item: Item) -> None:
    for folder in ("dbo.schema/orders", "orders"):
        item.metadata(folder)
        item.land(1, rows((1, folder)), folder)

    reports = item.replicator.scan()

    assert [report.status for report in reports] == ["Replicating", "Failed"]
    assert "are both the table dbo.orders" in reports[1].note
    assert item.rows("dbo/orders") == [(1, "dbo.schema/orders")]


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
    item: Item, step: str, afterwards: bool
) -> None:
    owner, name = STEPS[step]
    original = getattr(owner, name)

    def killed(*args: Any, **kwargs: Any) -> Any:
        if afterwards:
            original(*args, **kwargs)
        raise Killed

    item.keyed()
    changes = rows((1, "z", 0), (2, None, 2), (3, "d", 1))
    item.land_all(rows((1, "a"), (2, "b")), rows((3, "c")), changes)

    with patch.object(owner, name, killed), pytest.raises(Killed):
        item.scan()
    report = item.scan()

    assert report.status == "Replicating"
    assert item.rows() == [(1, "a"), (1, "z"), (3, "d")]
    assert item.left() == ["3.parquet"]


def test_a_replicator_that_was_killed_while_it_dropped_a_table_ends_that(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.scan()
    item.drop()

    with patch.object(shutil, "rmtree", side_effect=Killed), pytest.raises(Killed):
        item.replicator.scan()
    item.replicator.scan()

    assert list((item.path / "Tables" / "shop").iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="Wine gives a new folder the number of the old one")
def test_a_folder_dropped_while_it_is_read_leaves_its_successor_alone(item: Item) -> None:
    item.keyed()
    item.land_all(rows((1, "old")), rows((2, "old", 4)))
    append = MirroredTable.append

    def recreated_meanwhile(self: MirroredTable, *args: Any) -> int | None:
        count = append(self, *args)
        item.drop()
        item.keyed()
        item.land_all(rows((1, "new")), rows((2, "new", 4)))
        return count

    with patch.object(MirroredTable, "append", recreated_meanwhile):
        item.replicator.scan()
    item.scan()

    assert item.rows() == [(1, "new"), (2, "new")]


@pytest.mark.parametrize("gone", [1, 2, 3])
def test_a_folder_whose_files_are_being_deleted_is_no_failure(item: Item, gone: int) -> None:
    item.keyed()
    item.land_all(*(rows((n, "old", 4)) for n in (1, 2, 3)))
    data_files = TableFolder.data_files

    def deleted_meanwhile(self: TableFolder, metadata: TableMetadata) -> Any:
        found = data_files(self, metadata)
        found[0][gone - 1].path.unlink()
        return found

    with patch.object(TableFolder, "data_files", deleted_meanwhile):
        reports = item.replicator.scan()
    item.drop()
    item.keyed()
    item.land_all(rows((1, "new", 4)))
    item.scan()

    assert reports == []
    assert item.rows() == [(1, "new")]


def test_threads_of_arrow_read_no_file_of_python(item: Item) -> None:
    """They would abort a process that ends meanwhile."""
    item.keyed()
    item.land(1, rows((1, "a")))

    with patch.object(pq, "ParquetFile", wraps=pq.ParquetFile) as opened:
        item.scan()

    assert {type(call.args[0]) for call in opened.call_args_list} == {pa.OSFile}
