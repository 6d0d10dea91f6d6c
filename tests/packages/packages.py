"""The dbt packages that are run, and the projects that they are tested with."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Package:
    """A repository on GitHub, and the dbt project in it that is run.

    Args:
        repository: with its owner
        revision: a tag or a branch
        project: the folder of the project in the repository
        needs: the names of the packages that the project uses, besides this one
        commands: of dbt, one after the other
        variables: for each command
        settings: of Spark, with either adapter
        models: configuration of models by project, as below `models` in `dbt_project.yml`
    """

    repository: str
    revision: str
    project: str = "integration_tests"
    needs: tuple[str, ...] = ()
    commands: tuple[str, ...] = ("build --full-refresh",)
    variables: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    models: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.repository.partition("/")[2]

    def fetch(self, folder: Path) -> Path:
        """Return the folder of the repository, which is cloned if it is not there."""
        found = folder / self.name
        if not found.exists():
            url = f"https://github.com/{self.repository}"
            git = ["git", "-c", "advice.detachedHead=false", "clone", "--quiet", "--depth=1"]
            subprocess.run([*git, f"--branch={self.revision}", url, str(found)], check=True)
        return found


# of Fivetran's and of dbt Labs' packages; Spark's macros are looked for before theirs
UTILS = ("dbt-utils", "spark-utils")
FIVETRAN = (*UTILS, "dbt_fivetran_utils")

# of packages that fill their tables at the end of each run
PUBLISH_FOREIGN_CHANGES = {"+on_foreign_changes": "publish"}

# what the projects of packages use
LIBRARIES = (
    Package("dbt-labs/spark-utils", "0.3.3"),
    Package("fivetran/dbt_fivetran_utils", "v0.4.10"),
    Package("snowplow/dbt-snowplow-utils", "1.0.0"),
)

# models that the first runs of its tests do not build
SNOWPLOW = (
    "--exclude snowplow_unified_web_vital_measurements "
    "snowplow_unified_web_vital_measurements_actual snowplow_unified_web_vital_events_this_run "
    "snowplow_unified_views_mobile_screen_engagement_actual test_name:not_null"
)

PACKAGES = (
    Package(
        "fivetran/dbt_github",
        "v1.1.0",
        needs=FIVETRAN,
        commands=("seed", "run", "test"),
    ),
    Package("fivetran/dbt_zendesk", "v1.6.1", needs=FIVETRAN, commands=("seed", "run", "test")),
    Package("fivetran/dbt_shopify", "v1.8.0", needs=FIVETRAN, commands=("seed", "run", "test")),
    Package(
        "elementary-data/dbt-data-reliability",
        "0.25.1",
        "integration_tests/dbt_project",
        needs=("dbt-utils",),
        # its own tests generate the other models' data
        commands=("run --select elementary",) * 3,
        models={"elementary": PUBLISH_FOREIGN_CHANGES},
    ),
    Package(
        "brooklyn-data/dbt_artifacts",
        "2.10.1",
        "integration_test_project",
        # its own model with BigQuery's `partition_by` is refused before the first node
        commands=("build --exclude snapshot microbatch",) * 3,
        # it inserts timestamps as text
        settings={"spark.sql.storeAssignmentPolicy": "legacy"},
        models={"dbt_artifacts": PUBLISH_FOREIGN_CHANGES},
    ),
    Package(
        "snowplow/dbt-snowplow-unified",
        "1.0.0",
        needs=("dbt-snowplow-utils", "dbt-utils"),
        commands=("seed --full-refresh", "run --full-refresh", *("run",) * 3, f"test {SNOWPLOW}"),
        variables={
            "snowplow__allow_refresh": True,
            "snowplow__backfill_limit_days": 243,
            "snowplow__enable_cwv": False,
        },
        # it takes Iceberg for Spark
        models={"snowplow_unified": {"+file_format": "delta"}},
    ),
    Package("dbt-labs/dbt-project-evaluator", "v1.3.2", needs=("dbt-utils",)),
    Package("dbt-labs/dbt-utils", "1.4.1"),
    Package("metaplane/dbt-expectations", "0.10.9", needs=("dbt-date",)),
    Package("godatadriven/dbt-date", "0.21.0"),
    Package("dbt-labs/dbt-audit-helper", "0.12.2", needs=("dbt-utils",)),
    Package(
        "dbt-labs/dbt-codegen",
        "0.14.1",
        needs=("dbt-utils",),
        commands=("run-operation create_source_table", "build --full-refresh"),
    ),
    Package("data-mie/dbt-profiler", "1.0.0", needs=("dbt-utils", "dbt-expectations", "dbt-date")),
    Package("dbt-labs/dbt-external-tables", "0.12.2", needs=("dbt-utils",)),
    Package(
        "EqualExperts/dbt-unit-testing",
        "v0.4.20",
        "integration-tests",
        needs=("dbt-unit-testing/integration-tests-sub-package",),
        commands=("build --select tag:unit-test --exclude tag:versioned tag:db-dependency",),
    ),
    Package("dbt-labs/jaffle_shop_duckdb", "duckdb", "."),
)
