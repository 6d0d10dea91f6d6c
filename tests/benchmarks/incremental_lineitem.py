"""What incremental runs cost on TPC-H lineitem, by how many rows are new and where they lie.

The same rows change in an incremental model, which selects only them, and in a table model, which
is computed and compared as a whole. Every run is a process of its own. Prints a table in Markdown:
the seconds of the node as dbt reports them, and their ratio to the table model's in that round.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

from tests.benchmarks.replicate_lineitem import generate

# the orders at the end lie together in few files, a hash has some in each
CASES = {
    "0.1 % of the orders, at the end": "l_orderkey > {last} * 0.999",
    "1 % of the orders, at the end": "l_orderkey > {last} * 0.99",
    "0.1 % of the orders, anywhere": "pmod(xxhash64(l_orderkey), 1000) = 0",
    "10 % of the orders, anywhere": "pmod(xxhash64(l_orderkey), 10) = 0",
}


class Project:
    """A dbt project with the one model `lineitem`."""

    def __init__(self, folder: Path, materialized: str) -> None:
        self.folder = folder
        self.materialized = materialized
        (folder / "models").mkdir(parents=True)
        target = {"type": "openmirroring", "schema": "bench", "landing_zone": "lz"}
        outputs = {"target": "local", "outputs": {"local": target}}
        (folder / "profiles.yml").write_text(yaml.safe_dump({"bench": outputs}))
        project = {"name": "bench", "version": "1.0", "profile": "bench"}
        (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))

    def run(self, sql: str) -> float:
        options = f"materialized='{self.materialized}', unique_key=['l_orderkey', 'l_linenumber']"
        model = self.folder / "models" / "lineitem.sql"
        model.write_text(f"{{{{ config({options}) }}}}\n{sql}")
        dbt = Path(sys.executable).with_name("dbt")
        done = subprocess.run([dbt, "run"], cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        results = json.loads((self.folder / "target" / "run_results.json").read_text())
        print(results["results"][0]["message"], file=sys.stderr)
        return float(results["results"][0]["execution_time"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="6 million rows each")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        source = generate(Path(name), arguments.scale)
        rows = f"select * from parquet.`{source}`"
        last = int(6_000_000 * arguments.scale)
        for turn in range(arguments.rounds):
            table = Project(Path(name) / f"table{turn}", "table")
            incremental = Project(Path(name) / f"incremental{turn}", "incremental")
            both = (table.run(rows), incremental.run(rows))
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
                both = (table.run(changed), incremental.run(f"{changed} where {where}"))
                times.setdefault(case, []).append(both)
    print("| change | table, s | incremental, s | ratio |")
    print("|---|---|---|---|")
    for case, pairs in times.items():
        plain, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(ours / plain for plain, ours in pairs)
        print(f"| {case} | {plain:.1f} | {ours:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
