"""The gain of each fast path: the same runs with all of them, and with one forced off, in turn.

Spark is ready and has run each case once.

Prints a table in Markdown: the seconds of the node as dbt reports them, with all, and how many
times as much it takes without one.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.benchmarks.project import LINEITEM_KEY, MEMORY, Project, changed, lineitem, median_ratio
from tests.functional.fast_paths import OFF
from tests.spark_formats import format_settings


def runs(source: Path, last: int, only_added: bool) -> dict[str, tuple[str, dict[str, Any]]]:
    """Models by what a run does, in order.

    Args:
        source: lineitem
        last: its largest order
        only_added: without a key
    """
    rows = f"select * from parquet.`{source}`"
    incremental: dict[str, Any] = {"materialized": "incremental"}
    at_the_end = f"l_orderkey > {last} * 0.99"
    if only_added:
        return {
            "initial load, no key": (rows, incremental),
            "1 % appended, no key": (f"{rows} where {at_the_end}", incremental),
        }
    key: dict[str, Any] = {"unique_key": LINEITEM_KEY}
    incremental |= key
    later = f"select * except (l_orderkey), l_orderkey + {last} as l_orderkey from ({rows})"
    return {
        "initial load": (rows, key),
        "unchanged": (rows, key),
        "1 % changed": (changed(source, "a"), key),
        "1 % merged, at the end": (f"{changed(source, 'b', 1)} where {at_the_end}", incremental),
        "1 % merged, all new": (f"{later} where {at_the_end}", incremental),
        "1 % merged, anywhere": (
            f"{changed(source, 'c')} where pmod(xxhash64(l_orderkey), 100) = 0",
            incremental,
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="6 million rows each")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--file-format", default="parquet", help="of the model")
    parser.add_argument("--runs", nargs="*", help="of those in the table, in order; all otherwise")
    parser.add_argument("--off", nargs="*", default=list(OFF), choices=list(OFF))
    arguments = parser.parse_args()
    times: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        source = lineitem(Path(name), arguments.scale)
        last = int(6_000_000 * arguments.scale)
        folder = Path(name) / "project"
        settings = MEMORY | format_settings(arguments.file_format, folder)
        project = Project(folder, settings=settings, stays_ready=True)
        for turn in range(arguments.rounds + 1):
            # before the first round, the Spark that stays ready runs each case once
            for number, off in enumerate(["", *arguments.off] if turn else [""]):
                project.without = [off] if off else []
                for only_added in (False, True):
                    table = f"lineitem_{turn}_{number}_{only_added}".lower()
                    for case, (sql, config) in runs(source, last, only_added).items():
                        if arguments.runs and case not in arguments.runs:
                            continue
                        project.model(table, sql, file_format=arguments.file_format, **config)
                        run = project.run("--select", table)
                        print(off or "all", case, run, file=sys.stderr, flush=True)
                        if turn:
                            times.setdefault(case, {}).setdefault(off, []).append(run.node)
                # the file that forces one of them off
                shutil.rmtree(folder / "macros", ignore_errors=True)
    print(f"| run | with all, s | {' | '.join(f'without {off}' for off in arguments.off)} |")
    print(f"|---|---|{'---|' * len(arguments.off)}")
    for case, seconds in times.items():
        ratios = [f"{median_ratio(seconds[off], seconds['']):.2f}" for off in arguments.off]
        print(f"| {case} | {statistics.median(seconds['']):.1f} | {' | '.join(ratios)} |")


if __name__ == "__main__":
    main()
