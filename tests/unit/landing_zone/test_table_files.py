"""Changes of data files by others are told apart from those by the service."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import RowCounts, StagedFile, new_batch_id
from dbt.adapters.openmirroring.landing_zone.inventory import TableFiles
from dbt.adapters.openmirroring.landing_zone.plan import Plan
from dbt.adapters.openmirroring.landing_zone.records import Journal
from tests.unit.landing_zone.publishing import DEFINITION, OWNER


def journal(first_file: int = 3, last_file: int = 4) -> Journal:
    files = [StagedFile(f"part-{n}.parquet", 10) for n in range(2)]
    id_ = new_batch_id()
    batch = Plan("changes", "", DEFINITION, RowCounts()).batch(id_, id_, OWNER, files, 2)
    count = last_file - first_file + 1
    batch = replace(batch, first_file=first_file, last_file=last_file, files_written=count)
    return Journal(batch, "2026-01-01T00:00:00+00:00")


def problem(unprocessed: dict[int, int], processed: dict[int, int]) -> str:
    """Of a table with the files 1 to 4, of 10 bytes each; the last batch wrote the last two."""
    return TableFiles(unprocessed, processed).problem(journal())[0]


def of(*numbers: int) -> dict[int, int]:
    return dict.fromkeys(numbers, 10)


@pytest.mark.parametrize(
    ("unprocessed", "processed"),
    [
        pytest.param(of(1, 2, 3, 4), {}, id="nothing applied"),
        pytest.param(of(3, 4), of(1, 2), id="some applied"),
        pytest.param(of(4), of(1, 2, 3), id="all applied but the last kept"),
        pytest.param({}, of(1, 2, 3, 4), id="all applied"),
        pytest.param(of(4), {}, id="cleaned up"),
        pytest.param(of(4), of(4, 3), id="being moved"),
        pytest.param({}, of(4), id="cleaned up but the last"),
        pytest.param({}, {}, id="all cleaned up"),
        pytest.param({}, of(1, 2, 3), id="the last cleaned up first"),
        pytest.param(of(3, 4), of(1), id="some cleaned up"),
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
    found, _ = TableFiles(of(1, 2), {}).problem(journal(first_file, 2**62))

    assert "no file with number 3" in found
