"""A table folder and its mirrored table that do not belong together, e.g. after a backup."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.replicator.errors import TableError
from dbt.adapters.openmirroring.replicator.monitoring import TableReport
from tests.unit.replicator.item import Item, rows

BY_TIME: dict[str, Any] = {
    "keyColumns": ["id"],
    "fileDetectionStrategy": "LastUpdateTimeFileDetection",
}


def put_back(folder: Path, backup: Path) -> None:
    """As `cp -r` does: the files get new times."""
    shutil.rmtree(folder)
    shutil.copytree(backup, folder, copy_function=shutil.copyfile)


def assert_refused(item: Item, report: TableReport, told: str) -> None:
    before = item.rows()
    for found in (report, item.scan()):  # the error stays
        assert (found.status, found.files) == ("Failed", 0)
        assert found.error
        assert found.error.code == "FileNumberReused"
        assert told in found.note
        assert f"replaces the {len(before)} rows of the mirrored table" in found.note
    assert item.rows() == before


@pytest.fixture
def replicated(item: Item, tmp_path: Path) -> Item:
    """A table of three files; `tables` and `files` are backups from after the first one."""
    item.keyed()
    item.land(1, rows((1, "a"), (2, "a")))
    item.scan()
    shutil.copytree(item.path / "Files", tmp_path / "files")
    shutil.copytree(item.path / "Tables", tmp_path / "tables")
    item.land(2, rows((1, "b", 4)))
    item.land(3, rows((2, None, 2)))
    item.scan()
    return item


@pytest.mark.parametrize("files", [0, 1, 2, 3])
def test_a_landing_zone_that_is_older_than_its_table_is_refused(
    replicated: Item, tmp_path: Path, files: int
) -> None:
    """However many files were published since: some would be skipped, and others applied."""
    put_back(replicated.path / "Files", tmp_path / "files")
    for number in range(2, 2 + files):
        replicated.land(number, rows((number, "new", 4)))

    report = replicated.scan()

    assert_refused(replicated, report, "1 of its files were applied, and the table has 3")
    with pytest.raises(TableError, match="older than the mirrored table"):
        replicated.replicator.mirrored("shop", "orders")


def test_a_table_that_is_older_than_its_landing_zone_is_refused(
    replicated: Item, tmp_path: Path
) -> None:
    put_back(replicated.path / "Tables", tmp_path / "tables")
    replicated.land(4, rows((4, "d", 4)))

    assert_refused(replicated, replicated.scan(), "newer than the mirrored table")


def test_a_full_load_in_a_new_folder_ends_the_refusal(replicated: Item, tmp_path: Path) -> None:
    put_back(replicated.path / "Files", tmp_path / "files")
    assert replicated.scan().status == "Failed"
    replicated.drop()
    replicated.keyed()
    replicated.land(1, rows((1, "new")))

    assert replicated.scan().status == "Replicating"
    assert replicated.rows() == [(1, "new")]


def test_both_from_one_backup_go_on(replicated: Item, tmp_path: Path) -> None:
    put_back(replicated.path / "Files", tmp_path / "files")
    put_back(replicated.path / "Tables", tmp_path / "tables")
    replicated.land(2, rows((2, "again", 4)))

    assert replicated.scan().status == "Replicating"
    assert replicated.rows() == [(1, "a"), (2, "again")]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_another_file_with_an_applied_number_is_refused(replicated: Item, number: int) -> None:
    """The last one is still there, and the new one is as large."""
    size = len(replicated.land(9, rows((2, None, 2))).read_bytes())
    (replicated.folder() / f"{9:020d}.parquet").unlink()
    path = replicated.land(number, rows((1, None, 2)))
    assert path.stat().st_size == size

    report = replicated.scan()

    assert_refused(replicated, report, f"{path.name} has a number that was applied before")


def test_the_last_file_may_be_deleted_or_put_back_as_it_was(replicated: Item) -> None:
    last = replicated.folder() / f"{3:020d}.parquet"
    content = last.read_bytes()
    last.unlink()
    assert replicated.scan().status == "Replicating"
    last.write_bytes(content)
    assert replicated.scan().status == "Replicating"
    replicated.land(4, rows((4, "d", 4)))

    assert replicated.scan().files == 1


def by_time(item: Item, name: str, seconds: int, value: str) -> None:
    path = item.land_as(f"{name}.parquet", rows((1, value, 4)))
    os.utime(path, (seconds, seconds))


def test_files_without_numbers_are_counted(item: Item, tmp_path: Path) -> None:
    item.metadata(**BY_TIME)
    by_time(item, "a", 10, "a")
    item.scan()
    shutil.copytree(item.path / "Files", tmp_path / "files")
    for name in ("b", "c"):
        by_time(item, name, 20, name)
        item.scan()
    put_back(item.path / "Files", tmp_path / "files")
    by_time(item, "d", 30, "d")

    assert_refused(item, item.scan(), "1 of its files were applied, and the table has 3")
