"""dbt's tests of seeds, and of copies of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dbt.tests.adapter.simple_copy.test_copy_uppercase import BaseSimpleCopyUppercase
from dbt.tests.adapter.simple_copy.test_simple_copy import EmptyModelsArentRunBase, SimpleCopyBase
from dbt.tests.adapter.simple_seed import fixtures, test_seed
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import (
    BaseStoreTestFailuresLimit,
)
from dbt.tests.fixtures.project import TestProjInfo
from dbt.tests.util import get_connection

from tests.functional.dbt_suite.postgres import in_spark, postgres  # noqa: F401
from tests.functional.dbt_suite.translation import adapted, configured


@pytest.fixture(scope="module")
def test_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tests") / "data"


TestSeedConfigFullRefreshOff = test_seed.BaseSeedConfigFullRefreshOff
TestSeedCustomSchema = test_seed.BaseSeedCustomSchema
TestSeedWithUniqueDelimiter = test_seed.BaseSeedWithUniqueDelimiter
TestSeedWithWrongDelimiter = test_seed.BaseSeedWithWrongDelimiter
TestSeedWithEmptyDelimiter = test_seed.BaseSeedWithEmptyDelimiter
TestSeedParsing = test_seed.BaseSeedParsing
TestEmptyModelsArentRun = EmptyModelsArentRunBase
TestStoreTestFailuresLimit = BaseStoreTestFailuresLimit
# dropping a table drops no view of it in Spark
TestBasicSeedTests = adapted(test_seed.BaseBasicSeedTests, test_simple_seed_full_refresh_flag=None)
# Spark has no materialized views
TestSimpleCopy = adapted(SimpleCopyBase, test_simple_copy_with_materialized_views=None)
# the target is that of all tests, and not one for Postgres
TestSimpleCopyUppercase = adapted(BaseSimpleCopyUppercase, dbt_profile_target=None)
# the name of a table has no dots in Spark
TestSeedSpecificFormats = adapted(
    test_seed.BaseSeedSpecificFormats,
    project_config_update=configured(
        seeds={"test": {"seed.with.dots": {"alias": "seed_with_dots"}}}
    ),
)


class TestSimpleSeedEnabledViaConfig(test_seed.BaseSimpleSeedEnabledViaConfig):
    @pytest.fixture
    def clear_test_schema(self, project: TestProjInfo) -> Iterator[None]:
        yield
        with get_connection(project.adapter):  # Iceberg drops only what is empty
            schema = project.adapter.Relation.create(schema=project.test_schema)
            project.adapter.drop_schema(schema)


class TestSimpleSeedWithBOM(test_seed.BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class")
    def project(self, project: TestProjInfo) -> TestProjInfo:
        project.test_dir = Path(test_seed.__file__).parent
        return project


class TestSimpleSeedColumnOverride(BaseSimpleSeedColumnOverride):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        properties = in_spark(fixtures.properties__schema_yml).replace("integer", "bigint")
        return {"schema.yml": properties}

    @staticmethod
    def seed_enabled_types() -> dict[str, str]:
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types() -> dict[str, str]:
        names = ("seed_id_str", "looks_like_a_bool", "looks_like_a_date")
        return dict.fromkeys(names, "string")
