"""Changes of data files by others are told apart from those by the service."""

from __future__ import annotations

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import (
    Batch,
    MirroredColumn,
    Owner,
    RowCounts,
    TableDefinition,
    new_batch_id,
)
from dbt.adapters.openmirroring.landing_zone.records import Journal
from dbt.adapters.openmirroring.landing_zone.table_files import TableFiles

DEFINITION = TableDefinition((MirroredColumn("id", "int", "int"),), ("id",), "parquet")


def journal(first_file: int = 3, last_file: int = 4) -> Journal:
    batch = Batch(
        id=(batch_id := new_batch_id()),
        build=batch_id,
        publication="changes",
        reason="",
        owner=Owner("shop", "model.shop.orders", "sales"),
        definition=DEFINITION,
        rows=RowCounts(),
        extension="parquet",
        first_file=first_file,
        last_file=last_file,
        files_written=last_file - first_file + 1,
        bytes_written=20,
        table_rows=0,
    )
    return Journal(batch, "2026-01-01T00:00:00+00:00")


def problem(unprocessed: dict[int, int], processed: dict[int, int]) -> str:
    """Of a table with the files 1 to 4, of 10 bytes each; the last batch wrote the last two."""
    return TableFiles(unprocessed, processed).problem(journal())


def of(*numbers: int) -> dict[int, int]:
    return dict.fromkeys(numbers, 10)


@pytest.mark.parametrize(
    ("unprocessed", "processed"),
    [
        (of(1, 2, 3, 4), {}),
        (of(3, 4), of(1, 2)),
        (of(4), of(1, 2, 3)),
        ({}, of(1, 2, 3, 4)),
        (of(4), {}),
        (of(4), of(4, 3)),
        ({}, of(4)),
        ({}, {}),
        ({}, of(1, 2, 3)),
        (of(3, 4), of(1)),
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
        "the last cleaned up first",
        "some cleaned up",
    ],
)
def test_changes_by_the_service_or_a_clean_up_job_are_no_problem(
    unprocessed: dict[int, int], processed: dict[int, int]
) -> None:
    assert problem(unprocessed, processed) == ""


@pytest.mark.parametrize(
    ("unprocessed", "processed", "says"),
    [
        (of(1, 2, 3), {}, "no file with number 4"),
        (of(1, 2, 4), {}, "no file with number 3"),
        (of(2, 4), of(1), "no file with number 3"),
        (of(3), of(1, 2), "no file with number 4"),
        (of(1), {}, "no file with number 2"),
        (of(4, 5), of(1, 2, 3), "number 5, but the last one published from here was 4"),
        (of(4), {**of(1, 2), 3: 9}, "19 bytes in the files of the last publication"),
        ({**of(2, 3, 4), 1: 0}, {}, "number 1 of 0 bytes"),
    ],
)
def test_changes_by_others_are_reported(
    unprocessed: dict[int, int], processed: dict[int, int], says: str
) -> None:
    assert says in problem(unprocessed, processed)


@pytest.mark.parametrize("first_file", [1, 2**62])
def test_a_journal_with_huge_numbers_is_compared_with_the_files_that_are_there(
    first_file: int,
) -> None:
    found = TableFiles(of(1, 2), {}).problem(journal(first_file, 2**62))

    assert "no file with number 3" in found
