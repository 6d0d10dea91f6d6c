"""dbt's tests of hooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.tests.adapter.hooks import fixtures
from dbt.tests.adapter.hooks import test_model_hooks as model_hooks
from dbt.tests.adapter.hooks.test_run_hooks import BasePrePostRunHooks

from tests.functional.dbt_suite.postgres import postgres  # noqa: F401
from tests.functional.dbt_suite.translation import adapted

IN_SPARK = {
    "vacuum": "refresh table",
    "schema text": "schema string",
    "db text": "db string",
    # there is no database
    "'{{ db }}'": "{{ db or 'null' }}",
}


@pytest.fixture(scope="module")
def test_data_dir() -> Path:
    return Path(fixtures.__file__).parent / "data"


@pytest.fixture(scope="class")
def project_files(project_root: Path, project_files: None) -> None:
    """Have the hooks of `dbt_project.yml` in Spark's SQL."""
    file = Path(project_root) / "dbt_project.yml"
    text = json.dumps(yaml.safe_load(file.read_text()))
    for postgres_sql, spark_sql in IN_SPARK.items():
        text = text.replace(postgres_sql, spark_sql)
    file.write_text(text)


class Target:
    """The target that hooks see is one of this adapter, where dbt's tests expect Postgres."""

    def get_ctx_vars(self, *args: Any, **kwargs: Any) -> Any:
        found = super().get_ctx_vars(*args, **kwargs)  # type: ignore[misc]
        for context in found if isinstance(found, list) else [found]:
            assert context["target_type"] == "openmirroring"
            assert context["target_dbname"] == ""
            assert context["target_user"] in ("", "None")  # a server may ask for one
            context |= {"target_type": "postgres", "target_dbname": "dbt", "target_user": "root"}
            if context["target_host"] == "localhost":  # the profile has none
                context["target_host"] = None
        return found


TestPrePostModelHooks = adapted(model_hooks.BasePrePostModelHooks, Target)
TestPrePostModelHooksUnderscores = adapted(model_hooks.TestPrePostModelHooksUnderscores, Target)
TestHookRefs = adapted(model_hooks.BaseHookRefs, Target)
TestPrePostModelHooksInConfig = adapted(model_hooks.BasePrePostModelHooksInConfig, Target)
TestPrePostModelHooksInConfigWithCount = adapted(
    model_hooks.BasePrePostModelHooksInConfigWithCount, Target
)
TestPrePostModelHooksInConfigKwargs = adapted(
    model_hooks.BasePrePostModelHooksInConfigKwargs, Target
)
TestPrePostRunHooks = adapted(BasePrePostRunHooks, Target)

SEED = ("example_seed",)
TestPrePostModelHooksOnSeeds = adapted(
    model_hooks.BasePrePostModelHooksOnSeeds, changed_by_hand=SEED
)
TestPrePostModelHooksOnSeedsPlusPrefixed = adapted(
    model_hooks.BasePrePostModelHooksOnSeedsPlusPrefixed, changed_by_hand=SEED
)
TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace = adapted(
    model_hooks.BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace, changed_by_hand=SEED
)

SNAPSHOT = ("example_snapshot",)
TestPrePostModelHooksOnSnapshots = adapted(
    model_hooks.BasePrePostModelHooksOnSnapshots, changed_by_hand=SNAPSHOT
)
TestPrePostSnapshotHooksInConfigKwargs = adapted(
    model_hooks.BasePrePostSnapshotHooksInConfigKwargs, changed_by_hand=SNAPSHOT
)
