"""The package's macros, rendered as dbt does, without Spark and without a project."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import jinja2
from dbt_common.clients.jinja import (
    CallableMacroGenerator,
    MacroProtocol,
    extract_toplevel_blocks,
    get_environment,
    parse,
)
from dbt_common.exceptions import CompilationError
from dbt_common.exceptions.macros import MacroReturn

from dbt.adapters.openmirroring.node.warehouse import Warehouse
from dbt.adapters.openmirroring.text.codes import with_code
from dbt.adapters.openmirroring.text.sql import quoted

OURS = Path(__file__).parents[3] / "macros"

# in dbt-spark's adapters.sql, called by ours
CLAUSES = {"file_format_clause", "options_clause", "clustered_cols", "comment_clause"}


@dataclass(frozen=True)
class Macro:
    """A macro, test or materialization.

    Args:
        name: as dbt knows it, e.g. `materialization_table_openmirroring`
        macro_sql: its source
        folder: with its file, e.g. `sql`
    """

    name: str
    macro_sql: str
    folder: str

    @property
    def syntax(self) -> jinja2.nodes.Template:
        return parse(self.macro_sql)


@cache
def our_macros() -> dict[str, Macro]:
    found = {}
    for file in sorted(OURS.rglob("*.sql")):
        found.update(_macros_in(file))
    return found


@cache
def _dbt_spark_macros() -> dict[str, Macro]:
    spec = find_spec("dbt.include.spark")
    assert spec
    assert spec.origin
    return _macros_in(Path(spec.origin).parent / "macros" / "adapters.sql")


def _macros_in(file: Path) -> dict[str, Macro]:
    found = {}
    for block in extract_toplevel_blocks(
        file.read_text(encoding="utf-8"),
        allowed_blocks={"macro", "materialization", "test"},
        collect_raw_data=False,
    ):
        for node in parse(block.full_block).find_all(jinja2.nodes.Macro):
            name = node.name.removeprefix("dbt_macro__")
            found[name] = Macro(name, str(block.full_block), file.parent.name)
    return found


class _Rendered(CallableMacroGenerator):
    """A macro to call. Unlike in dbt, a name that nothing has is an error, not an empty text."""

    def get_template(self) -> jinja2.Template:
        return _template(self.macro.macro_sql)


@cache
def _template(source: str) -> jinja2.Template:
    environment = get_environment()
    environment.undefined = jinja2.StrictUndefined
    return environment.from_string(source)


class _Adapter:
    """As much of the adapter as macros that only write SQL may ask."""

    def __init__(self, context: Mapping[str, Any]) -> None:
        self._context = context

    def quote(self, name: str) -> str:
        return quoted(name)

    def with_code(self, text: str, code: str) -> str:
        return with_code(text, code)

    def dispatch(self, name: str, package: str) -> Any:
        assert package == "dbt"
        for prefix in ("openmirroring", "spark", "default"):
            if f"{prefix}__{name}" in self._context:
                return self._context[f"{prefix}__{name}"]
        raise CompilationError(f"No macro {name}")


class _Config:
    """The configuration of a node, as its macros have it."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def get(self, name: str, default: Any = None, validator: Any = None) -> Any:
        return self._values.get(name, default)

    def persist_relation_docs(self) -> bool:
        return bool((self._values.get("persist_docs") or {}).get("relation"))


def _return(value: Any = None) -> NoReturn:
    raise MacroReturn(value)


def warehouse(description: str = "", **config: Any) -> Warehouse:
    """Return the warehouse of a node with a description and a configuration."""
    context: dict[str, Any] = {
        "return": _return,
        "modules": {"re": re},
        "config": _Config(config),
        "model": {"description": description},
        # dbt-spark names it for validation
        "validation": SimpleNamespace(any=defaultdict(bool)),
        "basestring": str,
        "list": list,
        "int": int,
    }
    context["adapter"] = _Adapter(context)
    # dbt's own macros can be changed
    _add(context, {**_dbt_spark_macros(), **our_macros()})
    return Warehouse(None, context)  # type: ignore[arg-type]


def operation(name: str, adapter: Any) -> Callable[..., Any]:
    """A macro that `dbt run-operation` calls."""
    context: dict[str, Any] = {"adapter": adapter, "graph": {"nodes": {}}, "execute": True}
    _add(context, our_macros())
    macro: Callable[..., Any] = context[name]
    return macro


def _add(context: dict[str, Any], macros: Mapping[str, Macro]) -> None:
    """Let macros call each other."""
    for macro in macros.values():
        context[macro.name] = _Rendered(cast(MacroProtocol, macro), context)
