"""dbt's tests of functions, which Spark's catalog holds if they are in SQL and scalar.

Those of what is refused look for dbt's own words: `tests/functional/test_functions.py` has ours.
"""

from __future__ import annotations

import pytest

pytest.importorskip("dbt.task.function", reason="dbt-core has functions since 1.11")

from dbt.tests.adapter.functions import test_udfs
from dbt_common.events.base_types import EventMsg

from tests.functional.dbt_suite.translation import adapted


@pytest.fixture(autouse=True)
def catalog_of_spark(file_format: str) -> None:
    if file_format == "iceberg":
        pytest.skip("Iceberg's catalogs have no functions")


class InSpark(test_udfs.UDFsBasic):
    """Statements are in lower case, and volatility has another name."""

    volatility: str | None = None

    def is_function_create_event(self, event: EventMsg) -> bool:
        return "create or replace function" in event.data.sql

    def check_function_volatility(self, sql: str) -> None:
        lines = [line.strip() for line in sql.splitlines()]
        found = [line for line in lines if line.endswith("deterministic")]
        assert found == ([self.volatility] if self.volatility else [])


TestFunction = InSpark
TestDeterministic = adapted(test_udfs.DeterministicUDF, InSpark, volatility="deterministic")
TestNonDeterministic = adapted(
    test_udfs.NonDeterministicUDF, InSpark, volatility="not deterministic"
)
# Spark knows nothing between these two: dbt warns
TestStable = adapted(test_udfs.StableUDF, InSpark)
