"""Incremental models: what their new rows do to the snapshot is what is published."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
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


def counts(response: dict[str, Any]) -> tuple[str, int, int, int]:
    return (
        response["publication"],
        response["rows_inserted"],
        response["rows_updated"],
        response["rows_deleted"],
    )


def rows(project: Project) -> list[tuple[Any, ...]]:
    found = project.sql(f"select * from {project.schema}.orders order by all")
    return [tuple(row) for row in found]


def data_files(project: Project) -> dict[int, str]:
    """The files of the table: the same file has the same number, whatever its folder."""
    description = project.sql(f"describe extended {project.schema}.orders")
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


@pytest.mark.core
def test_without_a_key_new_rows_are_appended_and_carry_no_row_markers(project: Project) -> None:
    incremental(project, values("(1, 'a')"), values("(1, 'a')", "(2, 'b')"))

    assert counts(project.run()) == ("initial", 1, 0, 0)
    assert counts(project.run()) == ("changes", 2, 0, 0)

    assert rows(project) == [(1, "a"), (1, "a"), (2, "b")]
    assert pq.read_schema(project.files()[-1]).names == ["id", "name"]
    project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
@pytest.mark.core
def test_with_a_key_new_rows_are_merged(project: Project) -> None:
    incremental(
        project,
        values("(1, 'a')", "(2, 'b')", "(3, 'c')"),
        values("(2, 'B')", "(3, 'c')", "(4, 'd')"),
        unique_key="id",
    )
    project.run()

    assert counts(project.run()) == ("changes", 1, 1, 0)

    assert rows(project) == [(1, "a"), (2, "B"), (3, "c"), (4, "d")]
    project.assert_mirrored()
    assert project.run()["publication"] == "unchanged"
    project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
def test_a_new_row_may_mean_a_delete(project: Project) -> None:
    for strategy in ("merge", "delete+insert"):
        incremental(
            project,
            "select *, false as gone from ({})".format(values("(1, 'a')", "(2, 'b')")),
            "select *, id < 2 as gone from ({})".format(
                values("(1, 'x')", "(0, 'y')", "(3, 'c')")
            ),
            unique_key="id",
            incremental_strategy=strategy,
            delete_when="gone",
        )
        project.run("--full-refresh")

        assert counts(project.run()) == ("changes", 1, 0, 1)

        assert rows(project) == [(2, "b", False), (3, "c", False)]
        project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
def test_a_delete_follows_predicates_in_small_letters(project: Project) -> None:
    incremental(
        project,
        "select *, false as gone from ({})".format(values("(1, 'a')", "(2, 'b')")),
        "select *, true as gone from ({})".format(values("(1, 'a')", "(2, 'x')")),
        unique_key="id",
        delete_when="gone",
        incremental_predicates=["dbt_internal_source.name = dbt_internal_dest.name"],
    )
    project.run()

    assert counts(project.run()) == ("changes", 0, 0, 1)

    assert rows(project) == [(2, "b", False)]
    project.assert_mirrored()


@pytest.mark.parquet("in other tables the padding may be missing (docs/spark.md)")
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

    assert counts(project.run()) == ("changes", 1, 1, 0)

    assert rows(project) == [(1, "xy   "), (2, "cd   "), (3, "z    ")]
    project.assert_mirrored()
    project.run()
    project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
def test_columns_can_be_kept_from_updates(project: Project) -> None:
    options: list[dict[str, Any]] = [
        {"merge_update_columns": ["Name"]},
        {"merge_exclude_columns": ["stock"]},
    ]
    for config in options:
        incremental(
            project,
            values("(1, 'a', 5)", columns="id, name, stock"),
            values("(1, 'b', 6)", "(2, 'c', 7)", columns="id, name, stock"),
            unique_key="id",
            **config,
        )
        project.run("--full-refresh")
        project.run()

        assert rows(project) == [(1, "b", 5), (2, "c", 7)]
        project.assert_mirrored()


def test_predicates_restrict_which_rows_are_merged(project: Project) -> None:
    incremental(
        project,
        values("(1, 'a')", "(2, 'b')"),
        values("(1, 'A')", "(2, 'B')"),
        unique_key="id",
        incremental_strategy="delete+insert",
        incremental_predicates=["DBT_INTERNAL_DEST.id > 1"],
        mirror=False,
    )
    project.run()
    project.run()

    assert rows(project) == [(1, "A"), (1, "a"), (2, "B")]


@pytest.mark.core
def test_delete_insert_replaces_all_rows_of_a_key(project: Project) -> None:
    incremental(
        project,
        values("(1, 'a')", "(1, 'b')", "(2, 'c')"),
        values("(1, 'x')", "(3, 'y')", "(3, 'z')"),
        unique_key="id",
        incremental_strategy="delete+insert",
        mirror=False,
    )
    project.run()
    project.run()

    assert rows(project) == [(1, "x"), (2, "c"), (3, "y"), (3, "z")]


@pytest.mark.core
def test_insert_overwrite_replaces_the_partitions_of_the_new_rows(project: Project) -> None:
    incremental(
        project,
        values("(1, 'a', 'x')", "(2, 'b', 'x')", "(3, 'c', null)", columns="id, name, part"),
        values("(2, 'B', 'x')", "(4, 'd', null)", "(5, 'e', 'z')", columns="id, name, part"),
        incremental_strategy="insert_overwrite",
        partition_by="part",
        unique_key="id",
    )
    project.run()

    assert counts(project.run()) == ("changes", 2, 1, 2)

    assert rows(project) == [(2, "B", "x"), (4, "d", None), (5, "e", "z")]
    project.assert_mirrored()


def test_insert_overwrite_without_partitions_replaces_everything(project: Project) -> None:
    incremental(
        project,
        values("(1, 'a')"),
        values("(2, 'b')"),
        incremental_strategy="insert_overwrite",
        unique_key="id",
    )
    project.run()
    project.run()

    assert rows(project) == [(2, "b")]
    project.assert_mirrored()


def test_microbatches_are_published_one_after_the_other(project: Project) -> None:
    project.model(
        "select id, at, date(at) as day from values (1, timestamp'2024-01-01 10:00:00'), "
        "(2, timestamp'2024-01-02 10:00:00'), (3, timestamp'2024-01-03 10:00:00') as t(id, at)",
        "events",
        event_time="at",
    )
    project.model(
        "select * from {{ ref('events') }}",
        materialized="incremental",
        incremental_strategy="microbatch",
        event_time="at",
        batch_size="day",
        begin="2024-01-01",
        partition_by="day",
        unique_key="id",
    )

    project.run("--event-time-start", "2024-01-01", "--event-time-end", "2024-01-04")

    assert [row[0] for row in rows(project)] == [1, 2, 3]
    project.assert_mirrored()
    project.model(
        "select id, at, date(at) as day from values (1, timestamp'2024-01-01 10:00:00'), "
        "(20, timestamp'2024-01-02 11:00:00'), (30, timestamp'2024-01-03 10:00:00') as t(id, at)",
        "events",
        event_time="at",
    )
    project.run("--event-time-start", "2024-01-02", "--event-time-end", "2024-01-03")
    assert [row[0] for row in rows(project)] == [1, 3, 20]
    project.assert_mirrored()


WIDER = "select 1 as id, 'b' as name, 7 as stock union all select 2, 'c', 8"


@pytest.mark.parametrize(
    ("on_schema_change", "expected"),
    [
        ("ignore", [(1, "b"), (2, "c")]),
        ("append_new_columns", [(1, "b", 7), (2, "c", 8)]),
        ("sync_all_columns", [(1, "b", 7), (2, "c", 8)]),
    ],
)
@pytest.mark.core
def test_a_new_column_in_the_new_rows(
    project: Project, on_schema_change: str, expected: list[tuple[Any, ...]]
) -> None:
    incremental(
        project, values("(1, 'a')"), WIDER, unique_key="id", on_schema_change=on_schema_change
    )
    project.run()

    assert project.run()["publication"] == "changes"

    assert rows(project) == expected
    project.assert_mirrored()


@pytest.mark.parametrize(
    ("on_schema_change", "publication", "expected"),
    [
        ("append_new_columns", "changes", [(1, "a", 5), (2, None, 6), (3, None, 7)]),
        ("sync_all_columns", "rebuild", [(1, 5), (2, 6), (3, 7)]),
    ],
)
def test_a_column_that_the_new_rows_do_not_have(
    project: Project, on_schema_change: str, publication: str, expected: list[tuple[Any, ...]]
) -> None:
    incremental(
        project,
        values("(1, 'a', 5)", "(2, null, 0)", columns="id, name, stock"),
        values("(2, 6)", "(3, 7)", columns="id, stock"),
        unique_key="id",
        on_schema_change=on_schema_change,
    )
    project.run()

    assert project.run()["publication"] == publication

    assert rows(project) == expected
    project.assert_mirrored()


@pytest.mark.parametrize("on_schema_change", ["ignore", "fail"])
def test_a_column_that_is_gone_is_an_error_unless_somebody_says_what_to_do(
    project: Project, on_schema_change: str
) -> None:
    incremental(
        project,
        values("(1, 'a')"),
        "select 2 as id",
        unique_key="id",
        on_schema_change=on_schema_change,
    )
    project.run()
    before = project.state()

    assert "name" in project.fail()

    assert project.state() == before
    project.assert_tidy()


def test_values_take_the_type_of_their_column_or_are_refused(project: Project) -> None:
    incremental(
        project, values("(1, 'a')"), "select cast(2 as bigint) as id, 5 as name", unique_key="id"
    )
    project.run()
    assert project.run()["publication"] == "changes"
    assert rows(project) == [(1, "a"), (2, "5")]
    project.assert_mirrored()
    before = project.state()
    incremental(project, "", "select 3000000000 as id, 'x' as name", unique_key="id")

    assert "'3000000000', which is no int" in project.fail()

    assert project.state() == before
    project.assert_tidy()


def test_a_type_can_be_synchronised(project: Project) -> None:
    incremental(
        project,
        values("(1, 'a')"),
        "select cast(3000000000 as bigint) as id, 'b' as name",
        unique_key="id",
        on_schema_change="sync_all_columns",
    )
    project.run()

    response = project.run()

    assert (response["publication"], response["reason"]) == (
        "rebuild",
        "column type changed: id from int to bigint",
    )
    assert rows(project) == [(1, "a"), (3000000000, "b")]
    project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
@pytest.mark.core
def test_new_rows_with_the_same_key_are_refused(project: Project) -> None:
    for mirror in (True, False):
        incremental(
            project,
            values("(1, 'a')"),
            values("(1, 'x')", "(1, 'y')"),
            unique_key="id",
            mirror=mirror,
            alias=f"orders_{mirror}",
        )
        project.run()

        error = project.fail()

        assert "Several new rows have the same key (id), e.g. id=1 (2 rows)" in error
        assert not [table for table in project.tables() if "__n" in table]


def test_new_rows_are_computed_once(project: Project) -> None:
    incremental(
        project,
        "select uuid() as id, 'first' as name",
        "select uuid() as id, 'later' as name",
        unique_key="id",
    )
    project.run()

    assert counts(project.run()) == ("changes", 1, 0, 0)
    assert len({id for id, _ in rows(project)}) == 2
    project.assert_mirrored()


@pytest.mark.parametrize("mode", ["--empty", "--sample=1 day"])
def test_empty_and_sample_check_the_sql_of_the_new_rows_only(project: Project, mode: str) -> None:
    incremental(project, values("(1, 'a')"), values("(2, 'b')"), unique_key="id")
    project.run()
    before = project.state()

    project.run(mode)

    assert project.state() == before
    incremental(project, "", "select nonsense", unique_key="id")
    assert "nonsense" in project.fail(mode)
    project.assert_mirrored()


@pytest.mark.core
def test_a_table_can_become_incremental_and_back(project: Project) -> None:
    project.model(values("(1, 'a')"), unique_key="id")
    project.run()
    incremental(project, "", values("(2, 'b')"), unique_key="id")
    assert counts(project.run()) == ("changes", 1, 0, 0)
    project.model(values("(2, 'b')"), unique_key="id")

    assert counts(project.run()) == ("changes", 0, 0, 1)
    project.assert_mirrored()


@pytest.mark.session("only on this machine are files linked")
@pytest.mark.parquet("files of other formats are not linked")
@pytest.mark.core
def test_an_append_writes_the_new_rows_only(project: Project) -> None:
    incremental(project, values("(1, 'a')"), values("(2, 'b')"))
    project.run()
    first = data_files(project)

    assert counts(project.run()) == ("changes", 1, 0, 0)

    assert first.items() < data_files(project).items()
    project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
@pytest.mark.session("only on this machine are files linked")
@pytest.mark.parquet("files of other formats are not linked")
@pytest.mark.parametrize("strategy", some(["merge", "delete+insert", "append"]))
def test_only_files_with_a_key_of_a_new_row_are_written_again(
    project: Project, strategy: str
) -> None:
    incremental(project, values("(1, 'a')", "(2, 'b')"), values("(3, 'c')"), unique_key="id")
    project.run()
    first = data_files(project)
    project.run()
    second = data_files(project)
    later = {
        "merge": "(3, 'C')",
        "delete+insert": "(3, 'C')",
        "append": "(4, 'd')",
    }[strategy]

    incremental(project, "", values(later), unique_key="id", incremental_strategy=strategy)
    project.run()

    third = data_files(project)
    assert first.items() <= third.items()
    assert (second.items() <= third.items()) == (strategy == "append")
    project.assert_mirrored()


@pytest.mark.session("only on this machine are files linked")
@pytest.mark.parquet("files of other formats are not linked")
def test_only_partitions_of_new_rows_are_written_again(project: Project) -> None:
    incremental(
        project,
        values("(1, 'a')", "(2, 'b')", "(3, 'c')"),
        values("(4, 'b')"),
        incremental_strategy="insert_overwrite",
        partition_by="name",
        unique_key="id",
    )
    project.run()
    before = data_files(project)

    assert counts(project.run()) == ("changes", 1, 0, 1)

    assert {partition for file, partition in data_files(project).items() if file in before} == {
        "name=a",
        "name=c",
    }
    assert rows(project) == [(1, "a"), (3, "c"), (4, "b")]
    project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
def test_rows_are_found_by_keys_of_every_type(project: Project) -> None:
    project.target["server_side_parameters"] = {"spark.sql.session.timeZone": "Europe/Berlin"}
    project.write_project()
    keys = {
        "tiny": ("-128Y", "0Y", "127Y"),
        "small": ("-32768S", "0S", "32767S"),
        "whole": ("-2147483648", "0", "2147483647"),
        "big": ("-9223372036854775808L", "0L", "9223372036854775807L"),
        "price": ("-1.50", "0.00", "1.50"),
        "day": ("date'1900-01-01'", "date'2024-10-27'", "date'9999-12-31'"),
        # twice the same time on a clock in Berlin
        "at": (
            "timestamp'1900-01-01 00:00:00Z'",
            "timestamp'2024-10-27 00:30:00.123456Z'",
            "timestamp'2024-10-27 01:30:00.123456Z'",
        ),
        "code": ("''", "'it''s'", "'Z'"),
    }
    all_rows = [f"({', '.join(row)}, '{{0}}')" for row in zip(*keys.values(), strict=True)]
    columns = ", ".join([*keys, "name"])
    for chosen in (all_rows[:1], all_rows[1:2], all_rows[2:], all_rows):
        first, later = (
            values(*chosen, columns=columns).format(name) for name in ("before", "after")
        )
        incremental(project, first, later, unique_key=list(keys))
        project.run("--full-refresh")

        assert counts(project.run()) == ("changes", 0, len(chosen), 0)
        project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
def test_a_key_of_a_row_in_a_file_that_is_kept_is_not_taken_twice(project: Project) -> None:
    incremental(project, values("(1, 'a')"), values("(2, 'b')"), unique_key="id")
    for _ in range(2):
        project.run()
    before = project.state()

    for later, options in (
        ("(1, 'again')", {"incremental_strategy": "append"}),
        ("(1, 'again')", {"incremental_predicates": ["DBT_INTERNAL_DEST.name = 'b'"]}),
    ):
        incremental(project, "", values(later), unique_key="id", **options)

        assert "id=1 (published and new)" in project.fail()
        assert project.state() == before


@pytest.mark.usefixtures("each_size")
@pytest.mark.session("only on this machine are files linked")
@pytest.mark.parquet("files of other formats are not linked")
def test_a_rebuild_has_the_rows_of_files_that_are_kept(project: Project) -> None:
    incremental(project, values("(1, 'a')"), values("(2, 'b')"), unique_key="id")
    project.run()
    first = data_files(project)
    incremental(project, "", values("(2, 'b')"), unique_key=["id", "name"])

    assert counts(project.run()) == ("rebuild", 2, 0, 0)

    assert first.items() < data_files(project).items()
    project.assert_mirrored()


@pytest.mark.parametrize(
    ("dtype", "least", "greatest", "between"),
    [
        ("tinyint", "-128", "127", "between -128Y and 127Y"),
        ("smallint", "-32768", "32767", "between -32768S and 32767S"),
        ("int", "-2147483648", "2147483647", "between -2147483648 and 2147483647"),
        (
            "bigint",
            "-9223372036854775808L",
            "9223372036854775807L",
            "between -9223372036854775808L and 9223372036854775807L",
        ),
        (
            "date",
            "date'1583-01-01'",
            "date'9999-12-31'",
            "between date '1583-01-01' and date '9999-12-31'",
        ),
    ],
)
def test_a_large_table_is_read_where_keys_of_new_rows_can_be(
    project: Project, file_format: str, dtype: str, least: str, greatest: str, between: str
) -> None:
    if file_format == "iceberg":  # which stores small integers as `int`
        between = between.replace("Y", "").replace("S", "")
    project.take_tables_for_large()
    first = [f"({least}, 'a')", f"({greatest}, 'b')"]
    later = [f"({least}, 'A')", f"({greatest}, 'B')"]
    typed = "select cast(id as {}) as id, name from ({})"
    incremental(
        project,
        typed.format(dtype, values(*first)),
        typed.format(dtype, values(*later)),
        unique_key="id",
    )
    project.run()

    assert counts(project.run()) == ("changes", 0, 2, 0)

    # elsewhere, all rows of Parquet tables are compared
    if file_format != "parquet" or not project.is_remote:
        assert between in (project.path / "logs" / "dbt.log").read_text()
    assert [name for _, name in rows(project)] == ["A", "B"]
    project.assert_mirrored()


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

    assert counts(project.run()) == ("changes", 0, 4, 0)

    assert [name for _, name in rows(project)] == ["b", "b", "b", "b", "a"]
    project.assert_mirrored()


def test_a_large_table_is_read_where_null_is_too(project: Project) -> None:
    project.take_tables_for_large()
    columns = "id, name, day"
    incremental(
        project,
        values(
            *("(1, 'a', date'2026-01-01')", "(2, 'b', null)", "(3, 'c', date'2026-03-01')"),
            columns=columns,
        ),
        values("(4, 'd', date'2026-01-01')", "(5, 'e', null)", columns=columns),
        incremental_strategy="insert_overwrite",
        partition_by="day",
        unique_key="id",
    )
    project.run()

    assert counts(project.run()) == ("changes", 2, 0, 2)

    assert [id for id, *_ in rows(project)] == [3, 4, 5]
    project.assert_mirrored()


@pytest.fixture
def merging(project: Project, file_format: str) -> Project:
    """A project whose tables can be changed in place of being replaced."""
    if file_format == "parquet":
        pytest.skip("a table of Parquet files cannot be changed")
    return project


def mark_table(project: Project) -> None:
    """Let the table have something that another in its place would not have."""
    project.sql(f"alter table {project.schema}.orders set tblproperties ('mark' = 'there')")


def is_marked(project: Project) -> bool:
    properties = project.sql(f"show tblproperties {project.schema}.orders")
    return ("mark", "there") in [tuple(row) for row in properties]


@pytest.mark.parametrize(
    ("config", "later", "changes", "expected"),
    [
        ({}, "(1, 'a')", (1, 0, 0), [(1, "a"), (1, "a"), (2, "b")]),
        ({"unique_key": "id"}, "(1, 'A'), (3, 'c')", (1, 1, 0), [(1, "A"), (2, "b"), (3, "c")]),
        (
            {"unique_key": "id", "incremental_strategy": "delete+insert"},
            "(1, 'A'), (3, 'c')",
            (1, 1, 0),
            [(1, "A"), (2, "b"), (3, "c")],
        ),
        (
            {"unique_key": "id", "incremental_strategy": "append"},
            "(3, 'c')",
            (1, 0, 0),
            [(1, "a"), (2, "b"), (3, "c")],
        ),
        (
            {"unique_key": "id", "delete_when": "name = 'gone'"},
            "(1, 'a'), (2, 'gone'), (3, 'c')",
            (1, 0, 1),
            [(1, "a"), (3, "c")],
        ),
    ],
    ids=["append", "merge", "delete+insert", "append with a key", "deletes"],
)
def test_a_snapshot_that_can_be_changed_is_not_replaced(
    merging: Project,
    config: dict[str, Any],
    later: str,
    changes: tuple[int, int, int],
    expected: list[tuple[Any, ...]],
) -> None:
    incremental(merging, values("(1, 'a')", "(2, 'b')"), values(later), **config)
    merging.run()
    mark_table(merging)

    assert counts(merging.run()) == ("changes", *changes)

    assert is_marked(merging)
    assert rows(merging) == expected
    merging.assert_mirrored()


def test_a_table_that_is_not_mirrored_and_can_be_changed_takes_new_rows_without_a_key(
    merging: Project,
) -> None:
    incremental(merging, values("(1, 'a')"), values("(1, 'a')", "(2, 'b')"), mirror=False)
    merging.run()
    mark_table(merging)

    merging.run()

    assert is_marked(merging)
    assert rows(merging) == [(1, "a"), (1, "a"), (2, "b")]
    merging.assert_tidy()


def test_a_dbt_snapshot_that_can_be_changed_is_not_replaced(merging: Project) -> None:
    merging.write(
        "snapshots/orders.yml",
        "snapshots:\n  - name: orders\n    relation: ref('source')\n"
        "    config: {unique_key: id, strategy: check, check_cols: [name],"
        " hard_deletes: invalidate}\n",
    )
    merging.model(values("(1, 'a')", "(2, 'b')"), "source", materialized="view")
    merging.run(command="build")
    mark_table(merging)
    merging.model(values("(1, 'A')", "(3, 'c')"), "source", materialized="view")

    assert counts(merging.run(command="build")) == ("changes", 2, 2, 0)

    assert is_marked(merging)
    merging.assert_mirrored()


def test_rows_that_cannot_be_merged_replace_the_snapshot(merging: Project) -> None:
    incremental(merging, values("(1, 'a')", "(2, 'b')"), values("(2, 'b')"), unique_key="id")
    merging.run()
    mark_table(merging)
    # no row is deleted, although the new rows are fewer than those of the table
    incremental(merging, "", values("(2, 'b')"), unique_key=["id", "name"], max_deleted=0)

    assert counts(merging.run()) == ("rebuild", 2, 0, 0)

    assert not is_marked(merging)
    merging.assert_mirrored()


@pytest.mark.variant
@pytest.mark.parametrize("config", [{"unique_key": "id"}, {}], ids=["keyed", "keyless"])
def test_rows_that_a_table_refuses_to_store_are_not_published(
    merging: Project, file_format: str, config: dict[str, Any]
) -> None:
    if file_format != "delta":
        pytest.skip("only Delta has constraints")
    incremental(merging, values("(1, 'a')"), values("(2, 'bad')"), **config)
    merging.run()
    table = f"{merging.schema}.orders"
    merging.sql(f"alter table {table} add constraint good check (name <> 'bad')")
    before = merging.state()

    assert "CHECK constraint good" in merging.fail()

    assert merging.state() == before
    merging.assert_tidy()
    incremental(merging, "", values("(2, 'b')"), **config)
    assert counts(merging.run()) == ("changes", 1, 0, 0)
    merging.assert_mirrored()


def test_a_late_insert_of_a_dead_run_is_refused_after_another_run_has_finished_its_batch(
    merging: Project, file_format: str
) -> None:
    """A server does not end a statement because its client is gone: the INSERT goes on."""
    if file_format != "delta":
        pytest.skip("Iceberg has nothing that an INSERT fails for: it is not changed from afar")
    incremental(merging, values("(1, 'a')"), values("(2, 'b')"))
    merging.run()
    table = f"{merging.schema}.orders"
    slow = "cast(reflect('java.lang.Thread', 'sleep', 8000L) as string)"
    still_at_it = f"insert into {table} select cast(id as int), {slow} from range(1)"
    with ThreadPoolExecutor() as pool:
        insert = pool.submit(merging.sql, still_at_it)
        time.sleep(3)
        merging.sql(f"alter table {table} set tblproperties ('openmirroring.recovered_by' = 'x')")

        with pytest.raises(Exception, match="METADATA_CHANGED"):
            insert.result()

    assert rows(merging) == [(1, "a")]


@pytest.mark.variant
def test_a_refused_part_leaves_no_trace(merging: Project) -> None:
    incremental(merging, values("(1, 'a')"), values("(2, 'b')", "(2, 'c')"), unique_key="id")
    merging.run()
    before = merging.state()

    assert "id=2 (2 rows)" in merging.fail()

    assert merging.state() == before
    merging.assert_tidy()


def test_a_table_that_gets_a_column_is_written_again(project: Project) -> None:
    incremental(project, values("(1, 'a')"), values("(2, 'b')"))
    project.run()
    first = data_files(project)
    later = values("(2, 'b', 3)", columns="id, name, price")
    incremental(project, "", later, on_schema_change="append_new_columns")

    project.run()

    assert not first.keys() & data_files(project).keys()
    assert rows(project) == [(1, "a", None), (2, "b", 3)]
    project.assert_mirrored()


@pytest.mark.parametrize(
    ("config", "finding"),
    [
        ({"incremental_strategy": "upsert"}, "`incremental_strategy` is 'upsert'. Allowed:"),
        ({"incremental_strategy": "delete+insert"}, "needs a `unique_key`"),
        ({"incremental_strategy": "append", "delete_when": "gone"}, "`delete_when` is for"),
        ({"delete_when": "gone"}, "`delete_when` is for"),
        (
            {
                "unique_key": "id",
                "merge_update_columns": ["name"],
                "merge_exclude_columns": ["id"],
            },
            "`merge_update_columns` contradicts `merge_exclude_columns`",
        ),
    ],
)
def test_contradictions_are_refused(
    project: Project, config: dict[str, Any], finding: str
) -> None:
    project.model(values("(1, 'a')"))
    project.run()
    before = project.state()
    incremental(project, "", values("(1, 'a')"), **config)

    assert finding in project.fail()

    assert project.state() == before


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
        (
            before.replace("array(1, null)", "array('7', 'x', null)"),
            "`a`.element has the value 'x'",
        ),
        (before.replace("'n', 1", "'n', 'x'"), "`s`.`n` has the value 'x'"),
    ):
        incremental(project, "", f"select 3 as id, {later}", unique_key="id")

        assert f"{refused}, which is no " in project.fail()

        assert project.state() == state
    options = {"unique_key": "id", "on_schema_change": "sync_all_columns"}
    incremental(project, "", f"select 3 as id, {wider}", **options)
    project.run()
    assert rows(project)[0] == (1, [1, None], (1, "null"))
    project.assert_mirrored()


def test_a_new_struct_of_many_fields_is_appended(project: Project) -> None:
    fields = ", ".join(f"'f{i}', {i}" for i in range(30))
    incremental(
        project,
        "select 1 as id",
        f"select 2 as id, named_struct({fields}) as s",
        unique_key="id",
        on_schema_change="append_new_columns",
    )
    project.run()

    assert project.run()["publication"] == "changes"

    assert rows(project) == [(1, None), (2, tuple(range(30)))]
    project.assert_mirrored()


@pytest.mark.parquet("other formats have fewer names")
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
