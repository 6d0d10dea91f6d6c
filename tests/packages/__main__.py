"""Run dbt packages with their own projects, beside dbt-spark, and compare the mirror.

Prints a table in Markdown. The packages are cloned from GitHub, or found in a folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import yaml

from tests.matrix import Combination
from tests.packages.packages import LIBRARIES, PACKAGES, Package
from tests.spark_formats import format_settings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "packages"
LANDING_ZONE = Path("mirror.MirroredDatabase", "Files", "LandingZone")

# the newest Spark for which there is Delta, which packages have for Spark
SPARK = Combination(pyspark="4.1")

NAMES = [package.name for package in PACKAGES]

# statuses of nodes and tests; a warning of a test passes, as in dbt
PASSED = ("success", "pass", "warn")

# for small tables
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.codegen.wholeStage": "false",
    # packages have comments that are too long for the metastore
    "spark.hadoop.hive.hmshandler.retry.interval": "10ms",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@dataclass(frozen=True)
class Outcome:
    """What the commands of a package have done.

    Args:
        nodes: the last status of each node and test, and its message, by its unique id
        tables: how each mirrored table differs from that in Spark
    """

    nodes: dict[str, list[str]]
    tables: dict[str, str]

    @property
    def passed(self) -> set[str]:
        return {name for name, (status, _) in self.nodes.items() if status in PASSED}

    @property
    def different(self) -> dict[str, str]:
        return {name: text for name, text in self.tables.items() if text}


class Run:
    """A copy of the project of a package, for one adapter.

    Args:
        package: the package
        sources: the folder with all packages
        adapter: `spark` or `openmirroring`
    """

    def __init__(self, package: Package, sources: Path, adapter: str) -> None:
        self.package = package
        self.adapter = adapter
        self.path = FOLDER / "runs" / package.name / adapter
        shutil.rmtree(self.path, ignore_errors=True)
        source = sources / package.name / package.project
        left_out = shutil.ignore_patterns(".git", "dbt_packages", "target", "logs", "packages.yml")
        shutil.copytree(source, self.path, ignore=left_out)
        (self.path / "package-lock.yml").unlink(missing_ok=True)
        (self.path / "dbt_packages").mkdir()
        used = (*package.needs, *([] if package.project == "." else [package.name]))
        for name in used:
            (self.path / "dbt_packages" / Path(name).name).symlink_to(sources / name)
        # dbt compares their number with that of the folders
        packages = [{"local": str(sources / name)} for name in used]
        (self.path / "packages.yml").write_text(yaml.safe_dump({"packages": packages}))
        self.settings = format_settings("delta", self.path) | SETTINGS | package.settings
        self._write_profile()

    def _write_profile(self) -> None:
        file = self.path / "dbt_project.yml"
        project = yaml.safe_load(file.read_text())
        if "spark-utils" in self.package.needs and "dispatch" not in project:
            order = ["spark_utils", "dbt_utils"]
            project["dispatch"] = [{"macro_namespace": "dbt_utils", "search_order": order}]
        models = project.setdefault("models", {})
        for name, config in self.package.models.items():
            models[name] = {**models.get(name, {}), **config}
        project["flags"] = {**project.get("flags", {}), "send_anonymous_usage_stats": False}
        file.write_text(yaml.safe_dump(project, sort_keys=False))
        target: dict[str, Any] = {
            "type": self.adapter,
            "method": "session",
            "schema": "packages",
            "threads": 4,
            "server_side_parameters": self.settings,
        }
        if self.adapter == "spark":
            target["host"] = "localhost"
        else:
            # changes by others may be known only from the mirrored tables
            target |= {"landing_zone": str(LANDING_ZONE), "replicate": True}
        profile = {project["profile"]: {"target": "spark", "outputs": {"spark": target}}}
        (self.path / "profiles.yml").write_text(yaml.safe_dump(profile))

    def outcome(self) -> Outcome:
        """Run the commands of the package."""
        script = [sys.executable, "-m", "tests.packages.commands"]
        # dbt-spark's session keeps its metastore and its tables in the working directory
        environment = {**os.environ, "DO_NOT_TRACK": "1", "PYTHONPATH": str(ROOT), "TZ": "UTC"}
        with (self.path / "dbt.log").open("w") as log:
            subprocess.run(
                [*script, json.dumps(self.package.variables), *self.package.commands],
                cwd=self.path,
                env=environment,
                stdout=log,
                stderr=log,
                check=True,
            )
        return Outcome(**json.loads((self.path / "results.json").read_text()))


def row(package: Package, sources: Path) -> tuple[str, bool]:
    """Run a package with both adapters.

    Returns:
        a row of the table, and whether all that passes with dbt-spark passes here, and all is
        mirrored
    """
    spark = Run(package, sources, "spark").outcome()
    here = Run(package, sources, "openmirroring").outcome()
    lost = spark.passed - here.passed
    for name in sorted(lost):
        print(f"{name}: {here.nodes.get(name, 'did not run')}", file=sys.stderr)
    for name, text in here.different.items():
        print(f"{name} in the mirror: {text}", file=sys.stderr)
    everything = len(spark.nodes.keys() | here.nodes.keys())
    counts = [
        f"{len(passed)} of {total}"
        for passed, total in (
            (spark.passed, everything),
            (here.passed, everything),
            (here.tables.keys() - here.different.keys(), len(here.tables)),
        )
    ]
    cells = [package.name, package.revision.lstrip("v"), *counts]
    return f"| {' | '.join(cells)} |", not lost and not here.different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of repositories; all packages if not given")
    parser.add_argument("--folder", type=Path, default=FOLDER / "sources", help="of the packages")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [each for each in PACKAGES if each.name in (arguments.names or NAMES)]
    needed = {name for each in chosen for name in (each.name, *each.needs)}
    for package in (*LIBRARIES, *PACKAGES):
        if package.name in needed:
            package.fetch(folder)
    print("| package | version | with dbt-spark | here | tables mirrored |")
    print("|---|---|---|---|---|", flush=True)
    failed = False
    for package in chosen:
        text, is_good = row(package, folder)
        failed |= not is_good
        print(text, flush=True)
    return int(failed)


if __name__ == "__main__":
    if pyspark.__version__.startswith(f"{SPARK.pyspark}."):
        sys.exit(main())
    # in the environment of that Spark
    command = [str(SPARK.install()), "-m", "tests.packages", *sys.argv[1:]]
    sys.exit(subprocess.run(command, check=False).returncode)
