"""The cost of publishing after tests: the same models with and without, in turn.

Nothing is tested, so that only the difference of the publications is seen. Prints a table in
Markdown: the medians of what dbt reports as the time of a run, and their ratio.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.project import (
    LINEITEM_KEY,
    Project,
    changed,
    lineitem,
    median_ratio,
)
from tests.benchmarks.small_tables import MODEL

WHEN = ("immediately", "after_tests")


def small(tables: int, project: Project, when: str, salt: int) -> None:
    for i in range(tables):
        project.model(f"t{i}", MODEL.format(salt=salt), unique_key="id", publish=when)


def large(source: Path, project: Project, when: str, salt: str) -> None:
    sql = changed(source, salt)
    project.model("lineitem", sql, unique_key=LINEITEM_KEY, publish=when)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--scale", type=float, default=1, help="of lineitem: 6 million rows each")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    times: dict[tuple[str, str], dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        source = lineitem(Path(name), arguments.scale)
        for turn in range(arguments.rounds):
            for when in WHEN:
                few, many = (Project(Path(name) / f"{turn}-{when}-{n}") for n in range(2))
                for case, salt in {"initial": 0, "unchanged": 0, "changed": 10}.items():
                    small(arguments.tables, many, when, salt)
                    large(source, few, when, str(salt))
                    for what, project in ((f"{arguments.tables} tables", many), ("lineitem", few)):
                        of_case = times.setdefault((what, case), {})
                        run = project.run()
                        print(what, case, when, run, file=sys.stderr, flush=True)
                        of_case.setdefault(when, []).append(run.seconds)
    print("| what | run | immediately, s | after tests, s | ratio |\n|---|---|---|---|---|")
    for (what, case), seconds in sorted(times.items()):
        now, later = (seconds[when] for when in WHEN)
        medians = " | ".join(f"{statistics.median(each):.1f}" for each in (now, later))
        print(f"| {what} | {case} | {medians} | {median_ratio(later, now):.2f} |")


if __name__ == "__main__":
    main()
