"""The time to find and stage a change set of TPC-H lineitem, here and by other means.

The snapshot before and the one after are the same files for all of them, 1 % of their rows differ,
and each writes the change set: its rows, with row markers, as Parquet. Ours are the statements
that a run of dbt has sent to Spark. All but DuckDB use that Spark, one after the other. DuckDB,
which reads no table of anything but itself, is how fast this machine can be.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from dbt.adapters.openmirroring.spark.embedded import start as embedded_spark
from tests.benchmarks.project import (
    LINEITEM_KEY,
    MEMORY,
    Project,
    changed,
    lineitem,
    median_ratio,
)
from tests.statements import statements

OURS = "ours"
KEY = ", ".join(LINEITEM_KEY)
ON_KEY = " and ".join(f"n.{name} = o.{name}" for name in LINEITEM_KEY)


def ours(project: Project, spark: SparkSession, rows: str) -> list[str]:
    """Publish a change, and return the statements that find and stage it, to be repeated.

    The tables `before` and `lineitem` have the rows before it and after it.
    """
    spark.sql("create table bench.before using parquet as select * from bench.lineitem")
    project.model("lineitem", rows, unique_key=LINEITEM_KEY)
    sent = [
        sql
        for sql in statements(lambda: run(project))
        if re.search("lineitem__changed_|/_scratchPad/", sql) and "drop table" not in sql
    ]
    assert len(sent) == 3, sent
    again = ["drop table if exists bench.changed"]
    for sql in sent:
        sql = sql.replace("`bench`.`lineitem`", "bench.before")
        sql = re.sub(r"`bench`.`lineitem__next_\w+`", "bench.lineitem", sql)
        sql = re.sub(r"`bench`.`lineitem__changed_\w+`", "bench.changed", sql)
        again.append(re.sub(r"file:\S*/_scratchPad/[^']*/", f"file:{project.folder}/", sql))
    return again


def by_hand(spark: SparkSession, folder: Path) -> dict[str, list[str]]:
    """Find the change set as one would in a notebook."""
    columns = spark.table("bench.lineitem").columns
    others = [name for name in columns if name not in LINEITEM_KEY]
    same = " and ".join(f"n.{name} <=> o.{name}" for name in others)
    one_of = ", ".join(f"coalesce(n.{name}, o.{name}) as {name}" for name in LINEITEM_KEY)
    new = ", ".join(f"n.{name}" for name in others)
    first = columns[0]
    marker = f"case when o.{first} is null then 0 when n.{first} is null then 2 else 1 end"
    into = f"insert overwrite directory 'file:{folder}/by_hand' using parquet"
    return {
        "full outer join of all columns": [
            f"{into} select {one_of}, {new}, {marker} as `__rowMarker__` from bench.lineitem as n "
            f"full outer join bench.before as o on {ON_KEY} where not ({same}) "
            f"or n.{first} is null or o.{first} is null"
        ],
        "two EXCEPT ALL": [
            f"{into} select *, 4 as `__rowMarker__` from "
            "(select * from bench.lineitem except all select * from bench.before) union all "
            "select n.*, 2 as `__rowMarker__` from "
            "(select * from bench.before except all select * from bench.lineitem) as n "
            f"left anti join bench.lineitem as o on {ON_KEY}"
        ],
    }


def in_duckdb(folder: Path, warehouse: Path) -> str:
    """A full outer join too: the fastest of DuckDB's ways to do it."""
    after = f"read_parquet('{warehouse}/lineitem/*.parquet')"
    before = f"read_parquet('{warehouse}/before/*.parquet')"
    columns = pq.read_schema(next((warehouse / "before").glob("*.parquet"))).names
    others = [name for name in columns if name not in LINEITEM_KEY]
    differs = " or ".join(f"n.{name} is distinct from o.{name}" for name in others)
    new = ", ".join(f"n.{name}" for name in others)
    return (
        f"copy (select {KEY}, {new}, case when o.l_tax is null then 0 when n.l_tax is null then 2 "
        f"else 1 end as __rowMarker__ from {after} as n full join {before} as o "
        f"using ({KEY}) where {differs}) to '{folder}/duckdb.parquet' (compression zstd)"
    )


def run(project: Project) -> None:
    place = str(project.folder)
    done = dbtRunner().invoke(["run", "--quiet", "--project-dir", place, "--profiles-dir", place])
    assert done.success, done.exception


def send(spark: SparkSession, statements: list[str]) -> None:
    for sql in statements:
        spark.sql(sql).collect()


def seconds(work: Callable[[], object]) -> float:
    start = time.monotonic()
    work()
    return time.monotonic() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="6 million rows each")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = lineitem(folder, arguments.scale)
        # Spark is there already, with its settings
        project = Project(folder / "project", settings={})
        spark = embedded_spark.start(embedded_spark.SparkSetup(project.folder, MEMORY)).session
        project.model("lineitem", changed(source, ""), unique_key=LINEITEM_KEY)
        run(project)
        in_spark = {OURS: ours(project, spark, changed(source, "x"))} | by_hand(spark, folder)
        ways: dict[str, Callable[[], object]] = {
            way: partial(send, spark, each) for way, each in in_spark.items()
        }
        database = duckdb.connect(config={"temp_directory": str(folder / "duckdb")})
        warehouse = project.folder / embedded_spark.FOLDER / "warehouse" / "bench.db"
        query = in_duckdb(folder, warehouse)
        ways["DuckDB"] = lambda: database.sql(query)
        taken: dict[str, list[float]] = {way: [] for way in ways}
        for turn in range(arguments.rounds + 1):
            for way, work in ways.items():
                took = seconds(work)
                # the first round is for the JVM to compile, and for the files to be in memory
                if turn:
                    taken[way].append(took)
        spark.stop()
    print("| way | seconds | ratio to ours |")
    print("|---|---|---|")
    for way, each in taken.items():
        ratio = median_ratio(each, taken[OURS])
        print(f"| {way} | {statistics.median(each):.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    main()
