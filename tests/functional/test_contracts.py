"""A contract holds in the mirror, or nothing is published."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.functional.project import Project
from tests.variants import some

ENFORCED = {"enforced": True}


def write_contract(
    project: Project,
    constraints: list[dict[str, Any]] | None = None,
    types: dict[str, str] | None = None,
    **of_columns: list[dict[str, Any]],
) -> None:
    types = types or {"id": "bigint", "name": "string", "price": "int"}
    columns = [
        {"name": name, "data_type": data_type, "constraints": of_columns.get(name, [])}
        for name, data_type in types.items()
    ]
    model = {"name": "orders", "columns": columns, "constraints": constraints or []}
    project.write("models/orders.yml", yaml.safe_dump({"models": [model]}))


def rows(*values: str) -> str:
    typed = "id, cast(name as string) as name, cast(price as int) as price"
    return f"select {typed} from values {', '.join(values)} as (id, name, price)"


GOOD = rows("(1L, 'a', 10)", "(2L, 'b', 20)")
NOT_NULL = {"type": "not_null"}
UNIQUE = {"type": "unique"}
PRIMARY_KEY = {"type": "primary_key"}
POSITIVE = {"type": "check", "expression": "price > 0"}


@pytest.mark.core
@pytest.mark.parametrize("mirror", some([True, False]))
def test_every_constraint_that_rows_break_is_told_and_nothing_is_published(
    project: Project, mirror: bool
) -> None:
    write_contract(
        project,
        [{**POSITIVE, "name": "priced"}, {**UNIQUE, "columns": ["name", "price"]}],
        name=[NOT_NULL, UNIQUE, PRIMARY_KEY],
        price=[POSITIVE],
    )
    options: dict[str, Any] = {"unique_key": "id", "contract": ENFORCED, "mirror": mirror}
    project.model(GOOD, **options)
    project.run()
    before = project.state()
    project.model(rows("(1L, 'a', 10)", "(2L, 'a', 10)", "(3L, null, -1)"), **options)

    message = project.fail()

    for told in (
        "not_null (name) by 1 row, e.g. id=3",
        "unique (name) by 1 value, e.g. name=a (2 rows)",
        "primary_key (name) by 1 value, e.g. name=a (2 rows)",
        "check (price > 0) by 1 row, e.g. id=3",
        "check priced (price > 0) by 1 row",
        "unique (name, price) by 1 value, e.g. name=a, price=10",
    ):
        assert told in message
    assert project.state() == before
    project.assert_tidy()


@pytest.mark.parametrize(
    ("constraints", "sql", "contract"),
    [
        # NULLs are different from each other, and a check that is unknown is not false
        (
            {"name": [UNIQUE], "price": [POSITIVE]},
            rows("(1L, null, 10)", "(2L, null, null)"),
            ENFORCED,
        ),
        ({"name": [UNIQUE]}, GOOD, ENFORCED),
        ({"name": [UNIQUE]}, f"{GOOD} limit 0", ENFORCED),
        # outside of a contract, a constraint is only documentation
        ({"name": [NOT_NULL]}, rows("(1L, null, 10)"), {}),
    ],
    ids=["NULL", "rows", "no rows", "no contract"],
)
def test_rows_that_break_no_constraint_are_published(
    project: Project, constraints: dict[str, Any], sql: str, contract: dict[str, bool]
) -> None:
    write_contract(project, **constraints)
    project.model(sql, unique_key="id", contract=contract)

    project.run()

    project.assert_mirrored()


def test_new_rows_that_break_a_constraint_together_with_old_ones_are_refused(
    project: Project,
) -> None:
    write_contract(project, name=[UNIQUE])
    options: dict[str, Any] = {
        "materialized": "incremental",
        "unique_key": "id",
        "on_schema_change": "append_new_columns",
        "contract": ENFORCED,
    }
    project.model(rows("(1L, 'a', 10)", "(2L, 'b', 20)"), **options)
    project.run()
    project.model(rows("(3L, 'a', 30)"), **options)

    assert "unique (name) by 1 value, e.g. name=a (2 rows)" in project.fail()

    project.model(rows("(1L, 'c', 10)", "(3L, 'a', 30)"), **options)
    project.run()
    project.assert_mirrored()


@pytest.mark.parametrize(
    ("constraint", "told"),
    [
        ({"type": "check"}, "check constraint needs an `expression`"),
        ({"type": "unique"}, "unique constraint needs `columns`"),
    ],
)
def test_a_constraint_about_nothing_is_refused(
    project: Project, constraint: dict[str, Any], told: str
) -> None:
    write_contract(project, constraints=[constraint])
    project.model(GOOD, contract=ENFORCED)

    assert told in project.fail()


# types with a length, and a value of three and of four characters
LENGTHS = {
    "varchar(3)": ("'😀öü'", "'abcd'"),
    "CHAR ( 3 )": ("'ab'", "'abcd'"),
    "character(3)": ("'abc'", "'abc '"),
    "array<varchar(3)>": ("array('abc', null)", "array('a', 'abcd')"),
    "map<string, varchar(3)>": ("map('abcd', 'abc')", "map('a', 'abcd')"),
    "struct<`a`: varchar(3), n: int>": (
        "named_struct('a', 'abc', 'n', 1)",
        "named_struct('a', 'abcd', 'n', 1)",
    ),
}


@pytest.mark.parametrize("declared", LENGTHS)
def test_a_text_that_is_longer_than_its_contract_never_reaches_the_mirror(
    project: Project, declared: str
) -> None:
    write_contract(project, types={"id": "int", "v": declared})
    good, bad = LENGTHS[declared]
    for materialized in ("table", "incremental"):
        options: dict[str, Any] = {"materialized": materialized, "on_schema_change": "fail"}
        options |= {"unique_key": "id", "contract": ENFORCED}
        project.model(f"select 1 as id, {good} as v", **options)
        project.run()
        project.assert_mirrored()
        before = project.state()

        project.model(f"select 1 as id, {bad} as v", **options)

        assert f"{declared} (v) by 1 row, e.g. id=1" in project.fail()
        assert project.state() == before


def test_a_type_whose_lengths_cannot_be_checked_is_refused(project: Project) -> None:
    write_contract(project, types={"id": "int", "v": "struct<a varchar(3)>"})
    project.model("select 1 as id, named_struct('a', 'abcd') as v", contract=ENFORCED)

    message = project.fail()

    assert "struct<a:varchar(3)>" in message
    write_contract(project, types={"id": "int", "v": "struct<a:varchar(3)>"})
    project.model("select 1 as id, named_struct('a', 'abc') as v", contract=ENFORCED)
    project.run()
    project.assert_mirrored()


@pytest.mark.parametrize(
    ("declared", "selected"),
    some(
        [
            ("decimal(9, 2)", "cast(1 as decimal(10, 2))"),
            ("array<int>", "array(1L)"),
            ("decimal(9, 2)", "cast(1 as decimal(9, 3))"),
            ("array<decimal(9, 2)>", "array(cast(1 as decimal(10, 2)))"),
            ("timestamp", "timestamp_ntz'2024-01-01 00:00:00'"),
            ("int", "1L"),
            ("float", "1D"),
            ("struct<a: int>", "named_struct('b', 1)"),
            ("varchar(3)", "1"),
        ],
        count=2,
    ),
)
@pytest.mark.core
def test_a_contract_pins_the_types_of_the_mirrored_table(
    project: Project, declared: str, selected: str
) -> None:
    write_contract(project, types={"id": "int", "v": declared})
    options: dict[str, Any] = {"unique_key": "id", "contract": ENFORCED}
    project.model(f"select 1 as id, cast(null as {declared}) as v", **options)
    project.run()
    before = project.state()
    project.model(f"select 1 as id, {selected} as v", **options)

    assert "data type mismatch" in project.fail()

    assert project.state() == before
