"""The table in docs/changes.md, row by row: each change of a model and its publication."""

from __future__ import annotations

import json
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.functional.project import Project

pytestmark = pytest.mark.core

TWO_ROWS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"
KEYED = {"unique_key": "id"}


def markers(project: Project) -> list[int | None]:
    """The row markers of the last file."""
    table = pq.read_table(project.files()[-1])
    if "__rowMarker__" not in table.column_names:
        return [None] * table.num_rows
    return list(table["__rowMarker__"].to_pylist())


def test_the_first_publication_is_a_load_without_row_markers(project: Project) -> None:
    project.model(TWO_ROWS, **KEYED)

    response = project.run()

    assert (response["publication"], response["rows_inserted"]) == ("initial", 2)
    assert markers(project) == [None, None]
    project.assert_mirrored()


CHANGED: dict[str, tuple[str, dict[str, Any], str, list[int | None]]] = {
    "new, changed and deleted rows": (
        "select * from values (2, 'B'), (3, 'c') as t(id, name)",
        KEYED,
        "+1 ~1 -1 · #2",
        [2, 1, 4],
    ),
    "rows marked as inserts": (
        TWO_ROWS.replace("as t", ", (3, 'c') as t"),
        {**KEYED, "insert_marker": "insert"},
        "+1 ~0 -0 · #2",
        [0],
    ),
    "a changed key": (TWO_ROWS.replace("(2,", "(20,"), KEYED, "+1 ~0 -1 · #2", [2, 4]),
    "a new column with a value": (
        f"select *, if(id = 2, 7, null) as stock from ({TWO_ROWS})",
        KEYED,
        "+0 ~1 -0 · #2 · column added: stock",
        [1],
    ),
    "no rows any more": (f"{TWO_ROWS} where id > 2", KEYED, "+0 ~0 -2 · #2", [2, 2]),
    "more rows without a key": (
        TWO_ROWS.replace("as t", ", (2, 'b'), (3, null) as t"),
        {},
        "+2 ~0 -0 · #2",
        [None, None],
    ),
    "nothing": (TWO_ROWS, KEYED, "unchanged · #1", [None, None]),
    "nothing without a key": (TWO_ROWS, {}, "unchanged · #1", [None, None]),
}


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("change", CHANGED)
def test_a_change_set_has_what_has_changed_with_deletes_first(
    project: Project, change: str
) -> None:
    sql, config, message, expected = CHANGED[change]
    project.model(TWO_ROWS, **config)
    project.run()
    before = project.state_of_zone()
    project.model(sql, **config)

    assert project.run()["_message"] == message

    found = markers(project)
    assert found[:1] == expected[:1]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert (project.state_of_zone() == before) == message.startswith("unchanged")
    project.assert_mirrored()


def test_a_new_column_without_a_value_still_reaches_the_mirror(project: Project) -> None:
    project.model(TWO_ROWS, **KEYED)
    project.run()
    project.model(f"select *, cast(null as date) as shipped from ({TWO_ROWS})", **KEYED)

    project.run()

    assert markers(project) == []
    assert pq.read_schema(project.files()[1]).names == ["id", "name", "shipped", "__rowMarker__"]
    project.assert_mirrored()
    assert project.run()["publication"] == "unchanged"


@pytest.mark.parametrize(
    ("sql", "before", "after", "reason"),
    [
        ("select id from ({})", "id", "id", "column dropped: name"),
        (
            *("select id, name as title from ({})", "id", "id"),
            "column dropped: name; column added: title",
        ),
        (
            *("select id, name as NAME from ({})", "id", "id"),
            "case of a column changed: name to NAME",
        ),
        (
            *("select cast(id as bigint) as id, name from ({})", "id", "id"),
            "column type changed: id from int to bigint",
        ),
        ("{}", "id", ["id", "name"], "key columns changed from id to id, name"),
        ("{} where id = 1", None, None, "no unique_key"),
        ("{} where id = 1 union all select 2, 'B'", None, None, "no unique_key"),
    ],
    ids=["dropped", "renamed", "case", "type", "key", "keyless, gone", "keyless, changed"],
)
def test_changes_that_the_mirror_cannot_follow_are_a_rebuild(
    project: Project, sql: str, before: Any, after: Any, reason: str
) -> None:
    project.model(TWO_ROWS, unique_key=before)
    project.run()
    project.run()
    project.model(sql.format(TWO_ROWS), unique_key=after)

    response = project.run()

    assert response["publication"] == "rebuild"
    assert reason in response["reason"]
    assert response["first_file"] == "00000000000000000001.parquet"
    assert set(markers(project)) == {None}
    keys = [after] if isinstance(after, str) else after
    metadata = json.loads((project.folder() / "_metadata.json").read_text())
    assert metadata == ({"keyColumns": keys} if keys else {})
    project.assert_mirrored()


def test_reordered_columns_publish_nothing_and_reorder_the_relation(project: Project) -> None:
    project.model(TWO_ROWS, **KEYED)
    project.run()
    project.model(f"select name, id from ({TWO_ROWS})", **KEYED)

    for _ in range(2):
        response = project.run()

        assert (response["publication"], response["files_written"]) == ("unchanged", 0)
    columns = project.sql(f"describe {project.schema}.orders")
    assert [row.col_name for row in columns] == ["name", "id"]
    project.assert_mirrored()
    assert len(project.files()) == 1


def test_a_column_type_that_lands_the_same_is_no_rebuild(project: Project) -> None:
    project.model("select 1 as id, named_struct('a', 1) as s", **KEYED)
    project.run()
    project.model("select 1 as id, named_struct('a', 1, 'b', 2) as s", **KEYED)

    response = project.run()

    assert (response["publication"], response["rows_updated"]) == ("changes", 1)
    project.assert_mirrored()


@pytest.mark.parametrize("config", [KEYED, {}], ids=["keyed", "keyless"])
def test_an_empty_model_is_one_file_without_rows_that_has_the_columns(
    project: Project, config: dict[str, str]
) -> None:
    project.model(f"{TWO_ROWS} where id > 2", **config)

    response = project.run()

    assert (response["publication"], response["files_written"]) == ("initial", 1)
    assert pq.read_schema(project.files()[0]).names == ["id", "name"]
    assert markers(project) == []
    project.assert_mirrored()
    assert project.run()["publication"] == "unchanged"
    project.model(TWO_ROWS, **config)
    assert project.run()["rows_inserted"] == 2
    project.assert_mirrored()


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


@pytest.mark.parametrize("mode", ["--empty", "--sample=1 day"])
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
    for i in range(8):
        project.model(f"select id, {i} as n from range({i})", name=f"t{i}", unique_key="id")

    project.run("--threads", "4")

    for i in range(8):
        project.assert_mirrored(f"t{i}")
