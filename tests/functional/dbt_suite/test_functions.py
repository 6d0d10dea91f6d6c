"""dbt's tests of functions, which Spark's catalog holds if they are in SQL and scalar.

Those of what is refused look for dbt's own words: `tests/functional/test_functions.py` has ours.
"""

from __future__ import annotations

from copy import deepcopy

import pytest

pytest.importorskip("dbt.task.function", reason="dbt-core has functions since 1.11")

from dbt.adapters.events.types import SQLQuery
from dbt.tests.adapter.functions import test_udfs
from dbt_common.events.base_types import EventMsg
from dbt_common.events.event_catcher import EventCatcher


@pytest.fixture(autouse=True)
def catalog_of_spark(file_format: str) -> None:
    if file_format == "iceberg":
        pytest.skip("Iceberg's catalogs have no functions")


class Shouted(EventCatcher):
    """Statements in upper case, as dbt looks for their words."""

    def catch(self, event: EventMsg) -> None:
        if self._check_event_type(event):
            event = deepcopy(event)
            event.data.sql = event.data.sql.upper()
        super().catch(event)


class InSpark(test_udfs.UDFsBasic):
    """Volatility has another name in Spark."""

    volatility = ""

    @pytest.fixture(scope="class")
    def sql_event_catcher(self) -> EventCatcher:
        return Shouted(SQLQuery, predicate=self.is_function_create_event)

    def check_function_volatility(self, sql: str) -> None:
        lines = [line.strip() for line in sql.splitlines()]
        found = [line for line in lines if line.endswith("DETERMINISTIC")]
        assert found == ([self.volatility] if self.volatility else [])


class TestFunction(InSpark):
    pass


class TestDeterministic(InSpark, test_udfs.DeterministicUDF):
    volatility = "DETERMINISTIC"


class TestNonDeterministic(InSpark, test_udfs.NonDeterministicUDF):
    volatility = "NOT DETERMINISTIC"


class TestStable(InSpark, test_udfs.StableUDF):
    """Spark knows nothing between these two: dbt warns."""


class TestDefaultArgument(InSpark, test_udfs.SqlUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestRuntimeVersion(test_udfs.PythonUDFRuntimeVersionRequired):
    pass


class TestEntryPoint(test_udfs.PythonUDFEntryPointRequired):
    pass
