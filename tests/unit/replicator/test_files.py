"""The files that are applied, when, and what becomes of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.openmirroring.replicator.errors import ReplicatorError
from dbt.adapters.openmirroring.replicator.replicator import Replicator
from tests.unit.replicator.item import Item, names, rows


def test_tables_lie_in_their_schemas_beside_the_landing_zone_as_in_onelake(item: Item) -> None:
    for folder in ("shop.schema/orders", "other.schema/orders", "orders"):
        item.metadata(folder)
        item.land(1, rows((1, folder)), folder)

    item.replicator.scan()

    assert item.rows("shop/orders") == [(1, "shop.schema/orders")]
    assert item.rows("other/orders") == [(1, "other.schema/orders")]
    assert item.rows("dbo/orders") == [(1, "orders")]


def test_names_that_begin_with_an_underscore_are_ignored_at_every_level(item: Item) -> None:
    item.keyed()
    for name in ("_scratchPad", "_scratchPad/orders", "shop.schema/_orders"):
        item.metadata(name)
        item.land(1, rows((1, "x")), name)
    item.land_as("_00000000000000000001.parquet", rows((1, "half written")))
    item.land_as("_other.json", rows((1, "x")))

    report = item.scan()

    assert (report.table, report.status, report.note) == ("orders", "Snapshotting", "")
    assert not (item.path / "Tables").exists()


def test_numbers_are_the_order_not_the_time_the_files_have(item: Item) -> None:
    item.keyed()
    item.land(3, rows((1, "third", 1)))
    item.land(2, rows((1, "second", 1)))
    item.land(1, rows((1, "first")))

    item.scan()

    assert item.rows() == [(1, "third")]


def test_files_after_a_gap_wait_until_it_is_filled(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.land(3, rows((1, "c", 1)))

    report = item.scan()

    assert item.rows() == [(1, "a")]
    assert (report.status, report.note) == (
        "Replicating",
        "waits for 00000000000000000002.parquet",
    )
    item.land(2, rows((1, "b", 1), (2, "b", 4)))
    assert item.scan().note == ""
    assert item.rows() == [(1, "c"), (2, "b")]


def test_the_first_number_is_one(item: Item) -> None:
    item.keyed()
    item.land(2, rows((1, "a")))

    assert item.scan().waits_for == "00000000000000000001.parquet"


def test_a_name_that_is_not_twenty_digits_is_no_data_and_is_reported(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.land_as("2.parquet", rows((2, "b")))
    item.land_bytes("00000000000000000002.csv", b"id,name\n2,b\n")

    report = item.scan()

    assert item.rows() == [(1, "a")]
    assert set(report.ignored) == {"2.parquet", "00000000000000000002.csv"}
    assert "ignores" in report.note


def test_a_table_waits_for_its_metadata(item: Item) -> None:
    item.folder().mkdir(parents=True)
    item.land(1, rows((1, "a")))

    report = item.scan()

    assert (report.status, report.note) == ("Initialized", "waits for _metadata.json")
    item.keyed()
    assert item.scan().status == "Replicating"
    assert item.rows() == [(1, "a")]


def test_a_table_without_data_is_snapshotting(item: Item) -> None:
    item.keyed()

    assert item.scan().status == "Snapshotting"


def test_a_file_without_rows_makes_a_table_without_rows(item: Item) -> None:
    item.keyed()
    item.land(1, rows())

    report = item.scan()

    assert (report.status, report.rows) == ("Replicating", 0)
    assert item.delta().schema().to_arrow().names == ["id", "name"]


@pytest.mark.parametrize("content", [b"", b"PAR1 and then nothing of use PAR1", b"P"])
def test_a_file_that_is_no_parquet_stops_the_table_until_it_is_replaced(
    item: Item, content: bytes
) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.land_bytes("00000000000000000002.parquet", content)
    item.land(3, rows((1, "c", 1)))

    for _ in range(2):  # the error stays
        report = item.scan()
        assert report.status == "Failed"
        assert report.error
        assert report.error.code == "InputValidationError"
        assert "00000000000000000002.parquet" in report.note
        assert item.rows() == [(1, "a")]
    item.land(2, rows((2, "b", 4)))
    assert item.scan().status == "Replicating"
    assert item.rows() == [(1, "c"), (2, "b")]


def test_a_file_that_is_corrupt_in_the_middle_adds_nothing(item: Item) -> None:
    item.keyed()
    item.land(1, rows(*((i, f"name {i}") for i in range(100_000))))
    path = item.folder() / "00000000000000000001.parquet"
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2000] = b"\xff" * 2000
    whole = path.read_bytes()
    path.write_bytes(content)

    report = item.scan()

    assert report.error
    assert report.error.code == "InputValidationError"
    assert item.rows() == []
    path.write_bytes(whole)
    assert item.scan().rows == 100_000


def test_a_first_file_that_is_corrupt_does_not_fix_the_types(item: Item) -> None:
    item.keyed()
    path = item.land(1, rows(*((i, f"name {i}") for i in range(100_000))))
    content = bytearray(path.read_bytes())
    content[1000:3000] = b"\xff" * 2000
    path.write_bytes(content)
    assert item.scan().status == "Failed"

    item.land(1, pa.table({"id": ["1"]}))

    assert item.scan().status == "Replicating"
    assert item.rows() == [("1",)]


def test_a_deleted_bad_file_is_a_gap(item: Item) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    item.land_bytes("00000000000000000002.parquet", b"").unlink()
    item.land(3, rows((1, "c", 1)))

    assert item.scan().waits_for == "00000000000000000002.parquet"


def test_one_table_in_error_does_not_stop_the_others(item: Item) -> None:
    item.keyed()
    item.land_bytes("00000000000000000001.parquet", b"")
    item.metadata("shop.schema/parts")
    item.land(1, rows((1, "a")), "shop.schema/parts")

    reports = item.replicator.scan()

    assert [report.status for report in reports] == ["Failed", "Replicating"]


@pytest.mark.parametrize("processed", ["_ProcessedFiles", "_FilesReadyToDelete"])
def test_applied_files_are_moved_away_but_the_last_one_stays(item: Item, processed: str) -> None:
    item.replicator = Replicator(item.landing_zone, processed)
    item.keyed()
    for number in (1, 2, 3, 5):
        item.land(number, rows((number, "x", 4)))

    item.scan()

    assert item.left() == ["3.parquet", "5.parquet"]
    assert names((item.folder() / processed).iterdir()) == ["1.parquet", "2.parquet"]
    item.land(4, rows((4, "x", 4)))
    item.scan()
    assert item.left() == ["5.parquet"]
    assert len(item.rows()) == 5


def test_moved_files_are_deleted_after_a_week(item: Item, monkeypatch: pytest.MonkeyPatch) -> None:
    item.keyed()
    item.land(1, rows((1, "x")))
    item.land(2, rows((2, "x", 4)))
    item.scan()
    processed = item.folder() / "_ProcessedFiles"

    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 6 * 24 * 3600)
    item.scan()
    assert names(processed.iterdir()) == ["1.parquet"]
    monkeypatch.setattr(time, "time", lambda: now + 7 * 24 * 3600 + 60)
    item.scan()
    assert names(processed.iterdir()) == []
    assert item.left() == ["2.parquet"]


def test_a_file_is_applied_once_however_often_it_is_scanned(item: Item) -> None:
    item.metadata()
    item.land(1, rows((1, "a")))
    item.land(2, rows((1, "a")))

    first, second = item.scan(), item.scan()

    assert (first.files, first.operations, second.files) == (2, 2, 0)
    assert item.rows() == [(1, "a"), (1, "a")]


def test_unordered_files_are_applied_by_their_times(item: Item) -> None:
    item.metadata(keyColumns=["id"], fileDetectionStrategy="LastUpdateTimeFileDetection")
    for seconds, name in ((30, "b"), (10, "c"), (20, "a")):
        path = item.land_as(f"{name}.parquet", rows((1, name, 4)))
        os.utime(path, (seconds, seconds))

    item.scan()

    assert item.rows() == [(1, "b")]
    assert item.left() == ["b.parquet"]
    assert names((item.folder() / "_ProcessedFiles").iterdir()) == ["a.parquet", "c.parquet"]


def test_unordered_files_are_known_by_name_so_a_late_older_one_is_still_applied(
    item: Item,
) -> None:
    item.metadata(keyColumns=["id"], fileDetectionStrategy="LastUpdateTimeFileDetection")
    os.utime(item.land_as("new.parquet", rows((1, "new", 4))), (20, 20))
    item.scan()
    os.utime(item.land_as("old.parquet", rows((1, "old", 4))), (10, 10))

    assert item.scan().files == 1
    assert item.scan().files == 0
    assert item.rows() == [(1, "old")]


def test_unordered_files_may_have_numbers_for_names(item: Item) -> None:
    item.metadata(fileDetectionStrategy="LastUpdateTimeFileDetection")
    item.land(7, rows((7, "a")))
    item.scan()
    item.land(3, rows((3, "b")))

    item.scan()

    assert item.rows() == [(3, "b"), (7, "a")]


def test_a_landing_zone_has_the_place_it_has_in_onelake(tmp_path: Path) -> None:
    with pytest.raises(ReplicatorError, match="Files/LandingZone"):
        Replicator(tmp_path / "landing")
