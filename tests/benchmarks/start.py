"""The time of a command with small tables as a whole process, beside dbt-spark.

Here, Spark stays ready for the next one.

Prints a table in Markdown: the medians of the seconds of the process, their ratio, and the seconds
that dbt reports. All rows change in the later run. The tests look for duplicates and NULL.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

from tests.benchmarks.project import Project, Run, median_ratio

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
    runs: dict[tuple[str, str], list[Run]] = {}
    with tempfile.TemporaryDirectory() as name:
        for turn in range(arguments.rounds):
            contestants = {
                "dbt-spark": Project(Path(name) / f"spark{turn}", "spark", {}),
                "stays ready": Project(Path(name) / f"ready{turn}", settings={}, stays_ready=True),
            }
            for run, command, salt in CASES:
                for contestant, project in contestants.items():
                    for table in range(arguments.tables):
                        project.model(f"t{table}", MODEL.format(salt=salt), unique_key="id")
                        tests = project.folder / "models" / f"t{table}.yml"
                        tests.write_text(TESTS.format(table))
                    runs.setdefault((run, contestant), []).append(project.run(command=command))
    print("| run | contestant | seconds | ratio | as dbt reports |")
    print("|---|---|---|---|---|")
    for (run, contestant), found in runs.items():
        plain = [each.process for each in runs[run, "dbt-spark"]]
        seconds = [each.process for each in found]
        cells = [
            run,
            contestant,
            f"{statistics.median(seconds):.1f}",
            f"{median_ratio(seconds, plain):.2f}",
            f"{statistics.median(each.seconds for each in found):.1f}",
        ]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
