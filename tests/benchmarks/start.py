"""What a run of small tables takes as a whole process, beside dbt-spark.

Prints a table in Markdown: the medians of the seconds, and their ratio. All rows change in each
run but the first.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from dbt.adapters.openmirroring.spark.image_trainer import train
from dbt.adapters.openmirroring.spark.java import find_java_home
from dbt.adapters.openmirroring.spark.java_image import JavaImage
from tests.benchmarks.project import Project, median_ratio

MODEL = "select id, concat('name ', id + {salt}) as name from range(1000)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    times: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        JavaImage(find_java_home(Path(name) / "java")).make(train)
        for turn in range(arguments.rounds):
            contestants = {
                "dbt-spark": Project(Path(name) / f"spark{turn}", "spark", {}),
                "not prepared": Project(Path(name) / f"plain{turn}", settings={}),
                "prepared": Project(Path(name) / f"image{turn}", settings={}, prepared_start=True),
            }
            for run, salt in (("first", 0), ("later", 1)):
                for contestant, project in contestants.items():
                    for table in range(arguments.tables):
                        project.model(f"t{table}", MODEL.format(salt=salt), unique_key="id")
                    started = time.monotonic()
                    project.run()
                    took = time.monotonic() - started
                    times.setdefault((run, contestant), []).append(took)
    print("| run | contestant | seconds | ratio |")
    print("|---|---|---|---|")
    for (run, contestant), seconds in times.items():
        ratio = median_ratio(seconds, times[run, "dbt-spark"])
        print(f"| {run} | {contestant} | {statistics.median(seconds):.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
