"""A dbt project to be timed. Every run is a process of its own, as users have it."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dbt.adapters.openmirroring.spark.embedded.settings import defaults
from dbt.adapters.openmirroring.spark.embedded.start import FOLDER

ROOT = Path(__file__).parents[2]

# the same in all contestants
MEMORY = {"spark.driver.memory": "4g"}


@dataclass(frozen=True)
class Run:
    """The time of a run.

    Args:
        process: seconds from the start of the process to its end
        seconds: those that dbt reports
        nodes: seconds by node
        memory: the most that dbt's process has had, in MB; Spark's is another one
        statements: that the typical node has sent to Spark
        messages: of the nodes
    """

    process: float
    seconds: float
    nodes: dict[str, float]
    memory: float
    statements: int
    messages: list[str]

    @property
    def node(self) -> float:
        """The only node's seconds."""
        [seconds] = self.nodes.values()
        return seconds


class Project:
    """A dbt project.

    Args:
        folder: where it is written
        adapter: `spark` or `openmirroring`
        settings: of Spark
        without: fast paths that are forced off
        stays_ready: whether the embedded Spark stays ready for the next run
    """

    def __init__(
        self,
        folder: Path,
        adapter: str = "openmirroring",
        settings: Mapping[str, str] = MEMORY,
        without: Sequence[str] = (),
        stays_ready: bool = False,
    ) -> None:
        self.folder = folder
        self.without = without
        self.adapter = adapter
        target: dict[str, Any] = {"type": adapter, "schema": "bench", "threads": 4}
        if adapter == "openmirroring":
            target |= {"landing_zone": "lz", "server_side_parameters": dict(settings)}
            target["spark_idle_timeout"] = "1h" if stays_ready else 0
        else:
            home = folder / FOLDER
            (home / "tmp").mkdir(parents=True)
            same = {**defaults(home), **settings}
            target |= {"method": "session", "host": "x", "server_side_parameters": same}
        (folder / "models").mkdir(parents=True)
        outputs = {"target": "local", "outputs": {"local": target}}
        (folder / "profiles.yml").write_text(yaml.safe_dump({"bench": outputs}))
        project = {"name": "bench", "version": "1.0", "profile": "bench"}
        (folder / "dbt_project.yml").write_text(yaml.safe_dump(project))

    def model(self, name: str, sql: str, **config: Any) -> None:
        options = {"materialized": "table", **config}
        if self.adapter == "spark" and options["materialized"] == "table":
            options.pop("unique_key", None)
        given = ", ".join(f"{key}={value!r}" for key, value in options.items())
        (self.folder / "models" / f"{name}.sql").write_text(f"{{{{ config({given}) }}}}\n{sql}\n")

    def run(self, *args: str, command: str = "run") -> Run:
        """Run all models, or another command; the program ends if that fails."""
        log = self.folder / "logs" / "dbt.log"
        log.unlink(missing_ok=True)
        program = [str(Path(sys.executable).with_name("dbt"))]
        if self.without:
            module = "tests.benchmarks.without_fast_paths"
            program = [sys.executable, "-m", module, ",".join(self.without)]
        cache = str(self.folder / "cache")  # so that projects do not end each other's Spark
        started = time.monotonic()
        done = subprocess.run(
            [*program, command, *args],
            cwd=self.folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": cache},
            capture_output=True,
            text=True,
        )
        process = time.monotonic() - started
        if done.returncode:
            sys.exit(done.stdout + done.stderr)
        results = json.loads((self.folder / "target" / "run_results.json").read_text())
        told = log.read_text()
        statements = Counter(re.findall(r" On ((?:model|test)\.bench[\w.]+): /\*", told))
        [memory] = re.findall(r'"process_mem_max_rss": "(\d+)"', told)
        return Run(
            process,
            float(results["elapsed_time"]),
            {r["unique_id"]: float(r["execution_time"]) for r in results["results"]},
            # KB, but bytes on macOS
            int(memory) / (2**20 if sys.platform == "darwin" else 2**10),
            int(statistics.median(statements.values())),
            [str(result["message"]) for result in results["results"]],
        )


def lineitem(folder: Path, scale: float) -> Path:
    """Have tpchgen-cli write TPC-H's lineitem: a file of Parquet, 6 million rows at scale 1."""
    tpchgen = Path(sys.executable).with_name("tpchgen-cli")
    options = ["--scale-factor", str(scale), "--tables", "lineitem", "--quiet"]
    subprocess.run([tpchgen, "parquet", *options, "--output-dir", folder], check=True)
    return folder / "lineitem.parquet"


def memory_of_spark(folder: Path) -> int:
    """Return the memory of the Spark that is ready for a project, in MB. It needs Linux."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if b"pyspark-shell" in command and (process / "cwd").readlink() == folder:
                [found] = re.findall(r"VmRSS:\s+(\d+)", (process / "status").read_text())
                return int(found) // 1024
    sys.exit(f"No Spark is ready in {folder}")


LINEITEM_KEY = ["l_orderkey", "l_linenumber"]


def changed(source: Path, salt: str, every: int = 100) -> str:
    """Lineitem as a query; one in so many rows has another comment."""
    return (
        "select * except (l_comment), if(pmod(xxhash64(l_orderkey, l_linenumber), "
        f"{every}) = 0, concat(l_comment, '{salt}'), l_comment) as l_comment "
        f"from parquet.`{source}`"
    )


def median_ratio(ours: list[float], theirs: list[float]) -> float:
    """The median of the ratios of each round."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
