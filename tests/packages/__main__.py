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
from pathlib import Path
from typing import Any

import pyspark
import yaml

from tests.matrix import Combination
from tests.packages.packages import LIBRARIES, PACKAGES, Package
from tests.spark_formats import format_settings

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "packages"
MIRRORED = {"landing_zone": "mirror.MirroredDatabase/Files/LandingZone", "replicate": True}

# the newest Spark for which there is Delta, which packages have for Spark
SPARK = Combination(pyspark="4.1")

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
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 "
    "-XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC",
}


def project_of(package: Package, sources: Path, adapter: str) -> Path:
    """Copy the project of a package for one adapter, and return its folder.

    Args:
        sources: the folder with all packages
        adapter: `spark` or `openmirroring`
    """
    path = FOLDER / "runs" / package.name / adapter
    shutil.rmtree(path, ignore_errors=True)
    left_out = shutil.ignore_patterns(".git", "dbt_packages", "target", "logs", "packages.yml")
    shutil.copytree(sources / package.name / package.project, path, ignore=left_out)
    (path / "package-lock.yml").unlink(missing_ok=True)
    (path / "dbt_packages").mkdir()
    used = (*package.needs, *([] if package.project == "." else [package.name]))
    for name in used:
        (path / "dbt_packages" / Path(name).name).symlink_to(sources / name)
    # dbt compares their number with that of the folders
    packages = [{"local": str(sources / name)} for name in used]
    (path / "packages.yml").write_text(yaml.safe_dump({"packages": packages}))
    file = path / "dbt_project.yml"
    project = yaml.safe_load(file.read_text())
    if "spark-utils" in package.needs and "dispatch" not in project:
        order = ["spark_utils", "dbt_utils"]
        project["dispatch"] = [{"macro_namespace": "dbt_utils", "search_order": order}]
    models = project.setdefault("models", {})
    for name, config in package.models.items():
        models[name] = {**models.get(name, {}), **config}
    project["flags"] = {**project.get("flags", {}), "send_anonymous_usage_stats": False}
    file.write_text(yaml.safe_dump(project, sort_keys=False))
    target = {
        "type": adapter,
        "method": "session",
        "schema": "packages",
        "threads": 4,
        # changes by others may be known only from the mirrored tables
        **({"host": "localhost"} if adapter == "spark" else MIRRORED),
    }
    settings = format_settings("delta", path) | SETTINGS | package.settings
    (path / "settings.json").write_text(json.dumps(settings))
    profile = {project["profile"]: {"target": "spark", "outputs": {"spark": target}}}
    (path / "profiles.yml").write_text(yaml.safe_dump(profile))
    return path


def run(package: Package, sources: Path, adapter: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Run the commands of a package with an adapter.

    Returns:
        the last status of each node and test, and its message, by its unique id; and how each
        mirrored table differs from that in Spark
    """
    path = project_of(package, sources, adapter)
    script = [sys.executable, "-m", "tests.packages.commands", json.dumps(package.variables)]
    # dbt-spark's session keeps its metastore and its tables in the working directory
    environment = {**os.environ, "DO_NOT_TRACK": "1", "PYTHONPATH": str(ROOT), "TZ": "UTC"}
    with (path / "dbt.log").open("w") as log:
        command = [*script, *package.commands]
        subprocess.run(command, cwd=path, env=environment, stdout=log, stderr=log, check=True)
    results = json.loads((path / "results.json").read_text())
    return results["nodes"], results["tables"]


def row(package: Package, sources: Path) -> tuple[str, bool]:
    """Run a package with both adapters.

    Returns:
        a row of the table, and whether all that passes with dbt-spark passes here, and all is
        mirrored
    """
    with_spark, _ = run(package, sources, "spark")
    here, tables = run(package, sources, "openmirroring")
    passed, passed_here = (
        {name for name, (status, _) in nodes.items() if status in PASSED}
        for nodes in (with_spark, here)
    )
    lost = passed - passed_here
    different = {name: text for name, text in tables.items() if text}
    for name in sorted(lost):
        print(f"{name}: {here.get(name, 'did not run')}", file=sys.stderr)
    for name, text in different.items():
        print(f"{name} in the mirror: {text}", file=sys.stderr)
    everything = len(with_spark.keys() | here.keys())
    counts = [f"{len(names)} of {everything}" for names in (passed, passed_here)]
    counts.append(f"{len(tables) - len(different)} of {len(tables)}")
    cells = [package.name, package.revision.lstrip("v"), *counts]
    return f"| {' | '.join(cells)} |", not lost and not different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of repositories; all packages if not given")
    parser.add_argument("--folder", type=Path, default=FOLDER / "sources", help="of the packages")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    names = arguments.names
    chosen = [each for each in PACKAGES if not names or each.name in names]
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
