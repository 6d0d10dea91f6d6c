"""How often a node goes from Python to Jinja and back while it publishes a changed row.

Prints a table in Markdown, for tables of so many columns: the calls from macros to methods of the
adapter, the macros that Python calls (dbt's own call of the materialization is one), and, apart
from both, all calls of `adapter.dispatch`. Macros that macros call are not counted, nor are
methods of other objects than the adapter.
"""

from __future__ import annotations

import argparse
import functools
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dbt.clients.jinja import MacroGenerator
from dbt.context.providers import RuntimeDatabaseWrapper
from dbt.task.run import ModelRunner
from dbt_common.clients.jinja import CallableMacroGenerator

from tests.functional.project import Project

# as many columns of each, besides the key
TYPES = ("string", "bigint", "decimal(18, 2)", "timestamp")


@dataclass
class Crossings:
    """The calls between the languages while a node runs.

    Args:
        calls: from macros to methods of the adapter
        macros: that Python calls
        dispatches: searches for a macro's implementation
    """

    calls: int = 0
    macros: int = 0
    dispatches: int = 0


def _is_called_by_template() -> bool:
    """Whether a template called the function that asks: Jinja's runtime makes its calls for it."""
    return str(sys._getframe(2).f_globals["__name__"]).startswith("jinja2.")


@contextmanager
def counted() -> Iterator[Crossings]:
    """Count while the materialization of a run's only node is executed; dbt is in this process."""
    crossings = Crossings()
    running = False
    find: Any = RuntimeDatabaseWrapper.__getattr__
    dispatch: Any = RuntimeDatabaseWrapper.dispatch
    execute: Any = ModelRunner.execute

    def watch_execute(*args: Any) -> Any:
        nonlocal running
        running = True
        try:
            return execute(*args)
        finally:
            running = False

    def watch_find(wrapper: RuntimeDatabaseWrapper, name: str) -> Any:
        method = find(wrapper, name)

        @functools.wraps(method)
        def call(*args: Any, **named: Any) -> Any:
            crossings.calls += running and _is_called_by_template()
            return method(*args, **named)

        return call

    def watch_dispatch(*args: Any, **named: Any) -> Any:
        crossings.dispatches += running
        return dispatch(*args, **named)

    def watch_macro(call: Callable[..., Any]) -> Callable[..., Any]:
        def watch(*args: Any, **named: Any) -> Any:
            crossings.macros += running and not _is_called_by_template()
            return call(*args, **named)

        return watch

    with (
        patch.object(ModelRunner, "execute", watch_execute),
        patch.object(RuntimeDatabaseWrapper, "__getattr__", watch_find),
        patch.object(RuntimeDatabaseWrapper, "dispatch", watch_dispatch),
        patch.object(MacroGenerator, "__call__", watch_macro(MacroGenerator.__call__)),
        # with which adapters call macros
        patch.object(
            CallableMacroGenerator, "__call__", watch_macro(CallableMacroGenerator.__call__)
        ),
    ):
        yield crossings


def model(columns: int, changed: int) -> str:
    """A hundred rows.

    Args:
        columns: with the key
        changed: the id of a row that has other values
    """
    value = f"if(id = {changed}, id + 1, nullif(id, 0))"
    values = [f"cast({value} as {TYPES[i % len(TYPES)]}) as c{i}" for i in range(columns - 1)]
    return f"select {', '.join(['id', *values])} from range(100)"


def measure(project: Project, columns: int) -> Crossings:
    name = f"t{columns}"
    for changed in (-1, 7):
        project.model(model(columns, changed), name, unique_key="id")
        with counted() as crossings:
            response = project.run("--select", name)
    if (response["publication"], response["rows_updated"]) != ("changes", 1):
        sys.exit(f"expected one changed row, found {response}")
    return crossings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("columns", nargs="*", type=int, default=[16, 100])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder))
        found = {columns: measure(project, columns) for columns in arguments.columns}
    print(
        "| columns | adapter calls from macros | macros rendered from Python | sum | dispatches |"
    )
    print("|---|---|---|---|---|")
    for columns, seen in found.items():
        cells = [columns, seen.calls, seen.macros, seen.calls + seen.macros, seen.dispatches]
        print(f"| {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
