"""The files that are applied, when, and what becomes of them."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from tests.unit.replicator.item import BY_TIME, Item, names, rows


def test_names_without_twenty_digits_or_that_begin_with_an_underscore_are_no_data(
    item: Item,
) -> None:
    """At every level. Those without an underscore are reported."""
    item.keyed()
    for name in ("_scratchPad", "_scratchPad/orders", "shop.schema/_orders"):
        item.metadata(name)
        item.land(1, rows((1, "x")), name)
    for file in ("_00000000000000000001.parquet", "_other.json", "2.parquet"):
        item.land_as(file, rows((1, "x")))
    item.land_bytes("00000000000000000002.csv", b"id,name\n2,b\n")

    report = item.scan()

    assert (report.table, report.status) == ("orders", "Snapshotting")
    assert report.note == "ignores 00000000000000000002.csv, 2.parquet"
    assert not (item.path / "Tables").exists()


@pytest.mark.parametrize("missing", [1, 2])
def test_files_after_a_gap_wait_until_it_is_filled(item: Item, missing: int) -> None:
    """Their numbers are their order, not their times."""
    item.keyed()
    for number in {3, 2, 1} - {missing}:
        item.land(number, rows((1, f"file {number}", 4)))

    report = item.scan()

    assert report.note == f"waits for {missing:020d}.parquet"
    assert report.files == missing - 1
    item.land(missing, rows((1, f"file {missing}", 4)))
    assert item.scan().note == ""
    assert item.rows() == [(1, "file 3")]


def test_a_table_waits_for_its_metadata(item: Item) -> None:
    item.folder().mkdir(parents=True)
    item.land(1, rows((1, "a")))

    report = item.scan()

    assert (report.status, report.note) == ("Initialized", "waits for _metadata.json")
    item.keyed()
    assert item.scan().status == "Replicating"
    assert item.rows() == [(1, "a")]


@pytest.mark.parametrize("content", [b"", b"PAR1 and then nothing of use PAR1", b"P"])
def test_a_file_that_is_no_parquet_stops_the_table_until_it_is_replaced(
    item: Item, content: bytes
) -> None:
    item.keyed()
    item.land(1, rows((1, "a")))
    bad = item.land_bytes("00000000000000000002.parquet", content)
    item.land(3, rows((1, "c", 1)))

    for _ in range(2):  # the error stays
        report = item.scan()
        assert report.status == "Failed"
        assert report.error
        assert report.error.error_code == "InputValidationError"
        assert bad.name in report.note
        assert item.rows() == [(1, "a")]
    bad.unlink()
    assert item.scan().waits_for == bad.name
    item.land(2, rows((2, "b", 4)))
    assert item.scan().status == "Replicating"
    assert item.rows() == [(1, "c"), (2, "b")]


@pytest.mark.parametrize("part", ["begin", "middle"])
def test_a_first_file_that_is_corrupt_adds_nothing_and_does_not_fix_the_types(
    item: Item, part: str
) -> None:
    item.keyed()
    path = item.land(1, rows(*((i, f"name {i}") for i in range(100_000))))
    content = bytearray(path.read_bytes())
    start = 1000 if part == "begin" else len(content) // 2
    content[start : start + 2000] = b"\xff" * 2000
    path.write_bytes(content)

    report = item.scan()

    assert report.error
    assert report.error.error_code == "InputValidationError"
    assert item.rows() == []
    item.land(1, pa.table({"id": ["1"]}))
    assert item.scan().status == "Replicating"
    assert item.rows() == [("1",)]


def test_applied_files_are_moved_away_but_the_last_one_stays(item: Item) -> None:
    item.keyed()
    for number in (1, 2, 3, 5):
        item.land(number, rows((number, "x", 4)))

    item.scan()

    assert item.left() == ["3.parquet", "5.parquet"]
    assert names((item.folder() / "_ProcessedFiles").iterdir()) == ["1.parquet", "2.parquet"]
    item.land(4, rows((4, "x", 4)))
    item.scan()
    assert item.left() == ["5.parquet"]
    assert len(item.rows()) == 5


def test_moved_files_are_deleted_after_a_week(
    item: Item, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders and links are no files that were moved there."""
    item.keyed()
    item.land_all(rows((1, "x")), rows((2, "x", 4)))
    processed = item.folder() / "_ProcessedFiles"
    (processed / "folder").mkdir(parents=True)
    others = ["folder"]
    if os.name != "nt":  # which lets only administrators make links
        (processed / "link").symlink_to(tmp_path / "gone")
        others.append("link")
    item.scan()

    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 6 * 24 * 3600)
    item.scan()
    assert names(processed.iterdir()) == ["1.parquet", *others]
    monkeypatch.setattr(time, "time", lambda: now + 7 * 24 * 3600 + 60)
    assert item.scan().status == "Replicating"
    assert names(processed.iterdir()) == others
    assert item.left() == ["2.parquet"]


def test_unordered_files_are_applied_by_their_times_and_known_by_their_names(item: Item) -> None:
    """A late older one is still applied. A name may be a number."""
    item.metadata(**BY_TIME)
    for seconds, name in ((30, "b"), (10, f"{7:020d}"), (20, "a")):
        item.land_at(seconds, name, rows((1, name, 4)))

    item.scan()

    assert item.rows() == [(1, "b")]
    assert item.left() == ["b.parquet"]
    assert names((item.folder() / "_ProcessedFiles").iterdir()) == ["7.parquet", "a.parquet"]
    item.land_at(5, f"{3:020d}", rows((1, "late", 4)))
    assert [item.scan().files for _ in range(2)] == [1, 0]
    assert item.rows() == [(1, "late")]
