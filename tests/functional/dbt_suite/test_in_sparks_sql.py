"""dbt's tests in Spark's SQL where they are in another.

Where a test wants rows that no mirrored table can have, such as keys that are not unique, the
model is not mirrored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from dbt.tests.adapter.aliases import test_aliases
from dbt.tests.adapter.basic import test_ephemeral
from dbt.tests.adapter.caching import test_caching
from dbt.tests.adapter.column_types.test_column_types import BasePostgresColumnTypes
from dbt.tests.adapter.dbt_clone.test_dbt_clone import BaseCloneSameSourceAndTarget
from dbt.tests.adapter.dbt_show.test_dbt_show import BaseShowDoesNotHandleDoubleLimit
from dbt.tests.adapter.empty.test_empty import MetadataWithEmptyFlag
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch
from dbt.tests.adapter.incremental.test_incremental_predicates import BaseIncrementalPredicates
from dbt.tests.adapter.incremental.test_incremental_unique_id import BaseIncrementalUniqueKey
from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest
from dbt.tests.adapter.unit_testing.test_quoted_reserved_word_column_names import (
    BaseUnitTestQuotedReservedWordColumnNames,
)
from dbt.tests.adapter.unit_testing.test_types import BaseUnitTestingTypes
from dbt.tests.adapter.utils.data_types.test_type_float import BaseTypeFloat
from dbt.tests.adapter.utils.data_types.test_type_int import BaseTypeInt
from dbt.tests.adapter.utils.test_datediff import BaseDateDiff
from dbt.tests.adapter.utils.test_get_intervals_between import BaseGetIntervalsBetween
from dbt.tests.adapter.utils.test_timestamps import BaseCurrentTimestamps
from dbt.tests.fixtures.project import TestProjInfo
from dbt.tests.util import get_manifest, run_dbt

from tests.functional.dbt_suite.translation import adapted, configured

STRINGS = {"::text": "::string"}

TestAliases = adapted(test_aliases.BaseAliases, translation=STRINGS)
TestSameAliasDifferentSchemas = adapted(
    test_aliases.BaseSameAliasDifferentSchemas, translation=STRINGS
)
TestSameAliasDifferentDatabases = adapted(
    test_aliases.BaseSameAliasDifferentDatabases, translation=STRINGS
)
TestColumnTypes = adapted(
    BasePostgresColumnTypes, translation={"::double precision": "::double", **STRINGS}
)
TestUnitTestQuotedReservedWordColumnNames = adapted(
    BaseUnitTestQuotedReservedWordColumnNames, translation={'"GROUP"': "`GROUP`"}
)
TestGetIntervalsBetween = adapted(
    BaseGetIntervalsBetween, translation={r"09/(\d\d)/2023": r"2023-09-\1"}
)
TestShowDoesNotHandleDoubleLimit = adapted(
    BaseShowDoesNotHandleDoubleLimit, DATABASE_ERROR_MESSAGE="Syntax error at or near 'limit'"
)
TestTypeFloat = adapted(
    BaseTypeFloat,
    project_config_update=configured(seeds={"+column_types": {"float_col": "float"}}),
)
TestTypeInt = adapted(
    BaseTypeInt, project_config_update=configured(seeds={"+column_types": {"int_col": "int"}})
)
TestDateDiff = pytest.mark.needs(
    session="the metastore of the server, which is on Derby, holds no view of that length"
)(adapted(BaseDateDiff))
TestSampleMode = pytest.mark.needs(
    session="dbt's test stops the clock by which a client of a server waits"
)(
    # a sample is never published, and a mirrored table stays as it is
    adapted(BaseSampleModeTest, project_config_update=configured(models={"+mirror": False}))
)
TestMetadataWithEmptyFlag = adapted(
    MetadataWithEmptyFlag,
    translation={
        # dbt-spark's macro would alter the query that stands for the table with `--empty`
        r'(?<=alter_column_type\()ref\("my_seed"\)': r"\g<0>.replace(limit=none)",
        '"varchar"': '"string"',
        # Spark cannot remove columns
        r".* none, \[my_column\]\) .*\n": "",
    },
    changed_by_hand=("my_seed",),
)
TestMicrobatch = adapted(
    BaseMicrobatch,
    translation={
        "unique_key='id'": "unique_key='id', partition_by='day'",
        r"select \* from": "select *, cast(event_time as date) as day from",
    },
    changed_by_hand=("input_model",),
)


def with_predicates(option: str) -> Any:
    predicates = {option: ["DBT_INTERNAL_DEST.id != 2"]}
    strategy = {"+incremental_strategy": "delete+insert", "+mirror": False}
    models = configured(models={**predicates, **strategy})
    return adapted(BaseIncrementalPredicates, project_config_update=models)


TestIncrementalPredicates = with_predicates("+incremental_predicates")
TestPredicates = with_predicates("+predicates")

WITHOUT_KEY = ("empty_unique_key_list", "no_unique_key", "empty_str_unique_key")
TestIncrementalUniqueKey = adapted(
    BaseIncrementalUniqueKey,
    translation={r"'\d{4}-\d\d-\d\d'": r"date \g<0>"},
    project_config_update=configured(
        models={"+mirror": False, "test": {name: {"+mirror": True} for name in WITHOUT_KEY}}
    ),
    changed_by_hand=("seed",),
)


class WithoutDatabase:
    """The steps and assertions of BaseCachingTest, where the name of the database is None."""

    def run_and_inspect_cache(self, project: Any, run_args: Any = None) -> None:
        names = []
        for _ in range(2):
            run_dbt(run_args)
            [relation] = project.adapter.cache.relations
            assert (relation.database, relation.schema) == (None, project.test_schema)
            names.append(relation.identifier.lower())
        assert names[0] == names[1]


TestCachingLowercaseModel = adapted(test_caching.BaseCachingLowercaseModel, WithoutDatabase)
TestCachingUppercaseModel = adapted(test_caching.BaseCachingUppercaseModel, WithoutDatabase)
TestCachingSelectedSchemaOnly = adapted(
    test_caching.BaseCachingSelectedSchemaOnly, WithoutDatabase
)
TestNoPopulateCache = adapted(test_caching.BaseNoPopulateCache, WithoutDatabase)


class TestEphemeral(test_ephemeral.BaseEphemeral):
    """To dbt the hook of our package is a node too."""

    @pytest.fixture(autouse=True)
    def without_hooks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def without_operations(project_root: str) -> Any:
            manifest: Any = get_manifest(project_root)
            for name in [name for name in manifest.nodes if name.startswith("operation.")]:
                del manifest.nodes[name]
            return manifest

        monkeypatch.setattr(test_ephemeral, "get_manifest", without_operations)


class TestCloneSameSourceAndTarget(BaseCloneSameSourceAndTarget):
    @pytest.fixture(autouse=True)
    def catalog(self, project: TestProjInfo, file_format: str) -> Iterator[None]:
        """Has a name in the test's own SQL."""
        name = "ice" if file_format == "iceberg" else "spark_catalog"
        with mock.patch.object(project, "database", name):
            yield


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


class TestCurrentTimestamps(BaseCurrentTimestamps):
    @pytest.fixture(scope="class")
    def expected_schema(self) -> dict[str, str]:
        names = ("_in_utc_backcompat", "_backcompat", "")
        return {f"current_timestamp{name}": "timestamp" for name in names}

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return """
            select current_timestamp() as current_timestamp,
                current_timestamp::timestamp as current_timestamp_in_utc_backcompat,
                current_timestamp::timestamp as current_timestamp_backcompat
        """
