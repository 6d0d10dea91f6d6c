"""Metastore and warehouse of the embedded Spark stay together, whatever is copied or restored."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.openmirroring.spark.embedded import place
from dbt.adapters.openmirroring.spark.embedded.place import (
    SparkPlaceError,
    check_place,
    is_at_home,
    tie,
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of a Spark that has been used."""
    folder = tmp_path / ".spark"
    (folder / "metastore_db" / "seg0").mkdir(parents=True)
    use(folder)
    (folder / "warehouse" / "sales.db" / "orders").mkdir(parents=True)
    return folder


def use(home: Path) -> None:
    """Check and tie the place, as each start of Spark does."""
    check_place(home)
    tie(home)


def test_a_new_place_and_one_that_is_used_again_are_accepted(tmp_path: Path, home: Path) -> None:
    check_place(tmp_path / "new")

    use(home)
    use(home)


def test_a_place_of_an_earlier_version_is_accepted(home: Path) -> None:
    for record in home.rglob("openmirroring.json"):
        record.unlink()

    use(home)
    use(home)


def test_a_copy_of_metastore_and_warehouse_is_accepted(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "copy")
    use(home)

    use(tmp_path / "copy")


@pytest.mark.parametrize("lost", ["metastore_db", "warehouse"])
def test_spark_does_not_start_if_metastore_or_warehouse_is_missing(home: Path, lost: str) -> None:
    shutil.rmtree(home / lost)

    with pytest.raises(SparkPlaceError, match=f"{lost} is gone, but .*Put back both"):
        use(home)

    assert not (home / lost).exists()


def test_without_metastore_and_tables_spark_begins_anew(home: Path) -> None:
    shutil.rmtree(home / "metastore_db")
    shutil.rmtree(home / "warehouse" / "sales.db")

    check_place(home)


@pytest.mark.parametrize("restored", ["metastore_db", "warehouse"])
@pytest.mark.parametrize("runs", [1, 3])
def test_a_metastore_from_a_backup_does_not_go_with_another_warehouse(
    home: Path, tmp_path: Path, restored: str, runs: int
) -> None:
    shutil.copytree(home, tmp_path / "backup")
    for _ in range(runs):
        use(home)
    shutil.rmtree(home / restored)
    shutil.copytree(tmp_path / "backup" / restored, home / restored)

    with pytest.raises(SparkPlaceError, match="were not used together last"):
        use(home)


@pytest.mark.parametrize("restored", ["metastore_db", "warehouse"])
def test_a_metastore_from_a_backup_of_an_earlier_version_does_not_either(
    home: Path, restored: str
) -> None:
    (home / restored / "openmirroring.json").unlink()

    with pytest.raises(SparkPlaceError, match="were not used together last"):
        use(home)


def test_metastore_and_warehouse_from_one_backup_are_accepted(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "backup")
    use(home)
    shutil.rmtree(home)
    shutil.copytree(tmp_path / "backup", home)

    use(home)


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("survived", [0, 1, 2])
def test_a_process_that_is_killed_while_it_ties_metastore_and_warehouse_does_no_harm(
    home: Path, monkeypatch: pytest.MonkeyPatch, survived: int, is_first: bool
) -> None:
    if is_first:
        for record in home.rglob("openmirroring.json"):
            record.unlink()
    write = place._write
    left = survived

    def dying(folder: Path, *record: Any) -> None:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        write(folder, *record)

    with monkeypatch.context() as patched:
        patched.setattr(place, "_write", dying)
        with pytest.raises(KeyboardInterrupt):
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

    for path in home.rglob("openmirroring.json"):
        path.unlink()
    use(home)


def test_a_profile_may_put_metastore_or_warehouse_elsewhere() -> None:
    defaults = {
        "spark.sql.warehouse.dir": "/a/warehouse",
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:;databaseName=/a/metastore_db",
    }

    assert is_at_home(defaults, defaults)
    assert not is_at_home(defaults | {"spark.sql.warehouse.dir": "/b"}, defaults)
