"""Files whose rows are larger than what fits into memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.openmirroring.replicator import rows as data_rows
from dbt.adapters.openmirroring.replicator import table_scan
from dbt.adapters.openmirroring.replicator.mirrored_table import MirroredTable
from tests.hostile_tables import FIRST
from tests.unit.replicator.item import Item, rows

# scans a landing zone, and prints how many bytes that took
SCAN = """
import resource, sys
from pathlib import Path
from dbt.adapters.openmirroring.replicator.replicator import Replicator
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
(report,) = Replicator(Path(sys.argv[1])).scan()
print(report.status, report.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def scanned(item: Item) -> tuple[str, int, int]:
    """The status and the rows of the only table, and the megabytes that this took."""
    command = [sys.executable, "-c", SCAN, str(item.landing_zone)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    status, count, kilobytes = result.stdout.split()
    return status, int(count), int(kilobytes) // 1024


@pytest.mark.more
def test_very_many_changes_of_a_key_take_little_memory(item: Item) -> None:
    item.keyed()
    count = 10_000_000
    table = pa.table(
        {
            "id": pa.repeat(pa.scalar(7, pa.int64()), count),
            "__rowMarker__": pa.repeat(pa.scalar(4, pa.int32()), count),
        }
    )
    pq.write_table(table, item.folder() / FIRST)

    status, found, megabytes = scanned(item)

    assert (status, found) == ("Replicating", 1)
    assert megabytes < 900


class Killed(BaseException):
    """As a signal: nothing in between cleans up."""


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of more than some rows are large."""
    monkeypatch.setattr(table_scan, "_PART", 1)


CHANGES = rows((1, "a", 0), (2, "b", 4), (3, "c", 0), (1, "z", 1), (3, "c", 0), (2, None, 2))


def land_changes(item: Item, content: pa.Table = CHANGES) -> Path:
    """A file with a row group a row, so that each is a batch."""
    path = item.folder() / FIRST
    with pq.ParquetWriter(path, content.schema) as writer:
        writer.write_table(content, row_group_size=1)
    return path


@pytest.fixture
def row_by_row(monkeypatch: pytest.MonkeyPatch, in_parts: None) -> None:
    monkeypatch.setattr(data_rows, "_BATCH", 1)


@pytest.mark.usefixtures("row_by_row")
def test_changes_that_are_applied_in_parts_come_to_the_same(item: Item) -> None:
    item.keyed()
    land_changes(item)

    report = item.scan()

    assert (report.status, report.operations) == ("Replicating", 6)
    assert item.rows() == [(1, "z"), (3, "c"), (3, "c")]
    item.land(2, rows((1, "later", 1)))
    assert item.scan().note == ""
    assert item.rows()[0] == (1, "later")


@pytest.mark.usefixtures("row_by_row")
@pytest.mark.parametrize("commit", range(1, 7))
@pytest.mark.parametrize("afterwards", [False, True], ids=["before", "after"])
def test_a_replicator_that_was_killed_between_two_parts_goes_on_there(
    item: Item, commit: int, afterwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    item.keyed()
    land_changes(item)
    merge, count = MirroredTable.apply, 0

    def killed(*args: Any) -> None:
        nonlocal count
        count += 1
        if count == commit and not afterwards:
            raise Killed
        merge(*args)
        if count == commit:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(MirroredTable, "apply", killed)
        with pytest.raises(Killed):
            item.scan()

    assert item.scan().status == "Replicating"
    assert item.rows() == [(1, "z"), (3, "c"), (3, "c")]


@pytest.mark.usefixtures("row_by_row")
def test_nothing_of_a_file_is_applied_if_its_last_part_is_bad(item: Item) -> None:
    item.keyed()
    land_changes(item, rows((1, "a", 0), (2, "b", 4), (3, "c", 7)))

    assert "7 is not a row marker" in item.scan().note
    assert item.rows() == []
    land_changes(item, rows((1, "a", 0), (2, "b", 4), (3, "c", 4)))
    assert item.scan().note == ""
    assert item.rows() == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.usefixtures("row_by_row")
def test_rows_that_are_too_large_to_be_streamed_are_added_in_parts(
    item: Item, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_scan, "_STREAMED", 10)
    item.metadata()
    content = rows(*((number, "x" * 50) for number in range(5)))
    land_changes(item, content)

    report = item.scan()

    assert (report.status, report.operations) == ("Replicating", 5)
    assert item.rows() == [(number, "x" * 50) for number in range(5)]
    assert item.scan().files == 0
