"""Differences to dbt-spark's tests: names, types and SQL, never the assertions.

Each class here is a mixin for the classes of dbt-spark that it names, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import pytest
from pyspark.sql.functions import expr

from dbt.adapters.openmirroring.impl import OpenMirroringAdapter
from tests.functional.dbt_suite.test_constraints import OurErrors, SparksTypes, WithoutClauses
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


mixin_for(
    "TestSparkIncrementalConstraintsColumnsEqualDatabricksHTTP",
    "TestSparkTableConstraintsColumnsEqualDatabricksHTTP",
    "TestSparkViewConstraintsColumnsEqualDatabricksHTTP",
)(SparksTypes)


@mixin_for(
    "TestSparkIncrementalConstraintsColumnsEqualPyodbc",
    "TestSparkTableConstraintsColumnsEqualPyodbc",
    "TestSparkViewConstraintsColumnsEqualPyodbc",
)
class WithTypesOfSparkOnParquet(SparksTypes, OnParquet):
    """Both."""


@mixin_for("TestSparkIncrementalConstraintsRollback", "TestSparkTableConstraintsRollback")
class WithErrorsOfOurs(OurErrors, OnParquet):
    """The error is ours, not Delta's, and the table stays as it was."""

    @pytest.fixture(scope="class")
    def expected_color(self) -> str:
        return "blue"


@mixin_for(
    "TestSparkConstraintQuotedColumn",
    "TestSparkIncrementalConstraintsDdlEnforcement",
    "TestSparkModelConstraintsRuntimeEnforcement",
    "TestSparkTableConstraintsDdlEnforcement",
)
class WithStatementForParquet(WithoutClauses, OnParquet):
    """Only Delta knows REPLACE, and the table carries the batch that it is published with."""


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
