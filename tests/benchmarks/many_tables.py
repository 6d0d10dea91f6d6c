"""The cost of a run in a landing zone of many tables, beside that in one of few.

Prints a table in Markdown: the medians of the whole process, and their ratio.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.project import Project, median_ratio
from tests.benchmarks.small_tables import MODEL


def beside(others: int, folder: Path) -> Project:
    """Return a project that has published one table. Its landing zone has copies of that table."""
    project = Project(folder)
    project.model("orders", MODEL.format(salt=0), unique_key="id")
    project.run()
    schema = folder / "lz" / "bench.schema"
    for number in range(others):
        shutil.copytree(schema / "orders", schema / f"other_{number}")
    return project


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", type=int, default=10, help="tables in the smaller landing zone")
    parser.add_argument("--many", type=int, default=1000, help="tables in the larger one")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    times: dict[tuple[str, int], list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        tables = (arguments.few, arguments.many)
        projects = {each: beside(each - 1, Path(name) / str(each)) for each in tables}
        for turn in range(arguments.rounds):
            for case, salt in (("unchanged", turn), ("all rows changed", turn + 1)):
                for each, project in projects.items():
                    project.model("orders", MODEL.format(salt=salt), unique_key="id")
                    run = project.run()
                    print(case, each, run, file=sys.stderr, flush=True)
                    times.setdefault((case, each), []).append(run.process)
    print(f"| run | beside {tables[0]} tables, s | beside {tables[1]:,}, s | ratio |")
    print("|---|---|---|---|")
    for case in ("unchanged", "all rows changed"):
        few, many = (times[case, each] for each in tables)
        medians = " | ".join(f"{statistics.median(each):.1f}" for each in (few, many))
        print(f"| {case} | {medians} | {median_ratio(many, few):.2f} |")


if __name__ == "__main__":
    main()
