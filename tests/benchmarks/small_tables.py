"""What mirroring costs for small tables: the same models in dbt-spark and here, in turn.

Every run is a process of its own on a Spark with the same settings. Prints a table in Markdown:
the medians of what dbt reports as the time of a run, their ratio, and the Spark statements of a
node.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from dbt.adapters.openmirroring import embedded_spark

MODEL = """{{{{ config(materialized='table'{key}) }}}}
select id, concat('name ', id + {salt}) as name, cast(id * 1.5 as decimal(10, 2)) as price
from range(100)
"""


class Contestant:
    """A dbt project of one adapter."""

    def __init__(self, folder: Path, adapter: str, tables: int) -> None:
        self.folder = folder
        self.adapter = adapter
        self.tables = tables
        target: dict[str, Any] = {"type": adapter, "schema": "bench", "threads": 4}
        if adapter == "openmirroring":
            target["landing_zone"] = "lz"
        else:
            home = folder / ".spark"
            (home / "tmp").mkdir(parents=True)
            settings = embedded_spark.defaults(home)
            target |= {"method": "session", "host": "x", "server_side_parameters": settings}
        (folder / "models").mkdir(parents=True)
        outputs = {"target": "local", "outputs": {"local": target}}
        (folder / "profiles.yml").write_text(yaml.safe_dump({"bench": outputs}))
        project = {"name": "bench", "version": "1.0", "profile": "bench"}
        (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))
        self.write_models(0)

    def write_models(self, salt: int) -> None:
        key = ", unique_key='id'" if self.adapter == "openmirroring" else ""
        for i in range(self.tables):
            (self.folder / "models" / f"t{i}.sql").write_text(MODEL.format(key=key, salt=salt))

    def run(self) -> float:
        (self.folder / "logs" / "dbt.log").unlink(missing_ok=True)
        dbt = Path(sys.executable).with_name("dbt")
        done = subprocess.run([dbt, "run"], cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        results = json.loads((self.folder / "target" / "run_results.json").read_text())
        return float(results["elapsed_time"])

    def statements(self) -> int:
        """How many statements the typical node of the last run has sent to Spark."""
        log = (self.folder / "logs" / "dbt.log").read_text()
        nodes = Counter(re.findall(r" On (model\.bench\.\w+): /\*", log))
        return int(statistics.median(nodes.values()))


def compare(tables: int, rounds: int) -> list[str]:
    lines = []
    times: dict[tuple[str, str], list[float]] = {}
    statements: dict[tuple[str, str], int] = {}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            adapters = ("spark", "openmirroring")
            pair = [Contestant(Path(folder) / name, name, tables) for name in adapters]
            for salt, case in enumerate(("initial", "unchanged", "all rows changed")):
                for contestant in pair:
                    contestant.write_models(10 * (salt == 2))
                    key = (case, contestant.adapter)
                    times.setdefault(key, []).append(contestant.run())
                    statements[key] = contestant.statements()
    for case in ("initial", "unchanged", "all rows changed"):
        plain, ours = (statistics.median(times[case, name]) for name in adapters)
        counts = [str(statements[case, name]) for name in adapters]
        ratio = f"{ours / plain:.2f}"
        cells = [tables, case, f"{plain:.1f}", f"{ours:.1f}", ratio, " / ".join(counts)]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", type=int, default=[1, 10, 100])
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print("| tables | run | dbt-spark, s | mirrored, s | ratio | statements a node |")
    print("|---|---|---|---|---|---|")
    for tables in arguments.tables:
        for line in compare(tables, arguments.rounds):
            print(line, flush=True)


if __name__ == "__main__":
    main()
