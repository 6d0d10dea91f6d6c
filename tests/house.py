"""The structure of the package: its rooms, what is longest in them, and who imports whom.

Prints Markdown. The source is read as text and nothing of it is imported, so that another tree can
be measured too, for example a git worktree of an older commit. Only `--trace` runs it: a project
whose one table changes, on the embedded Spark. `tests/unit/test_rooms.py` has what must not be.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

PACKAGE = "dbt.adapters.openmirroring"
TOP = "top"
# a constant that every room may have
VERSION = f"{PACKAGE}.__version__"

# in the order of the layout: in the table of imports, those left of the diagonal go back up
ROOMS = (
    *(TOP, "operations", "node", "protocol", "destination", "spark", "service"),
    *("landing_zone", "replicator", "types", "rest", "text"),
)


class Sized(NamedTuple):
    """A module or function, and how many lines it has."""

    name: str
    lines: int


@dataclass(frozen=True)
class Module:
    """A module of the package.

    Args:
        name: with the package, `dbt.adapters.openmirroring.node.config`
        path: below the package's folder
        text: its source
    """

    name: str
    path: Path
    text: str

    @property
    def room(self) -> str:
        return self.path.parts[0] if len(self.path.parts) > 1 else TOP

    @property
    def short(self) -> str:
        return ".".join(self.path.with_suffix("").parts)

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @property
    def syntax(self) -> ast.Module:
        return ast.parse(self.text)

    def imports(self, known: set[str]) -> set[str]:
        """Return the known modules that this one imports, also in a function or for types only."""
        package = self.name if self.path.stem == "__init__" else self.name.rpartition(".")[0]
        found = set()
        for node in ast.walk(self.syntax):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                source = resolve_name("." * node.level + (node.module or ""), package)
                names = {f"{source}.{alias.name}" for alias in node.names}
                # `from package import module` imports the module
                found |= names if names <= known else names | {source}
        return found & known - {self.name, VERSION}


def modules_of(tree: Path) -> Iterator[Module]:
    folder = tree.joinpath(*PACKAGE.split("."))
    for file in sorted(folder.rglob("*.py")):
        path = file.relative_to(folder)
        parts = path.parent.parts if path.stem == "__init__" else path.with_suffix("").parts
        yield Module(".".join((PACKAGE, *parts)), path, file.read_text(encoding="utf-8"))


def functions(node: ast.AST, within: str = "") -> Iterator[Sized]:
    """The functions in a piece of source, from `def` to their end."""
    for child in ast.iter_child_nodes(node):
        name = within
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = f"{within}.{child.name}" if within else child.name
            if not isinstance(child, ast.ClassDef):
                lines = (child.end_lineno or child.lineno) - child.lineno + 1
                yield Sized(name, lines)
        yield from functions(child, name)


def show(title: str, header: str, rows: Iterable[Iterable[object]]) -> None:
    """Print a table; its header is given as a line of Markdown."""
    print(f"\n## {title}\n\n{header}\n|{'---|' * (header.count('|') - 1)}")
    for row in rows:
        cells = (f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row)
        print(f"| {' | '.join(cells)} |")


def show_rooms(modules: list[Module], rooms: list[str]) -> None:
    rows: list[tuple[object, ...]] = []
    for room in rooms:
        inside = [module for module in modules if module.room == room]
        sizes = [Sized(one.short, one.lines) for one in inside]
        of_functions = [
            Sized(f"{found.name} ({module.short})", found.lines)
            for module in inside
            for found in functions(module.syntax)
        ]
        module, function = (
            max(found, key=lambda one: one.lines, default=Sized("", 0))
            for found in (sizes, of_functions)
        )
        rows.append((room, len(inside), sum(one.lines for one in sizes), *module, *function))
    rows.append(("all", len(modules), sum(one.lines for one in modules), "", "", "", ""))
    header = "| room | modules | lines | longest module | lines | longest function | lines |"
    show("Rooms", header, rows)


# Runs dbt, and counts the calls of functions of the package while one node is materialized. It is
# given the package's folder and what to run.
TRACE = """
import sys
from dbt.adapters.openmirroring.impl import OpenMirroringAdapter
from dbt.cli.main import dbtRunner

folder, *arguments = sys.argv[1:]
called = []

def count(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(folder) and code.co_name[0] != "<":
        called.append(code.co_filename)

method = OpenMirroringAdapter.materialize

def traced(*args, **named):
    sys.setprofile(count)
    try:
        return method(*args, **named)
    finally:
        sys.setprofile(None)

traced.__dict__.update(method.__dict__)
OpenMirroringAdapter.materialize = traced
assert dbtRunner().invoke(arguments).success
entered, returns = set(called[:1]), 0
for before, now in zip(called, called[1:]):
    returns += now != before and now in entered
    entered.add(now)
print(len(entered), len(called), returns, file=sys.stderr)
"""


def show_trace(tree: Path) -> None:
    """Run one table whose rows have changed, and count the way through the package."""
    from tests.functional.project import Project

    folder = tree.joinpath(*PACKAGE.split("."))
    counted: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        project = Project(Path(name))
        project.target["spark_idle_timeout"] = "0"
        project.write_project()
        for salt in ("a", "b"):
            project.model(f"select id, '{salt}' as name from range(3)", unique_key="id")
            command = [sys.executable, "-c", TRACE, str(folder), "run"]
            done = subprocess.run(
                command, cwd=project.path, stderr=subprocess.PIPE, text=True, check=True
            )
            counted = done.stderr.split()[-3:]
    header = "| files entered | calls | returns to a file that was left |"
    show("The way of one table whose rows have changed", header, [counted])


def show_imports(modules: list[Module], rooms: list[str]) -> None:
    by_name = {module.name: module for module in modules}
    pairs = Counter(
        (module.room, by_name[target].room)
        for module in modules
        for target in module.imports(set(by_name))
    )
    rows = [[room, *(pairs[room, target] or "" for target in rooms)] for room in rooms]
    show("Imports from room to room, as pairs of modules", f"| | {' | '.join(rooms)} |", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, default=Path(__file__).parents[1], help="to measure")
    parser.add_argument("--trace", action="store_true", help="run a table and count its way")
    arguments = parser.parse_args()
    tree = arguments.tree
    modules = list(modules_of(tree))
    there = {module.room for module in modules}
    rooms = [room for room in ROOMS if room in there] + sorted(there - set(ROOMS))
    print("# The house")
    show_rooms(modules, rooms)
    show_imports(modules, rooms)
    if arguments.trace:
        show_trace(tree)


if __name__ == "__main__":
    main()
