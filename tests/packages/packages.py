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
    """

    repository: str
    revision: str
    project: str = "integration_tests"
    needs: tuple[str, ...] = ()
    commands: tuple[str, ...] = ("build --full-refresh",)
    variables: dict[str, Any] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)

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

# what the projects of packages use
LIBRARIES = (
    Package("dbt-labs/spark-utils", "0.3.3"),
    Package("fivetran/dbt_fivetran_utils", "v0.4.10"),
)

PACKAGES = (
    Package(
        "fivetran/dbt_github",
        "v1.1.0",
        needs=FIVETRAN,
        commands=("seed", "run", "test"),
    ),
    Package("fivetran/dbt_zendesk", "v1.7.0", needs=FIVETRAN, commands=("seed", "run", "test")),
    Package("fivetran/dbt_shopify", "v1.8.0", needs=FIVETRAN, commands=("seed", "run", "test")),
    Package(
        "elementary-data/dbt-data-reliability",
        "0.25.1",
        "integration_tests/dbt_project",
        needs=("dbt-utils",),
        # its own tests generate the other models' data
        commands=("run --select elementary",),
    ),
    Package(
        "brooklyn-data/dbt_artifacts",
        "2.10.1",
        "integration_test_project",
        commands=("build --exclude snapshot",),
        # it inserts timestamps as text
        settings={"spark.sql.storeAssignmentPolicy": "legacy"},
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
    Package("dbt-labs/jaffle_shop_duckdb", "duckdb", "."),
)
