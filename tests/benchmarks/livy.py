"""Models of equal work behind Livy, with one thread and with four, beside Spark in dbt's process.

The stand-in for Livy and its Spark are in this process. Prints a table in Markdown: the seconds
that dbt reports, their ratio to `method: session` with as many threads, Livy's requests, and the
order in which the models ended.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import yaml

# as in Apache Livy, where a Python thread has no thread of the JVM; before PySpark is imported
os.environ["PYSPARK_PIN_THREAD"] = "false"

from pyspark.sql import SparkSession

from dbt.adapters.openmirroring.spark.embedded.settings import defaults
from tests.benchmarks.project import Project, Run
from tests.livy_server import LivyServer

# one task, which takes seconds
MODEL = """
select id % 100 as id, max(sha2(cast(id + {number} as string), 256)) as text
from range(0, {rows}, 1, 1) group by id % 100
"""


def start_livy(folder: Path) -> LivyServer:
    builder = SparkSession.builder.enableHiveSupport().master("local[2]")
    for key, value in {**defaults(folder), "spark.driver.memory": "4g"}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    return LivyServer(lambda: {"spark": spark, "sc": spark.sparkContext})


def project(folder: Path, threads: int, models: int, rows: int, url: str | None) -> Project:
    made = Project(folder, stays_ready=True)
    profile = yaml.safe_load((folder / "profiles.yml").read_text())
    target = profile["bench"]["outputs"]["local"]
    target |= {"threads": threads, "schema": folder.name}
    if url:
        for name in ("server_side_parameters", "spark_idle_timeout"):
            del target[name]
        target |= {"method": "livy", "host": url, "reuse_session": True}
    (folder / "profiles.yml").write_text(yaml.safe_dump(profile))
    for number in range(models):
        made.model(f"m{number}", MODEL.format(number=number, rows=rows), unique_key="id")
    return made


def order(project: Project) -> str:
    told = json.loads((project.folder / "target" / "run_results.json").read_text())["results"]
    ended = sorted(told, key=lambda each: each["timing"][-1]["completed_at"])
    return " ".join(each["unique_id"].rpartition(".")[2] for each in ended)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=8)
    parser.add_argument("--rows", type=int, default=3_000_000)
    arguments = parser.parse_args()
    print("| threads | session, s | Livy, s | ratio | requests | order of ends |\n|" + "---|" * 6)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        livy = start_livy(folder / "spark")
        for threads in (1, 4):
            runs: list[Run] = []
            for kind, url in (("session", None), ("livy", livy.url)):
                made = project(
                    folder / f"{kind}{threads}", threads, arguments.models, arguments.rows, url
                )
                made.run("--select", "m0")  # Spark is warm
                before = len(livy.requests)
                runs.append(made.run("--full-refresh"))
            session, by_livy = (run.seconds for run in runs)
            requests = len(livy.requests) - before
            cells = (
                *(threads, f"{session:.1f}", f"{by_livy:.1f}", f"{by_livy / session:.2f}"),
                *(requests, order(made)),
            )
            print(f"| {' | '.join(map(str, cells))} |", flush=True)
        livy.stop()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
