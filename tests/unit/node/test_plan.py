"""How many files Spark writes."""

import pytest

from dbt.adapters.openmirroring.landing_zone.batch import RowCounts
from dbt.adapters.openmirroring.node.plan import SparkPlan
from tests.unit.node.test_changes import PUBLISHED


@pytest.mark.parametrize(
    ("rows", "table_bytes", "table_rows", "files"),
    [
        (100, 1000, 100, (1, 0)),
        (100, 100_000, 100, (10, 13)),
        (10, 100_000, 100, (1, 0)),
        (20, 100_000, 100, (2, 13)),
        (0, 0, 0, (1, 0)),
    ],
)
def test_a_batch_is_cut_to_files_of_the_target_size(
    rows: int, table_bytes: int, table_rows: int, files: tuple[int, int]
) -> None:
    plan = SparkPlan("changes", "", PUBLISHED, RowCounts(inserted=rows))

    assert plan.files(table_bytes, table_rows, target_bytes=10_000) == files
