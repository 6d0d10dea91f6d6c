"""Macros write SQL and nothing else; each is asked for, and each that is asked for is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jinja2
import jinja2.meta
import pytest

from dbt.adapters.openmirroring.node.config import INCREMENTAL_STRATEGIES, NodeConfig
from dbt.adapters.openmirroring.node.decide import Change
from tests.unit.macros.rendered import CLAUSES, OURS, our_macros, warehouse
from tests.unit.macros.test_golden import CASES

PACKAGE = Path(__file__).parents[3] / "dbt" / "adapters" / "openmirroring"
PREFIX = "openmirroring__"
STRATEGIES = {
    NodeConfig(incremental_strategy=name).strategy_macro for name in INCREMENTAL_STRATEGIES
}
WORDS = {
    "columns_added": "changes",
    "columns_reordered": "unchanged",
    "spark_types_changed": "unchanged",
    "declared_columns_changed": "rebuild",
    "columns_dropped": "rebuild",
    "column_case_changed": "rebuild",
    "column_types_changed": "rebuild",
    "key_columns_changed": "rebuild",
    "landing_format_changed": "rebuild",
    "keyless_rows_gone": "rebuild",
}


def dispatched() -> set[str]:
    """The macros that a project can have instead of ours, without those of dbt-spark."""
    return {
        name.removeprefix(PREFIX) for name in our_macros() if name.startswith(f"{PREFIX}mirror_")
    }


@dataclass(frozen=True)
class Call:
    """A call of a macro by a method of `Warehouse`.

    Args:
        place: the file and the line
        macros: patterns of the names of the macros that it may call
        positional: how many arguments of the macro have no name
        named: the names of the others; None for `**`
    """

    place: str
    macros: tuple[str, ...]
    positional: int
    named: tuple[str | None, ...]

    @classmethod
    def of(cls, node: ast.AST, place: str) -> Call | None:
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            return None
        if node.func.attr not in ("ask", "sql", "run", "read", "count"):
            return None
        is_own = place == "warehouse.py" and ast.unparse(node.args[0]) != "macro"
        if not is_own and not ast.unparse(node.func.value).endswith("warehouse"):
            return None
        named = tuple(keyword.arg for keyword in node.keywords)
        macros = tuple(names_in(node.args[0]))
        return cls(f"{place}:{node.lineno}", macros, len(node.args) - 1, named)

    def finding(self, name: str) -> str:
        """What is wrong with the arguments of this call of a macro; empty if nothing is."""
        required, optional = arguments_of(f"{PREFIX}{name}")
        if self.positional or None in self.named:
            return f"{self.place}: arguments of {name} without a name"
        if not required <= set(self.named) <= required | optional:
            return f"{self.place}: {name} takes {sorted(required)}, {sorted(optional)} if needed"
        return ""


def calls_by_python() -> list[Call]:
    return [
        call
        for file in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if (call := Call.of(node, file.name))
    ]


def names_in(argument: ast.expr) -> Iterator[str]:
    if isinstance(argument, ast.IfExp):
        yield from (*names_in(argument.body), *names_in(argument.orelse))
    elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value
    elif isinstance(argument, ast.JoinedStr):
        parts = (
            part.value if isinstance(part, ast.Constant) else "\\w+" for part in argument.values
        )
        yield "".join(map(str, parts))
    elif isinstance(argument, ast.Attribute) and argument.attr == "strategy_macro":
        yield from sorted(STRATEGIES)


def matches(pattern: str) -> set[str]:
    """The dispatched macros whose name matches a pattern."""
    return {name for name in dispatched() if re.fullmatch(pattern, name)}


def arguments_of(macro: str) -> tuple[set[str], set[str]]:
    """The names of the arguments that a macro requires, and of those that have a value."""
    syntax = next(our_macros()[macro].syntax.find_all(jinja2.nodes.Macro))
    names = [argument.name for argument in syntax.args]
    first = len(names) - len(syntax.defaults)
    return set(names[:first]), set(names[first:])


def asked_by_macros() -> set[str]:
    """Return the names that macros hand to `adapter.dispatch`."""
    return {
        call.args[0].value
        for macro in our_macros().values()
        for call in macro.syntax.find_all(jinja2.nodes.Call)
        if isinstance(call.node, jinja2.nodes.Getattr)
        and call.node.attr == "dispatch"
        and isinstance(call.args[0], jinja2.nodes.Const)
    }


def kinds_of_changes() -> set[str]:
    """The kinds that the package spells, also where one is chosen from two."""
    found = set()
    text = (PACKAGE / "node" / "decide.py").read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)):
        named = None
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Change":
            named = node.args[0]
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "kind":
            named = node.value
        constants = ast.walk(named) if named else ()
        found |= {each.value for each in constants if isinstance(each, ast.Constant)}
    return {str(kind) for kind in found}


def test_every_macro_is_called_and_every_called_macro_exists() -> None:
    patterns = {pattern for call in calls_by_python() for pattern in call.macros}
    called = {name for pattern in patterns for name in matches(pattern)}

    assert called | asked_by_macros() == dispatched()
    assert not [pattern for pattern in patterns if not matches(pattern)]
    assert not [call.place for call in calls_by_python() if not call.macros]


def test_python_calls_a_macro_with_its_arguments_by_name() -> None:
    findings = [
        call.finding(name)
        for call in calls_by_python()
        for pattern in call.macros
        for name in matches(pattern)
    ]

    assert len(findings) > 40
    assert not [finding for finding in findings if finding]


@pytest.mark.parametrize(
    ("call", "finding"),
    [
        ("warehouse.sql('mirror_keep', table=a, query=b)", ""),
        ("warehouse.sql('mirror_keep', table=a, query=b, properties=c)", ""),
        ("self._warehouse.sql('mirror_keep', a, query=b)", "arguments of mirror_keep without"),
        ("node.warehouse.sql('mirror_keep', **named)", "arguments of mirror_keep without"),
        ("warehouse.sql('mirror_keep', table=a)", "takes ['query', 'table'], ['properties']"),
        ("warehouse.ask('mirror_keep', table=a, query=b, marks=c)", "takes ['query', 'table']"),
    ],
)
def test_a_wrong_call_of_a_macro_is_found(call: str, finding: str) -> None:
    parsed = Call.of(ast.parse(call, mode="eval").body, "a.py")

    assert parsed
    assert finding in parsed.finding("mirror_keep")
    assert bool(finding) is bool(parsed.finding("mirror_keep"))


def test_every_kind_of_change_has_a_macro() -> None:
    assert kinds_of_changes() == set(WORDS)
    assert {name for name in dispatched() if name.startswith("mirror_on_")} == {
        f"mirror_on_{kind}" for kind in WORDS
    }


def test_every_macro_that_writes_sql_for_python_has_texts_to_read() -> None:
    others = {name for name in dispatched() if name.startswith("mirror_on_")}
    # a part of others; and a decision, below
    others |= asked_by_macros() | {"mirror_is_small"}

    assert {case.macro for case in CASES.values()} == dispatched() - others


@pytest.mark.parametrize(
    "name", [n for n, m in our_macros().items() if m.folder in ("sql", "mapping")]
)
def test_a_macro_that_writes_sql_asks_nobody(name: str) -> None:
    syntax = our_macros()[name].syntax

    # jinja2 takes for undeclared what is set in a branch only
    own = {node.name for node in syntax.find_all(jinja2.nodes.Name) if node.ctx == "store"}
    names = jinja2.meta.find_undeclared_variables(syntax) - own
    used = {
        node.attr
        for node in syntax.find_all(jinja2.nodes.Getattr)
        if isinstance(node.node, jinja2.nodes.Name) and node.node.name == "adapter"
    }

    assert names <= {"adapter", "modules", "return", *CLAUSES, *our_macros()}
    assert used <= {"quote", "dispatch"}
    assert not any(syntax.find_all(jinja2.nodes.CallBlock))


def test_a_macro_is_defined_once_in_a_room_for_it() -> None:
    definitions = re.findall(
        r"{%-? macro (\w+)", "".join(file.read_text("utf-8") for file in OURS.rglob("*.sql"))
    )

    assert len(definitions) == len(set(definitions))
    assert {m.folder for n, m in our_macros().items() if n.startswith(f"{PREFIX}mirror_")} == {
        *("sql", "mapping", "tests")
    }


@pytest.mark.parametrize(("kind", "word"), WORDS.items())
def test_a_kind_of_change_leads_to_a_word(kind: str, word: str) -> None:
    assert warehouse().ask(f"mirror_on_{kind}", change=Change(kind, "in words")) == word


@pytest.mark.parametrize(
    ("size", "rows", "is_small"),
    [
        (None, 0, False),
        (0, 0, True),
        (4 * 2**20, 1_000_000, True),
        (4 * 2**20 + 1, 0, False),
        (0, 1_000_001, False),
    ],
)
def test_rows_are_few_only_if_that_is_known(size: int | None, rows: int, is_small: bool) -> None:
    assert warehouse().ask("mirror_is_small", bytes=size, rows=rows) is is_small
