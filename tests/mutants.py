"""How many small mistakes in the package its unit tests notice.

Each mutant is the package with one change: a condition turned round, a comparison or a constant
moved, a step left out, a result lost. The unit tests of its room run, until the first one fails.
Prints a table of the rooms, and the mutants that survived, which are gaps of the tests.

    python -m tests.mutants --count 30 --rooms landing_zone types
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = Path("dbt", "adapters", "openmirroring")
COPIED = ("dbt", "macros", "tests", "docs", "pyproject.toml", "README.md")

# the unit tests of a room, if they are not in a folder of its name
TESTS = {
    "": ("test_connections.py", "test_credentials.py", "test_rooms.py"),
    "dbt_core": ("operations",),
    "destination": ("landing_zone", "operations", "service"),
    "rest": ("landing_zone", "service"),
}
# seconds; a mutant that hangs is noticed
PATIENCE = 900

_COMPARISONS = {
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}


@dataclass(frozen=True)
class Mutant:
    """One change of a file.

    Args:
        path: the file, below the root of the project
        line: the number of the changed line
        start, end: the place of the changed text, in characters
        text: what takes its place
        was: what was there
    """

    path: Path
    line: int
    start: int
    end: int
    text: str
    was: str

    @property
    def room(self) -> str:
        """Empty for the top."""
        parts = self.path.relative_to(PACKAGE).parts
        return parts[0] if len(parts) > 1 else ""

    def __str__(self) -> str:
        short = " ".join(self.was.split())[:60]
        return f"{self.path.relative_to(PACKAGE)}:{self.line}: `{short}` -> `{self.text[:60]}`"


def mutants(path: Path) -> Iterator[Mutant]:
    """Yield all changes of a file."""
    source = (ROOT / path).read_text()
    lines = source.splitlines(keepends=True)
    begins = [0]
    for line in lines:
        begins.append(begins[-1] + len(line))

    def place(line: int, column: int) -> int:
        return begins[line - 1] + len(lines[line - 1].encode()[:column].decode())

    for node in ast.walk(ast.parse(source)):
        for part, text in _changes(node, source):
            assert part.end_lineno
            start = place(part.lineno, part.col_offset)
            end = place(part.end_lineno, part.end_col_offset or 0)
            yield Mutant(path, part.lineno, start, end, text, source[start:end])


def _changes(node: ast.AST, source: str) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    def text(part: ast.expr) -> str:
        return ast.get_source_segment(source, part) or ""

    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        operator = _COMPARISONS[type(node.ops[0])]
        yield node, f"{text(node.left)} {operator} {text(node.comparators[0])}"
    elif isinstance(node, ast.BoolOp):
        word = " or " if isinstance(node.op, ast.And) else " and "
        yield node, word.join(f"({text(value)})" for value in node.values)
    elif isinstance(node, (ast.If, ast.IfExp)) and not isinstance(node.test, ast.Compare):
        yield node.test, f"(not ({text(node.test)}))"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield node, "pass"
    elif isinstance(node, ast.Return) and node.value and not _is_none(node.value):
        yield node, "return None"
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        moved = not node.value if isinstance(node.value, bool) else node.value + 1
        yield node, str(moved)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def chosen(count: int, rooms: list[str], seed: int) -> list[Mutant]:
    """Choose mutants of the whole package at random, and return those of some rooms."""
    everything = [
        mutant
        for path in sorted((ROOT / PACKAGE).rglob("*.py"))
        for mutant in mutants(path.relative_to(ROOT))
    ]
    sample = random.Random(seed).sample(everything, min(count, len(everything)))
    return [mutant for mutant in sample if not rooms or (mutant.room or "top") in rooms]


def is_noticed(mutant: Mutant, copy: Path) -> bool:
    """Run the unit tests of a mutant's room. Return whether one fails."""
    file = copy / mutant.path
    source = file.read_text()
    file.write_text(source[: mutant.start] + mutant.text + source[mutant.end :])
    tests = [f"tests/unit/{name}" for name in TESTS.get(mutant.room, (mutant.room,))]
    program = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow"]
    try:
        done = subprocess.run(
            [
                *program,
                "-p",
                "no:xdist",
                "-p",
                "no:cacheprovider",
                "--basetemp",
                copy / "tmp",
                *tests,
            ],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            timeout=PATIENCE,
        )
        return done.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        file.write_text(source)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=150, help="of the whole package")
    parser.add_argument("--rooms", nargs="*", default=[], help="run those of these rooms only")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    survivors: list[Mutant] = []
    all_of: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, copy / name, symlinks=True)
            else:
                shutil.copy(source, copy)
        for mutant in chosen(arguments.count, arguments.rooms, arguments.seed):
            all_of[mutant.room] += 1
            noticed = is_noticed(mutant, copy)
            print("noticed " if noticed else "SURVIVED", mutant, file=sys.stderr, flush=True)
            if not noticed:
                survivors.append(mutant)
    left = Counter(mutant.room for mutant in survivors)
    print("| room | mutants | noticed |\n|---|---|---|")
    for room, count in sorted(all_of.items()):
        print(f"| {room or 'top'} | {count} | {count - left[room]} |")
    print(f"| all | {all_of.total()} | {all_of.total() - len(survivors)} |\n")
    for mutant in survivors:
        print(f"- {mutant}")


if __name__ == "__main__":
    main()
