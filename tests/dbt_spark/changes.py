"""Differences to dbt-spark's tests: names, types and SQL, never the assertions.

Each class here is a mixin for the classes of dbt-spark that it names, and says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import ClassVar

import pytest
from dbt.tests.adapter.constraints import test_constraints
from pyspark.sql.functions import expr

from dbt.adapters.openmirroring.impl import OpenMirroringAdapter
from tests.functional.dbt_suite.translation import Translated

MIXINS: dict[str, type] = {}


def mixin_for(*names: str) -> Callable[[type], type]:
    def remember(mixin: type) -> type:
        MIXINS.update(dict.fromkeys(names, mixin))
        return mixin

    return remember


@mixin_for(
    "TestDeltaOnSchemaChange",
    "TestDeltaStrategies",
    "TestMergeExcludeColumns",
    "TestPersistDocsDeltaTable",
    "TestPersistDocsDeltaView",
    "TestPersistDocsMissingColumn",
    "TestSparkClonePossible",
    "TestSparkStoreTestFailuresWithDelta",
)
class OnParquet(Translated):
    """Spark does not bring Delta along."""

    translation: ClassVar[Mapping[str, str]] = {r"(file_format\W+)delta": r"\1parquet"}


@mixin_for("TestSnapshotCheckColsSpark", "TestSnapshotTimestampSpark")
class WithUpdates(OnParquet):
    """Parquet knows no UPDATE: the tests' own is done by overwriting the table."""

    changed_by_hand = ("added",)

    @pytest.fixture(autouse=True)
    def updates(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def update(
            adapter: OpenMirroringAdapter,
            dst_name: str,
            dst_column: str,
            clause: str,
            where_clause: str,
        ) -> str:
            session = adapter.connections.get_thread_connection().handle.session
            value = expr(f"if({where_clause}, {clause}, {dst_column})")
            # Spark overwrites no table that it is reading
            rows = session.table(dst_name).withColumn(dst_column, value).localCheckpoint()
            rows.write.insertInto(dst_name, overwrite=True)
            return "select 'updated'"

        monkeypatch.setattr(OpenMirroringAdapter, "update_column_sql", update)


@mixin_for("TestIncrementalPredicatesMergeSpark", "TestPredicatesMergeSpark")
class WithBadKeys(OnParquet):
    """Keys that are NULL, not unique or not there cannot be mirrored."""

    translation: ClassVar[Mapping[str, str]] = {
        **OnParquet.translation,
        r"(?=unique_key\s*=\s*\[?'\w)": "mirror = false, ",
    }


@mixin_for("TestUniqueKeySpark")
class WithDates(WithBadKeys):
    """Spark inserts no strings as dates. The seed is changed by an INSERT."""

    changed_by_hand = ("seed",)
    translation: ClassVar[Mapping[str, str]] = {
        **WithBadKeys.translation,
        r"'\d{4}-\d\d-\d\d'": r"date \g<0>",
    }


@mixin_for("TestMicrobatch")
class InputIsInserted:
    """The input model is changed by an INSERT."""

    changed_by_hand = ("input_model",)


@mixin_for("TestPythonIncrementalModelSpark")
class ModelIsInserted:
    """The model is changed by an INSERT."""

    changed_by_hand = ("m_1",)


@mixin_for(
    "TestSparkIncrementalConstraintsColumnsEqualDatabricksHTTP",
    "TestSparkTableConstraintsColumnsEqualDatabricksHTTP",
    "TestSparkViewConstraintsColumnsEqualDatabricksHTTP",
)
class WithTypesOfSpark:
    """Types have Spark's names, not those of a driver."""

    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        return [
            ["1", "int", "int"],
            ["'1'", "string", "string"],
            ["true", "boolean", "boolean"],
            ["array('1', '2', '3')", "array<string>", "array<string>"],
            ["array(1, 2, 3)", "array<int>", "array<int>"],
            ["6.45", "decimal(3,2)", "decimal"],
            ["date '2019-01-01'", "date", "date"],
            ["timestamp '2019-01-01'", "timestamp", "timestamp"],
        ]


@mixin_for(
    "TestSparkIncrementalConstraintsColumnsEqualPyodbc",
    "TestSparkTableConstraintsColumnsEqualPyodbc",
    "TestSparkViewConstraintsColumnsEqualPyodbc",
)
class WithTypesOfSparkOnParquet(WithTypesOfSpark, OnParquet):
    """Both."""


@mixin_for("TestSparkIncrementalConstraintsRollback", "TestSparkTableConstraintsRollback")
class WithErrorsOfOurs(OnParquet):
    """The error is ours, not Delta's."""

    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["The model breaks its contract", "not_null (id) by 1 row"]


@mixin_for(
    "TestSparkConstraintQuotedColumn",
    "TestSparkIncrementalConstraintsDdlEnforcement",
    "TestSparkModelConstraintsRuntimeEnforcement",
    "TestSparkTableConstraintsDdlEnforcement",
)
class WithStatementForParquet(OnParquet):
    """Only Delta knows REPLACE, and the table carries the batch that it is published with."""

    @pytest.fixture(autouse=True)
    def statement(self, monkeypatch: pytest.MonkeyPatch) -> None:
        normalized = test_constraints._normalize_whitespace

        def normalized_for_both(sql: str) -> str:
            sql = sql.replace("or replace ", "").replace("using delta", "using parquet")
            return str(normalized(re.sub(r"tblproperties\s*\([^)]*\)", "", sql)))

        monkeypatch.setattr(test_constraints, "_normalize_whitespace", normalized_for_both)


_GRANTS = "Spark has no permissions without a service around it"

# a class, or one of its tests, and why
CANNOT_PASS = {
    "TestSparkClonePossible::test_can_clone_true": "only tables of Delta can be cloned",
    "TestSparkEmptySeedFlag::test_build_empty_with_seed": (
        "expects `--empty` to empty a table; here it leaves tables as they are"
    ),
    "TestDeltaOnSchemaChange::test_run_incremental_sync_all_columns": (
        "expects that columns cannot be removed; here they can"
    ),
    "TestDeltaStrategies::test_delta_strategies_overwrite": "dbt-spark skips it everywhere",
    "TestBadStrategies::test_bad_strategies": "expects that Parquet cannot be merged; here it can",
    "TestPersistDocsQuotedDescriptionNotAppliedOnMismatch": "dbt-spark skips it everywhere",
    "TestModelGrantsSpark": _GRANTS,
    "TestIncrementalGrantsSpark": _GRANTS,
    "TestSeedGrantsSpark": _GRANTS,
    "TestSnapshotGrantsSpark": _GRANTS,
    "TestInvalidGrantsSpark": _GRANTS,
    "TestQueryTimeout": "`query_timeout` is for connections by Thrift and HTTP",
}
