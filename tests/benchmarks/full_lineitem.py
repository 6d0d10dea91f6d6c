"""The cost of mirroring TPC-H lineitem: the same model in dbt-spark and here, in turn.

Here, Spark is ready and has run each case once. With dbt-spark, each run starts a Spark.

Prints a table in Markdown: the medians of the node's time as dbt reports it, their ratio, and the
memory of dbt's process.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks.project import (
    LINEITEM_KEY,
    MEMORY,
    Project,
    Run,
    changed,
    lineitem,
    median_ratio,
    memory_of_spark,
)

CASES = {"initial load": "", "nothing changed": "", "1 % of the rows changed": "x"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="6 million rows each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default=MEMORY["spark.driver.memory"], help="of Spark")
    arguments = parser.parse_args()
    settings = {"spark.driver.memory": arguments.memory}
    runs: dict[tuple[str, str], list[Run]] = {}
    with tempfile.TemporaryDirectory() as name:
        source = lineitem(Path(name), arguments.scale)
        pair = [
            Project(Path(name) / adapter, adapter, settings, stays_ready=True)
            for adapter in ("spark", "openmirroring")
        ]
        for turn in range(arguments.rounds + 1):
            for case, salt in CASES.items():
                # before the first round, the Spark that stays ready runs each case once
                for project in pair if turn else pair[1:]:
                    sql, table = changed(source, salt), f"lineitem_{turn}"
                    project.model(table, sql, unique_key=LINEITEM_KEY)
                    run = project.run("--select", table)
                    print(case, project.adapter, run, file=sys.stderr, flush=True)
                    if turn:
                        runs.setdefault((case, project.adapter), []).append(run)
        time.sleep(60)
        idle = memory_of_spark(pair[1].folder)
    print("| run | dbt-spark, s | mirrored, s | ratio | dbt-spark's client, MB | ours, MB |")
    print("|---|---|---|---|---|---|")
    for case in CASES:
        plain, ours = runs[case, "spark"], runs[case, "openmirroring"]
        seconds = [[run.node for run in each] for each in (plain, ours)]
        cells = [
            case,
            *(f"{statistics.median(each):.1f}" for each in seconds),
            f"{median_ratio(seconds[1], seconds[0]):.2f}",
            *(f"{max(run.memory for run in each):.0f}" for each in (plain, ours)),
        ]
        print(f"| {' | '.join(cells)} |")
    print(f"\nThe idle Spark has {idle} MB a minute after the last run.")


if __name__ == "__main__":
    main()
