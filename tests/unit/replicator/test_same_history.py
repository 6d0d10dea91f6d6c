"""A table folder and its mirrored table that do not belong together, e.g. after a backup."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.replicator.errors import TableError
from tests.unit.replicator.item import BY_TIME, Item, rows

OLDER = "1 of its files were applied, and the table has 3"


class Backup:
    """The folders of an item."""

    def __init__(self, item: Item, folder: Path) -> None:
        self._item, self._folder = item, folder
        shutil.copytree(item.path, folder)

    def put_back(self, *names: str) -> None:
        """As `cp -r` does: the files get new times."""
        for name in names:
            shutil.rmtree(self._item.path / name)
            folders = (self._folder / name, self._item.path / name)
            shutil.copytree(*folders, copy_function=shutil.copyfile)


def assert_refused(item: Item, told: str, code: str) -> None:
    before = item.rows()
    for found in (item.scan(), item.scan()):  # the error stays
        assert (found.status, found.files) == ("Failed", 0)
        assert found.error
        assert (found.error.error_code, found.error.code) == ("FileNumberReused", code)
        assert told in found.note
        assert f"replaces the {len(before)} rows of the mirrored table" in found.note
    assert item.rows() == before


@pytest.fixture
def backup(item: Item, tmp_path: Path) -> Backup:
    """A table of three files, and a backup from after the first one."""
    item.keyed()
    item.land(1, rows((1, "a"), (2, "a")))
    item.scan()
    created = Backup(item, tmp_path / "backup")
    item.land(2, rows((1, "b", 4)))
    item.land(3, rows((2, None, 2)))
    item.scan()
    return created


@pytest.mark.parametrize("files", [0, 1, 2, 3])
def test_a_landing_zone_that_is_older_than_its_table_is_refused(
    item: Item, backup: Backup, files: int
) -> None:
    """However many files were published since: some would be skipped, and others applied."""
    backup.put_back("Files")
    for number in range(2, 2 + files):
        item.land(number, rows((number, "new", 4)))

    assert_refused(item, OLDER, "OM424")

    with pytest.raises(TableError, match="older than the mirrored table"):
        item.replicator.mirrored("shop", "orders")
    # the way out that the error gives
    item.drop()
    item.keyed()
    item.land(1, rows((1, "new")))
    assert item.scan().status == "Replicating"
    assert item.rows() == [(1, "new")]


def test_files_without_numbers_are_counted(item: Item, tmp_path: Path) -> None:
    item.metadata(**BY_TIME)
    item.land_at(10, "a", rows((1, "a", 4)))
    item.scan()
    backup = Backup(item, tmp_path / "backup")
    for name in ("b", "c"):
        item.land_at(20, name, rows((1, name, 4)))
        item.scan()
    backup.put_back("Files")
    item.land_at(30, "d", rows((1, "d", 4)))

    assert_refused(item, OLDER, "OM424")


def test_a_table_that_is_older_than_its_landing_zone_is_refused(
    item: Item, backup: Backup
) -> None:
    backup.put_back("Tables")
    item.land(4, rows((4, "d", 4)))

    assert_refused(item, "newer than the mirrored table", "OM424")


def test_both_from_one_backup_go_on(item: Item, backup: Backup) -> None:
    backup.put_back("Files", "Tables")
    item.land(2, rows((2, "again", 4)))

    assert item.scan().status == "Replicating"
    assert item.rows() == [(1, "a"), (2, "again")]


@pytest.mark.usefixtures("backup")
@pytest.mark.parametrize("number", [1, 2, 3])
def test_another_file_with_an_applied_number_is_refused(item: Item, number: int) -> None:
    """The last one is still there, and the new one is as large."""
    size = (item.folder() / f"{3:020d}.parquet").stat().st_size
    path = item.land(number, rows((1, None, 2)))
    assert path.stat().st_size == size

    assert_refused(item, f"{path.name} has a number that was applied before", "OM425")


@pytest.mark.usefixtures("backup")
def test_the_last_file_may_be_deleted_or_put_back_as_it_was(item: Item) -> None:
    last = item.folder() / f"{3:020d}.parquet"
    content = last.read_bytes()
    last.unlink()
    assert item.scan().status == "Replicating"
    last.write_bytes(content)
    assert item.scan().status == "Replicating"
    item.land(4, rows((4, "d", 4)))

    assert item.scan().files == 1
