"""Columns whose names change their case, or whose types change: no value is lost for it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.project import Project
from tests.functional.test_incremental import incremental, rows
from tests.functional.test_snapshots import snapshot, take, versions
from tests.variants import few, some

DAY1, DAY2 = "timestamp'2024-01-01 00:00:00'", "timestamp'2024-01-02 00:00:00'"


def source(project: Project, *selects: str) -> None:
    project.model(" union all ".join(selects), "source", materialized="view")


def types(project: Project) -> dict[str, str]:
    described = project.sql(f"describe {project.schema}.orders")
    found = {row["col_name"]: row["data_type"] for row in described}
    return {name: type_ for name, type_ in found.items() if name[:4] not in ("dbt_", "")}


# dbt snapshots


@pytest.mark.parametrize(
    "config",
    few(
        [
            {"check_cols": "all"},
            {"check_cols": ["AMOUNT"]},
            {"check_cols": "all", "unique_key": "iD", "hard_deletes": "new_record"},
        ]
    ),
)
def test_a_column_that_changes_its_case_makes_no_new_versions(
    project: Project, config: dict[str, Any]
) -> None:
    snapshot(project, strategy="check", **config)
    source(project, "select 1 as id, 5 as Amount", "select 2, 6")
    take(project)
    source(project, "select 1 as ID, 5 as amount", "select 2, 6")

    assert take(project)["publication"] == "unchanged"

    source(project, "select 1 as Id, 7 as aMOUNT")
    response = take(project)
    assert (response["publication"], response["rows_updated"] > 0) == ("changes", True)
    found = versions(project, "id, amount")
    assert found[:2] == [(1, 5, False), (1, 7, True)]
    # also in the record of a deleted row
    assert {amount for id, amount, _ in found if id == 2} == {6}
    assert list(types(project)) == ["id", "Amount"]
    project.assert_mirrored()


def test_a_time_of_a_change_whose_column_changes_its_case_makes_no_new_versions(
    project: Project,
) -> None:
    snapshot(project, strategy="timestamp", updated_at="AT", hard_deletes="new_record")
    source(project, f"select 1 as id, {DAY1} as at")
    take(project)
    source(project, f"select 1 as id, {DAY1} as At")

    assert take(project)["publication"] == "unchanged"

    source(project, f"select 1 as id, {DAY2} as aT")
    take(project)
    assert versions(project, "id, day(at)") == [(1, 1, False), (1, 2, True)]
    project.assert_mirrored()


CHECK_ALL = {"strategy": "check", "check_cols": "all"}
STRATEGIES = (
    CHECK_ALL,
    {"strategy": "check", "check_cols": ["amount"], "hard_deletes": "invalidate"},
    {"strategy": "timestamp", "updated_at": "at", "hard_deletes": "new_record"},
)

# the values of a column in two runs, its type then, and the history as text
WIDENED = [
    ("7", "'7A'", "string", ["7", "7A"]),
    ("7", "3000000000", "bigint", ["7", "3000000000"]),
    ("3000000000", "7", "bigint", ["3000000000", "7"]),
    ("'7A'", "7", "string", ["7A", "7"]),
    (
        "cast(1.25 as decimal(10,2))",
        "cast(1.253 as decimal(12,3))",
        "decimal(12,3)",
        ["1.250", "1.253"],
    ),
    ("7", "cast(7.5 as decimal(3,1))", "decimal(11,1)", ["7.0", "7.5"]),
    ("cast(1.5 as float)", "0.1D", "double", ["1.5", "0.1"]),
    ("7", "7.5D", "double", ["7.0", "7.5"]),
    ("true", "'maybe'", "string", ["true", "maybe"]),
    ("date'2024-01-01'", "'soon'", "string", ["2024-01-01", "soon"]),
    (
        "date'2024-01-01'",
        "timestamp_ntz'2024-01-01 10:00:00'",
        "timestamp_ntz",
        ["2024-01-01 00:00:00", "2024-01-01 10:00:00"],
    ),
    ("7", "null", "int", ["7", None]),
    ("array(7)", "array('7A')", "array<string>", ["[7]", "[7A]"]),
    (
        "named_struct('a', 1)",
        "named_struct('b', 'x', 'A', 1L)",
        "struct<a:bigint,b:string>",
        ["{1, null}", "{1, x}"],
    ),
    (
        "named_struct('a', 1, 'b', 2)",
        "named_struct('b', 2)",
        "struct<a:int,b:int>",
        ["{1, 2}", "{null, 2}"],
    ),
]


@pytest.mark.parametrize(
    ("config", "first", "later", "type_", "expected"),
    few(
        [
            *((CHECK_ALL, *values) for values in WIDENED),
            *((config, *values) for config in STRATEGIES[1:] for values in WIDENED[:2]),
        ],
        2,
    ),
)
@pytest.mark.core
def test_a_type_of_a_snapshot_becomes_one_that_holds_all_values(
    project: Project,
    config: dict[str, Any],
    first: str,
    later: str,
    type_: str,
    expected: list[str],
) -> None:
    snapshot(project, **config)
    source(project, f"select 1 as id, {first} as amount, {DAY1} as at")
    take(project)
    source(project, f"select 1 as id, {later} as amount, {DAY2} as at")

    take(project)

    found = versions(project, "id, cast(amount as string)")
    assert found == [(1, expected[0], False), (1, expected[1], True)]
    assert types(project)["amount"] == type_
    project.assert_mirrored()
    assert take(project)["publication"] == "unchanged"


def test_a_type_that_changes_alone_makes_no_new_versions(project: Project) -> None:
    snapshot(project, **CHECK_ALL)
    columns = "id, amount, day, cast(price as decimal(10,2)) as price"
    values = (
        "values (1, 7, date'2024-01-01', 1.5), (2, null, null, null) as t(id, amount, day, price)"
    )
    source(project, f"select {columns} from {values}")
    take(project)
    before = versions(project, "id, dbt_scd_id")
    source(
        project,
        "select cast(id as bigint) as id, cast(amount as string) as amount, "
        f"cast(day as timestamp_ntz) as day, cast(price as decimal(14,4)) as price from {values}",
    )

    response = take(project)

    assert response["publication"] == "rebuild"
    assert response["reason"].startswith("column type changed: id from int to bigint")
    assert versions(project, "id, dbt_scd_id") == before
    project.assert_mirrored()
    # and back: the stored types stay
    source(project, f"select {columns} from {values}")
    assert take(project)["publication"] == "unchanged"


@pytest.mark.parquet("other tables do not describe the length of a text")
def test_texts_of_a_fixed_length_are_compared_as_texts(project: Project) -> None:
    project.sql(f"create schema if not exists {project.schema}")
    project.sql(f"create table {project.schema}.codes (id int, code varchar(3)) using parquet")
    project.sql(f"insert into {project.schema}.codes values (1, 'abc')")
    snapshot(project, **CHECK_ALL)
    source(project, f"select * from {project.schema}.codes")
    take(project)
    assert take(project)["publication"] == "unchanged"
    source(project, "select 1 as id, 'abcdef' as code")

    take(project)

    assert versions(project, "id, code") == [(1, "abc", False), (1, "abcdef", True)]
    project.assert_mirrored()


# no type holds the values of both
REFUSED = [
    ("7", "date'2024-01-01'", "int", "date"),
    ("3000000000", "0.5D", "bigint", "double"),
    (f"{DAY1}", "'soon'", "timestamp", "string"),
    ("named_struct('a', 1)", "named_struct('a', X'00')", "struct<a:int>", "struct<a:binary>"),
    ("7", "array(7)", "int", "array<int>"),
]


@pytest.mark.parametrize("way_out", some(["cast", "new name"], 2))
@pytest.mark.parametrize(("first", "later", "stored", "new"), few(REFUSED))
def test_a_type_that_holds_no_values_of_a_snapshot_is_refused(
    project: Project, first: str, later: str, stored: str, new: str, way_out: str
) -> None:
    snapshot(project, **CHECK_ALL)
    source(project, f"select 1 as id, {first} as amount")
    take(project)
    before = project.state()
    source(project, f"select 1 as id, {later} as amount")
    project.run("--select", "source")

    message = project.fail(command="snapshot")

    for said in ("amount", stored, new, "Nothing was changed", "new name", f"as {stored}"):
        assert said in message
    assert project.state() == before
    project.assert_tidy()
    if way_out == "cast":
        source(project, f"select 1 as id, cast({first} as {stored}) as amount")
        assert take(project)["publication"] == "unchanged"
    else:
        source(project, f"select 1 as id, {later} as new_amount")
        take(project)
        found = versions(project, "id, amount is null, new_amount is null")
        assert found == [(1, False, True, False), (1, True, False, True)]
    project.assert_mirrored()


def test_times_of_changes_that_cannot_be_compared_are_refused(project: Project) -> None:
    snapshot(project, strategy="timestamp", updated_at="at")
    source(project, "select 1 as id, 9 as at")
    take(project)
    source(project, "select 1 as id, '10' as at")
    project.run("--select", "source")

    message = project.fail(command="snapshot")

    assert "`updated_at` of the dbt snapshot had the type int, and has the type string" in message
    source(project, "select 1 as id, cast('10' as int) as at")
    take(project)
    assert versions(project, "id, at") == [(1, 9, False), (1, 10, True)]
    source(project, "select 1 as id, 3000000000 as at")
    take(project)
    assert [at for _, at, _ in versions(project, "id, at")] == [9, 10, 3000000000]
    project.assert_mirrored()


def test_a_day_may_be_the_time_of_a_change_of_a_row_that_is_deleted(project: Project) -> None:
    snapshot(project, strategy="timestamp", updated_at="at", hard_deletes="invalidate")
    day = "date'2024-01-01'"
    source(project, f"select 1 as id, {day} as at", f"select 2, {day}")
    take(project)
    source(project, f"select 1 as id, {day} as at")

    take(project)

    assert versions(project, "id") == [(1, True), (2, False)]
    project.assert_mirrored()


def test_a_rebuild_that_a_snapshot_refuses_leaves_it_as_it_is(project: Project) -> None:
    snapshot(project, **CHECK_ALL, on_breaking_change="fail")
    source(project, "select 1 as id, 5 as amount")
    take(project)
    before = project.state()
    source(project, "select 1 as id, '5A' as amount")
    project.run("--select", "source")

    message = project.fail(command="snapshot")

    assert "column type changed: amount from int to string" in message
    assert project.state() == before
    project.assert_tidy()
    snapshot(project, **CHECK_ALL)
    take(project)
    assert versions(project, "id, amount") == [(1, "5", False), (1, "5A", True)]
    project.assert_mirrored()


@pytest.mark.parametrize(
    ("key", "rows_", "shown"),
    few(
        [
            ("id", ("1, 'a'", "1, 'b'", "2, 'c'"), "1 of the keys (id) are"),
            (["id", "name"], ("1, 'a'", "1, 'a'", "1, 'c'"), "id=1, name=a (2 rows)"),
            (
                "id || '-' || name",
                ("1, 'a'", "1, 'a'", "1, 'c'"),
                "id || '-' || name=1-a (2 rows)",
            ),
        ],
        3,
    ),
)
@pytest.mark.parametrize("when", ["first", "later"])
def test_keys_of_a_snapshot_that_are_not_unique_are_shown(
    project: Project, key: Any, rows_: tuple[str, ...], shown: str, when: str
) -> None:
    snapshot(project, **CHECK_ALL, unique_key=key)
    columns = "as t(id, name)"
    if when == "later":
        source(project, f"select *, 0 as n from values (1, 'a'), (2, 'c') {columns}")
        take(project)
    source(project, f"select *, 1 as n from values ({'), ('.join(rows_)}) {columns}")
    project.run("--select", "source")

    message = project.fail(command="snapshot")

    assert shown in message
    assert "dbt_scd_id" not in message


# incremental models


# the stored value, one that its column cannot hold, its text in the message, and the type
LOST = [
    ("1", "1.9D", "1.9", "int"),
    ("cast(1.25 as decimal(5,2))", "1.239", "1.239", "decimal(5,2)"),
    ("date'2024-01-01'", "timestamp'2024-01-01 10:00:00'", "2024-01-01 10:00:00", "date"),
    ("date'2024-01-01'", "timestamp_ntz'2024-01-01 10:00:00'", "2024-01-01 10:00:00", "date"),
    ("date'2024-01-01'", "'2024-01-01 10:00'", "2024-01-01 10:00", "date"),
    ("1.5D", "9007199254740993", "9007199254740993", "double"),
    ("1.5D", "9223372036854775807", "9223372036854775807", "double"),
    ("1.5D", "-9007199254740993", "-9007199254740993", "double"),
    ("1.5D", "12345678901234567890123", "12345678901234567890123", "double"),
    ("cast(1.5 as float)", "16777217", "16777217", "float"),
    ("cast(1.5 as float)", "1e300D", "1.0E300", "float"),
    ("1", "'1.9'", "1.9", "int"),
    ("cast(1.25 as decimal(5,2))", "'1.239'", "1.239", "decimal(5,2)"),
    ("cast(1.25 as decimal(5,2))", "'1239e-3'", "1239e-3", "decimal(5,2)"),
    ("cast(1.25 as decimal(38,2))", "'1.239'", "1.239", "decimal(38,2)"),
    (
        "cast(1.25 as decimal(38,2))",
        "cast(1.239 as decimal(38,10))",
        "1.2390000000",
        "decimal(38,2)",
    ),
    ("cast(1.25 as decimal(5,2))", "1.239D", "1.239", "decimal(5,2)"),
    ("1", "double('nan')", "NaN", "int"),
    ("1", "double('infinity')", "Infinity", "int"),
    ("true", "2", "2", "boolean"),
    ("array(1)", "array(1, null, 1.9D)", "1.9", "int"),
    ("map('k', 1)", "map('k', 1.9D)", "1.9", "int"),
    ("array(named_struct('a', 1))", "array(named_struct('a', 1.9D))", "1.9", "int"),
]


@pytest.mark.parametrize(
    ("stored", "later", "text", "type_", "ansi"),
    few(
        [
            *((*values, "true") for values in LOST),
            *((*values, "false") for values in LOST[:3] + LOST[-7:]),
        ],
        3,
    ),
)
def test_a_value_that_would_lose_something_in_its_column_is_refused(
    project: Project, stored: str, later: str, text: str, type_: str, ansi: str
) -> None:
    project.target["server_side_parameters"] = {"spark.sql.ansi.enabled": ansi}
    project.write_project()
    first = f"select 1 as id, {stored} as `its value`"
    incremental(project, first, f"select 2 as id, {later} as `its value`", unique_key="id")
    project.run()
    before = project.state()

    message = project.fail()

    assert f"has the value '{text}', which is no {type_}. Cast it in the model" in message
    assert "`its value`" in message
    assert project.state() == before
    project.assert_tidy()


@pytest.mark.parametrize("way_out", some(["cast", "--full-refresh", "sync_all_columns"]))
def test_a_value_that_its_column_cannot_hold_can_be_published(
    project: Project, way_out: str
) -> None:
    incremental(project, "select 1 as id, 7 as n", "select 2 as id, 1.9D as n", unique_key="id")
    project.run()
    assert "--full-refresh" in project.fail()
    if way_out == "cast":
        later = "select 2 as id, cast(1.9D as int) as n"
        incremental(project, "select 1 as id, 7 as n", later, unique_key="id")
        project.run()
        assert rows(project) == [(1, 7), (2, 1)]
    elif way_out == "--full-refresh":
        project.model("select 2 as id, 1.9D as n", materialized="incremental", unique_key="id")
        project.run(way_out)
        assert rows(project) == [(2, 1.9)]
    else:
        options = {"unique_key": "id", "on_schema_change": way_out}
        incremental(project, "", "select 2 as id, 1.9D as n", **options)
        project.run()
        assert rows(project) == [(1, 7.0), (2, 1.9)]
    project.assert_mirrored()


def test_values_that_lose_nothing_take_the_type_of_their_column(project: Project) -> None:
    stored = (
        "1 as id, 1 as n, cast(1.5 as decimal(5,1)) as d, 1.5D as x, cast(1.5 as float) as f, "
        "date'2024-01-01' as day, cast(1.5 as decimal(38,2)) as t, 1 as y"
    )
    later = (
        "2L as id, -0.0D as n, cast(1.10 as decimal(5,2)) as d, 9007199254740992 as x, 0.1D as f, "
        "timestamp'2024-01-02 00:00:00' as day, ' 12e-1 ' as t, true as y"
    )
    more = (
        "3L as id, 7.0 as n, 2.5D as d, double('nan') as x, double('infinity') as f, "
        "'2024-01-03 00:00:00.000' as day, '1.5000' as t, false as y"
    )
    incremental(project, f"select {stored}", f"select {later}", unique_key="id")
    project.run()
    project.run()
    incremental(project, "", f"select {more}", unique_key="id")

    project.run()

    found = project.sql(f"select * except (f, day) from {project.schema}.orders where id = 2")
    assert [str(value) for value in found[0]] == [
        "2",
        "0",
        "1.1",
        "9007199254740992.0",
        "1.20",
        "1",
    ]
    assert len(rows(project)) == 3
    project.assert_mirrored()


def test_a_stored_value_that_a_synchronised_type_cannot_hold_is_refused(project: Project) -> None:
    options = {"unique_key": "id", "on_schema_change": "sync_all_columns"}
    incremental(project, "select 1 as id, 1.9D as n", "select 2 as id, 2 as n", **options)
    project.run()
    before = project.state()

    assert "`n` has the value '1.9', which is no int. Cast it in the model" in project.fail()

    assert project.state() == before
    incremental(project, "", "select 2 as id, cast(2 as double) as n", **options)
    project.run()
    assert rows(project) == [(1, 1.9), (2, 2.0)]
    project.assert_mirrored()


@pytest.mark.parametrize(
    "on_schema_change", some(["ignore", "append_new_columns", "sync_all_columns"])
)
def test_types_that_cannot_be_cast_are_refused(project: Project, on_schema_change: str) -> None:
    options = {"unique_key": "id", "on_schema_change": on_schema_change}
    later = "select 2 as id, 2L as m, date'2024-01-01' as n"
    incremental(project, "select 1 as id, 1 as m, 7 as n", later, **options)
    project.run()
    before = project.state()

    message = project.fail()

    assert "`n` has the type int in the table, and date in the new rows" in message
    assert "DATATYPE_MISMATCH" not in message
    assert project.state() == before
    project.assert_tidy()
    incremental(project, later, later, **options)
    project.run("--full-refresh")
    assert project.run()["publication"] == "unchanged"
    project.assert_mirrored()


STRUCT = "named_struct('a', 1, 'b', 'x')"
GAINED = "named_struct('c', true, 'B', 'y', 'a', 2L)"
LOSES = "named_struct('b', 'y')"


@pytest.mark.parametrize(
    ("on_schema_change", "later", "type_", "expected"),
    [
        (
            "append_new_columns",
            GAINED,
            "struct<a:int,b:string,c:boolean>",
            [(1, "x", None), (2, "y", True)],
        ),
        (
            "sync_all_columns",
            GAINED,
            "struct<a:bigint,b:string,c:boolean>",
            [(1, "x", None), (2, "y", True)],
        ),
        ("append_new_columns", LOSES, "struct<a:int,b:string>", [(1, "x"), (None, "y")]),
        ("sync_all_columns", LOSES, "struct<b:string>", [("x",), ("y",)]),
        *(
            (
                mode,
                "named_struct('b', 'y', 'a', 2)",
                "struct<a:int,b:string>",
                [(1, "x"), (2, "y")],
            )
            for mode in ("ignore", "append_new_columns", "sync_all_columns")
        ),
    ],
)
@pytest.mark.parametrize("place", some(["{}", "array({})", "named_struct('s', {})"]))
def test_fields_of_a_struct_are_found_by_name(
    project: Project,
    on_schema_change: str,
    later: str,
    type_: str,
    expected: list[tuple[Any, ...]],
    place: str,
) -> None:
    options = {"unique_key": "id", "on_schema_change": on_schema_change}
    first = f"select 1 as id, {place.format(STRUCT)} as orders, 9 as a union all select 3, null, 9"
    incremental(
        project, first, f"select 2 as id, {place.format(later)} as orders, 9 as a", **options
    )
    project.run()

    project.run()

    found = {id_: value for id_, value, _ in rows(project)}
    inner = [found[1], found[2]] if place == "{}" else [found[1][0], found[2][0]]
    assert inner == expected
    assert found[3] is None
    assert type_ in types(project)["orders"]
    project.assert_mirrored()
    assert project.run()["publication"] == "unchanged"


@pytest.mark.parametrize(
    "way_out", some(["append_new_columns", "sync_all_columns", "--full-refresh"])
)
@pytest.mark.parametrize("later", some([GAINED, LOSES], 2))
def test_a_struct_with_other_fields_is_refused_where_columns_are_not_changed(
    project: Project, later: str, way_out: str
) -> None:
    selected = f"select 2 as id, {later} as s"
    incremental(project, f"select 1 as id, {STRUCT} as s", selected, unique_key="id")
    project.run()
    before = project.state()

    message = project.fail()

    assert (
        "The column `s` has the type struct<a:int,b:string> in the table, and struct<" in message
    )
    assert way_out in message
    assert project.state() == before
    project.assert_tidy()
    if way_out == "--full-refresh":
        incremental(project, selected, selected, unique_key="id")
        project.run(way_out)
    else:
        incremental(project, "", selected, unique_key="id", on_schema_change=way_out)
        project.run()
    project.assert_mirrored()


# seeds


@pytest.mark.parametrize(
    ("type_", "value"),
    [("decimal(5,2)", "1.239"), ("int", "1.9"), ("date", "2024-13-01 10:00:00")],
)
def test_a_value_of_a_seed_that_would_lose_something_is_refused(
    project: Project, type_: str, value: str
) -> None:
    project.write_project(seeds={"+column_types": {"price": type_}})
    project.write("seeds/orders.csv", f"id,price\n1,{value}\n")

    message = project.fail(command="seed")

    refused = f"`price` has the value '{value}', which is no {type_}. Correct the seed, or set"
    assert refused in message
    project.write_project(seeds={"+column_types": {"price": "string"}})
    project.run(command="seed")
    project.assert_mirrored()
