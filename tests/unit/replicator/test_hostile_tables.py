"""Hostile files stop their own table, and change nothing elsewhere."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from dbt.adapters.openmirroring.replicator.errors import ReplicatorError
from dbt.adapters.openmirroring.replicator.monitoring import TableReport, lines
from tests.hostile_tables import (
    FIRST,
    HOSTILE_TABLES,
    SECOND,
    contents,
    land_forty,
    outside,
)
from tests.unit.replicator.item import Item, rows

GOOD = ("first.schema/a", "parts", "second.schema/b", "z.schema/orders")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    return outside(tmp_path / "elsewhere")


def land_good(item: Item, *folders: str) -> None:
    for folder in folders:
        item.metadata(folder, keyColumns=["id"])
        item.land(1, rows((1, folder), (2, "b")), folder)
        item.land(2, rows((2, None, 2), (3, "c", 4)), folder)


def reports(item: Item) -> dict[str, TableReport]:
    return {f"{report.schema}.{report.table}": report for report in item.replicator.scan()}


def test_forty_hostile_tables_stop_none_of_four_good_ones(item: Item, elsewhere: Path) -> None:
    land_good(item, *GOOD)
    hostile = list(land_forty(item.landing_zone / "hostile.schema", elsewhere))
    monitoring = item.path / "Files" / "Monitoring"
    monitoring.mkdir()
    (monitoring / "tables.json").write_text("[" * 100_000)
    (item.path / "Tables").mkdir()
    (item.path / "Tables" / "file").write_text("foreign")
    before = contents(elsewhere)

    found = item.replicator.scan()

    for folder, table in zip(GOOD, ("first/a", "dbo/parts", "second/b", "z/orders"), strict=True):
        assert item.rows(table) == [(1, folder), (3, "c")]
    notes = {report.table: report.note for report in found if report.status == "Failed"}
    assert len(notes) == len(hostile) == 40
    for path, kind in hostile:
        assert kind.finding in notes[path.name]
    assert contents(elsewhere) == before
    assert (item.path / "Tables" / "file").read_text() == "foreign"
    "\n".join(lines(found)).encode()
    told = json.loads((monitoring / "tables.json").read_text())["tables"]
    assert len(told) == 44


@pytest.mark.parametrize("kind", HOSTILE_TABLES)
def test_a_hostile_table_is_reported_and_the_others_go_on(
    item: Item, elsewhere: Path, kind: str
) -> None:
    land_good(item, "a.schema/orders", "z.schema/orders")
    path = HOSTILE_TABLES[kind].land(item.folder("hostile.schema/hostile"), elsewhere)
    before = contents(elsewhere)

    for _ in range(2):
        found = {report.table: report for report in item.replicator.scan()}

    assert found[path.name].status == "Failed"
    assert HOSTILE_TABLES[kind].finding in found[path.name].note
    assert item.rows("a/orders") == [(1, "a.schema/orders"), (3, "c")]
    assert item.rows("z/orders") == [(1, "z.schema/orders"), (3, "c")]
    assert contents(elsewhere) == before


def test_a_linked_file_brings_no_rows_of_somebody_else(item: Item, elsewhere: Path) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    (item.folder() / SECOND).symlink_to(elsewhere / "rows.parquet")

    report = item.scan()

    assert report.status == "Failed"
    assert f"{SECOND} is a link" in report.note
    assert item.rows() == [(1, "a")]


def test_a_link_that_is_no_data_is_ignored_like_every_other_file(
    item: Item, elsewhere: Path
) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    (item.folder() / "notes.txt").symlink_to(elsewhere / "gone")

    assert item.scan().note == "ignores notes.txt"


def test_a_linked_processed_folder_neither_gets_nor_loses_files(
    item: Item, elsewhere: Path
) -> None:
    item.keyed()
    os.utime(elsewhere / "processed" / FIRST, (0, 0))
    (item.folder() / "_ProcessedFiles").symlink_to(elsewhere / "processed")
    item.land(1, rows((1, "a")))
    item.land(2, rows((2, "b", 4)))
    before = contents(elsewhere)

    report = item.scan()

    assert "_ProcessedFiles is a link" in report.note
    assert item.rows() == [(1, "a"), (2, "b")]
    assert item.left() == ["1.parquet", "2.parquet"]
    assert contents(elsewhere) == before
    (item.folder() / "_ProcessedFiles").unlink()
    assert item.scan().status == "Replicating"
    assert item.left() == ["2.parquet"]


def test_folders_and_links_stay_in_the_processed_folder(
    item: Item, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_month_later = time.time() + 30 * 24 * 3600
    item.keyed()
    processed = item.folder() / "_ProcessedFiles"
    (processed / "folder").mkdir(parents=True)
    (processed / "link").symlink_to(elsewhere / "gone")
    item.land(1, rows((1, "a")))
    item.land(2, rows((2, "b", 4)))

    monkeypatch.setattr(time, "time", lambda: a_month_later)

    assert item.scan().status == "Replicating"
    assert item.left() == ["2.parquet"]
    assert {path.name for path in processed.iterdir()} == {"folder", "link"}


def test_a_linked_schema_folder_is_reported_and_its_tables_are_kept(
    item: Item, elsewhere: Path
) -> None:
    land_good(item, "shop.schema/orders", "z.schema/orders")
    item.replicator.scan()
    (item.landing_zone / "shop.schema").rename(elsewhere / "shop")
    (item.landing_zone / "shop.schema").symlink_to(elsewhere / "shop")
    before = contents(elsewhere)

    found = reports(item)

    assert {name: report.status for name, report in found.items()} == {
        "shop.*": "Failed",
        "z.orders": "Replicating",
    }
    assert "shop.schema is a link" in found["shop.*"].note
    assert item.rows("shop/orders") == [(1, "shop.schema/orders"), (3, "c")]
    assert contents(elsewhere) == before


def test_the_landing_zones_root_may_have_items_that_are_no_table(
    item: Item, elsewhere: Path
) -> None:
    land_good(item, "z.schema/orders")
    os.mkfifo(item.landing_zone / "fifo")
    (item.landing_zone / "file").write_text("x")
    (item.landing_zone / "linked").symlink_to(elsewhere / "table")

    found = reports(item)

    assert {name: report.status for name, report in found.items()} == {
        "dbo.linked": "Failed",
        "z.orders": "Replicating",
    }


def deep(tables: dict[str, Any]) -> str:
    return "[" * 100_000


def without_names(tables: dict[str, Any]) -> str:
    return json.dumps({"tables": [{"metrics": {}}]})


def with_names_that_are_none(tables: dict[str, Any]) -> str:
    tables["tables"][0]["sourceTableName"] = ["orders"]
    return json.dumps(tables)


def of_many_bytes(tables: dict[str, Any]) -> str:
    return json.dumps(tables) + " " * 5_000_000


@pytest.mark.parametrize(
    "damaged",
    [
        deep,
        without_names,
        with_names_that_are_none,
        of_many_bytes,
    ],
)
def test_damaged_figures_begin_anew(item: Item, damaged: Any) -> None:
    item.keyed()
    item.land(1, rows((1, "a"), (2, "b")))
    item.scan()
    path = item.path / "Files" / "Monitoring" / "tables.json"
    path.write_text(damaged(json.loads(path.read_text())))
    item.land(2, rows((3, "c", 4)))

    assert item.scan().status == "Replicating"

    (table,) = json.loads(path.read_text())["tables"]
    assert table["sourceTableName"] == "orders"
    assert table["metrics"]["processedRowCount"] == 1


@pytest.mark.parametrize("name", ["tables.json", "_tables.json.new"])
def test_the_states_are_written_through_no_link_and_no_fifo(
    item: Item, elsewhere: Path, name: str
) -> None:
    item.keyed()
    monitoring = item.path / "Files" / "Monitoring"
    monitoring.mkdir(parents=True)
    before = contents(elsewhere)
    for kind in ("link", "FIFO"):
        (monitoring / name).unlink(missing_ok=True)
        if kind == "link":
            (monitoring / name).symlink_to(elsewhere / "record.json")
        else:
            os.mkfifo(monitoring / name)

        item.scan()

        assert {path.name for path in monitoring.iterdir()} == {"tables.json", "replicator.json"}
        assert not any(path.is_symlink() or path.is_fifo() for path in monitoring.iterdir())
    assert contents(elsewhere) == before


@pytest.mark.parametrize("place", ["Tables", "Files/Monitoring"])
def test_a_link_in_place_of_the_items_own_folders_is_refused(
    item: Item, elsewhere: Path, place: str
) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    (item.path / place).symlink_to(elsewhere)
    before = contents(elsewhere)

    with pytest.raises(ReplicatorError, match=place):
        item.replicator.scan()

    assert contents(elsewhere) == before


def test_the_states_of_tables_that_are_gone_are_forgotten(item: Item) -> None:
    land_good(item, "shop.schema/orders", "shop.schema/parts")
    (item.folder("shop.schema/parts") / "_metadata.json").write_text("{")
    item.replicator.scan()
    item.drop("shop.schema/parts")

    item.replicator.scan()

    content = json.loads((item.path / "Files" / "Monitoring" / "tables.json").read_text())
    assert [table["sourceTableName"] for table in content["tables"]] == ["orders"]


def a_file(path: Path, elsewhere: Path) -> None:
    path.write_text("foreign")


def a_dropped_file(path: Path, elsewhere: Path) -> None:
    path.with_name("_dropped_file").write_text("foreign")


def a_dropped_folder(path: Path, elsewhere: Path) -> None:
    path.with_name("_dropped_by_me").mkdir()


def a_fifo(path: Path, elsewhere: Path) -> None:
    os.mkfifo(path)


def a_damaged_table(path: Path, elsewhere: Path) -> None:
    (path / "_delta_log").mkdir(parents=True)
    (path / "_delta_log" / f"{0:020d}.json").write_text("[" * 100_000)


def another_item(folder: Path) -> Path:
    """The tables of another mirrored database."""
    other = Item(folder / "other.MirroredDatabase")
    land_good(other, "shop.schema/secret")
    other.replicator.scan()
    return other.path / "Tables" / "shop"


def a_linked_mirrored_table(path: Path, elsewhere: Path) -> None:
    path.symlink_to(another_item(elsewhere) / "secret")


def a_linked_schema_of_mirrored_tables(path: Path, elsewhere: Path) -> None:
    path.parent.with_name("linked").symlink_to(another_item(elsewhere))


@pytest.mark.parametrize(
    "foreign",
    [
        a_file,
        a_dropped_file,
        a_dropped_folder,
        a_fifo,
        a_damaged_table,
        a_linked_mirrored_table,
        a_linked_schema_of_mirrored_tables,
    ],
)
def test_foreign_items_among_the_tables_are_left_alone(
    item: Item, elsewhere: Path, foreign: Any
) -> None:
    land_good(item, "shop.schema/orders")
    tables = item.path / "Tables"
    (tables / "shop").mkdir(parents=True)
    foreign(tables / "shop" / "foreign", elsewhere)
    before = contents(elsewhere)
    found = {path for path in tables.rglob("*") if "foreign" in path.name or "by_me" in path.name}

    assert item.scan().status == "Replicating"
    assert contents(elsewhere) == before
    assert all(path.is_symlink() or path.exists() for path in found)


def test_a_link_in_place_of_a_table_stops_that_table(item: Item, elsewhere: Path) -> None:
    land_good(item, "a.schema/orders", "shop.schema/orders", "z.schema/orders")
    place = item.path / "Tables" / "shop" / "orders"
    place.parent.mkdir(parents=True)
    a_linked_mirrored_table(place, elsewhere)
    before = contents(elsewhere)

    found = reports(item)

    assert {name: report.status for name, report in found.items()} == {
        "a.orders": "Replicating",
        "shop.orders": "Failed",
        "z.orders": "Replicating",
    }
    assert contents(elsewhere) == before


def test_names_that_cannot_be_printed_are_escaped(item: Item) -> None:
    item.metadata(os.fsdecode(b"shop.schema/or\xffd\x1b[31m"))
    item.keyed()
    item.land(1, rows((1, "a")))
    item.land_bytes(os.fsdecode(b"\xfe.txt"), b"x")

    found = item.replicator.scan()

    printed = [line.split("  ") for line in lines(found)]
    assert printed[1][-1] == "ignores \\udcfe.txt"
    assert printed[2][0] == "shop.or\\udcffd\\x1b[31m"


def test_a_table_is_only_ever_written_to_its_own_delta_log(item: Item, elsewhere: Path) -> None:
    """A folder that a scan has filled is exchanged for a link to another table's."""
    land_good(item, "shop.schema/orders", "shop.schema/secret")
    item.replicator.scan()
    version = DeltaTable(item.path / "Tables" / "shop" / "orders").version()
    item.folder().rename(item.folder("shop.schema/_orders"))
    item.folder().symlink_to(item.folder("shop.schema/secret"))

    found = reports(item)

    assert "orders is a link" in found["shop.orders"].note
    assert item.delta().version() == version
