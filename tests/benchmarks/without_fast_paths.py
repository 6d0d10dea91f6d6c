"""dbt with fast paths forced off: their names, separated by commas, then dbt's own arguments."""

from __future__ import annotations

import sys
from pathlib import Path

from dbt.cli.main import cli

from tests.functional.fast_paths import without

if __name__ == "__main__":
    [paths, *arguments] = sys.argv[1:]
    with without(Path.cwd(), [path for path in paths.split(",") if path]):
        cli(arguments)
