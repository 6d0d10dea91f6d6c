"""Columns whose names change their case, or whose types change: no value is lost for it."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.openmirroring.types.casts import Cast
from dbt.adapters.openmirroring.types.parsed import decimal_of
from tests.functional.project import Project
from tests.functional.test_incremental import incremental
from tests.functional.typed_tables import TYPES
from tests.unit.macros.rendered import warehouse
from tests.variants import some

DAY1, DAY2 = "timestamp'2024-01-01 00:00:00'", "timestamp'2024-01-02 00:00:00'"


def history(project: Project, sql: str, name: str = "orders", **config: Any) -> None:
    """A dbt snapshot of a query."""
    checked = {} if "updated_at" in config else {"strategy": "check", "check_cols": "all"}
    options = {"unique_key": "id", **checked, **config}
    arguments = ", ".join(f"{key}={value!r}" for key, value in options.items())
    block = f"{{% snapshot {name} %}}{{{{ config({arguments}) }}}} {sql} {{% endsnapshot %}}"
    project.write(f"snapshots/{name}.sql", block)


def take(project: Project) -> dict[str, Any]:
    """Take all dbt snapshots. Return the response of each."""
    project.run(command="snapshot")
    return {name: r["adapter_response"] for name, r in project.results().items()}


def versions(project: Project, name: str, columns: str, where: str = "true") -> list[Any]:
    found = project.sql(
        f"select {columns}, dbt_valid_to is null from {project.schema}.{name} where {where} "
        "order by id, dbt_valid_from, dbt_valid_to nulls last"
    )
    return [tuple(row) for row in found]


def types(project: Project, name: str = "orders") -> dict[str, str]:
    described = project.sql(f"describe {project.schema}.{name}")
    found = {row["col_name"]: row["data_type"] for row in described}
    return {name: type_ for name, type_ in found.items() if name[:4] not in ("dbt_", "")}


def states(project: Project) -> Any:
    """All that must stay as it is when nothing is published."""
    names = sorted(project.results())
    return project.state_of_zone(), {name: project.relation(name) for name in names}


def messages(project: Project) -> dict[str, str]:
    return {name: result["message"] for name, result in project.results().items()}


def rows(project: Project, name: str = "orders") -> list[tuple[Any, ...]]:
    return [
        tuple(row) for row in project.sql(f"select * from {project.schema}.{name} order by id")
    ]


# dbt snapshots


def test_columns_that_change_their_case_make_no_new_versions(project: Project) -> None:
    configs: dict[str, dict[str, Any]] = {
        "all_columns": {},
        "named": {"check_cols": ["AMOUNT"]},
        "deleted": {"unique_key": "iD", "hard_deletes": "new_record"},
        "timed": {"strategy": "timestamp", "updated_at": "AT", "hard_deletes": "new_record"},
    }
    for step, (id_, amount, at) in enumerate(
        [("id", "Amount", "at"), ("ID", "amount", "At"), ("Id", "aMOUNT", "aT")]
    ):
        number, time, more = (
            (6, DAY2, "") if step == 2 else (5, DAY1, f"union all select 2, 6, {DAY1}")
        )
        sql = f"select 1 as {id_}, {number} as {amount}, {time} as {at} {more}"
        for name, config in configs.items():
            history(project, sql, name, **config)
        responses = take(project)
        if step == 1:
            assert {r["publication"] for r in responses.values()} == {"unchanged"}

    for name in configs:
        assert responses[name]["publication"] == "changes"
        assert versions(project, name, "id, amount", "id = 1") == [(1, 5, False), (1, 6, True)]
        # also in the record of a deleted row
        assert {amount for _, amount, _ in versions(project, name, "id, amount", "id = 2")} == {6}
        assert list(types(project, name))[:2] == ["id", "Amount"]
        project.assert_mirrored(name)


DAY, NOON = "date'2024-01-01'", "timestamp_ntz'2024-01-01 12:00:00'"
# the values of a column in two runs, its type then, and its history as text
WIDENED: list[tuple[str, str, str, list[str | None]]] = [
    ("7", "'7A'", "string", ["7", "7A"]),
    ("7", "3000000000", "bigint", ["7", "3000000000"]),
    ("3000000000", "7", "bigint", ["3000000000", "7"]),
    ("1.25BD", "1234.5BD", "decimal(6,2)", ["1.25", "1234.50"]),
    ("7", "7.5BD", "decimal(11,1)", ["7.0", "7.5"]),
    ("cast(1.5 as float)", "0.1D", "double", ["1.5", "0.1"]),
    (DAY, NOON, "timestamp_ntz", ["2024-01-01 00:00:00", "2024-01-01 12:00:00"]),
    ("7", "null", "int", ["7", None]),
    ("array(7)", "array('7A')", "array<string>", ["[7]", "[7A]"]),
    (
        "named_struct('a', 1, 'c', 2)",
        "named_struct('b', 'x', 'A', 1L)",
        "struct<a:bigint,c:int,b:string>",
        ["{1, 2, null}", "{1, null, x}"],
    ),
    # only their types change
    ("7", "'7'", "string", ["7"]),
    ("1.50BD", "1.5000BD", "decimal(5,4)", ["1.5000"]),
]
STRATEGIES: dict[str, dict[str, Any]] = {
    "all_columns": {},
    "named": {
        "check_cols": [f"c{n}" for n in range(len(WIDENED))],
        "hard_deletes": "invalidate",
    },
    "timed": {"strategy": "timestamp", "updated_at": "at", "hard_deletes": "new_record"},
}


def test_types_of_a_dbt_snapshot_become_those_that_hold_all_values(project: Project) -> None:
    """Row n has a value in the column n, and NULL in the others."""
    for step in (0, 1):
        selects = []
        for n, (_, _, _, texts) in enumerate(WIDENED):
            values = (pair[step] if m == n else "null" for m, pair in enumerate(WIDENED))
            columns = ", ".join(f"{value} as c{m}" for m, value in enumerate(values))
            at = DAY2 if step and len(texts) > 1 else DAY1
            selects.append(f"select {n} as id, {columns}, {at} as at")
        for name, config in STRATEGIES.items():
            history(project, " union all ".join(selects), name, **config)
        responses = take(project)

    for name in STRATEGIES:
        assert responses[name]["publication"] == "rebuild"
        assert "column type changed: c0 from int to string" in responses[name]["reason"]
        for n, (_, _, type_, texts) in enumerate(WIDENED):
            found = versions(project, name, f"cast(c{n} as string)", f"id = {n}")
            assert [text for text, _ in found] == texts, (name, n)
            assert [is_current for _, is_current in found] == [False, True][-len(texts) :]
            assert types(project, name)[f"c{n}"] == type_
        project.assert_mirrored(name)
    assert {response["publication"] for response in take(project).values()} == {"unchanged"}


@pytest.mark.needs(parquet="other tables do not describe the length of a text")
def test_texts_of_a_fixed_length_are_compared_as_texts(project: Project) -> None:
    project.sql(f"create schema if not exists {project.schema}")
    project.sql(f"create table {project.schema}.codes (id int, code varchar(3)) using parquet")
    project.sql(f"insert into {project.schema}.codes values (1, 'abc')")
    history(project, f"select * from {project.schema}.codes")
    take(project)
    assert take(project)["orders"]["publication"] == "unchanged"
    history(project, "select 1 as id, 'abcdef' as code")

    take(project)

    assert versions(project, "orders", "code") == [("abc", False), ("abcdef", True)]
    project.assert_mirrored()


TIMED = {"strategy": "timestamp", "updated_at": "v"}
# the values of a column in two runs, its types, of which none holds both, and a way out
REFUSED: list[tuple[str, str, str, str, dict[str, Any], str]] = [
    ("7", DAY, "int", "date", {}, f"{DAY} as new_v"),
    (
        *("named_struct('a', 1)", "named_struct('a', X'00')", "struct<a:int>", "struct<a:binary>"),
        *({}, "named_struct('a', 1) as v"),
    ),
    # the order of texts is another one
    ("9", "'10'", "int", "string", TIMED, "cast('9' as int) as v"),
]


def test_types_that_hold_no_values_of_a_dbt_snapshot_are_refused(project: Project) -> None:
    for n, (first, *_, config, _) in enumerate(REFUSED):
        history(project, f"select 1 as id, {first} as v", f"s{n}", **config)
    take(project)
    before = states(project)
    for n, (_, later, *_, config, _) in enumerate(REFUSED):
        history(project, f"select 1 as id, {later} as v", f"s{n}", **config)

    project.fail(command="snapshot")

    assert states(project) == before
    project.assert_tidy()
    for n, (_, _, stored, new, config, way_out) in enumerate(REFUSED):
        message = messages(project)[f"s{n}"]
        for said in (stored, new, "Nothing was changed", f"as {stored}"):
            assert said in message
        assert ("`updated_at` of the dbt snapshot" if config else "give it a new name") in message
        history(project, f"select 1 as id, {way_out}", f"s{n}", **config)
    taken = take(project)
    assert [taken[f"s{n}"]["publication"] for n in (1, 2)] == ["unchanged", "unchanged"]
    found = versions(project, "s0", "v is null, new_v is null")
    assert found == [(False, True, False), (True, False, True)]
    for n in range(len(REFUSED)):
        project.assert_mirrored(f"s{n}")


def test_times_of_changes_may_be_numbers_of_any_size_and_days(project: Project) -> None:
    for step, at in enumerate(("9", "cast('10' as int)", "3000000000")):
        history(project, f"select 1 as id, {at} as v", "numbers", **TIMED)
        day = "select 1 as id, date'2024-01-01' as v"
        both = f"{day} union all select 2, date'2024-01-01'"
        history(project, day if step else both, "days", hard_deletes="invalidate", **TIMED)
        take(project)

    assert [at for at, _ in versions(project, "numbers", "v")] == [9, 10, 3000000000]
    assert versions(project, "days", "id") == [(1, True), (2, False)]
    for name in ("numbers", "days"):
        project.assert_mirrored(name)


# keys of a dbt snapshot, rows that have the same one, and what is shown of it
REPEATED: dict[str, tuple[Any, str, str]] = {
    "one": ("id", "(1, 'a'), (1, 'b'), (2, 'c')", "1 of the keys (id) are"),
    "two": (["id", "name"], "(1, 'a'), (1, 'a'), (1, 'c')", "id=1, name=a (2 rows)"),
    "sql": ("id || '-' || name", "(1, 'a'), (1, 'a')", "id || '-' || name=1-a (2 rows)"),
}


def test_keys_of_a_snapshot_that_are_not_unique_are_shown(project: Project) -> None:
    for step in range(3):
        for name, (key, repeated, _) in REPEATED.items():
            found = "(1, 'a'), (2, 'c')" if step == 1 else repeated
            sql = f"select *, {step} as n from values {found} as t(id, name)"
            history(project, sql, name, unique_key=key)
        if step == 1:
            take(project)
            continue

        project.fail(command="snapshot")

        for name, (_, _, shown) in REPEATED.items():
            assert shown in messages(project)[name]
            assert "dbt_scd_id" not in messages(project)[name]


# incremental models


def cast(spark: SparkSession, value: str, type_: str) -> tuple[Any, str] | str:
    """Return what a value is as a new one of a type, and its text; of a refused one its text."""
    [field] = spark.sql(f"select {value} as v").schema
    columns = [("`v`", Cast.of(field.dataType.simpleString(), type_), "`found`")]
    sql = warehouse().sql(
        "mirror_typed_rows", rows=f"(select {value} as v)", columns=columns, remedy="Cast it."
    )
    try:
        [row] = spark.sql(f"select found, cast(found as string) from ({sql})").collect()
    except PySparkException as error:
        refused = re.search("`v`.* has the value '(.*)', which is no ", str(error))
        if not refused:
            raise
        return refused[1]
    return tuple(row)


BITS = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
FLOATS: dict[str, Callable[[Any], Any]] = {
    "float": lambda value: ctypes.c_float(float(value)).value,
    "double": float,
}
NUMBERS = (*BITS, *FLOATS, "decimal(3,2)", "decimal(38,18)")


def nearest(value: Any, type_: str) -> Any:
    """Return the value of a type that is the nearest to a number; None if there is none."""
    if type_ in FLOATS:
        return FLOATS[type_](value)
    if not math.isfinite(value):
        return None
    digits = decimal_of(type_)
    if digits:
        found = round(Fraction(str(value)) * 10 ** digits[1])
        return Fraction(found, 10 ** digits[1]) if abs(found) < 10 ** digits[0] else None
    return int(value) if -(2 ** BITS[type_]) <= int(value) < 2 ** BITS[type_] else None


def is_kept(value: Any, found: Any, source: str, target: str) -> bool:
    """Whether a number has lost nothing, or only digits that its new type does not have."""
    if found is None or math.isnan(value):
        return found is not None and math.isnan(found)
    if target in FLOATS and source not in FLOATS:
        return abs(Fraction(found) - Fraction(value)) < 1
    if (source, target) == ("double", "float"):
        return math.isinf(found) == math.isinf(value)
    return bool(FLOATS.get(source, lambda same: same)(found) == value)


@pytest.mark.needs(session="a session of its own")
@pytest.mark.parametrize("ansi", some(["true", "false"]))
@pytest.mark.parametrize("source", NUMBERS)
def test_a_number_becomes_one_of_another_type_if_that_holds_it(
    spark: SparkSession, source: str, ansi: str
) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    for sql in TYPES[source].values:
        [[value]] = session.sql(f"select {sql}").collect()
        for target in NUMBERS:
            found = cast(session, sql, target)
            is_refused = isinstance(found, str)
            number = nearest(value, target) if is_refused else found[0]
            assert is_kept(value, number, source, target) != is_refused, (sql, target, found)


# values, and their texts in another type; of refused ones the text in the message
CASTS: dict[tuple[str, str], str | tuple[str]] = {
    (DAY1.replace("00:00:00", "10:00:00"), "date"): "2024-01-01 10:00:00",
    ("timestamp_ntz'2024-01-01 10:00:00'", "date"): "2024-01-01 10:00:00",
    ("'2024-01-01 10:00'", "date"): "2024-01-01 10:00",
    ("'1.9'", "int"): "1.9",
    ("'1.239'", "decimal(5,2)"): "1.239",
    ("'1239e-3'", "decimal(5,2)"): "1239e-3",
    ("'1.239'", "decimal(38,2)"): "1.239",
    ("2", "boolean"): "2",
    ("array(1, null, 1.9D)", "array<int>"): "1.9",
    ("map('k', 1.9D)", "map<string,int>"): "1.9",
    ("true", "int"): ("1",),
    (DAY2, "date"): ("2024-01-02",),
    ("'2024-01-03 00:00:00.000'", "date"): ("2024-01-03",),
    ("' 12e-1 '", "decimal(38,2)"): ("1.20",),
    ("'1.5000'", "decimal(38,2)"): ("1.50",),
}


@pytest.mark.needs(session="a session of its own")
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_values_take_another_type_if_that_holds_them(spark: SparkSession, ansi: str) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.ansi.enabled", ansi)
    found = {case: cast(session, *case) for case in CASTS}

    assert {k: v if isinstance(v, str) else v[1:] for k, v in found.items()} == CASTS


STRUCT = "named_struct('a', 1, 'b', 'x')"
GAINED = "named_struct('c', true, 'B', 'y', 'a', 2L)"
LOSES = "named_struct('b', 'y')"
TURNED = "named_struct('b', 'y', 'a', 2)"
CHANGING = ("append_new_columns", "sync_all_columns")
MODES = [{"on_schema_change": mode} for mode in ("ignore", *CHANGING)]
IGNORE, APPEND, SYNC = MODES


class Refused(NamedTuple):
    """A new value that its column does not take.

    Args:
        stored: value in the table
        told: what the message says
        way_out: another value and configuration; without them, a full refresh is one
    """

    stored: str
    later: str
    config: dict[str, str]
    told: str
    way_out: tuple[str, dict[str, str]] | None = None


UNCASTABLE = " has the type int in the table, and date in the new rows"
OTHER_FIELDS = " has the type struct<a:int,b:string> in the table, and struct<"
REFUSED_VALUES = {
    "scalar": Refused(
        "7", "1.9D", {}, " has the value '1.9', which is no int. Cast", ("cast(1.9D as int)", {})
    ),
    "day": Refused(
        DAY, NOON.replace("_ntz", ""), {}, " has the value '2024-01-01 12:00:00', which is no date"
    ),
    "nested": Refused(
        "array(named_struct('a', 1))",
        "array(named_struct('a', 1.9D))",
        {},
        ".element.`a` has the value '1.9', which is no int. Cast it in the model",
        ("array(named_struct('a', 1.9D))", SYNC),
    ),
    "stored": Refused(
        "1.9D", "2", SYNC, " has the value '1.9', which is no int. Cast", ("2D", SYNC)
    ),
    **{f"uncastable_{n}": Refused("7", DAY, mode, UNCASTABLE) for n, mode in enumerate(MODES)},
    "more_fields": Refused(STRUCT, GAINED, IGNORE, OTHER_FIELDS),
    "fewer_fields": Refused(STRUCT, LOSES, IGNORE, OTHER_FIELDS, (LOSES, SYNC)),
}


def test_a_value_that_does_not_fit_into_its_column_is_refused_with_ways_out_that_work(
    project: Project,
) -> None:
    def write(name: str, stored: str, later: str, config: dict[str, str]) -> None:
        first = f"select 1 as id, {stored} as `its value`, 1 as m"
        new = f"select 2 as id, {later} as `its value`, 2L as m"
        incremental(project, first, new, name, unique_key="id", **config)

    for name, case in REFUSED_VALUES.items():
        write(name, case.stored, case.later, case.config)
    project.run()
    before = states(project)

    project.fail()

    assert states(project) == before
    project.assert_tidy()
    found = messages(project)
    for name, case in REFUSED_VALUES.items():
        for told in (f"`its value`{case.told}", "--full-refresh"):
            assert told in found[name]
        assert "DATATYPE_MISMATCH" not in found[name]
        if case.told == OTHER_FIELDS:
            assert all(mode in found[name] for mode in CHANGING)
        later, config = case.way_out or (case.later, {})
        write(name, case.stored if case.way_out else later, later, config)
    others = [name for name, case in REFUSED_VALUES.items() if case.way_out]
    project.run("--select", *others)
    assert rows(project, "scalar") == [(1, 7, 1), (2, 1, 2)]
    assert rows(project, "nested") == [(1, [(1.0,)], 1), (2, [(1.9,)], 2)]
    assert rows(project, "stored") == [(1, 1.9, 1), (2, 2.0, 2)]
    project.run("--full-refresh", "--exclude", *others)
    for name in REFUSED_VALUES:
        project.assert_mirrored(name)


# what becomes of a struct with new rows, and its type
X, Y = (1, "x"), (2, "y")
STRUCTS: list[tuple[dict[str, str], str, str, list[Any]]] = [
    (APPEND, GAINED, "struct<a:int,b:string,c:boolean>", [(*X, None), (*Y, True)]),
    (SYNC, GAINED, "struct<a:bigint,b:string,c:boolean>", [(*X, None), (*Y, True)]),
    (APPEND, LOSES, "struct<a:int,b:string>", [X, (None, "y")]),
    (SYNC, LOSES, "struct<b:string>", [("x",), ("y",)]),
    *((mode, TURNED, "struct<a:int,b:string>", [X, Y]) for mode in MODES),
]
NESTED = {"s": "{}", "list": "array({})", "part": "named_struct('s', {})"}


def test_fields_of_a_struct_are_found_by_name_and_change_as_columns_do(project: Project) -> None:
    for n, (mode, later, *_) in enumerate(STRUCTS):
        selected = [
            ", ".join(f"{place.format(value)} as {name}" for name, place in NESTED.items())
            for value in (STRUCT, later)
        ]
        # a column may have the name of a field, and of the table
        first = f"select 1 as id, {selected[0]}, 9 as a, 9 as m{n}"
        first += f" union all select 3, {', '.join(['null'] * len(NESTED))}, 9, 9"
        new = f"select 2 as id, {selected[1]}, 9 as a, 9 as m{n}"
        incremental(project, first, new, f"m{n}", unique_key="id", **mode)
    project.run()

    project.run()

    for n, (*_, type_, expected) in enumerate(STRUCTS):
        stored = [row[1:4] for row in rows(project, f"m{n}")]
        assert stored == [*((value, [value], (value,)) for value in expected), (None,) * 3]
        assert all(type_ in types(project, f"m{n}")[name] for name in NESTED)
        project.assert_mirrored(f"m{n}")
    project.run()
    again = [result["adapter_response"]["publication"] for result in project.results().values()]
    assert set(again) == {"unchanged"}


# seeds


def test_a_value_of_a_seed_that_would_lose_something_is_refused(project: Project) -> None:
    project.write_project(seeds={"+column_types": {"price": "decimal(5,2)"}})
    project.write("seeds/orders.csv", "id,price\n1,1.239\n")

    message = project.fail(command="seed")

    told = "`price` has the value '1.239', which is no decimal(5,2). Correct the seed, or set"
    assert told in message
    assert "[OM307: " in message
    project.write_project(seeds={"+column_types": {"price": "string"}})
    project.run(command="seed")
    project.assert_mirrored()
