"""The table in docs/changes.md, row by row: each change of a model and its publication."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from tests.functional.project import Project
from tests.variants import some

pytestmark = pytest.mark.core

TWO_ROWS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"


def markers(project: Project, number: int) -> list[int | None]:
    table = pq.read_table(project.files()[number - 1])
    if "__rowMarker__" not in table.column_names:
        return [None] * table.num_rows
    return list(table["__rowMarker__"].to_pylist())


def test_the_first_publication_is_a_load_without_row_markers(project: Project) -> None:
    project.model(TWO_ROWS, unique_key="id")

    response = project.run()

    assert (response["publication"], response["rows_inserted"]) == ("initial", 2)
    assert markers(project, 1) == [None, None]
    project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
def test_new_changed_and_deleted_rows_are_one_change_set_with_deletes_first(
    project: Project,
) -> None:
    project.model(
        "select * from values (1, 'a'), (2, 'b'), (3, 'c') as t(id, name)", unique_key="id"
    )
    project.run()
    project.model(
        "select * from values (2, 'B'), (3, 'c'), (4, 'd') as t(id, name)", unique_key="id"
    )

    response = project.run()

    counts = [response[f"rows_{kind}"] for kind in ("inserted", "updated", "deleted")]
    assert (response["publication"], counts) == ("changes", [1, 1, 1])
    assert response["first_file"] == response["last_file"] == "00000000000000000002.parquet"
    assert markers(project, 2)[0] == 2
    assert sorted(markers(project, 2), key=str) == [1, 2, 4]
    project.assert_mirrored()


def test_new_rows_can_be_marked_as_inserts(project: Project) -> None:
    project.model(TWO_ROWS, unique_key="id", insert_marker="insert")
    project.run()
    project.model(
        TWO_ROWS.replace("as t", ", (3, 'c') as t"), unique_key="id", insert_marker="insert"
    )

    project.run()

    assert markers(project, 2) == [0]
    project.assert_mirrored()


def test_a_changed_key_is_a_delete_and_a_new_row(project: Project) -> None:
    project.model(TWO_ROWS, unique_key="id")
    project.run()
    project.model(TWO_ROWS.replace("(2,", "(20,"), unique_key="id")

    project.run()

    assert markers(project, 2) == [2, 4]
    project.assert_mirrored()


def test_a_new_column_updates_only_the_rows_that_have_a_value_in_it(project: Project) -> None:
    project.model(TWO_ROWS, unique_key="id")
    project.run()
    project.model(f"select *, if(id = 2, 7, null) as stock from ({TWO_ROWS})", unique_key="id")

    response = project.run()

    assert (response["publication"], response["rows_updated"]) == ("changes", 1)
    assert response["reason"] == "column added: stock"
    assert markers(project, 2) == [1]
    project.assert_mirrored()


def test_a_new_column_without_a_value_still_reaches_the_mirror(project: Project) -> None:
    project.model(TWO_ROWS, unique_key="id")
    project.run()
    project.model(f"select *, cast(null as date) as shipped from ({TWO_ROWS})", unique_key="id")

    project.run()

    assert markers(project, 2) == []
    assert pq.read_schema(project.files()[1]).names == ["id", "name", "shipped", "__rowMarker__"]
    project.assert_mirrored()
    assert project.run()["publication"] == "unchanged"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("select id from ({})", "column dropped: name"),
        ("select id, name as title from ({})", "column dropped: name; column added: title"),
        ("select id, name as NAME from ({})", "case of a column changed: name to NAME"),
        (
            "select cast(id as bigint) as id, name from ({})",
            "column type changed: id from int to bigint",
        ),
    ],
)
def test_changes_that_the_mirror_cannot_follow_are_a_rebuild(
    project: Project, sql: str, reason: str
) -> None:
    project.model(TWO_ROWS, unique_key="id")
    project.run()
    project.run()
    project.model(sql.format(TWO_ROWS), unique_key="id")

    response = project.run()

    assert (response["publication"], response["reason"]) == ("rebuild", reason)
    assert response["first_file"] == "00000000000000000001.parquet"
    assert markers(project, 1) == [None, None]
    project.assert_mirrored()


def test_other_key_columns_are_a_rebuild(project: Project) -> None:
    project.model(TWO_ROWS, unique_key="id")
    project.run()
    project.model(TWO_ROWS, unique_key=["id", "name"])

    response = project.run()

    assert response["reason"] == "key columns changed from id to id, name"
    assert (project.folder() / "_metadata.json").read_text().split() == [
        "{",
        '"keyColumns":',
        "[",
        '"id",',
        '"name"',
        "]",
        "}",
    ]
    project.assert_mirrored()


def test_reordered_columns_publish_nothing_and_reorder_the_relation(project: Project) -> None:
    project.model(TWO_ROWS, unique_key="id")
    project.run()
    project.model(f"select name, id from ({TWO_ROWS})", unique_key="id")

    response = project.run()

    assert (response["publication"], response["files_written"]) == ("unchanged", 0)
    assert [row.col_name for row in project.sql(f"describe {project.schema}.orders")] == [
        "name",
        "id",
    ]
    project.assert_mirrored()
    assert len(project.files()) == 1
    assert project.run()["publication"] == "unchanged"


def test_without_changes_no_file_is_written(project: Project) -> None:
    project.model(TWO_ROWS, unique_key="id")
    project.run()
    before = project.state()

    response = project.run()

    assert (response["publication"], response["files_written"]) == ("unchanged", 0)
    assert project.state() == before
    project.assert_mirrored()


def test_without_a_key_more_rows_are_inserted_without_row_markers(project: Project) -> None:
    project.model("select * from values (1, 'a'), (1, 'a') as t(id, name)")
    project.run()
    project.model("select * from values (1, 'a'), (1, 'a'), (1, 'a'), (2, null) as t(id, name)")

    response = project.run()

    assert (response["publication"], response["rows_inserted"]) == ("changes", 2)
    assert markers(project, 2) == [None, None]
    assert (project.folder() / "_metadata.json").read_text() == "{}"
    project.assert_mirrored()


@pytest.mark.parametrize(
    "sql",
    [
        "select * from values (1, 'a') as t(id, name)",
        "select * from values (1, 'a'), (1, 'b'), (2, 'b') as t(id, name)",
    ],
    ids=["gone", "changed"],
)
def test_without_a_key_rows_that_are_gone_or_changed_are_a_rebuild(
    project: Project, sql: str
) -> None:
    project.model("select * from values (1, 'a'), (1, 'a'), (2, 'b') as t(id, name)")
    project.run()
    project.model(sql)

    response = project.run()

    assert response["publication"] == "rebuild"
    assert "no unique_key" in response["reason"]
    project.assert_mirrored()


@pytest.mark.variant
def test_without_a_key_and_changes_nothing_is_written(project: Project) -> None:
    project.model("select * from values (1, 'a'), (1, 'a') as t(id, name)")
    project.run()

    assert project.run()["publication"] == "unchanged"
    project.assert_mirrored()


@pytest.mark.parametrize("config", [{"unique_key": "id"}, {}], ids=["keyed", "keyless"])
def test_an_empty_model_is_one_file_without_rows_that_has_the_columns(
    project: Project, config: dict[str, str]
) -> None:
    project.model(f"{TWO_ROWS} where id > 2", **config)

    response = project.run()

    assert (response["publication"], response["files_written"]) == ("initial", 1)
    assert pq.read_schema(project.files()[0]).names == ["id", "name"]
    assert markers(project, 1) == []
    project.assert_mirrored()
    assert project.run()["publication"] == "unchanged"


def test_an_empty_model_is_filled_and_emptied_again(project: Project) -> None:
    for sql in (f"{TWO_ROWS} where id > 2", TWO_ROWS, f"{TWO_ROWS} where id > 2"):
        project.model(sql, unique_key="id")
        project.run()
        project.assert_mirrored()
    assert len(project.files()) == 3


def test_a_view_stays_in_spark_and_can_become_a_mirrored_table(project: Project) -> None:
    project.model(TWO_ROWS, materialized="view")
    project.run()
    assert not project.landing_zone.exists()
    project.model(TWO_ROWS, unique_key="id")

    assert project.run()["publication"] == "initial"
    project.assert_mirrored()


def test_a_table_that_was_a_view_meanwhile_is_rebuilt(project: Project) -> None:
    project.model(TWO_ROWS, unique_key="id")
    project.run()
    project.model(TWO_ROWS, materialized="view")
    project.run()
    project.model(TWO_ROWS, unique_key="id")

    response = project.run()

    assert (response["publication"], response["reason"]) == ("rebuild", "was a view meanwhile")
    project.assert_mirrored()


@pytest.mark.parametrize("mode", ["--empty", "--sample=1 day"])
def test_empty_and_sample_runs_publish_nothing_and_leave_the_snapshot_alone(
    project: Project, mode: str
) -> None:
    project.model(TWO_ROWS, unique_key="id")
    project.run()
    before = project.state()
    project.model("select 1 as id", unique_key="id")

    project.run(mode)

    assert project.state() == before
    project.model("select nonsense", unique_key="id")
    assert "nonsense" in project.fail(mode)
    assert project.state() == before
    project.assert_mirrored()


def test_an_empty_run_of_a_new_project_lets_models_downstream_be_checked(project: Project) -> None:
    project.model(TWO_ROWS, unique_key="id")
    project.model("select count(*) as n from {{ ref('orders') }}", name="totals")

    project.run("--empty")

    assert not project.landing_zone.exists()
    assert project.run()["publication"] == "initial"
    project.assert_mirrored()
    project.assert_mirrored("totals")


@pytest.mark.parametrize("threads", some(["4", "1"]))
def test_many_tables_are_published_in_one_run(project: Project, threads: str) -> None:
    for i in range(8):
        project.model(f"select id, {i} as n from range({i})", name=f"t{i}", unique_key="id")

    project.run("--threads", threads)

    for i in range(8):
        project.assert_mirrored(f"t{i}")


def test_a_column_type_that_lands_the_same_is_no_rebuild(project: Project) -> None:
    project.model("select 1 as id, named_struct('a', 1) as s", unique_key="id")
    project.run()
    project.model("select 1 as id, named_struct('a', 1, 'b', 2) as s", unique_key="id")

    response = project.run()

    assert (response["publication"], response["rows_updated"]) == ("changes", 1)
    project.assert_mirrored()
