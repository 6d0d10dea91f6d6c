"""The cost of a run on a new machine: lineitem restored and 1 % changed, beside a full load.

Prints a table in Markdown: the seconds of the whole process and of the node, and the bytes that
the run publishes and reads from the mirrored table. All runs begin without Spark's tables.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

from tests.benchmarks.project import LINEITEM_KEY, Project, Run, changed, lineitem

_ITEM = Path("mirror.MirroredDatabase")


def restoring(folder: Path) -> Project:
    """Return a project that restores what its Spark has lost, with its replicator."""
    project = Project(folder)
    profile = folder / "profiles.yml"
    settings = yaml.safe_load(profile.read_text())
    settings["bench"]["outputs"]["local"] |= {
        "landing_zone": str(_ITEM / "Files" / "LandingZone"),
        "replicate": True,
        "restore_baseline": True,
    }
    profile.write_text(yaml.safe_dump(settings))
    return project


def on_a_new_machine(project: Project, *args: str) -> tuple[Run, int, int]:
    """Run without Spark's tables.

    Returns:
        the run, the bytes that it has published, and those of the mirrored table before
    """
    shutil.rmtree(project.folder / ".spark", ignore_errors=True)
    mirrored = project.folder / _ITEM / "Tables"
    size = sum(path.stat().st_size for path in mirrored.rglob("*.parquet"))
    run = project.run(*args)
    results = json.loads((project.folder / "target" / "run_results.json").read_text())
    [response] = [result["adapter_response"] for result in results["results"]]
    return run, int(response["bytes_written"]), 0 if "--full-refresh" in args else size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="6 million rows each")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    found: dict[tuple[str, str], list[tuple[Run, int, int]]] = {}
    with tempfile.TemporaryDirectory() as name:
        source = lineitem(Path(name), arguments.scale)
        last = int(6_000_000 * arguments.scale)
        at_the_end = f" where l_orderkey > {last} * 0.99"
        kinds: dict[str, tuple[dict[str, Any], str]] = {
            "table": ({}, ""),
            "incremental": ({"materialized": "incremental"}, at_the_end),
        }
        for turn in range(arguments.rounds):
            for kind, (config, new) in kinds.items():
                project = restoring(Path(name) / f"{kind}{turn}")

                def write(salt: str, where: str = "", config: dict[str, Any] = config) -> None:
                    sql = changed(source, salt) + where
                    project.model("lineitem", sql, unique_key=LINEITEM_KEY, **config)  # noqa: B023

                write("")
                project.run()
                for case, salt, where, args in (
                    ("restored, 1 % changed", "a", new, ()),
                    ("full load", "b", "", ("--full-refresh",)),
                ):
                    write(salt, where)
                    measured = on_a_new_machine(project, *args)
                    print(kind, case, *measured, file=sys.stderr, flush=True)
                    found.setdefault((kind, case), []).append(measured)
    print("| model | run | process, s | node, s | published, MB | read from the mirror, MB |")
    print("|---|---|---|---|---|---|")
    for (kind, case), runs in found.items():
        cells = [
            f"{statistics.median(run.process for run, _, _ in runs):.0f}",
            f"{statistics.median(run.node for run, _, _ in runs):.0f}",
            f"{statistics.median(published for _, published, _ in runs) / 2**20:.1f}",
            f"{statistics.median(read for _, _, read in runs) / 2**20:.1f}",
        ]
        print(f"| {kind} | {case} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
