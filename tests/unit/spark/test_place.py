"""Metastore and warehouse of the embedded Spark stay together, whatever is copied or restored."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from dbt.adapters.openmirroring.spark.embedded import place
from dbt.adapters.openmirroring.spark.embedded.place import (
    SparkPlaceError,
    begin_anew,
    check_place,
    is_at_home,
    tie,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of a Spark that has been used."""
    folder = tmp_path / ".spark"
    make(folder / "metastore_db", {"seg0/c10.dat": "rows", "service.properties": "made"})
    use(folder)
    (folder / "warehouse" / "sales.db" / "orders").mkdir(parents=True)
    return folder


def make(metastore: Path, files: Mapping[str, str]) -> None:
    """Make a metastore as Derby does it, as far as these files."""
    metastore.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (metastore / name).parent.mkdir(exist_ok=True)
        (metastore / name).write_text(content)


def use(home: Path) -> None:
    """Check and tie the place, as each start of Spark does."""
    begin_anew(home)
    check_place(home)
    tie(home)


def forget(home: Path) -> None:
    """Remove the records, which an earlier version did not write."""
    for record in home.rglob("openmirroring.json"):
        record.unlink()


def test_a_place_is_accepted_if_both_are_used_copied_and_restored_together(
    home: Path, tmp_path: Path
) -> None:
    check_place(tmp_path / "new")
    backup = tmp_path / "backup"
    shutil.copytree(home, backup)
    use(home)
    use(home)

    shutil.rmtree(home)
    shutil.copytree(backup, home)
    use(home)

    forget(home)
    use(home)
    use(home)


@pytest.mark.parametrize("lost", ["metastore_db", "warehouse"])
def test_spark_does_not_start_if_metastore_or_warehouse_is_missing(home: Path, lost: str) -> None:
    shutil.rmtree(home / lost)

    with pytest.raises(SparkPlaceError, match=f"{lost} is gone, but .*Put back both.*OM408"):
        use(home)

    assert not (home / lost).exists()


def test_a_place_that_was_moved_or_copied_is_refused_and_accepted_where_it_was(
    home: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved" / ".spark"
    shutil.copytree(home, moved)
    shutil.rmtree(home)

    with pytest.raises(SparkPlaceError, match=r"Move the project back.*restore_baseline.*OM410"):
        use(moved)

    shutil.copytree(moved, home)
    use(home)


def test_without_metastore_and_tables_spark_begins_anew(home: Path) -> None:
    shutil.rmtree(home / "metastore_db")
    shutil.rmtree(home / "warehouse" / "sales.db")

    check_place(home)


# what Derby has made in a metastore, in this order, when the first start of Spark is killed
HALF_MADE: dict[str, dict[str, str]] = {
    "its folder": {},
    "its lock": {"db.lck": "", "dbex.lck": ""},
    "its log": {"db.lck": "", "log/log.ctrl": "", "log/log1.dat": "begun"},
    "some of its own tables": {"log/log1.dat": "begun", "seg0/c10.dat": "rows"},
    "all of its own tables": {"seg0/c10.dat": "rows", "README_DO_NOT_TOUCH_FILES.txt": ""},
    "an empty list of properties": {"seg0/c10.dat": "rows", "service.properties": ""},
}


@pytest.mark.parametrize("made", HALF_MADE)
def test_a_first_start_that_was_killed_while_derby_made_the_metastore_is_begun_anew(
    tmp_path: Path, made: str
) -> None:
    make(tmp_path / "metastore_db", HALF_MADE[made])

    use(tmp_path)

    assert not (tmp_path / "metastore_db").exists()


def test_a_metastore_that_derby_has_made_is_kept_for_hive_to_complete(tmp_path: Path) -> None:
    make(tmp_path / "metastore_db", {"seg0/c10.dat": "rows", "service.properties": "made"})

    use(tmp_path)

    assert (tmp_path / "metastore_db" / "seg0" / "c10.dat").exists()


@pytest.mark.parametrize("left", ["the record", "the warehouse"])
@pytest.mark.parametrize("made", HALF_MADE)
def test_a_metastore_that_has_lost_files_is_kept_if_a_record_or_the_warehouse_tells_of_tables(
    home: Path, made: str, left: str
) -> None:
    shutil.rmtree(home / "metastore_db")
    make(home / "metastore_db", HALF_MADE[made])
    if left == "the record":
        make(home / "metastore_db", {"openmirroring.json": "{}"})
        shutil.rmtree(home / "warehouse")
    before = sorted(home.rglob("*"))

    begin_anew(home)

    assert sorted(home.rglob("*")) == before


def test_a_start_that_begins_anew_beside_a_warehouse_without_tables_may_be_killed(
    home: Path,
) -> None:
    shutil.rmtree(home / "metastore_db")
    shutil.rmtree(home / "warehouse" / "sales.db")
    begin_anew(home)
    make(home / "metastore_db", {"service.properties": "made"})

    use(home)
    use(home)


@pytest.mark.parametrize("restored", ["metastore_db", "warehouse"])
@pytest.mark.parametrize("runs", [0, 1, 3])
def test_a_metastore_from_a_backup_does_not_go_with_another_warehouse(
    home: Path, tmp_path: Path, restored: str, runs: int
) -> None:
    """Also not if an earlier version has made the backup, which was before any run."""
    shutil.copytree(home, tmp_path / "backup")
    if not runs:
        forget(tmp_path / "backup")
    for _ in range(runs):
        use(home)
    shutil.rmtree(home / restored)
    shutil.copytree(tmp_path / "backup" / restored, home / restored)

    with pytest.raises(SparkPlaceError, match=r"were not used together last.*OM409"):
        use(home)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("survived", [0, 1, 2])
def test_a_process_that_is_killed_while_it_ties_metastore_and_warehouse_does_no_harm(
    home: Path, survived: int, is_first: bool
) -> None:
    if is_first:
        forget(home)
    write, left = place._write, survived

    def dying(folder: Path, *record: Any) -> None:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        write(folder, *record)

    with patch.object(place, "_write", dying), pytest.raises(KeyboardInterrupt):
        use(home)

    use(home)
    use(home)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"home": 1, "ties": ["a"]}', '{"home": "/a", "ties": []}', "\0"]
)
def test_a_damaged_record_is_refused_and_says_how_to_go_on(home: Path, content: str) -> None:
    record = home / "metastore_db" / "openmirroring.json"
    record.write_text(content)

    with pytest.raises(SparkPlaceError, match=r"is damaged.*delete both"):
        use(home)

    forget(home)
    use(home)


def test_a_profile_may_put_metastore_or_warehouse_elsewhere() -> None:
    defaults = {
        "spark.sql.warehouse.dir": "/a/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName=/a/metastore_db",
    }

    assert is_at_home(defaults, defaults)
    assert not is_at_home(defaults | {"spark.sql.warehouse.dir": "/b"}, defaults)
