"""The cost of columns: tables of the same bytes with few columns and with many, also in dbt-spark.

Prints a table in Markdown: the medians of the node's time as dbt reports it, and their ratio.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.project import Project, median_ratio

# of the table, each of 8 bytes
VALUES = 8_000_000
CASES = {"initial": 0, "unchanged": 0, "1 % of the rows changed": 1}


def model(columns: int, salt: int) -> str:
    """Random numbers, which no encoding makes smaller."""
    numbers = ", ".join(
        f"xxhash64(id, {i}) + if(id % 100 = 0, {salt}, 0) as c{i}" for i in range(columns - 1)
    )
    rows = f"select if(id < 0, null, id) as id from range({VALUES // columns})"
    return f"select id, {numbers} from ({rows})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", type=int, default=16, help="columns of the smaller table")
    parser.add_argument("--many", type=int, default=200, help="columns of the larger one")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    times: dict[tuple[str, str, int], list[float]] = {}
    columns, adapters = (arguments.few, arguments.many), ("spark", "openmirroring")
    with tempfile.TemporaryDirectory() as name:
        for turn in range(arguments.rounds):
            projects = {
                (adapter, each): Project(Path(name) / f"{adapter}-{each}-{turn}", adapter)
                for adapter in adapters
                for each in columns
            }
            for case, salt in CASES.items():
                for (adapter, each), project in projects.items():
                    project.model("wide", model(each, salt), unique_key="id")
                    run = project.run()
                    print(case, adapter, each, run, file=sys.stderr, flush=True)
                    times.setdefault((case, adapter, each), []).append(run.node)
    print(f"| run | adapter | {columns[0]} columns, s | {columns[1]} columns, s | ratio |")
    print("|---|---|---|---|---|")
    for case in CASES:
        for adapter in adapters:
            few, many = (times[case, adapter, each] for each in columns)
            medians = " | ".join(f"{statistics.median(each):.1f}" for each in (few, many))
            print(f"| {case} | {adapter} | {medians} | {median_ratio(many, few):.2f} |")


if __name__ == "__main__":
    main()
