"""dbt's tests of materializations and tests, in Spark's SQL where they are in another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest
from dbt.tests.adapter.column_types.test_column_types import BasePostgresColumnTypes
from dbt.tests.adapter.constraints.test_constraints import BaseIncrementalForeignKeyConstraint
from dbt.tests.adapter.empty.test_empty import BaseTestEmpty, BaseTestEmptyInlineSourceRef
from dbt.tests.adapter.incremental.test_incremental_merge_exclude_columns import (
    BaseMergeExcludeColumns,
)
from dbt.tests.adapter.incremental.test_incremental_on_schema_change import (
    BaseIncrementalOnSchemaChange,
)
from dbt.tests.adapter.persist_docs.test_persist_docs import (
    BasePersistDocsAllColumnsMissing,
    BasePersistDocsQuotedColumnCaseSensitive,
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch,
)
from dbt.tests.adapter.python_model.test_python_model import (
    BasePythonEmptyTests,
    BasePythonIncrementalTests,
    BasePythonMetaGetTests,
    BasePythonModelTests,
    BasePythonSampleTests,
)
from dbt.tests.adapter.python_model.test_spark import BasePySparkTests
from dbt.tests.adapter.simple_seed.test_seed import BaseTestEmptySeed
from dbt.tests.adapter.store_test_failures_tests.basic import (
    StoreTestFailuresAsExceptions,
    StoreTestFailuresAsGeneric,
    StoreTestFailuresAsInteractions,
    StoreTestFailuresAsProjectLevelEphemeral,
    StoreTestFailuresAsProjectLevelOff,
    StoreTestFailuresAsProjectLevelView,
)
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import (
    BaseStoreTestFailures,
)
from dbt.tests.adapter.unit_testing.test_case_insensitivity import BaseUnitTestCaseInsensivity
from dbt.tests.adapter.unit_testing.test_invalid_input import BaseUnitTestInvalidInput
from dbt.tests.adapter.unit_testing.test_quoted_reserved_word_column_names import (
    BaseUnitTestQuotedReservedWordColumnNames,
)
from dbt.tests.adapter.unit_testing.test_types import (
    BaseUnitTestingTypes,
    BaseUnitTestingVarcharFixtureNoTruncation,
)

from tests.functional.dbt_suite.translation import Translated

needs_pyspark = pytest.mark.pyspark("Thrift knows SQL only")


class TestMergeExcludeColumns(BaseMergeExcludeColumns):
    pass


class TestIncrementalOnSchemaChange(BaseIncrementalOnSchemaChange):
    pass


@needs_pyspark
class TestPythonEmptyTests(BasePythonEmptyTests):
    pass


@needs_pyspark
class TestPythonMetaGetTests(BasePythonMetaGetTests):
    pass


@needs_pyspark
class TestPythonModelTests(BasePythonModelTests):
    pass


@needs_pyspark
class TestPythonSampleTests(BasePythonSampleTests):
    pass


@needs_pyspark
class TestPythonIncrementalTests(BasePythonIncrementalTests):
    changed_by_hand = ("m_1",)


@needs_pyspark
class TestPySpark(Translated, BasePySparkTests):
    # Koalas has become a part of Spark
    translation: ClassVar[Mapping[str, str]] = {"databricks.koalas": "pyspark.pandas"}


class TestTestEmptySeed(BaseTestEmptySeed):
    pass


class TestTestEmpty(BaseTestEmpty):
    pass


class TestTestEmptyInlineSourceRef(BaseTestEmptyInlineSourceRef):
    pass


class TestIncrementalForeignKeyConstraint(BaseIncrementalForeignKeyConstraint):
    pass


class TestUnitTestCaseInsensivity(BaseUnitTestCaseInsensivity):
    pass


class TestUnitTestInvalidInput(BaseUnitTestInvalidInput):
    pass


class TestUnitTestQuotedReservedWordColumnNames(
    Translated, BaseUnitTestQuotedReservedWordColumnNames
):
    translation: ClassVar[Mapping[str, str]] = {'"GROUP"': "`GROUP`"}


class TestUnitTestingTypes(BaseUnitTestingTypes):
    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        # in SQL, in YAML
        return [
            ["1", "1"],
            ["'1'", "1"],
            ["true", "true"],
            ["date '2020-01-02'", "2020-01-02"],
            ["timestamp '2013-11-03 00:00:00-0'", "2013-11-03 00:00:00-0"],
            ["timestamp_ntz '2013-11-03 00:00:00'", "2013-11-03 00:00:00"],
            ["'1'::decimal", "1"],
            ["2.5", "2.5"],
            ["array(1, 2)", "'array(1, 2)'"],
            ["named_struct('bar', 'baz')", """ 'named_struct("bar", "baz")' """],
        ]


class TestUnitTestingVarcharFixtureNoTruncation(BaseUnitTestingVarcharFixtureNoTruncation):
    pass


class TestPersistDocsAllColumnsMissing(BasePersistDocsAllColumnsMissing):
    pass


class TestPersistDocsQuotedColumnCaseSensitive(BasePersistDocsQuotedColumnCaseSensitive):
    pass


class TestPersistDocsQuotedDescriptionNotAppliedOnMismatch(
    BasePersistDocsQuotedDescriptionNotAppliedOnMismatch
):
    pass


class TestStoreTestFailuresAsExceptions(StoreTestFailuresAsExceptions):
    pass


class TestStoreTestFailuresAsGeneric(StoreTestFailuresAsGeneric):
    pass


class TestStoreTestFailuresAsInteractions(StoreTestFailuresAsInteractions):
    pass


class TestStoreTestFailuresAsProjectLevelEphemeral(StoreTestFailuresAsProjectLevelEphemeral):
    pass


class TestStoreTestFailuresAsProjectLevelOff(StoreTestFailuresAsProjectLevelOff):
    pass


class TestStoreTestFailuresAsProjectLevelView(StoreTestFailuresAsProjectLevelView):
    pass


class TestStoreTestFailures(BaseStoreTestFailures):
    pass


class TestColumnTypes(Translated, BasePostgresColumnTypes):
    translation: ClassVar[Mapping[str, str]] = {
        "::double precision": "::double",
        "::text": "::string",
    }
