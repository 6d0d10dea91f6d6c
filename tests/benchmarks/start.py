"""What a command with small tables takes as a whole process, beside dbt-spark.

Prints a table in Markdown: the medians of the seconds, and their ratio. All rows change in the
later run. The tests look for duplicates and NULL.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from tests.benchmarks.project import Project, median_ratio, prepare

MODEL = "select id, concat('name ', id + {salt}) as name from range(1000)"
TESTS = "models: [{{name: t{}, columns: [{{name: id, data_tests: [unique, not_null]}}]}}]\n"

# the name of the case, the command and what changes the rows
CASES = [
    ("first run", "run", 0),
    ("later run", "run", 1),
    ("first tests", "test", 1),
    ("later tests", "test", 1),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    times: dict[tuple[str, str], list[float]] = {}
    prepare()
    with tempfile.TemporaryDirectory() as name:
        for turn in range(arguments.rounds):
            contestants = {
                "dbt-spark": Project(Path(name) / f"spark{turn}", "spark", {}),
                "not prepared": Project(Path(name) / f"plain{turn}", settings={}),
                "prepared": Project(Path(name) / f"image{turn}", settings={}, prepared_start=True),
            }
            for run, command, salt in CASES:
                for contestant, project in contestants.items():
                    for table in range(arguments.tables):
                        project.model(f"t{table}", MODEL.format(salt=salt), unique_key="id")
                        tests = project.folder / "models" / f"t{table}.yml"
                        tests.write_text(TESTS.format(table))
                    started = time.monotonic()
                    project.run(command=command)
                    took = time.monotonic() - started
                    times.setdefault((run, contestant), []).append(took)
    print("| run | contestant | seconds | ratio |")
    print("|---|---|---|---|")
    for (run, contestant), seconds in times.items():
        ratio = median_ratio(seconds, times[run, "dbt-spark"])
        print(f"| {run} | {contestant} | {statistics.median(seconds):.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
