"""dbt's tests of seeds, and of copies of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from dbt.tests.adapter.simple_copy.test_copy_uppercase import BaseSimpleCopyUppercase
from dbt.tests.adapter.simple_copy.test_simple_copy import EmptyModelsArentRunBase, SimpleCopyBase
from dbt.tests.adapter.simple_seed import fixtures, test_seed
from dbt.tests.adapter.simple_seed.test_seed import (
    BaseBasicSeedTests,
    BaseSeedConfigFullRefreshOff,
    BaseSeedCustomSchema,
    BaseSeedParsing,
    BaseSeedSpecificFormats,
    BaseSeedWithEmptyDelimiter,
    BaseSeedWithUniqueDelimiter,
    BaseSeedWithWrongDelimiter,
    BaseSimpleSeedEnabledViaConfig,
    BaseSimpleSeedWithBOM,
)
from dbt.tests.adapter.simple_seed.test_seed_type_override import BaseSimpleSeedColumnOverride
from dbt.tests.adapter.store_test_failures_tests.test_store_test_failures import (
    BaseStoreTestFailuresLimit,
)
from dbt.tests.fixtures.project import TestProjInfo
from dbt.tests.util import get_connection

from tests.functional.dbt_suite.postgres import in_spark, postgres  # noqa: F401


@pytest.fixture(scope="module")
def test_data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tests") / "data"


class TestBasicSeedTests(BaseBasicSeedTests):
    # dropping a table drops no view of it in Spark
    test_simple_seed_full_refresh_flag = None  # type: ignore[assignment]


class TestSeedConfigFullRefreshOff(BaseSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(BaseSeedCustomSchema):
    pass


class TestSeedWithUniqueDelimiter(BaseSeedWithUniqueDelimiter):
    pass


class TestSeedWithWrongDelimiter(BaseSeedWithWrongDelimiter):
    pass


class TestSeedWithEmptyDelimiter(BaseSeedWithEmptyDelimiter):
    pass


class TestSimpleSeedEnabledViaConfig(BaseSimpleSeedEnabledViaConfig):
    @pytest.fixture
    def clear_test_schema(self, project: TestProjInfo) -> Iterator[None]:
        yield
        with get_connection(project.adapter):  # Iceberg drops only what is empty
            schema = project.adapter.Relation.create(schema=project.test_schema)
            project.adapter.drop_schema(schema)


class TestSeedParsing(BaseSeedParsing):
    pass


class TestSimpleSeedWithBOM(BaseSimpleSeedWithBOM):
    @pytest.fixture(scope="class")
    def project(self, project: TestProjInfo) -> TestProjInfo:
        project.test_dir = Path(test_seed.__file__).parent
        return project


class TestSeedSpecificFormats(BaseSeedSpecificFormats):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, object]:
        # the name of a table has no dots in Spark
        return {"seeds": {"test": {"seed.with.dots": {"alias": "seed_with_dots"}}}}


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
        return {
            "seed_id_str": "string",
            "looks_like_a_bool": "string",
            "looks_like_a_date": "string",
        }


class TestSimpleCopy(SimpleCopyBase):
    # Spark has none
    test_simple_copy_with_materialized_views = None  # type: ignore[assignment]


class TestEmptyModelsArentRun(EmptyModelsArentRunBase):
    pass


class TestSimpleCopyUppercase(BaseSimpleCopyUppercase):
    # that of all tests, and not one for Postgres
    dbt_profile_target = None  # type: ignore[assignment]


class TestStoreTestFailuresLimit(BaseStoreTestFailuresLimit):
    pass
