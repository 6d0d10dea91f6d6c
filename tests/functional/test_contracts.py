"""A contract holds in the mirror, or nothing is published."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.functional.project import Project
from tests.variants import parts, some

ENFORCED = {"enforced": True}


def messages(project: Project) -> dict[str, str]:
    return {name: result["message"] for name, result in project.results().items()}


def write_contract(
    project: Project,
    constraints: list[dict[str, Any]] | None = None,
    types: dict[str, str] | None = None,
    model: str = "orders",
    **of_columns: list[dict[str, Any]],
) -> None:
    types = types or {"id": "bigint", "name": "string", "price": "int"}
    columns = [
        {"name": name, "data_type": data_type, "constraints": of_columns.get(name, [])}
        for name, data_type in types.items()
    ]
    content = {"name": model, "columns": columns, "constraints": constraints or []}
    project.write(f"models/{model}.yml", yaml.safe_dump({"models": [content]}))


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


# constraints of columns, rows that break none of them, and the contract
KEPT: dict[str, tuple[dict[str, Any], str, dict[str, bool]]] = {
    # NULLs are different from each other, and a check that is unknown is not false
    "nulls": (
        {"name": [UNIQUE], "price": [POSITIVE]},
        rows("(1L, null, 10)", "(2L, null, null)"),
        ENFORCED,
    ),
    "some_rows": ({"name": [UNIQUE]}, GOOD, ENFORCED),
    "no_rows": ({"name": [UNIQUE]}, f"{GOOD} limit 0", ENFORCED),
    # outside of a contract, a constraint is only documentation
    "no_contract": ({"name": [NOT_NULL]}, rows("(1L, null, 10)"), {}),
}


def test_rows_that_break_no_constraint_are_published(project: Project) -> None:
    for name, (constraints, sql, contract) in KEPT.items():
        write_contract(project, model=name, **constraints)
        project.model(sql, name, unique_key="id", contract=contract)

    project.run()

    for name in KEPT:
        project.assert_mirrored(name)


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


def test_a_constraint_about_nothing_is_refused(project: Project) -> None:
    for kind in ("check", "unique"):
        write_contract(project, constraints=[{"type": kind}], model=f"of_{kind}")
        project.model(GOOD, f"of_{kind}", contract=ENFORCED)

    error = project.stop()

    assert "model.shop.of_check (models/of_check.sql): A check constraint needs an" in error
    assert "of_unique (models/of_unique.sql): A unique constraint needs `columns`" in error


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


def test_a_text_that_is_longer_than_its_contract_never_reaches_the_mirror(
    project: Project,
) -> None:
    models = {f"table_{number}": ("table", declared) for number, declared in enumerate(LENGTHS)}
    models["incremental"] = ("incremental", "varchar(3)")

    def write(is_bad: bool) -> None:
        for name, (kind, declared) in models.items():
            write_contract(project, types={"id": "int", "v": declared}, model=name)
            options: dict[str, Any] = {"materialized": kind, "on_schema_change": "fail"}
            options |= {"unique_key": "id", "contract": ENFORCED}
            project.model(f"select 1 as id, {LENGTHS[declared][is_bad]} as v", name, **options)

    write(is_bad=False)
    project.run()
    for name in models:
        project.assert_mirrored(name)
    before = {name: project.state(name) for name in models}
    write(is_bad=True)

    project.fail()

    for name, (_, declared) in models.items():
        assert f"{declared} (v) by 1 row, e.g. id=1" in messages(project)[name]
    assert {name: project.state(name) for name in models} == before


def test_a_type_whose_lengths_cannot_be_checked_is_refused(project: Project) -> None:
    write_contract(project, types={"id": "int", "v": "struct<a varchar(3)>"})
    project.model("select 1 as id, named_struct('a', 'abcd') as v", contract=ENFORCED)

    message = project.fail()

    assert "struct<a:varchar(3)>" in message
    write_contract(project, types={"id": "int", "v": "struct<a:varchar(3)>"})
    project.model("select 1 as id, named_struct('a', 'abc') as v", contract=ENFORCED)
    project.run()
    project.assert_mirrored()


# types of a contract, and values of other types
OTHER_TYPES = [
    ("decimal(9, 2)", "cast(1 as decimal(10, 2))"),
    ("array<int>", "array(1L)"),
    ("decimal(9, 2)", "cast(1 as decimal(9, 3))"),
    ("array<decimal(9, 2)>", "array(cast(1 as decimal(10, 2)))"),
    ("timestamp", "timestamp_ntz'2024-01-01 00:00:00'"),
    ("int", "1L"),
    ("float", "1D"),
    ("struct<a: int>", "named_struct('b', 1)"),
    ("varchar(3)", "1"),
]


@pytest.mark.parametrize("types", parts(OTHER_TYPES, 2))
@pytest.mark.core
def test_a_contract_pins_the_types_of_the_mirrored_table(
    project: Project, types: list[tuple[str, str]]
) -> None:
    def write(name: str, declared: str, selected: str) -> None:
        write_contract(project, types={"id": "int", "v": declared}, model=name)
        sql = f"select 1 as id, {selected} as v"
        project.model(sql, name, unique_key="id", contract=ENFORCED)

    pinned = {f"m{number}": pair for number, pair in enumerate(types)}
    for name, (declared, _) in pinned.items():
        write(name, declared, f"cast(null as {declared})")
    project.run()
    before = {name: project.state(name) for name in pinned}
    for name, pair in pinned.items():
        write(name, *pair)

    project.fail()

    for name in pinned:
        assert "data type mismatch" in messages(project)[name]
    assert {name: project.state(name) for name in pinned} == before
