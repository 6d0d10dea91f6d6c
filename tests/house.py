"""The structure of the package: its rooms, who imports whom, circles, and what is longest.

Prints Markdown. The source is read as text and nothing of it is imported, so that another tree can
be measured too, for example a git worktree of an older commit. Only `--trace` runs it: a project
whose one table changes, on the embedded Spark.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
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
    *(TOP, "operations", "node", "destination", "spark", "service", "landing_zone"),
    *("replicator", "types", "rest", "text"),
)

# from the opening tag of a macro to its closing one
MACRO = re.compile(
    r"{%[-+]?\s*(?P<kind>macro|test|materialization)\s+(?P<name>\w+).*?"
    r"{%[-+]?\s*end(?P=kind)\s*[-+]?%}",
    re.DOTALL,
)
COMMENT = re.compile(r"{#.*?#}", re.DOTALL)


class Sized(NamedTuple):
    """A module, function or macro, and how many lines it has."""

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


def functions(node: ast.AST, within: str = "") -> Iterator[tuple[Sized, list[ast.expr]]]:
    """The functions in a piece of source, from `def` to their end, each with its decorators."""
    for child in ast.iter_child_nodes(node):
        name = within
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = f"{within}.{child.name}" if within else child.name
            if not isinstance(child, ast.ClassDef):
                lines = (child.end_lineno or child.lineno) - child.lineno + 1
                yield Sized(name, lines), child.decorator_list
        yield from functions(child, name)


def macros(text: str) -> list[Sized]:
    """The macros in a file, also tests and materializations."""
    # a comment may show a macro; its lines count
    text = COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    return [Sized(found["name"], found[0].count("\n") + 1) for found in MACRO.finditer(text)]


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """The strongly connected components with more than one member."""
    reached = {name: _reached(name, arrows) for name in arrows}
    found = {
        frozenset(other for other in reached[name] if name in reached[other]) for name in arrows
    }
    return sorted(sorted(circle) for circle in found if len(circle) > 1)


def _reached(start: str, arrows: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    following = [start]
    while following:
        more = arrows[following.pop()] - reached
        reached |= more
        following.extend(more)
    return reached


def longest(candidates: Iterable[Sized]) -> Sized:
    return max(candidates, key=lambda one: one.lines, default=Sized("", 0))


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
        function = longest(
            Sized(f"{found.name} ({module.short})", found.lines)
            for module in inside
            for found, _ in functions(module.syntax)
        )
        module = longest(Sized(one.short, one.lines) for one in inside)
        rows.append((room, len(inside), sum(one.lines for one in inside), *module, *function))
    rows.append(("all", len(modules), sum(one.lines for one in modules), "", "", "", ""))
    header = "| room | modules | lines | longest module | lines | longest function | lines |"
    show("Rooms", header, rows)


def kinds(module: Module) -> Counter[str]:
    """How many lines of a module are docstrings, imports, blank or comments, and code."""
    texts = module.text.splitlines()
    kind = ["code" if text.strip() else "blank" for text in texts]
    for number, text in enumerate(texts):
        if text.lstrip().startswith("#"):
            kind[number] = "comments"
    for node in ast.walk(module.syntax):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            named = "imports"
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            named = "docstrings"
        else:
            continue
        last = node.end_lineno or node.lineno
        kind[node.lineno - 1 : last] = [named] * (last - node.lineno + 1)
    return Counter(kind)


def show_kinds(modules: list[Module], rooms: list[str]) -> None:
    names = ("code", "docstrings", "imports", "comments", "blank")
    every = Counter[str]()
    rows: list[tuple[object, ...]] = []
    for room in rooms:
        found = sum((kinds(one) for one in modules if one.room == room), Counter[str]())
        every += found
        rows.append((room, *(found[name] for name in names)))
    rows.append(("all", *(every[name] for name in names)))
    show("Lines", f"| room | {' | '.join(names)} |", rows)


# Runs dbt, and counts the calls of functions of the package while one node is materialized. It is
# given the package's folder and what to run.
TRACE = """
import sys, threading
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
    arrows = {module.name: module.imports(set(by_name)) for module in modules}
    pairs = Counter(
        (by_name[source].room, by_name[target].room)
        for source, targets in arrows.items()
        for target in targets
    )
    rows = [[room, *(pairs[room, target] or "" for target in rooms)] for room in rooms]
    show("Imports from room to room, as pairs of modules", f"| | {' | '.join(rooms)} |", rows)
    between = {room: {target for target in rooms if pairs[room, target]} for room in rooms}
    found = [("rooms", circle) for circle in circles(between)]
    found += [("modules", [by_name[one].short for one in each]) for each in circles(arrows)]
    told = [(of, len(circle), ", ".join(circle)) for of, circle in found]
    show("Circles", "| of | how many | which |", told or [("", "none", "")])


def show_methods_for_macros(modules: list[Module]) -> None:
    [impl] = [module for module in modules if module.short == "impl"]
    decorators = [ast.unparse(one) for _, used in functions(impl.syntax) for one in used]
    methods = sum(bool(re.match(r"available\b", decorator)) for decorator in decorators)
    show("Methods for macros", "| module | lines | methods |", [("impl", impl.lines, methods)])


def show_macros(folder: Path) -> None:
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(folder.rglob("*.sql"))}
    rows: list[tuple[object, ...]] = []
    counts = Counter(files=0, lines=0, macros=0)
    for within in sorted({file.parent for file in texts}):
        files = {file.name: text for file, text in texts.items() if file.parent == within}
        found = [
            Sized(f"{m.name} ({name})", m.lines) for name in files for m in macros(files[name])
        ]
        lines = sum(len(text.splitlines()) for text in files.values())
        here = {"files": len(files), "lines": lines, "macros": len(found)}
        counts.update(here)
        rows.append((within.relative_to(folder.parent), *here.values(), *longest(found)))
    rows.append(("all", *counts.values(), "", ""))
    show("Macros", "| folder | files | lines | macros | longest macro | lines |", rows)


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
    show_kinds(modules, rooms)
    show_imports(modules, rooms)
    show_methods_for_macros(modules)
    show_macros(tree / "macros")
    if arguments.trace:
        show_trace(tree)


if __name__ == "__main__":
    main()
