"""Files whose rows are larger than what fits into memory."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.openmirroring.replicator import replicator
from dbt.adapters.openmirroring.replicator import rows as data_rows
from dbt.adapters.openmirroring.replicator.mirrored_table import MirroredTable
from tests.hostile_tables import FIRST
from tests.unit.replicator.item import Item, Killed, rows

# scans a landing zone, and prints how many kilobytes that took
SCAN = """
import resource, sys
from pathlib import Path
from dbt.adapters.openmirroring.replicator.replicator import Replicator
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
(report,) = Replicator(Path(sys.argv[1])).scan()
print(report.status, report.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
def test_very_many_changes_of_a_key_take_little_memory(item: Item) -> None:
    item.keyed()
    count = 10_000_000
    values = {"id": pa.scalar(7, pa.int64()), "__rowMarker__": pa.scalar(4, pa.int32())}
    table = pa.table({name: pa.repeat(value, count) for name, value in values.items()})
    pq.write_table(table, item.folder() / FIRST)

    command = [sys.executable, "-c", SCAN, str(item.landing_zone)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    assert told[:2] == ["Replicating", "1"]
    assert int(told[2]) < 900 * 1024


@pytest.fixture
def row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of more than one row are large, and read row by row."""
    monkeypatch.setattr(replicator, "_PART", 1)
    monkeypatch.setattr(data_rows, "_BATCH", 1)


CHANGES = rows((1, "a", 0), (2, "b", 4), (3, "c", 0), (1, "z", 1), (3, "c", 0), (2, None, 2))


def land_row_groups(item: Item, content: pa.Table, number: int = 1) -> Path:
    """A file with a row group a row, so that each is a batch."""
    path = item.folder() / f"{number:020d}.parquet"
    with pq.ParquetWriter(path, content.schema) as writer:
        writer.write_table(content, row_group_size=1)
    return path


@pytest.mark.usefixtures("row_by_row")
@pytest.mark.parametrize("commit", range(1, 9))
@pytest.mark.parametrize("afterwards", [False, True], ids=["before", "after"])
def test_a_replicator_that_was_killed_between_two_parts_goes_on_there(
    item: Item, commit: int, afterwards: bool
) -> None:
    """The changes of a file before it are applied first, and those after it last."""
    item.keyed()
    item.land(1, rows((1, "first", 4)))
    land_row_groups(item, CHANGES, 2)
    merge, commits = MirroredTable.apply, []

    def killed(*args: Any) -> None:
        commits.append(args)
        if len(commits) == commit and not afterwards:
            raise Killed
        merge(*args)
        if len(commits) == commit:
            raise Killed

    with patch.object(MirroredTable, "apply", killed), suppress(Killed):
        item.scan()

    assert len(commits) == min(commit, 7)
    assert item.scan().status == "Replicating"
    assert item.rows() == [(1, "z"), (3, "c"), (3, "c")]
    item.land(3, rows((1, "later", 1)))
    assert item.scan().note == ""
    assert item.rows()[0] == (1, "later")


@pytest.mark.usefixtures("row_by_row")
def test_nothing_of_a_file_is_applied_if_its_last_part_is_bad(item: Item) -> None:
    item.keyed()
    land_row_groups(item, rows((1, "a", 0), (2, "b", 4), (3, "c", 7)))

    assert "7 is not a row marker" in item.scan().note
    assert item.rows() == []
    land_row_groups(item, rows((1, "a", 0), (2, "b", 4), (3, "c", 4)))
    assert item.scan().note == ""
    assert item.rows() == [(1, "a"), (2, "b"), (3, "c")]


@pytest.mark.usefixtures("row_by_row")
def test_rows_that_are_too_large_to_be_streamed_are_added_in_parts(item: Item) -> None:
    item.metadata()
    land_row_groups(item, rows(*((number, "x" * 50) for number in range(5))))

    with patch.object(replicator, "_STREAMED", 10):
        report = item.scan()

    assert (report.status, report.operations) == ("Replicating", 5)
    assert item.rows() == [(number, "x" * 50) for number in range(5)]
    assert item.scan().files == 0
