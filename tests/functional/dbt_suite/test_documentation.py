"""dbt's tests of what a catalog and comments tell, with Spark's names of types."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from dbt.artifacts.schemas.catalog import CatalogArtifact
from dbt.tests.adapter.basic import expected_catalog
from dbt.tests.adapter.basic.test_docs_generate import BaseDocsGenerate, BaseDocsGenReferences
from dbt.tests.adapter.catalog import files
from dbt.tests.adapter.catalog.relation_types import CatalogRelationTypes
from dbt.tests.fixtures.project import TestProjInfo

from tests.spark_server import SparkServer


class TestCatalogRelationTypes(CatalogRelationTypes):
    @pytest.fixture(scope="class", autouse=True)
    def models(self) -> dict[str, str]:
        return {"my_table.sql": files.MY_TABLE, "my_view.sql": files.MY_VIEW}

    @pytest.mark.parametrize(
        ("node_name", "relation_type"),
        [
            ("seed.test.my_seed", "table"),
            ("model.test.my_table", "table"),
            ("model.test.my_view", "view"),
        ],
    )
    def test_relation_types_populate_correctly(
        self, docs: CatalogArtifact, node_name: str, relation_type: str
    ) -> None:
        super().test_relation_types_populate_correctly(docs, node_name, relation_type)


@pytest.fixture(scope="class")
def mirror_stats(spark_server: SparkServer | None) -> dict[str, Any]:
    """The statistics of a mirrored table; their values are tested elsewhere."""
    of_hive = {"bytes": mock.ANY} if spark_server else {}
    names = ["folder", "keys", "format", "last_file", "published_at", "publication"]
    names += ["rows", "rows_inserted", "rows_updated", "rows_deleted"]
    has_stats = {**expected_catalog.no_stats()["has_stats"], "value": True}
    return {"has_stats": has_stats, **of_hive, **{f"mirror_{name}": mock.ANY for name in names}}


TYPES = {
    "id_type": "bigint",
    "text_type": "string",
    "time_type": "timestamp",
    "view_type": "view",
    "table_type": "table",
}


class TestDocsGenerate(BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(
        self, project: TestProjInfo, profile_user: str | None, mirror_stats: dict[str, Any]
    ) -> Any:
        none = expected_catalog.no_stats()
        stats = {"model_stats": none, "seed_stats": mirror_stats}
        return expected_catalog.base_expected_catalog(project, profile_user, **stats, **TYPES)


class TestDocsGenReferences(BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(
        self, project: TestProjInfo, profile_user: str | None, mirror_stats: dict[str, Any]
    ) -> Any:
        none = expected_catalog.no_stats()
        more = {"model_stats": mirror_stats, "view_summary_stats": none, "bigint_type": "bigint"}
        return expected_catalog.expected_references_catalog(project, profile_user, **more, **TYPES)
