"""The rooms of the package import only the rooms below them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.house import TOP, modules_of

# rooms that all others may import
LEAVES = {"text", "rest", "dbt_core", "disk"}

MAY_IMPORT: dict[str, set[str]] = {
    "text": set(),
    "disk": set(),
    "dbt_core": set(),
    "rest": {"text"},
    "landing_zone": {"protocol", "text", "rest", "disk"},
    "replicator": {"text", "disk"},
    "types": {*LEAVES},
    "protocol": set(),
    "spark": {"types", *LEAVES},
    "service": {"landing_zone", *LEAVES},
    "destination": {"landing_zone", "service", "replicator", "types", *LEAVES},
    "node": {"protocol", "destination", "landing_zone", "spark", "types", *LEAVES},
    "operations": {"node", "protocol", "destination", "landing_zone", "service", "spark", *LEAVES},
}

# upward arrows, for types only: a protocol would repeat its one class
FOR_TYPES = {
    ("node.warehouse", "impl"),
    ("operations.command", "impl"),
    ("landing_zone.publisher", "service.monitoring"),
}


MODULES = {module.name: module for module in modules_of(Path(__file__).parents[2])}
IMPORTS = {
    name: {
        other
        for other in module.imports(set(MODULES))
        if (module.short, MODULES[other].short) not in FOR_TYPES
    }
    for name, module in MODULES.items()
}


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_the_rooms_below_it(room: str) -> None:
    found = {
        (name, other)
        for name, module in MODULES.items()
        for other in IMPORTS[name]
        if module.room == room and MODULES[other].room not in {room, *MAY_IMPORT[room]}
    }

    assert found == set()


def test_every_room_has_a_rule() -> None:
    assert {module.room for module in MODULES.values()} - {TOP} == set(MAY_IMPORT)


def test_only_one_room_uses_parts_of_dbt_that_are_no_interface() -> None:
    # `dbtRunner` is one
    hidden = r"from dbt\.(?!adapters|include|cli\.main)|\._macro_|_parse_model_constraint"
    found = {module.room for module in MODULES.values() if re.search(hidden, module.text)}

    assert found == {"dbt_core"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = dict(IMPORTS)
    while free := {m for m in left if not left[m] or not any(m in each for each in left.values())}:
        left = {module: others - free for module, others in left.items() if module not in free}

    assert left == {}
