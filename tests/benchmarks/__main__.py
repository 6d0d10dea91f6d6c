"""All benchmarks, one after the other. Prints a page in Markdown, with a plot of all ratios."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
from datetime import datetime, timezone

from tests.benchmarks.plot import ratios

BENCHMARKS = {
    "full_lineitem": "TPC-H lineitem as a table, beside dbt-spark",
    "diff_lineitem": "A change set of lineitem, beside other ways to find it",
    "incremental_lineitem": "Lineitem as an incremental model, beside a table",
    "small_tables": "Small tables, beside dbt-spark",
    "start": "Whole processes of small tables, beside dbt-spark",
    "replicate_lineitem": "Lineitem replicated, beside a plain Delta write",
}
PACKAGES = ("dbt-core", "dbt-spark", "pyspark", "duckdb")


def plot(title: str, found: dict[str, float]) -> str:
    labels = ", ".join(f'"{label}"' for label in found)
    bars = ", ".join(map(str, found.values()))
    lines = [
        "xychart-beta horizontal",
        f'  title "{title}"',
        f"  x-axis [{labels}]",
        f"  bar [{bars}]",
    ]
    return "\n".join(["```mermaid", *lines, "```"])


def main() -> None:
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=True
    ).stdout.strip()
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    machine = f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    today = f"{datetime.now(timezone.utc):%Y-%m-%d}"
    print(f"# Benchmarks\n\n{today}, commit {commit}; {versions}; {machine}.")
    for name, title in BENCHMARKS.items():
        done = subprocess.run(
            [sys.executable, "-m", f"tests.benchmarks.{name}"], stdout=subprocess.PIPE, text=True
        )
        if done.returncode:
            sys.exit(f"{name} failed")
        table = done.stdout.strip()
        print(f"\n## {title}\n\n{table}\n\n{plot(title, ratios(table))}", flush=True)


if __name__ == "__main__":
    main()
