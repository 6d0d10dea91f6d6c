"""Nothing does not mean everything: which arguments an operation takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import jinja2.nodes
import pytest

from dbt.adapters.openmirroring.dbt_core.project import Graph
from dbt.adapters.openmirroring.destination.destination import Destination, Target
from dbt.adapters.openmirroring.operations.run_operations import RunOperations
from dbt.adapters.openmirroring.text.errors import RefusedError
from tests.unit.macros.rendered import operation, our_macros

URL = "https://onelake.dfs.fabric.microsoft.com/Sales/shop.MirroredDatabase/Files/LandingZone"

# by name: the arguments of each operation
OPERATIONS = {
    name: [argument.name for argument in node.args]
    for name, macro in our_macros().items()
    if macro.folder == "operations" and name not in ("mirror_print", "mirror_outcome")
    for node in macro.syntax.find_all(jinja2.nodes.Macro)
}
ARGUMENTS = [(name, argument) for name, known in OPERATIONS.items() for argument in known]


class Adapter:
    """As much of the adapter as operations need before they begin to do something."""

    def __init__(self, destination: Destination) -> None:
        self._destination = destination

    def run_operations(self, graph: Graph) -> RunOperations:
        command: Any = None
        return RunOperations(command, command, self._destination, graph, own_spark=command)


@pytest.fixture
def adapter(tmp_path: Path) -> Adapter:
    target = Target(landing_zone=URL)
    return Adapter(Destination(target, project=lambda: tmp_path, warehouse=lambda: None))


def refused(name: str, adapter: Adapter, **given: Any) -> str:
    with pytest.raises(RefusedError) as error:
        operation(name, adapter)(**given)
    assert error.value.text.endswith("Nothing was changed.")
    return error.value.text


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
@pytest.mark.parametrize("value", [None, "", " ", 0, -1, 1.5, {}, [""], ["a", None]], ids=repr)
def test_a_value_that_is_nothing_or_of_another_kind_is_refused(
    adapter: Adapter, name: str, argument: str, value: Any
) -> None:
    told = refused(name, adapter, **{argument: value})

    assert told.startswith(f"`{argument}` of {name} is {value!r}. It must be ")


@pytest.mark.parametrize(("name", "argument"), ARGUMENTS)
def test_an_undefined_variable_of_a_macro_is_no_argument_that_was_left_out(
    adapter: Adapter, name: str, argument: str
) -> None:
    if argument == "results":  # as in `dbt compile`, which publishes nothing
        operation(name, adapter)(results=jinja2.Undefined(name="results"))
        return

    assert "is Undefined" in refused(name, adapter, **{argument: jinja2.Undefined(name="tabel")})


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("mirror_history", {"limit": True}, "a whole number of 1 or more"),
        ("mirror_history", {"limit": "10"}, "a whole number of 1 or more"),
        ("mirror_publish", {"table": ["orders"]}, "a name that is not empty"),
        ("mirror_drop_orphans", {"dry_run": "false"}, "true or false"),
        ("mirror_drop_orphans", {"table": []}, "a list of such names"),
        ("mirror_create_database", {"retention_days": 31}, "a whole number from 1 to 30"),
        ("mirror_stop", {"confirm": True}, "a name that is not empty"),
    ],
)
def test_a_refusal_tells_what_is_allowed(
    adapter: Adapter, name: str, given: dict[str, Any], told: str
) -> None:
    assert told in refused(name, adapter, **given)


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "mirror_publish_tested"])
def test_an_unknown_argument_is_refused_with_those_that_are_known(
    adapter: Adapter, name: str
) -> None:
    told = refused(name, adapter, tabel="orders")

    known = ", ".join(f"`{argument}`" for argument in OPERATIONS[name]) or "none"
    assert told.startswith(f"{name} has no argument `tabel`. Its arguments: {known}.")


def test_an_argument_that_is_needed_is_asked_for(adapter: Adapter) -> None:
    assert "--args '{table: ...}'" in refused("mirror_rebuild", adapter)
