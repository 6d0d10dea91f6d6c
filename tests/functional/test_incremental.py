"""Incremental models: what their new rows do to the snapshot is what is published.

More about predicates and columns that come and go is in dbt's own tests, also with a mirror.
"""

from __future__ import annotations

import datetime as dt
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.functional.project import Project
from tests.variants import some


def incremental(
    project: Project, first: str, later: str, name: str = "orders", **config: Any
) -> None:
    """A model that selects other rows in an incremental run; rows are (id, name)."""
    sql = f"{{% if is_incremental() %}} {later} {{% else %}} {first} {{% endif %}}"
    project.model(sql, name, materialized="incremental", **config)


def values(*rows: str, columns: str = "id, name") -> str:
    return f"select * from values {', '.join(rows)} as t({columns})"


def rows(project: Project, table: str = "orders") -> list[tuple[Any, ...]]:
    found = project.sql(f"select * from {project.schema}.{table} order by all")
    return [tuple(row) for row in found]


def data_files(project: Project, table: str) -> dict[int, str]:
    """The files of the table: the same file has the same number, whatever its folder."""
    description = project.sql(f"describe extended {project.schema}.{table}")
    (location,) = (row["data_type"] for row in description if row["col_name"] == "Location")
    files = Path(location.removeprefix("file:")).rglob("[!_.]*.parquet")
    return {file.stat().st_ino: file.parent.name for file in files}


@pytest.mark.parametrize("strategy", some(["merge", "delete+insert"]))
def test_conditions_may_end_with_a_comment(project: Project, strategy: str) -> None:
    incremental(
        project,
        values("(1, 'a')", "(2, 'b')"),
        values("(1, 'gone')", "(2, 'B')", "(3, 'gone')"),
        unique_key="id",
        incremental_strategy=strategy,
        delete_when="name = 'gone' -- no longer in the source",
        incremental_predicates=["DBT_INTERNAL_DEST.id > 0 -- all"],
        contract={"enforced": True},
        on_schema_change="fail",
    )
    project.write(
        "models/orders.yml",
        "models: [{name: orders, constraints: [{type: check, expression: 'id > 0 -- a number'}], "
        "columns: [{name: id, data_type: int}, {name: name, data_type: string}]}]",
    )
    project.run()
    project.run()

    assert rows(project) == [(2, "B")]
    project.assert_mirrored()


@pytest.mark.parametrize("strategy", some(["merge", "delete+insert", "insert_overwrite"]))
def test_a_key_in_another_case_is_found_where_spark_tells_names_by_case(
    project: Project, strategy: str
) -> None:
    project.target["server_side_parameters"] = {"spark.sql.caseSensitive": "true"}
    project.write_project()
    config = {"partition_by": "name"} if strategy == "insert_overwrite" else {}
    incremental(
        project,
        values("(1, 'a')", "(2, 'b')"),
        values("(1, 'a')", "(3, 'c')"),
        unique_key="ID",
        incremental_strategy=strategy,
        **config,
    )
    for _ in range(2):
        project.run()
        project.assert_mirrored()

    assert rows(project) == [(1, "a"), (2, "b"), (3, "c")]


# a date with a range, and partitions
JAN, FEB, MAR = (dt.date(2026, month, 1) for month in (1, 2, 3))
AB = values("(1, 'a')", "(2, 'b')")
STOCK = "id, name, stock"
GONE = "select *, {} as gone from ({})"
FIELDS = ", ".join(f"'f{number}', {number}" for number in range(30))

KEYED = {"unique_key": "id"}
REPLACES = {**KEYED, "incremental_strategy": "delete+insert"}
OVERWRITES = {**KEYED, "incremental_strategy": "insert_overwrite"}


@dataclass(frozen=True)
class NewRows:
    """What the new rows of the second run do.

    Args:
        first, later: the queries of both runs
        told: how the message of the second run begins
        rows: those of the table after it
        in_place: whether a table that can be changed is not replaced
    """

    first: str
    later: str
    config: dict[str, Any]
    told: str
    rows: list[tuple[Any, ...]]
    in_place: bool = False


STRATEGIES = {
    "append": NewRows(
        AB, values("(1, 'a')"), {}, "+1 ~0 -0", [(1, "a"), (1, "a"), (2, "b")], in_place=True
    ),
    **{
        name: NewRows(
            values("(1, 'a')", "(2, 'b')", "(3, 'c')"),
            values("(2, 'B')", "(3, 'c')", "(4, 'd')"),
            config,
            "+1 ~1 -0",
            [(1, "a"), (2, "B"), (3, "c"), (4, "d")],
            in_place=True,
        )
        for name, config in (("merge", KEYED), ("delete+insert", REPLACES))
    },
    "delete+insert of several rows of a key": NewRows(
        values("(1, 'a')", "(1, 'b')", "(2, 'c')"),
        values("(1, 'x')", "(3, 'y')", "(3, 'z')"),
        {**REPLACES, "mirror": False},
        "",
        [(1, "x"), (2, "c"), (3, "y"), (3, "z")],
    ),
    **{
        f"deletes of {name}": NewRows(
            GONE.format("false", AB),
            GONE.format("id < 2", values("(1, 'x')", "(0, 'y')", "(3, 'c')")),
            {**config, "delete_when": "gone"},
            "+1 ~0 -1",
            [(2, "b", False), (3, "c", False)],
            in_place=True,
        )
        for name, config in (("merge", KEYED), ("delete+insert", REPLACES))
    },
    "deletes after predicates in small letters": NewRows(
        GONE.format("false", AB),
        GONE.format("true", values("(1, 'a')", "(2, 'x')")),
        {
            **KEYED,
            "delete_when": "gone",
            "incremental_predicates": ["dbt_internal_source.name = dbt_internal_dest.name"],
        },
        "+0 ~0 -1",
        [(2, "b", False)],
    ),
    "merge_update_columns": NewRows(
        values("(1, 'a', 5)", columns=STOCK),
        values("(1, 'b', 6)", "(2, 'c', 7)", columns=STOCK),
        {**KEYED, "merge_update_columns": ["Name"]},
        "+1 ~1 -0",
        [(1, "b", 5), (2, "c", 7)],
    ),
    "merge_update_columns with the key only": NewRows(
        values("(1, 'a')"),
        values("(1, 'b')", "(2, 'c')"),
        {**KEYED, "merge_update_columns": "`ID`"},
        "+1 ~0 -0",
        [(1, "a"), (2, "c")],
    ),
    "insert_overwrite": NewRows(
        values(
            *(f"(1, 'a', date'{JAN}')", f"(2, 'b', date'{JAN}')", "(3, 'c', null)"),
            f"(6, 'f', date'{FEB}')",
            columns="id, name, day",
        ),
        values(
            *(f"(2, 'B', date'{JAN}')", "(4, 'd', null)", f"(5, 'e', date'{MAR}')"),
            columns="id, name, day",
        ),
        {**OVERWRITES, "partition_by": "day"},
        "+2 ~1 -2",
        [(2, "B", JAN), (4, "d", None), (5, "e", MAR), (6, "f", FEB)],
    ),
    "insert_overwrite without partitions": NewRows(
        values("(1, 'a')"), values("(2, 'b')"), OVERWRITES, "+1 ~0 -1", [(2, "b")]
    ),
    "more columns": NewRows(
        values("(1, 'a')"),
        values("(1, 'b', 7)", "(2, 'c', 8)", columns=STOCK),
        {**KEYED, "on_schema_change": "append_new_columns"},
        "+1 ~1 -0",
        [(1, "b", 7), (2, "c", 8)],
    ),
    "fewer columns": NewRows(
        values("(1, 'a', 5)", "(2, null, 0)", columns=STOCK),
        values("(2, 6)", "(3, 7)", columns="id, stock"),
        {**KEYED, "on_schema_change": "append_new_columns"},
        "+1 ~1 -0",
        [(1, "a", 5), (2, None, 6), (3, None, 7)],
    ),
    "a struct of many fields": NewRows(
        "select 1 as id",
        f"select 2 as id, named_struct({FIELDS}) as s",
        {**KEYED, "on_schema_change": "append_new_columns"},
        "+1 ~0 -0",
        [(1, None), (2, tuple(range(30)))],
    ),
}


@pytest.mark.core
@pytest.mark.usefixtures("each_size")
def test_what_new_rows_do_to_a_table_is_published(project: Project, file_format: str) -> None:
    def can_be_changed(case: NewRows) -> bool:
        return case.in_place and file_format != "parquet"

    tables = {re.sub(r"\W", "_", name): case for name, case in STRATEGIES.items()}
    for table, case in tables.items():
        incremental(project, case.first, case.later, table, **case.config)
    project.run()
    for table, case in tables.items():
        if can_be_changed(case):  # another table in its place would not have this
            project.sql(f"alter table {project.schema}.{table} set tblproperties ('at' = 'first')")

    project.run()

    told = project.results()
    for table, case in tables.items():
        assert told[table]["message"].startswith(case.told), table
        assert rows(project, table) == case.rows, table
        if case.config.get("mirror", True):
            project.assert_mirrored(table)
        if can_be_changed(case):
            properties = project.sql(f"show tblproperties {project.schema}.{table}")
            assert ("at", "first") in [tuple(row) for row in properties], table
    project.assert_tidy()


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "new rows with the same key": (
        values("(1, 'x')", "(1, 'y')"),
        {},
        "Several new rows have the same key (id), e.g. id=1 (2 rows)",
    ),
    "a key in a file that is kept": (
        values("(1, 'again')"),
        {"incremental_strategy": "append"},
        "id=1 (published and new)",
    ),
    "a key that a predicate leaves out": (
        values("(1, 'again')"),
        {"incremental_predicates": ["DBT_INTERNAL_DEST.name = 'b'"]},
        "id=1 (published and new)",
    ),
    "a value that its column cannot hold": (
        "select 3000000000 as id, 'x' as name",
        {},
        "'3000000000', which is no int",
    ),
}


@pytest.mark.core
@pytest.mark.usefixtures("each_size")
def test_new_rows_that_are_refused_change_nothing(project: Project) -> None:
    tables = {re.sub(r"\W", "_", why): case for why, case in REFUSED.items()}
    for name, (_, config, _) in tables.items():
        incremental(project, values("(1, 'a')"), values("(2, 'b')"), name, **KEYED, **config)
    for _ in range(2):
        project.run()
    before = {name: project.state(name) for name in tables}
    for name, (later, config, _) in tables.items():
        incremental(project, "", later, name, **KEYED, **config)

    project.fail()

    for name, (*_, told) in tables.items():
        assert told in project.results()[name]["message"]
    assert {name: project.state(name) for name in tables} == before
    project.assert_tidy()


@pytest.mark.needs(parquet="in other tables the padding may be missing (docs/spark.md)")
@pytest.mark.usefixtures("each_size")
def test_texts_of_a_fixed_length_land_as_spark_pads_them(project: Project) -> None:
    project.sql(f"create schema if not exists {project.schema}")
    project.sql(f"create table {project.schema}.codes (id int, code char(5)) using parquet")
    project.sql(f"insert into {project.schema}.codes values (1, 'ab'), (2, 'cd')")
    incremental(
        project,
        f"select * from {project.schema}.codes",
        values("(1, 'xy')", "(3, 'z')", columns="id, code"),
        unique_key="id",
    )
    project.run()

    assert project.run()["_message"].startswith("+1 ~1 -0")

    assert rows(project) == [(1, "xy   "), (2, "cd   "), (3, "z    ")]
    project.assert_mirrored()
    project.run()
    project.assert_mirrored()


def test_new_rows_are_computed_once(project: Project) -> None:
    incremental(
        project,
        "select uuid() as id, 'first' as name",
        "select uuid() as id, 'later' as name",
        unique_key="id",
    )
    project.run()

    assert project.run()["_message"].startswith("+1 ~0 -0")
    assert len({id for id, _ in rows(project)}) == 2
    project.assert_mirrored()


class Linked(NamedTuple):
    """What new rows do to the files of a table that two runs have written.

    Args:
        later: the new row
        publication: of the third run
        kept: whether the files of the first run stay, and those of the second
    """

    later: str
    config: dict[str, Any]
    publication: str
    kept: tuple[bool, bool]


LINKED = {
    "append": Linked("(4, 'd')", {}, "changes", (True, True)),
    "merge": Linked("(3, 'C')", KEYED, "changes", (True, False)),
    "delete_insert": Linked("(3, 'C')", REPLACES, "changes", (True, False)),
    "a_column_more": Linked(
        "(4, 'd', 5)", {"on_schema_change": "append_new_columns"}, "changes", (False, False)
    ),
    # no row is deleted, although the new rows are fewer than those of the table
    "rebuild": Linked(
        "(3, 'c')", {"unique_key": ["id", "name"], "max_deleted": 0}, "rebuild", (True, False)
    ),
}


@pytest.mark.core
@pytest.mark.usefixtures("each_size")
@pytest.mark.needs(session="only on this machine are files linked")
@pytest.mark.needs(parquet="files of other formats are not linked")
def test_files_of_rows_that_stay_as_they_are_are_not_written_again(project: Project) -> None:
    for name, case in LINKED.items():
        keyed = KEYED if "unique_key" in case.config else {}
        incremental(project, AB, values("(3, 'c')"), name, **keyed)
    project.run()
    first = {name: data_files(project, name).items() for name in LINKED}
    project.run()
    second = {name: data_files(project, name).items() - first[name] for name in LINKED}
    for name, case in LINKED.items():
        columns = STOCK if case.later.count(",") == 2 else "id, name"
        incremental(project, "", values(case.later, columns=columns), name, **case.config)

    project.run()

    for name, case in LINKED.items():
        assert project.responses()[name]["publication"] == case.publication
        found = data_files(project, name).items()
        assert (first[name] <= found, second[name] <= found) == case.kept, name
        project.assert_mirrored(name)


def test_rows_of_a_large_table_are_found_by_keys_of_every_type(
    project: Project, file_format: str
) -> None:
    project.take_tables_for_large()
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": "Europe/Berlin"}
    project.write_project()
    keys = {
        "tiny": ("-128Y", "0Y", "127Y"),
        "small": ("-32768S", "0S", "32767S"),
        "whole": ("-2147483648", "0", "2147483647"),
        "big": ("-9223372036854775808L", "0L", "9223372036854775807L"),
        "day": ("date '1583-01-01'", "date '2024-10-27'", "date '9999-12-31'"),
        "price": ("-1.50", "0.00", "1.50"),
        # twice the same time on a clock in Berlin
        "at": (
            "timestamp'1900-01-01 00:00:00Z'",
            "timestamp'2024-10-27 00:30:00.123456Z'",
            "timestamp'2024-10-27 01:30:00.123456Z'",
        ),
        "code": ("''", "'it''s'", "'Z'"),
    }
    ranges = [f"between {least} and {greatest}" for least, _, greatest in list(keys.values())[:5]]
    if file_format == "iceberg":  # which stores small integers as `int`
        ranges[:2] = ["between -128 and 127", "between -32768 and 32767"]
    all_rows = [f"({', '.join(row)}, '{{0}}')" for row in zip(*keys.values(), strict=True)]
    columns = ", ".join([*keys, "name"])
    tables = {
        "lowest": all_rows[:1],
        "middle": all_rows[1:2],
        "highest": all_rows[2:],
        "every": all_rows,
    }
    for name, chosen in tables.items():
        first, later = (
            values(*chosen, columns=columns).format(text) for text in ("before", "after")
        )
        incremental(project, first, later, name, unique_key=list(keys))
    project.run()

    project.run()

    for name, chosen in tables.items():
        assert project.results()[name]["message"].startswith(f"+0 ~{len(chosen)} -0")
        project.assert_mirrored(name)
    # elsewhere, all rows of Parquet tables are compared
    if file_format != "parquet" or not project.is_remote:
        log = (project.path / "logs" / "dbt.log").read_text()
        assert not [between for between in ranges if between not in log]


def test_dates_in_old_calendars_are_found_however_they_are_stored(project: Project) -> None:
    project.take_tables_for_large()
    project.target["server_side_parameters"] = {
        **project.target.get("server_side_parameters", {}),
        "spark.sql.legacy.timeParserPolicy": "LEGACY",
        "spark.sql.parquet.datetimeRebaseModeInWrite": "LEGACY",
    }
    project.write_project()
    days = ["0001-01-01", "1582-10-10", "1582-12-31", "1583-01-01", "2026-01-01"]
    incremental(
        project,
        values(*(f"(date'{day}', 'a')" for day in days)),
        values(*(f"(date'{day}', 'b')" for day in days[:4])),
        unique_key="id",
    )
    project.run()

    assert project.run()["_message"].startswith("+0 ~4 -0")

    assert [name for _, name in rows(project)] == ["b", "b", "b", "b", "a"]
    project.assert_mirrored()


def test_a_late_insert_of_a_dead_run_is_refused_after_another_run_has_finished_its_batch(
    project: Project, file_format: str
) -> None:
    """A server does not end a statement because its client is gone: the INSERT goes on."""
    if file_format != "delta":
        pytest.skip("nothing lets an INSERT into another table fail")
    incremental(project, values("(1, 'a')"), values("(2, 'b')"))
    project.run()
    table = f"{project.schema}.orders"
    slow = "cast(reflect('java.lang.Thread', 'sleep', 8000L) as string)"
    still_at_it = f"insert into {table} select cast(id as int), {slow} from range(1)"
    with ThreadPoolExecutor() as pool:
        insert = pool.submit(project.sql, still_at_it)
        time.sleep(3)
        project.sql(f"alter table {table} set tblproperties ('openmirroring.recovered_by' = 'x')")

        with pytest.raises(Exception, match="METADATA_CHANGED"):
            insert.result()

    assert rows(project) == [(1, "a")]


def test_nested_values_take_the_type_of_their_column_or_are_refused(project: Project) -> None:
    before = "array(1, null) as a, named_struct('n', 1, 's', 'null') as s"
    wider = r"""array(2L, null) as a, named_struct('n', 2L, 's', '\\"null') as s"""
    incremental(project, f"select 1 as id, {before}", f"select 2 as id, {wider}", unique_key="id")
    project.run()
    assert project.run()["publication"] == "changes"
    assert rows(project) == [(1, [1, None], (1, "null")), (2, [2, None], (2, '\\"null'))]
    project.assert_mirrored()
    state = project.state()
    for later, refused in (
        (before.replace("array(1,", "array('7', 'x',"), "`a`.element has the value 'x'"),
        (before.replace("'n', 1", "'n', 'x'"), "`s`.`n` has the value 'x'"),
    ):
        incremental(project, "", f"select 3 as id, {later}", unique_key="id")

        assert f"{refused}, which is no " in project.fail()

        assert project.state() == state


@pytest.mark.needs(parquet="other formats have fewer names")
def test_fields_of_any_name_are_appended_and_take_another_type(project: Project) -> None:
    old = r"named_struct('a b', 1, 'c`d', array(named_struct('it\'s', 'x'))) as s"
    new = f"{old.replace(', 1,', ', 2L,')}, map('k', named_struct('x:y', date'2024-01-01')) as m"
    incremental(
        project,
        f"select 1 as id, {old}",
        f"select 2 as id, {new}",
        unique_key="id",
        on_schema_change="sync_all_columns",
    )
    project.run()

    assert project.run()["publication"] == "changes"

    project.assert_mirrored()
