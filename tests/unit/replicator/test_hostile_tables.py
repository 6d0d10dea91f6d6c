"""Hostile files stop their own table, and change nothing elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dbt.adapters.openmirroring.replicator.errors import ReplicatorError
from dbt.adapters.openmirroring.replicator.monitoring import lines
from tests.hostile_tables import FIRST, contents, land_forty, land_link, outside
from tests.unit.replicator.item import Item, rows

GOOD = ("first.schema/a", "parts", "second.schema/b", "z.schema/orders")


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Path]:
    """A folder of somebody else, which a test leaves as it is."""
    folder = outside(tmp_path / "elsewhere")
    before = contents(folder)
    yield folder
    assert contents(folder) == before


def land_good(item: Item, *folders: str) -> None:
    for folder in folders:
        item.metadata(folder, keyColumns=["id"])
        item.land(1, rows((1, folder), (2, "b")), folder)
        item.land(2, rows((2, None, 2), (3, "c", 4)), folder)


def test_forty_hostile_tables_stop_none_of_four_good_ones(item: Item, elsewhere: Path) -> None:
    land_good(item, *GOOD)
    hostile = list(land_forty(item.landing_zone / "hostile.schema", elsewhere))
    hostile.append((land_link(item.landing_zone / "linked", elsewhere), "is a link"))
    os.mkfifo(item.landing_zone / "fifo")
    (item.landing_zone / "file").write_text("x")
    (item.path / "Tables").mkdir()
    (item.path / "Tables" / "file").write_text("foreign")

    for _ in range(2):
        found = item.replicator.scan()

        for folder, table in zip(
            GOOD, ("first/a", "dbo/parts", "second/b", "z/orders"), strict=True
        ):
            assert item.rows(table) == [(1, folder), (3, "c")]
        notes = {report.table: report.note for report in found if report.status == "Failed"}
        assert len(notes) == len(hostile) == 41
        assert not [(f, notes[p.name]) for p, f in hostile if f not in notes[p.name]]
    assert (item.path / "Tables" / "file").read_text() == "foreign"
    "\n".join(lines(found)).encode()
    told = json.loads((item.path / "Files" / "Monitoring" / "tables.json").read_text())
    assert len(told["tables"]) == 45


def test_a_linked_processed_folder_neither_gets_nor_loses_files(
    item: Item, elsewhere: Path
) -> None:
    item.keyed()
    os.utime(elsewhere / "processed" / FIRST, (0, 0))
    (item.folder() / "_ProcessedFiles").symlink_to(elsewhere / "processed")
    item.land_all(rows((1, "a")), rows((2, "b", 4)))

    report = item.scan()

    assert "_ProcessedFiles is a link" in report.note
    assert item.rows() == [(1, "a"), (2, "b")]
    assert item.left() == ["1.parquet", "2.parquet"]
    (item.folder() / "_ProcessedFiles").unlink()
    assert item.scan().status == "Replicating"
    assert item.left() == ["2.parquet"]


@pytest.mark.parametrize("place", ["shop.schema", "shop.schema/orders"])
def test_a_link_in_place_of_a_folder_is_reported_and_its_tables_are_kept(
    item: Item, tmp_path: Path, place: str
) -> None:
    land_good(item, "shop.schema/orders", "z.schema/orders")
    item.replicator.scan()
    version = item.delta().version()
    (item.landing_zone / place).rename(tmp_path / "moved")
    (item.landing_zone / place).symlink_to(tmp_path / "moved")
    before = contents(tmp_path / "moved")

    shop, other = item.replicator.scan()

    assert f"{place.rpartition('/')[2]} is a link" in shop.note
    assert (other.schema, other.status) == ("z", "Replicating")
    assert item.rows("shop/orders") == [(1, "shop.schema/orders"), (3, "c")]
    assert item.delta().version() == version
    assert contents(tmp_path / "moved") == before


@pytest.mark.parametrize(
    "damaged",
    [
        "{",
        "[" * 100_000,
        '{"tables": [{"metrics": {}}]}',
        '{"tables": [{"sourceSchemaName": "shop", "sourceTableName": ["orders"]}]}',
    ],
    ids=["cut off", "deep", "no names", "no texts"],
)
def test_damaged_figures_begin_anew(item: Item, damaged: str) -> None:
    item.keyed()
    item.land(1, rows((1, "a"), (2, "b")))
    item.scan()
    path = item.path / "Files" / "Monitoring" / "tables.json"
    path.write_text(damaged)
    item.land(2, rows((3, "c", 4)))

    assert item.scan().status == "Replicating"

    (table,) = json.loads(path.read_text())["tables"]
    assert table["sourceTableName"] == "orders"
    assert table["metrics"]["processedRowCount"] == 1


@pytest.mark.parametrize("name", ["tables.json", "_tables.json.new"])
@pytest.mark.parametrize("kind", ["link", "FIFO"])
def test_the_states_are_written_through_no_link_and_no_fifo(
    item: Item, elsewhere: Path, name: str, kind: str
) -> None:
    item.keyed()
    monitoring = item.path / "Files" / "Monitoring"
    monitoring.mkdir(parents=True)
    if kind == "link":
        (monitoring / name).symlink_to(elsewhere / "record.json")
    else:
        os.mkfifo(monitoring / name)

    item.scan()

    names = {path.name for path in monitoring.iterdir()}
    assert names == {"tables.json", "replicator.json", "_lock"}
    assert not any(path.is_symlink() or path.is_fifo() for path in monitoring.iterdir())


@pytest.mark.parametrize("place", ["Tables", "Files/Monitoring"])
def test_a_link_in_place_of_the_items_own_folders_is_refused(
    item: Item, elsewhere: Path, place: str
) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    (item.path / place).symlink_to(elsewhere)

    with pytest.raises(ReplicatorError, match=place):
        item.replicator.scan()


@pytest.fixture
def another_item(tmp_path: Path) -> Iterator[Path]:
    """The tables of another mirrored database, which a test leaves as they are."""
    other = Item(tmp_path / "other.MirroredDatabase")
    land_good(other, "shop.schema/secret")
    other.replicator.scan()
    before = contents(other.path)
    yield other.path / "Tables" / "shop"
    assert contents(other.path) == before


def damage_table(path: Path) -> None:
    (path / "_delta_log").mkdir(parents=True)
    (path / "_delta_log" / f"{0:020d}.json").write_text("[" * 100_000)


FOREIGN: dict[str, Callable[[Path, Path], object]] = {
    "a file": lambda path, _: path.write_text("foreign"),
    "a dropped file": lambda path, _: path.with_name("_dropped_file").write_text("foreign"),
    "a dropped folder": lambda path, _: path.with_name("_dropped_by_me").mkdir(),
    "a FIFO": lambda path, _: os.mkfifo(path),
    "a damaged table": lambda path, _: damage_table(path),
    "a linked table": lambda path, other: path.symlink_to(other / "secret"),
    "a linked schema": lambda path, other: path.parent.with_name("linked").symlink_to(other),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_items_among_the_tables_are_left_alone(
    item: Item, another_item: Path, kind: str
) -> None:
    land_good(item, "shop.schema/orders")
    tables = item.path / "Tables"
    (tables / "shop").mkdir(parents=True)
    FOREIGN[kind](tables / "shop" / "foreign", another_item)
    found = set(tables.rglob("*"))

    assert item.scan().status == "Replicating"
    assert all(path.is_symlink() or path.exists() for path in found)


@pytest.mark.parametrize("kind", ["a linked table", "a folder"])
def test_a_foreign_item_in_place_of_a_table_stops_that_table(
    item: Item, another_item: Path, kind: str
) -> None:
    land_good(item, "a.schema/orders", "shop.schema/orders", "z.schema/orders")
    place = item.path / "Tables" / "shop" / "orders"
    place.parent.mkdir(parents=True)
    if kind == "a folder":
        place.mkdir()
        (place / "file").write_text("precious")
    else:
        place.symlink_to(another_item / "secret")

    assert [(report.schema, report.status) for report in item.replicator.scan()] == [
        *(("a", "Replicating"), ("shop", "Failed"), ("z", "Replicating"))
    ]
    item.drop()
    item.replicator.scan()
    assert place.is_symlink() or (place / "file").read_text() == "precious"


def test_names_that_cannot_be_printed_are_escaped(item: Item) -> None:
    item.metadata(os.fsdecode(b"shop.schema/or\xffd\x1b[31m"))
    item.keyed()
    item.land(1, rows((1, "a")))
    item.land_bytes(os.fsdecode(b"\xfe.txt"), b"x")

    found = item.replicator.scan()

    printed = [line.split("  ") for line in lines(found)]
    assert printed[1][-1] == "ignores \\udcfe.txt"
    assert printed[2][0] == "shop.or\\udcffd\\x1b[31m"
