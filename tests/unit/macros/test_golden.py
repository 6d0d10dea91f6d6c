"""The SQL that macros write, compared with the texts in `golden`.

To write these anew: `pytest tests/unit/macros --update-golden`, and read what has changed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.macros.cases import compare, delimited, incremental, stage, tables
from tests.unit.macros.cases.shop import Case
from tests.unit.macros.rendered import warehouse

GOLDEN = Path(__file__).parent / "golden"
GROUPS = [module.CASES for module in (compare, stage, delimited, incremental, tables)]
CASES = {name: case for group in GROUPS for name, case in group.items()}


def rendered(case: Case) -> str:
    """The SQL, without empty lines and spaces at the ends of lines."""
    sql = warehouse(case.description, **case.config).sql(case.macro, **case.arguments)
    return "".join(f"{line.rstrip()}\n" for line in sql.splitlines() if line.strip())


@pytest.mark.parametrize("name", CASES)
def test_a_macro_writes_the_sql_that_was_read(name: str, request: pytest.FixtureRequest) -> None:
    file = GOLDEN / f"{name}.sql"

    sql = rendered(CASES[name])

    if request.config.getoption("--update-golden"):
        file.write_text(sql, encoding="utf-8")
    assert sql == (file.read_text(encoding="utf-8") if file.exists() else None)


def test_every_text_is_that_of_a_case(request: pytest.FixtureRequest) -> None:
    assert len(CASES) == sum(map(len, GROUPS))
    stale = [file for file in GOLDEN.iterdir() if file.stem not in CASES]
    if request.config.getoption("--update-golden"):
        for file in stale:
            file.unlink()
    assert {file.name for file in GOLDEN.iterdir()} == {f"{name}.sql" for name in CASES}
