"""Macros write SQL and nothing else; each is asked for, and each that is asked for is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta
import pytest

from dbt.adapters.openmirroring.node.config import INCREMENTAL_STRATEGIES, NodeConfig
from dbt.adapters.openmirroring.node.decide import Change
from tests.unit.macros import cases
from tests.unit.macros.cases import CASES
from tests.unit.macros.rendered import CLAUSES, OURS, our_macros, warehouse

PACKAGE = Path(__file__).parents[3] / "dbt" / "adapters" / "openmirroring"
PREFIX = "openmirroring__"
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


def test_every_macro_is_called() -> None:
    sources = "".join(file.read_text(encoding="utf-8") for file in PACKAGE.rglob("*.py"))
    # a part of a name may be chosen
    names = {re.sub("{.+}", r"\\w+", name) for name in re.findall(r'"(mirror_[^" ]+)"', sources)}
    names |= {
        NodeConfig(incremental_strategy=name).strategy_macro for name in INCREMENTAL_STRATEGIES
    }
    called = {name for name in dispatched() if any(re.fullmatch(each, name) for each in names)}

    assert called | asked_by_macros() == dispatched()


def test_python_calls_a_macro_with_its_arguments_by_name() -> None:
    names = dispatched()
    for file in PACKAGE.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            name = getattr(call.args[0], "value", None) if call.args else None
            if name in names:
                required, optional = arguments_of(f"{PREFIX}{name}")
                named = {keyword.arg for keyword in call.keywords}
                assert required <= named <= required | optional, f"{file}:{call.lineno}"


def test_every_macro_that_writes_sql_for_python_is_tried() -> None:
    others = {f"mirror_on_{kind}" for kind in WORDS} | {"mirror_is_small"}

    assert {case.macro for case in CASES} == dispatched() - others - asked_by_macros()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.macro)
def test_sql_has_names_and_texts_in_their_quotes(case: cases.Case) -> None:
    others = re.sub(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'", "quoted", case.sql(), flags=re.DOTALL)

    assert not re.search(r"['`\\]|\b(it|odd|None)\b", others), others


@pytest.mark.parametrize(
    ("case", "has", "has_not"),
    [
        (cases.compared(cases.KEYS, is_small=True), "COALESCE(1)", "REPARTITION"),
        (cases.compared(cases.KEYS), "REPARTITION(k0, k1)", "COALESCE"),
        (cases.compared(()), "REPARTITION(d0, d1)", "COALESCE"),
        (cases.changed(cases.CHANGED), "BROADCAST(changed)", "COALESCE"),
        (cases.changed(cases.MANY), "REPARTITION_BY_RANGE(2, position, c5, c6)", "BROADCAST"),
    ],
    ids=["small", "keyed", "keyless", "few", "many"],
)
def test_only_small_tables_are_brought_to_one_task(
    case: cases.Case, has: str, has_not: str
) -> None:
    assert has in case.sql()
    assert has_not not in case.sql()


def test_a_macro_that_writes_sql_asks_nobody() -> None:
    for name, macro in our_macros().items():
        if macro.folder not in ("sql", "mapping"):
            continue
        syntax = macro.syntax
        # jinja2 takes for undeclared what is set in a branch only
        own = {node.name for node in syntax.find_all(jinja2.nodes.Name) if node.ctx == "store"}
        names = jinja2.meta.find_undeclared_variables(syntax) - own
        used = {
            node.attr
            for node in syntax.find_all(jinja2.nodes.Getattr)
            if isinstance(node.node, jinja2.nodes.Name) and node.node.name == "adapter"
        }
        assert names <= {"adapter", "modules", "return", *CLAUSES, *our_macros()}, name
        assert used <= {"quote", "dispatch", "with_code"}, name
        assert not any(syntax.find_all(jinja2.nodes.CallBlock)), name


def test_a_macro_is_defined_once_in_a_room_for_it() -> None:
    definitions = re.findall(
        r"{%-? macro (\w+)", "".join(file.read_text("utf-8") for file in OURS.rglob("*.sql"))
    )

    assert len(definitions) == len(set(definitions))
    assert {m.folder for n, m in our_macros().items() if n.startswith(f"{PREFIX}mirror_")} == {
        *("sql", "mapping", "tests")
    }


def test_every_kind_of_change_has_a_macro_and_leads_to_a_word() -> None:
    spelled = (PACKAGE / "node" / "decide.py").read_text(encoding="utf-8")

    assert {name for name in dispatched() if name.startswith("mirror_on_")} == {
        f"mirror_on_{kind}" for kind in WORDS
    }
    for kind, word in WORDS.items():
        assert f'"{kind}"' in spelled
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
def test_rows_are_few_only_if_that_is_known(size: Any, rows: int, is_small: bool) -> None:
    assert warehouse().ask("mirror_is_small", bytes=size, rows=rows) is is_small
