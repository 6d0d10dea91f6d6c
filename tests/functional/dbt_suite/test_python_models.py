"""dbt's tests of Python models."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.python_model import test_python_model
from dbt.tests.adapter.python_model.test_spark import BasePySparkTests

from tests.functional.dbt_suite.translation import adapted

pytestmark = pytest.mark.needs(pyspark="Thrift knows SQL only")

TestPythonEmptyTests = test_python_model.BasePythonEmptyTests
TestPythonMetaGetTests = test_python_model.BasePythonMetaGetTests
TestPythonModelTests = test_python_model.BasePythonModelTests
TestPythonSampleTests = test_python_model.BasePythonSampleTests
TestPythonIncrementalTests = adapted(
    test_python_model.BasePythonIncrementalTests, changed_by_hand=("m_1",)
)
# Koalas has become a part of Spark
TestPySpark = adapted(BasePySparkTests, translation={"databricks.koalas": "pyspark.pandas"})
