"""How many small mistakes in the package its unit tests notice.

Each mutant is the package with one change: a condition turned round, a comparison or a constant
moved, a step left out, a result lost. The unit tests that reach the changed line run, the fastest
first, until one fails or their time is over; those that reach its file, if the line runs with an
import.
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
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import cache_from_source
from itertools import accumulate
from pathlib import Path

import pytest
from coverage import Coverage, CoverageData

ROOT = Path(__file__).parents[1]
PACKAGE = Path("dbt", "adapters", "openmirroring")

# seconds, of the tests of one mutant as they took without it
TIME = 20
# seconds; a mutant that hangs is noticed
PATIENCE = 120

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


def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Tell the running measurement of coverage which test begins. A hook of pytest."""
    if running := Coverage.current():
        running.switch_context(item.nodeid)


class Tests:
    """The unit tests, and what each reaches.

    Args:
        copy: the root of a copy of the project
    """

    def __init__(self, copy: Path) -> None:
        self.copy = copy
        self._by_line: dict[tuple[str, int], set[str]] = defaultdict(set)
        self._by_file: dict[str, set[str]] = defaultdict(set)
        self._seconds: dict[str, float] = defaultdict(float)

    def measure(self) -> None:
        """Run all of them once."""
        data_file = self.copy / "coverage"
        done = self._python(
            *("-m", "coverage", "run", "--data-file", data_file, "--rcfile", os.devnull),
            *("--source", PACKAGE, "-m", "pytest", "-p", "tests.mutants", "-m", "not slow"),
            *("--durations", "0", "-vv", "tests/unit"),
        )
        if done.returncode:
            raise SystemExit(f"The tests fail without a mutant:\n{done.stdout[-2000:]}")
        for line in done.stdout.splitlines():
            if (found := line.split(maxsplit=2))[1:2] in (["call"], ["setup"]):
                self._seconds[found[2]] += float(found[0].rstrip("s"))
        data = CoverageData(str(data_file))
        data.read()
        for file in data.measured_files():
            path = str(Path(file).relative_to(self.copy))
            for number, tests in data.contexts_by_lineno(file).items():
                self._by_line[path, number].update(filter(None, tests))
                self._by_file[path].update(filter(None, tests))

    def of(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant, the fastest first, as many as the time allows."""
        path = str(mutant.path)
        reached = self._by_line[path, mutant.line] or self._by_file[path]
        tests = sorted(reached, key=lambda test: self._seconds[test])
        ends = accumulate(self._seconds[test] for test in tests)
        return [test for test, end in zip(tests, ends, strict=True) if end < TIME] or tests[:1]

    def notice(self, mutant: Mutant) -> bool:
        """Run the tests that reach a mutant. Return whether one fails."""
        if not (tests := self.of(mutant)):
            return False
        file = self.copy / mutant.path
        source = file.read_text()
        file.write_text(source[: mutant.start] + mutant.text + source[mutant.end :])
        # it knows its source by the second
        Path(cache_from_source(str(file))).unlink(missing_ok=True)
        try:
            return self._python("-m", "pytest", "-x", *tests, timeout=PATIENCE).returncode != 0
        except subprocess.TimeoutExpired:
            return True
        finally:
            file.write_text(source)
            Path(cache_from_source(str(file))).unlink(missing_ok=True)

    def _python(
        self, *arguments: str | Path, timeout: float | None = None
    ) -> subprocess.CompletedProcess[str]:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        options = f"-p no:xdist -p no:cacheprovider --basetemp={self.copy / 'tmp'}"
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.copy,
            env=os.environ | {"PYTHONPATH": str(self.copy), "PYTEST_ADDOPTS": options},
            capture_output=True,
            text=True,
            timeout=timeout,
        )


def _copy(root: Path) -> None:
    """Copy the files of the project that git knows, links as links."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.rstrip("\0").split("\0"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, root / name, follow_symlinks=False)


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
        _copy(copy)
        tests = Tests(copy)
        tests.measure()
        for mutant in chosen(arguments.count, arguments.rooms, arguments.seed):
            all_of[mutant.room] += 1
            noticed = tests.notice(mutant)
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
