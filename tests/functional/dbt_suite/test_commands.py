"""dbt's tests of commands, names and the cache, in Spark's SQL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import pytest
from dbt.tests.adapter.aliases.test_aliases import (
    BaseAliases,
    BaseSameAliasDifferentDatabases,
    BaseSameAliasDifferentSchemas,
)
from dbt.tests.adapter.caching.test_caching import (
    BaseCachingLowercaseModel,
    BaseCachingSelectedSchemaOnly,
    BaseCachingUppercaseModel,
    BaseNoPopulateCache,
)
from dbt.tests.adapter.dbt_clone.test_dbt_clone import (
    BaseCloneNotPossible,
    BaseCloneSameSourceAndTarget,
)
from dbt.tests.adapter.dbt_show.test_dbt_show import BaseShowDoesNotHandleDoubleLimit
from dbt.tests.adapter.empty.test_empty import MetadataWithEmptyFlag
from dbt.tests.adapter.ephemeral.test_ephemeral import BaseEphemeralMulti, BaseEphemeralNested
from dbt.tests.adapter.sample_mode.test_sample_mode import BaseSampleModeTest
from dbt.tests.fixtures.project import TestProjInfo
from dbt.tests.util import check_relations_equal, run_dbt

from tests.functional.dbt_suite.translation import Translated

STRINGS = {"::text": "::string"}


class TestAliases(Translated, BaseAliases):
    translation = STRINGS


class TestSameAliasDifferentSchemas(Translated, BaseSameAliasDifferentSchemas):
    translation = STRINGS


class TestSameAliasDifferentDatabases(Translated, BaseSameAliasDifferentDatabases):
    translation = STRINGS


class WithoutDatabase:
    """The steps and assertions of BaseCachingTest, where the name of the database is None."""

    def run_and_inspect_cache(self, project: Any, run_args: Any = None) -> None:
        run_dbt(run_args)
        assert len(project.adapter.cache.relations) == 1
        relation = list(project.adapter.cache.relations).pop()
        assert relation.schema == project.test_schema
        assert relation.schema == project.test_schema.lower()

        run_dbt(run_args)
        assert len(project.adapter.cache.relations) == 1
        second_relation = list(project.adapter.cache.relations).pop()
        assert relation.database is second_relation.database is None
        for key in ["schema", "identifier"]:
            assert getattr(relation, key).lower() == getattr(second_relation, key).lower()


class TestCachingLowercaseModel(WithoutDatabase, BaseCachingLowercaseModel):
    pass


class TestCachingUppercaseModel(WithoutDatabase, BaseCachingUppercaseModel):
    pass


class TestCachingSelectedSchemaOnly(WithoutDatabase, BaseCachingSelectedSchemaOnly):
    pass


class TestNoPopulateCache(WithoutDatabase, BaseNoPopulateCache):
    pass


class TestCloneNotPossible(BaseCloneNotPossible):
    pass


class TestCloneSameSourceAndTarget(BaseCloneSameSourceAndTarget):
    @pytest.fixture(autouse=True)
    def catalog(self, project: TestProjInfo, file_format: str) -> Iterator[None]:
        """Has a name in the test's own SQL."""
        name = "ice" if file_format == "iceberg" else "spark_catalog"
        with mock.patch.object(project, "database", name):
            yield


class TestShowDoesNotHandleDoubleLimit(BaseShowDoesNotHandleDoubleLimit):
    DATABASE_ERROR_MESSAGE = "Syntax error at or near 'limit'"


class TestMetadataWithEmptyFlag(Translated, MetadataWithEmptyFlag):
    changed_by_hand = ("my_seed",)

    # Spark cannot remove columns
    translation: ClassVar[Mapping[str, str]] = {
        '"varchar"': '"string"',
        r".* none, \[my_column\]\) .*\n": "",
    }


def assert_created_by(file: str, expected: str) -> None:
    """A model's statement, without digits and spaces."""
    statement = re.sub(r"\d+", "", (Path("target/run/test/models") / file).read_text())
    assert "".join(statement.split()) == "".join(expected.split())


class TestEphemeralMulti(BaseEphemeralMulti):
    def test_ephemeral_multi(self, project: TestProjInfo) -> None:
        run_dbt(["seed"])
        results = run_dbt(["run"])
        assert len(results) == 3

        check_relations_equal(project.adapter, ["seed", "dependent"])
        check_relations_equal(project.adapter, ["seed", "double_dependent"])
        check_relations_equal(project.adapter, ["seed", "super_dependent"])
        assert_created_by(
            "double_dependent.sql",
            "create or replace view `test_test_commands`.`double_dependent` as "
            "with __dbt__cte__base as ("
            "select * from test_test_commands.seed"
            "),  __dbt__cte__base_copy as ("
            "select * from __dbt__cte__base"
            ")-- base_copy just pulls from base. Make sure the listed"
            "-- graph of CTEs all share the same dbt_cte__base cte"
            "select * from __dbt__cte__base where gender = 'Male'"
            "union all"
            "select * from __dbt__cte__base_copy where gender = 'Female'",
        )


class TestEphemeralNested(BaseEphemeralNested):
    def test_ephemeral_nested(self, project: TestProjInfo) -> None:
        results = run_dbt(["run"])
        assert len(results) == 2
        assert_created_by(
            "root_view.sql",
            "create or replace view `test_test_commands`.`root_view` as "
            "with __dbt__cte__ephemeral_level_two as ("
            "select * from `test_test_commands`.`source_table`"
            "),  __dbt__cte__ephemeral as ("
            "select * from __dbt__cte__ephemeral_level_two"
            ")select * from __dbt__cte__ephemeral",
        )


@pytest.mark.session("dbt's test stops the clock by which a client of a server waits")
class TestSampleMode(BaseSampleModeTest):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        # a sample is never published, and a mirrored table stays as it is
        return {"models": {"+mirror": False}}
