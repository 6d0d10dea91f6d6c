"""The rooms of the package import only the rooms below them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dbt.adapters.openmirroring as package

ROOT = Path(package.__file__).parent
NAME = package.__name__

# rooms that all others may import
LEAVES = {"text", "rest", "dbt_core"}

MAY_IMPORT: dict[str, set[str]] = {
    "text": set(),
    "dbt_core": set(),
    "rest": {"text"},
    "landing_zone": {"text", "rest"},
    "replicator": {"text"},
    "types": {*LEAVES},
    "spark": {"types", *LEAVES},
    "service": {"landing_zone", *LEAVES},
    "destination": {"landing_zone", "service", "replicator", *LEAVES},
    "node": {"destination", "landing_zone", "spark", "types", *LEAVES},
    "operations": {
        *{"node", "destination", "landing_zone", "service", "spark"},
        *LEAVES,
    },
}

# upward arrows, for types only: a protocol would repeat its one class
FOR_TYPES = {
    ("node.warehouse", "impl"),
    ("operations.command", "impl"),
    ("landing_zone.publisher", "service.monitoring"),
}


def module_name(path: Path) -> str:
    """Without the name of the package; empty for the package itself."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in ROOT.rglob("*.py")}


def imports(path: Path) -> Iterator[str]:
    """The modules of the package that a module imports, also for typing or in a function."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{NAME}."):
            assert not node.level, "imports are absolute"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [
                n if n.removeprefix(f"{NAME}.") in MODULES else str(node.module) for n in names
            ]
        else:
            continue
        yield from (n[len(NAME) + 1 :] for n in names if f"{n}.".startswith(f"{NAME}."))


IMPORTS = {
    name: {other for other in imports(path) if (name, other) not in FOR_TYPES}
    for name, path in MODULES.items()
}


def room(module: str) -> str:
    """Empty for the top."""
    name = module.partition(".")[0]
    return name if (ROOT / name).is_dir() else ""


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_a_room_imports_only_the_rooms_below_it(name: str) -> None:
    found = {
        (module, imported)
        for module, others in IMPORTS.items()
        for imported in others
        if room(module) == name
        and room(imported) not in {name, *MAY_IMPORT[name]}
        and imported != "__version__"
    }

    assert found == set()


def test_every_room_has_a_rule() -> None:
    assert {room(module) for module in MODULES} - {""} == set(MAY_IMPORT)


def test_only_one_room_uses_parts_of_dbt_that_are_no_interface() -> None:
    # `dbtRunner` is one
    hidden = r"from dbt\.(?!adapters|include|cli\.main)|\._macro_|_parse_model_constraint"
    found = {m for m, path in MODULES.items() if re.search(hidden, path.read_text())}

    assert {room(module) for module in found} == {"dbt_core"}


def test_no_modules_import_each_other_in_a_circle() -> None:
    left = {module: others & MODULES.keys() for module, others in IMPORTS.items()}
    while free := {m for m in left if not left[m] or not any(m in each for each in left.values())}:
        left = {module: others - free for module, others in left.items() if module not in free}

    assert left == {}
