"""What somebody else does to the data files is told apart from what the service does."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import (
    Batch,
    Journal,
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
)
from dbt.adapters.openmirroring.landing_zone.table_files import TableFiles

DEFINITION = TableDefinition((MirroredColumn("id", "int", "int"),), ("id",), "parquet")
PUBLISHED = datetime(2026, 1, 1, tzinfo=timezone.utc)


def problem(
    unprocessed: dict[int, int], processed: dict[int, int], days: int = 1, files: int = 2
) -> str:
    """Of a table with the files 1 to 4, of 10 bytes each; the last batch wrote the last two."""
    batch = Batch(
        id="b",
        publication="changes",
        reason="",
        owner=Owner("shop", "model.shop.orders", "sales"),
        definition=DEFINITION,
        rows=RowCounts(),
        extension="parquet",
        first_file=5 - files if files else None,
        last_file=4,
        files_written=files,
        bytes_written=10 * files,
        table_rows=0,
    )
    journal = Journal(batch, PUBLISHED.isoformat())
    return TableFiles(unprocessed, processed).problem(journal, PUBLISHED + timedelta(days=days))


def of(*numbers: int) -> dict[int, int]:
    return dict.fromkeys(numbers, 10)


@pytest.mark.parametrize(
    ("unprocessed", "processed", "days"),
    [
        (of(1, 2, 3, 4), {}, 1),
        (of(3, 4), of(1, 2), 1),
        (of(4), of(1, 2, 3), 1),
        ({}, of(1, 2, 3, 4), 1),
        (of(4), {}, 8),
        (of(4), of(4, 3), 1),
        ({}, of(4), 6),
        ({}, {}, 8),
    ],
    ids=[
        "nothing applied",
        "some applied",
        "all applied but the last kept",
        "all applied",
        "cleaned up",
        "being moved",
        "cleaned up but the last",
        "all cleaned up",
    ],
)
def test_what_the_service_does_is_no_problem(
    unprocessed: dict[int, int], processed: dict[int, int], days: int
) -> None:
    assert problem(unprocessed, processed, days) == ""


def test_a_publication_without_files_says_nothing_of_when_the_files_were_written() -> None:
    assert problem({}, {}, days=0, files=0) == ""


@pytest.mark.parametrize(
    ("unprocessed", "processed", "says"),
    [
        (of(1, 2, 3), {}, "no file with number 4"),
        (of(1, 2, 4), {}, "no file with number 3"),
        (of(2, 4), of(1), "no file with number 3"),
        ({}, of(1, 2, 3), "no file with number 4"),
        ({}, {}, "no file with number 4"),
        (of(4, 5), of(1, 2, 3), "number 5, but the last one published from here was 4"),
        (of(4), {**of(1, 2), 3: 9}, "19 bytes in the files of the last publication"),
        ({**of(2, 3, 4), 1: 0}, {}, "number 1 of 0 bytes"),
    ],
)
def test_what_somebody_else_does_is_told(
    unprocessed: dict[int, int], processed: dict[int, int], says: str
) -> None:
    assert says in problem(unprocessed, processed)
