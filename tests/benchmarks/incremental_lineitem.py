"""The cost of incremental runs on TPC-H lineitem, by how many rows are new and where they lie.

The same rows change in an incremental model, which selects only them, and in a table model, which
is computed and compared as a whole. Prints a table in Markdown:
the seconds of the node as dbt reports them, and their ratio to the table model's in that round.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from tests.benchmarks.project import LINEITEM_KEY, MEMORY, Project, lineitem, median_ratio
from tests.spark_formats import format_settings

# the orders at the end lie together in few files, a hash has some in each
CASES = {
    "0.1 % of the orders, at the end": "l_orderkey > {last} * 0.999",
    "1 % of the orders, at the end": "l_orderkey > {last} * 0.99",
    "0.1 % of the orders, anywhere": "pmod(xxhash64(l_orderkey), 1000) = 0",
    "10 % of the orders, anywhere": "pmod(xxhash64(l_orderkey), 10) = 0",
}


class Timed(Project):
    """One with the one model `lineitem`."""

    def __init__(self, folder: Path, materialized: str, file_format: str) -> None:
        settings = format_settings(file_format, folder)
        super().__init__(folder, settings=MEMORY | settings)
        self._config = {"materialized": materialized, "file_format": file_format}

    def run_with(self, sql: str) -> float:
        self.model("lineitem", sql, unique_key=LINEITEM_KEY, **self._config)
        run = self.run()
        print(self._config, run, file=sys.stderr, flush=True)
        return run.node


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="6 million rows each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--file-format", default="parquet", help="of both models")
    arguments = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        source = lineitem(Path(name), arguments.scale)
        rows = f"select * from parquet.`{source}`"
        last = int(6_000_000 * arguments.scale)
        for turn in range(arguments.rounds):
            table, incremental = (
                Timed(Path(name) / f"{kind}{turn}", kind, arguments.file_format)
                for kind in ("table", "incremental")
            )
            both = (table.run_with(rows), incremental.run_with(rows))
            times.setdefault("initial load", []).append(both)
            changes: list[str] = []
            for case, condition in CASES.items():
                where = condition.format(last=last)
                # a row that an earlier case has changed stays so
                changes.append(where)
                comment = "l_comment" + "".join(
                    f" || if({change}, '{number}', '')" for number, change in enumerate(changes)
                )
                changed = f"select * except (l_comment), {comment} as l_comment from ({rows})"
                both = (table.run_with(changed), incremental.run_with(f"{changed} where {where}"))
                times.setdefault(case, []).append(both)
    print("| change | table, s | incremental, s | ratio |")
    print("|---|---|---|---|")
    for case, pairs in times.items():
        plain, ours = (list(column) for column in zip(*pairs, strict=True))
        cells = [f"{statistics.median(plain):.1f}", f"{statistics.median(ours):.1f}"]
        print(f"| {case} | {' | '.join(cells)} | {median_ratio(ours, plain):.2f} |")


if __name__ == "__main__":
    main()
