"""The cost of mirroring small tables: the same models in dbt-spark and here, in turn.

Here, Spark is ready, and has run as many other tables before, each case once: Java compiles the
code of Spark while it runs, and a JVM that has run one table is nearly as slow as a new one. With
dbt-spark, each run starts a Spark.

Prints a table in Markdown: the medians of what dbt reports as the time of a run, their ratio, the
same for the whole process, and the Spark statements of a node.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from tests.benchmarks.project import Project, Run, median_ratio
from tests.functional.fast_paths import OFF

# with columns that can be NULL, as those of tables are
MODEL = """
select id, concat('name ', id + {salt}) as name, cast(id * 1.5 as decimal(10, 2)) as price
from (select if(id < 0, null, id) as id from range(100))
"""
CASES = {"initial": 0, "unchanged": 0, "all rows changed": 10}


def run_all(project: Project, prefix: str, tables: int, salt: int) -> Run:
    names = [f"{prefix}{i}" for i in range(tables)]
    for name in names:
        project.model(name, MODEL.format(salt=salt), unique_key="id")
    return project.run("--select", *names)


def compare(tables: int, rounds: int, without: list[str]) -> list[str]:
    runs: dict[tuple[str, str], list[Run]] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            pair = [
                Project(Path(folder) / "spark", "spark"),
                Project(Path(folder) / "openmirroring", without=without, stays_ready=True),
            ]
            for salt in CASES.values():
                run_all(pair[1], "before", tables, salt)
            for case, salt in CASES.items():
                for project in pair:
                    run = run_all(project, "t", tables, salt)
                    runs.setdefault((case, project.adapter), []).append(run)
    lines = []
    for case in CASES:
        plain, ours = runs[case, "spark"], runs[case, "openmirroring"]
        seconds = [[run.seconds for run in each] for each in (plain, ours)]
        process = [[run.process for run in each] for each in (plain, ours)]
        cells = [
            tables,
            case,
            *(f"{statistics.median(each):.1f}" for each in seconds),
            f"{median_ratio(seconds[1], seconds[0]):.2f}",
            *(f"{statistics.median(each):.1f}" for each in process),
            f"{median_ratio(process[1], process[0]):.2f}",
            f"{plain[0].statements} / {ours[0].statements}",
        ]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", type=int, default=[1, 10, 100])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--off", nargs="*", default=[], choices=list(OFF), help="fast paths")
    arguments = parser.parse_args()
    print(
        "| tables | run | dbt-spark, s | mirrored, s | ratio "
        "| dbt-spark's process, s | ours, s | its ratio | statements a node |"
    )
    print(f"|{'---|' * 9}")
    for tables in arguments.tables:
        for line in compare(tables, arguments.rounds, arguments.off):
            print(line, flush=True)


if __name__ == "__main__":
    main()
