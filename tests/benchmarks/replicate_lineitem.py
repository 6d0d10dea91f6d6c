"""The cost of replicating TPC-H lineitem in time and memory, beside a plain Delta write of it.

Every line is a process of its own. Prints a table in Markdown; the ratio is to the plain write of
the whole table, measured in the same round.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tests.benchmarks.project import LINEITEM_KEY, lineitem

PLAIN = """
import sys
import pyarrow as pa, pyarrow.parquet as pq
from deltalake import write_deltalake
file = pq.ParquetFile(sys.argv[1])
batches = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(32768))
write_deltalake(sys.argv[2], batches)
"""


def change_set(source: Path, every: int) -> pa.Table:
    """Updates of every so many rows."""
    batches = []
    for batch in pq.ParquetFile(source).iter_batches(batch_size=65536):
        # rows cannot be picked from the strings of tpchgen-cli
        fields = [
            field.with_type(pa.string()) if field.type == pa.string_view() else field
            for field in batch.schema
        ]
        whole = batch.cast(pa.schema(fields))
        batches.append(whole.take(pa.array(range(0, len(whole), every))))
    rows = pa.Table.from_batches(batches)
    return rows.append_column("__rowMarker__", pa.repeat(pa.scalar(1, pa.int32()), len(rows)))


def measure(*command: str | Path) -> tuple[float, float]:
    """Seconds, and the most memory that the process has had, in GB."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{command} failed")
    # KB, but bytes on macOS
    unit = 1e9 if sys.platform == "darwin" else 1e6
    return time.monotonic() - start, usage.ru_maxrss / unit


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="6 million rows each")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    measured: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        source = lineitem(root, arguments.scale)
        changes = [change_set(source, every) for every in (100, 10)]
        for turn in range(arguments.rounds):
            item = root / f"{turn}.MirroredDatabase" / "Files" / "LandingZone"
            folder = item / "tpch.schema" / "lineitem"
            folder.mkdir(parents=True)
            (folder / "_metadata.json").write_text(json.dumps({"keyColumns": LINEITEM_KEY}))
            (folder / f"{1:020d}.parquet").symlink_to(source)
            plain: list[str | Path] = [sys.executable, "-c", PLAIN, source, root / f"plain{turn}"]
            module: list[str | Path] = [
                sys.executable,
                "-m",
                "dbt.adapters.openmirroring.replicator",
                item,
            ]
            measured.setdefault("plain Delta write", []).append(measure(*plain))
            measured.setdefault("initial load", []).append(measure(*module))
            for number, rows in enumerate(changes, start=2):
                pq.write_table(rows, folder / f"{number:020d}.parquet")
                case = f"change set, {len(rows):,} updates"
                measured.setdefault(case, []).append(measure(*module))
    print("| case | seconds | ratio | GB |")
    print("|---|---|---|---|")
    floor = [seconds for seconds, _ in measured["plain Delta write"]]
    for case, figures in measured.items():
        seconds = statistics.median(seconds for seconds, _ in figures)
        ratio = statistics.median(s / f for (s, _), f in zip(figures, floor, strict=True))
        memory = max(memory for _, memory in figures)
        print(f"| {case} | {seconds:.1f} | {ratio:.2f} | {memory:.2f} |")


if __name__ == "__main__":
    main()
