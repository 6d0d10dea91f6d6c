"""Run dbt commands on a project in one process, and compare its mirrored tables with Spark's.

Writes `results.json` into the project: the last result of each node and test, and how each
mirrored table differs, which is an empty text if it does not.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from tests.functional.project import mirrored_rows, relation_rows


def run(project: Path, commands: list[str], variables: str) -> dict[str, tuple[str, str]]:
    """Run commands, and return the last status of each node and test, and its message."""
    found = {}
    for command in commands:
        name, *options = command.split()
        arguments = ["--no-use-colors", name, *options, "--vars", variables]
        outcome = dbtRunner().invoke(arguments)
        if outcome.exception:
            print(outcome.exception)
        results = project / "target" / "run_results.json"
        if name == "run-operation" or not results.exists():
            continue
        for result in json.loads(results.read_text())["results"]:
            found[result["unique_id"]] = (result["status"], result["message"] or "")
        results.unlink()
    return found


def session(settings: dict[str, str]) -> SparkSession:
    """Start a Spark that dbt uses, and that is still there after its commands."""
    builder = SparkSession.builder.enableHiveSupport()
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def differences(spark: SparkSession, landing_zone: Path) -> dict[str, str]:
    """Return how each mirrored table differs from that in Spark."""
    found = {}
    for journal in sorted(landing_zone.glob("*.schema/*/_journal.json")):
        schema, table = journal.parts[-3].removesuffix(".schema"), journal.parts[-2]
        try:
            mirror = mirrored_rows(landing_zone, schema, table)
            relation = relation_rows(spark, schema, table)
            more, less = list(mirror - relation), list(relation - mirror)
            text = f"{more[:2]} instead of {less[:2]}" if more or less else ""
        except Exception as error:  # the other tables are compared
            text = f"{type(error).__name__}: {error}"
        found[f"{schema}.{table}"] = text
    return found


def main(variables: str, commands: list[str]) -> None:
    project = Path.cwd()
    [profile] = yaml.safe_load((project / "profiles.yml").read_text()).values()
    landing_zone = profile["outputs"]["spark"].get("landing_zone")
    spark = session(json.loads((project / "settings.json").read_text()))
    results = run(project, commands, variables)
    tables = differences(spark, project / landing_zone) if landing_zone else {}
    (project / "results.json").write_text(json.dumps({"nodes": results, "tables": tables}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
