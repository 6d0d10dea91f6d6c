"""Run functional tests on other versions and kinds of Spark, each in an environment of its own.

Prints a table in Markdown. Jars come from Maven Central.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

# the Python that runs this
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "matrix"

# the table of changes
TESTS = ("tests/functional/test_mapping.py",)


def install(
    environment: Path, python: str, extras: Iterable[str], packages: Iterable[str]
) -> Path:
    """Make an environment with this project, or bring it up to date, and return its Python.

    Args:
        environment: its folder
        python: its version
        extras: of this project
        packages: what else is installed, as arguments of `uv pip install`
    """
    executable = environment / "bin" / "python"
    uv = str(Path(sys.executable).with_name("uv"))
    if not executable.exists():
        make = [uv, "venv", "--quiet", "--python", python, str(environment)]
        subprocess.run(make, check=True)
    command = [uv, "pip", "install", "--quiet", "--python", str(executable)]
    project = ["--editable", f".[{','.join(extras)}]"]
    subprocess.run([*command, *project, *packages], check=True, cwd=ROOT)
    return executable


@dataclass(frozen=True)
class Combination:
    """The installed versions, and the format of the tables.

    Args:
        python, pyspark, dbt: versions; of PySpark and dbt-core the newest of it
        method: how to reach Spark
        file_format: of tables in Spark
    """

    python: str = PYTHON
    pyspark: str = "4.3"
    dbt: str = "1.12"
    method: str = "session"
    file_format: str = "parquet"

    @property
    def environment(self) -> Path:
        return FOLDER / f"python{self.python}-pyspark{self.pyspark}-dbt{self.dbt}"

    def install(self) -> Path:
        """Make the environment, and return its Python."""
        packages = [f"pyspark=={self.pyspark}.*", f"dbt-core=={self.dbt}.*", "--group", "dev"]
        extras = ["java", "replicator"]
        if self.pyspark == "3.5":  # needs NumPy 1, which later ones refuse
            packages.append("pyarrow<26")
        else:
            extras.append("connect")
        return install(self.environment, self.python, extras, packages)

    def run(self, tests: list[str]) -> tuple[str, int]:
        """Run tests, and return a row of the table, and how many have failed."""
        python = self.install()
        results = self.environment / f"{self.method}-{self.file_format}.xml"
        options = [f"--method={self.method}", f"--file-format={self.file_format}"]
        command = [str(python), "-m", "pytest", "-q", "-n2", "--dist=worksteal"]
        options.append(f"--junitxml={results}")
        subprocess.run([*command, *options, *tests], check=False, cwd=ROOT, stdout=sys.stderr)
        suite = ElementTree.parse(results).getroot()[0]
        number = {name: int(suite.get(name, "0")) for name in ("failures", "errors", "skipped")}
        failed = number["failures"] + number["errors"]
        passed = int(suite.get("tests", "0")) - failed - number["skipped"]
        cells = [self.python, self.pyspark, self.dbt, self.method, self.file_format]
        counts = [str(passed), str(failed), str(number["skipped"]), f"{suite.get('time')} s"]
        return f"| {' | '.join([*cells, *counts])} |", failed


COMBINATIONS = (
    Combination(pyspark="3.5", dbt="1.10"),
    Combination(python="3.10", pyspark="3.5", dbt="1.10"),
    Combination(pyspark="3.5"),
    Combination(pyspark="4.0"),
    Combination(python="3.12", pyspark="4.1"),
    Combination(python="3.13"),
    Combination(),
    Combination(dbt="1.11"),
    Combination(dbt="1.10"),
    Combination(method="connect"),
    Combination(method="livy"),
    Combination(method="thrift"),
    Combination(pyspark="4.1", file_format="delta"),
    Combination(pyspark="4.1", file_format="iceberg"),
    Combination(pyspark="4.1", method="connect", file_format="delta"),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", default=list(TESTS))
    parser.add_argument("--only", type=int, nargs="*", help="numbers of combinations, from 1")
    arguments = parser.parse_args()
    chosen = [
        combination
        for number, combination in enumerate(COMBINATIONS, 1)
        if not arguments.only or number in arguments.only
    ]
    print("| Python | PySpark | dbt-core | method | tables | passed | failed | skipped | time |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    failed = []
    for combination in chosen:
        row, failures = combination.run(arguments.tests)
        print(row, flush=True)
        failed.append(failures)
    return int(any(failed))


if __name__ == "__main__":
    sys.exit(main())
