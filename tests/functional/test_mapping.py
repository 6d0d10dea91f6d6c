"""The table in docs/changes.md, row by row: each change of a model and its publication."""

from __future__ import annotations

import json
import os
from collections import Counter
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.functional.project import Project
from tests.variants import some

pytestmark = pytest.mark.core

TWO_ROWS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"
KEYED = {"unique_key": "id"}


def markers(project: Project, table: str = "orders") -> list[int | None]:
    """The row markers of the last file."""
    rows = pq.read_table(project.files(table)[-1])
    if "__rowMarker__" not in rows.column_names:
        return [None] * rows.num_rows
    return list(rows["__rowMarker__"].to_pylist())


def state_of(project: Project, table: str) -> Any:
    folder = f"{project.folder(table)}{os.sep}"
    return {path: at for path, at in project.state_of_zone().items() if path.startswith(folder)}


# of each table the queries and configuration of its second and its third run, and what they tell
FOLLOWED: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "incremental_for_a_while": [
        (
            "select * from values (2, 'B'), (3, 'c') as t(id, name)",
            {"materialized": "incremental"},
            "+1 ~1 -0 · #2",
        ),
        (TWO_ROWS, {}, "+0 ~1 -1 · #3"),
    ],
    "a_new_column_without_a_value": [
        (f"select *, cast(null as date) as shipped from ({TWO_ROWS})", {}, told)
        for told in ("+0 ~0 -0 · #2 · column added: shipped", "unchanged · #2")
    ],
    "reordered": [
        (f"select name, id from ({TWO_ROWS})", {}, told)
        for told in ("unchanged · #1 · columns reordered", "unchanged · #1")
    ],
    "a_type_that_lands_the_same": [
        (f"select id, named_struct('a', 1, 'b', 2) as name from ({TWO_ROWS})", {}, told)
        for told in ("+0 ~2 -0 · #2", "unchanged · #2")
    ],
}


def test_changes_that_are_no_rebuild_reach_the_mirror_one_after_the_other(
    project: Project,
) -> None:
    nested = f"select id, named_struct('a', 1) as name from ({TWO_ROWS})"
    for table in FOLLOWED:
        first = nested if table == "a_type_that_lands_the_same" else TWO_ROWS
        project.model(first, table, **KEYED)

    project.run()

    for table, response in project.responses().items():
        assert (response["publication"], response["rows_inserted"]) == ("initial", 2)
        assert markers(project, table) == [None, None], "a load has no row markers"
        project.assert_mirrored(table)
    for step in (0, 1):
        for table, steps in FOLLOWED.items():
            sql, config, _ = steps[step]
            project.model(sql, table, **KEYED, **config)

        project.run()

        for table, steps in FOLLOWED.items():
            assert project.results()[table]["message"] == steps[step][2]
            project.assert_mirrored(table)
    _, added = project.files("a_new_column_without_a_value")
    assert pq.read_table(added).num_rows == 0
    assert pq.read_schema(added).names == ["id", "name", "shipped", "__rowMarker__"]
    columns = project.sql(f"describe {project.schema}.reordered")
    assert [row.col_name for row in columns] == ["name", "id"]
    assert len(project.files("reordered")) == 1


# of each table the query and configuration of its second run, and what that tells and publishes
CHANGED: dict[str, tuple[str, dict[str, Any], str, list[int | None]]] = {
    "new_changed_and_deleted_rows": (
        "select * from values (2, 'B'), (3, 'c') as t(id, name)",
        KEYED,
        "+1 ~1 -1 · #2",
        [2, 1, 4],
    ),
    "rows_marked_as_inserts": (
        TWO_ROWS.replace("as t", ", (3, 'c') as t"),
        {**KEYED, "insert_marker": "insert"},
        "+1 ~0 -0 · #2",
        [0],
    ),
    "a_changed_key": (TWO_ROWS.replace("(2,", "(20,"), KEYED, "+1 ~0 -1 · #2", [2, 4]),
    "a_new_column_with_a_value": (
        f"select *, if(id = 2, 7, null) as stock from ({TWO_ROWS})",
        KEYED,
        "+0 ~1 -0 · #2 · column added: stock",
        [1],
    ),
    "more_rows_without_a_key": (
        TWO_ROWS.replace("as t", ", (2, 'b'), (3, null) as t"),
        {},
        "+2 ~0 -0 · #2",
        [None, None],
    ),
    "nothing": (TWO_ROWS, KEYED, "unchanged · #1", [None, None]),
    "nothing_without_a_key": (TWO_ROWS, {}, "unchanged · #1", [None, None]),
}


@pytest.mark.usefixtures("each_size")
def test_a_change_set_has_what_has_changed_with_deletes_first(project: Project) -> None:
    for table, (_, config, _, _) in CHANGED.items():
        project.model(TWO_ROWS, table, **config)
    project.run()
    before = {table: state_of(project, table) for table in CHANGED}
    for table, (sql, config, _, _) in CHANGED.items():
        project.model(sql, table, **config)

    project.run()

    told = project.results()
    for table, (_, _, message, expected) in CHANGED.items():
        assert told[table]["message"] == message
        found = markers(project, table)
        assert found[:1] == expected[:1], table
        assert Counter(found) == Counter(expected), table
        assert (state_of(project, table) == before[table]) == message.startswith("unchanged")
        project.assert_mirrored(table)


# of each table the query of its second run, the keys before and in it, and what it tells
REBUILT: dict[str, tuple[str, Any, Any, str]] = {
    "dropped": ("select id from ({})", "id", "id", "column dropped: name"),
    "recased": (
        *("select id, name as NAME from ({})", "id", "id"),
        "case of a column changed: name to NAME",
    ),
    "type": (
        *("select cast(id as bigint) as id, name from ({})", "id", "id"),
        "column type changed: id from int to bigint",
    ),
    "another_key": ("{}", "id", ["id", "name"], "key columns changed from id to id, name"),
    "keyless_gone": ("{} where id = 1", None, None, "no unique_key"),
}


def test_changes_that_the_mirror_cannot_follow_are_a_rebuild(project: Project) -> None:
    for table, (_, before, _, _) in REBUILT.items():
        project.model(TWO_ROWS, table, unique_key=before)
    project.run()
    for table, (sql, _, after, _) in REBUILT.items():
        project.model(sql.format(TWO_ROWS), table, unique_key=after)

    project.run()

    told = project.results()
    for table, (_, _, after, reason) in REBUILT.items():
        response = told[table]["adapter_response"]
        assert response["publication"] == "rebuild", table
        assert reason in response["reason"]
        assert response["first_file"] == "00000000000000000001.parquet"
        assert set(markers(project, table)) == {None}
        keys = [after] if isinstance(after, str) else after
        metadata = json.loads((project.folder(table) / "_metadata.json").read_text())
        assert metadata == ({"keyColumns": keys} if keys else {})
        project.assert_mirrored(table)


def test_an_empty_model_is_one_file_without_rows_that_has_the_columns(project: Project) -> None:
    tables: dict[str, dict[str, Any]] = {"keyed": KEYED, "keyless": {}}

    def run(sql: str) -> list[tuple[Any, ...]]:
        for table, config in tables.items():
            project.model(sql, table, **config)
        project.run()
        responses = [project.results()[table]["adapter_response"] for table in tables]
        return [(r["publication"], r["files_written"], r["rows_inserted"]) for r in responses]

    assert run(f"{TWO_ROWS} where id > 2") == [("initial", 1, 0)] * 2

    for table in tables:
        assert pq.read_schema(project.files(table)[0]).names == ["id", "name"]
        assert markers(project, table) == []
        project.assert_mirrored(table)
    assert run(f"{TWO_ROWS} where id > 2") == [("unchanged", 0, 0)] * 2
    assert run(TWO_ROWS) == [("changes", 1, 2)] * 2
    for table in tables:
        project.assert_mirrored(table)


def test_a_view_stays_in_spark_and_can_become_a_mirrored_table_and_back(project: Project) -> None:
    for publication in ("initial", "rebuild"):
        project.model(TWO_ROWS, materialized="view")
        project.run()
        assert project.landing_zone.exists() == (publication == "rebuild")
        project.model(TWO_ROWS, **KEYED)

        response = project.run()

        assert response["publication"] == publication
        project.assert_mirrored()
    assert response["reason"] == "was a view meanwhile"


@pytest.mark.parametrize(
    ("mode", "config"), [("--empty", {}), ("--sample=1 day", {"materialized": "incremental"})]
)
def test_empty_and_sample_runs_publish_nothing_and_leave_the_snapshot_alone(
    project: Project, mode: str, config: dict[str, str]
) -> None:
    project.model(TWO_ROWS, **KEYED, **config)
    project.run()
    before = project.state()
    insert = "insert into {{ this }} values (8, 'x')"
    hooked = {**KEYED, **config, "pre_hook": insert, "post_hook": insert}
    project.model("select 1 as id, 'a' as name", **hooked)

    project.run(mode)

    assert project.state() == before
    project.model("select nonsense", **KEYED, **config)
    assert "nonsense" in project.fail(mode)
    assert project.state() == before
    project.assert_mirrored()


@pytest.mark.parametrize("mode", some(["--empty", "--sample=1 day"]))
def test_rows_of_a_check_do_not_exist_for_their_model(project: Project, mode: str) -> None:
    new = "{% if is_incremental() %} where id > 1 {% endif %}"
    project.model(f"{TWO_ROWS} {new}", materialized="incremental", **KEYED)
    project.model("select count(*) as n from {{ ref('orders') }}", name="totals")

    project.run(mode)

    assert not project.landing_zone.exists()
    assert {"orders", "totals"} <= set(project.tables())
    with project.dry_run():
        assert project.run()["rows_inserted"] == 2
    response = project.run()
    assert (response["publication"], response["rows_inserted"]) == ("initial", 2)
    project.assert_mirrored()
    project.assert_mirrored("totals")


def test_many_tables_are_published_in_one_run(project: Project) -> None:
    for i in range(4):
        project.model(f"select id, {i} as n from range({i})", name=f"t{i}", unique_key="id")

    project.run("--threads", "4")

    for i in range(4):
        project.assert_mirrored(f"t{i}")
