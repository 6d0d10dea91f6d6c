"""dbt's tests of hooks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml
from dbt.tests.adapter.hooks import fixtures
from dbt.tests.adapter.hooks import test_model_hooks as model_hooks
from dbt.tests.adapter.hooks.test_run_hooks import BasePrePostRunHooks

from tests.functional.dbt_suite.postgres import postgres  # noqa: F401

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
    """The target that hooks see is one of this adapter, not of Postgres."""

    # the value here, and the one that dbt's test expects
    of_target: ClassVar = {
        "target_dbname": ("", "dbt"),
        "target_host": ("", None),
        "target_type": ("openmirroring", "postgres"),
        "target_user": ("", "root"),
    }

    @pytest.fixture(scope="class", autouse=True)
    def of_server(self, dbt_profile_target: dict[str, Any]) -> None:
        host = dbt_profile_target.get("host")
        self.of_target["target_host"] = (host or "", host)

    def get_ctx_vars(self, *args: Any, **kwargs: Any) -> Any:
        found = super().get_ctx_vars(*args, **kwargs)  # type: ignore[misc]
        for context in found if isinstance(found, list) else [found]:
            for name, (ours, of_postgres) in self.of_target.items():
                assert context[name] == ours
                context[name] = of_postgres
        return found


class TestPrePostModelHooks(Target, model_hooks.BasePrePostModelHooks):
    pass


class TestPrePostModelHooksUnderscores(Target, model_hooks.TestPrePostModelHooksUnderscores):
    pass


class TestHookRefs(Target, model_hooks.BaseHookRefs):
    pass


class TestPrePostModelHooksInConfig(Target, model_hooks.BasePrePostModelHooksInConfig):
    pass


class TestPrePostModelHooksInConfigWithCount(
    Target, model_hooks.BasePrePostModelHooksInConfigWithCount
):
    pass


class TestPrePostModelHooksInConfigKwargs(Target, model_hooks.BasePrePostModelHooksInConfigKwargs):
    pass


class TestPrePostModelHooksOnSeeds(model_hooks.BasePrePostModelHooksOnSeeds):
    changed_by_hand = ("example_seed",)


class TestPrePostModelHooksOnSeedsPlusPrefixed(
    model_hooks.BasePrePostModelHooksOnSeedsPlusPrefixed
):
    changed_by_hand = ("example_seed",)


class TestPrePostModelHooksOnSeedsPlusPrefixedWhitespace(
    model_hooks.BasePrePostModelHooksOnSeedsPlusPrefixedWhitespace
):
    changed_by_hand = ("example_seed",)


class TestPrePostModelHooksOnSnapshots(model_hooks.BasePrePostModelHooksOnSnapshots):
    changed_by_hand = ("example_snapshot",)


class TestPrePostSnapshotHooksInConfigKwargs(model_hooks.BasePrePostSnapshotHooksInConfigKwargs):
    changed_by_hand = ("example_snapshot",)


class TestPrePostRunHooks(Target, BasePrePostRunHooks):
    pass
