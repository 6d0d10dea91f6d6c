"""Run the functional tests of the installed dbt-spark with our adapter.

They are in its source distribution only.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "dbt-spark"
TESTS = "tests/functional/adapter"


def unpacked(version: str) -> Path:
    """The source distribution's folder: of its tests there are only those of the adapter.

    Their package is called `tests` too. Without the `__init__.py` of the folders above, theirs and
    ours are parts of one namespace package.
    """
    folder = FOLDER / f"dbt_spark-{version}"
    archive = FOLDER / f"{folder.name}.tar.gz"
    if not archive.exists():
        # --no-build-isolation: what pip needs to read the metadata is installed
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-build-isolation"]
        source = ["--no-deps", "--no-binary", ":all:", f"dbt-spark=={version}"]
        subprocess.run([*pip, *source, "--dest", FOLDER], check=True)
    with tarfile.open(archive) as content:
        inside = f"{folder.name}/{TESTS}/"
        members = [member for member in content if member.name.startswith(inside)]
        content.extractall(FOLDER, members, filter="data")
    return folder


def main(arguments: list[str]) -> int:
    """Call pytest.

    Args:
        arguments: more of them
    """
    folder = unpacked(version("dbt-spark"))
    return pytest.main(
        [
            "-p",
            "tests.dbt_spark.plugin",
            f"--rootdir={folder}",
            # they import each other by the name of a file, and by that of a package
            "--import-mode=prepend",
            f"--override-ini=pythonpath={ROOT} {folder}",
            *arguments,
            str(folder / TESTS),
        ]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
