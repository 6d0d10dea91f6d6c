"""dbt snapshots: their history is mirrored, version by version.

New columns, names of columns and dates for the end are in dbt's own tests, also with a mirror.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

from tests.functional.project import Project
from tests.functional.test_type_changes import history, messages, rows
from tests.variants import some


def snapshot(project: Project, name: str = "orders", **config: Any) -> None:
    settings = {"unique_key": "id", **config}
    found = {"name": name, "relation": "ref('source')", "config": settings}
    content = {"snapshots": [found]}
    project.write(f"snapshots/{name}.yml", json.dumps(content))


def source(project: Project, *rows: str, columns: str = "id, name, at") -> None:
    project.model(
        f"select * from (select * from values {', '.join(rows)} as t({columns}))",
        "source",
        materialized="view",
    )


def take(project: Project) -> dict[str, Any]:
    project.run(command="build")
    return dict(project.responses()["orders"])


def versions(
    project: Project, columns: str = "id, name", table: str = "orders"
) -> list[tuple[Any, ...]]:
    found = project.sql(
        f"select {columns}, dbt_valid_to is null as current from {project.schema}.{table} "
        "order by id, dbt_valid_from, dbt_valid_to nulls last"
    )
    return [tuple(row) for row in found]


TIMESTAMP = {"strategy": "timestamp", "updated_at": "at"}
CHECK: dict[str, Any] = {"strategy": "check", "check_cols": ["name"]}
DAY1, DAY2 = "timestamp'2024-01-01 00:00:00'", "timestamp'2024-01-02 00:00:00'"


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("config", some([CHECK, TIMESTAMP]), ids=["check", "timestamp"])
@pytest.mark.core
def test_a_changed_row_closes_a_version_and_opens_another(
    project: Project, config: dict[str, Any]
) -> None:
    snapshot(project, **config)
    source(project, f"(1, 'a', {DAY1})", f"(2, 'b', {DAY1})")
    assert take(project)["rows_inserted"] == 2
    if project.file_format != "parquet":  # another table in its place would not have this
        project.sql(f"alter table {project.schema}.orders set tblproperties ('mark' = 'there')")
    source(project, f"(1, 'A', {DAY2})", f"(2, 'b', {DAY1})", f"(3, 'c', {DAY2})")

    response = take(project)

    assert (response["rows_inserted"], response["rows_updated"]) == (2, 1)
    assert versions(project) == [(1, "a", False), (1, "A", True), (2, "b", True), (3, "c", True)]
    assert json.loads((project.folder() / "_metadata.json").read_text()) == {
        "keyColumns": ["dbt_scd_id"]
    }
    project.assert_mirrored()
    if project.file_format != "parquet":
        properties = project.sql(f"show tblproperties {project.schema}.orders")
        assert ("mark", "there") in [tuple(row) for row in properties]
    assert take(project)["publication"] == "unchanged"


# of a row that is gone and then back again: whether each version is current
HARD_DELETES = {
    "invalidate": ([False], [False, True]),
    "new_record": ([False, True], [False, False, True]),
}


@pytest.mark.usefixtures("each_size")
def test_a_row_that_is_gone_and_comes_back_has_versions_that_are_current_or_not(
    project: Project,
) -> None:
    for name in HARD_DELETES:
        snapshot(project, name, **CHECK, hard_deletes=name)
    rows = (f"(2, 'b', {DAY1})", f"(1, 'a', {DAY1})")
    source(project, *rows)
    project.run(command="build")
    for step, selected in enumerate((rows[:1], rows)):
        source(project, *selected)

        project.run(command="build")

        for name, expected in HARD_DELETES.items():
            found = [current for id_, _, current in versions(project, table=name) if id_ == 1]
            assert found == expected[step]
            project.assert_mirrored(name)


def test_a_full_refresh_publishes_anew_and_keeps_the_history(project: Project) -> None:
    snapshot(project, **CHECK)
    source(project, f"(1, 'a', {DAY1})")
    take(project)
    source(project, f"(1, 'b', {DAY1})")

    assert project.run("--full-refresh", command="build")["publication"] == "rebuild"

    assert versions(project) == [(1, "a", False), (1, "b", True)]
    project.assert_mirrored()


def test_an_empty_first_run_leaves_what_the_next_one_can_go_on_with(project: Project) -> None:
    snapshot(project, **CHECK)
    source(project, f"(1, 'a', {DAY1})")

    project.run("--empty", command="build")
    assert versions(project) == []
    take(project)

    assert versions(project) == [(1, "a", True)]
    project.assert_mirrored()


@pytest.mark.usefixtures("each_size")
@pytest.mark.needs(session="only on this machine are files linked")
@pytest.mark.needs(parquet="files of other formats are not linked")
def test_files_of_versions_that_do_not_change_are_not_written_again(project: Project) -> None:
    snapshot(project, **CHECK)
    files = f"select distinct _metadata.file_name from {project.schema}.orders"
    written = []
    for name in ("a", "b", "c"):
        source(project, f"(1, '{name}', {DAY1})")
        take(project)
        written.append({row["file_name"] for row in project.sql(files)})

    # the second run has closed the first version; the third has only closed the second
    assert not written[0] & written[1]
    assert written[1] & written[2]
    assert len(versions(project)) == 3
    project.assert_mirrored()


COLUMNS = {
    "id": "1",
    "name": "'a'",
    "tags": "map('k', timestamp'2024-01-01 00:00:00')",
    "part": "named_struct('a', 1)",
    "a": "5",
    "at": DAY1,
}
EVERY = "select * from {{ ref('rows') }}"
SHOWN = "select *, {} as shown from {{{{ ref('rows') }}}}"
NO_MAP = ", ".join(name for name in COLUMNS if name != "tags")
NAME = {"check_cols": ["name"]}


class Wrong(NamedTuple):
    """What a second run of a dbt snapshot could not compare.

    Args:
        way_out: another source, with what the message tells to select, and other options
    """

    config: dict[str, Any]
    message: str
    source: str
    way_out: dict[str, Any]


WRONG = {
    "all_maps": Wrong(
        {"check_cols": "all"},
        "`check_cols` has `tags` of the type map<string,timestamp>",
        f"select {NO_MAP}, {{}} from {{{{{{{{ ref('rows') }}}}}}}}",
        {"check_cols": "all"},
    ),
    "times": Wrong(
        {"strategy": "timestamp", "updated_at": "cast(at as date)"},
        "`updated_at` of the dbt snapshot is 'cast(at as date)', but it must be a column of",
        SHOWN.format("cast(at as date)"),
        {"strategy": "timestamp", "updated_at": "shown"},
    ),
    "map_keys": Wrong(
        {"unique_key": "tags", **NAME},
        "`unique_key` is tags of the type map<string,timestamp>",
        SHOWN,
        {"unique_key": "shown", **NAME},
    ),
    "null_keys": Wrong(
        {"unique_key": ["id", "nullif(name, 'a')"], **NAME},
        "(id, nullif(name, 'a')) is NULL in a row of its source, and each run would add a version",
        EVERY,
        {"unique_key": ["id", "coalesce(nullif(name, 'a'), '')"], **NAME},
    ),
    "deleted_keys": Wrong(
        {"unique_key": ["id", "upper(name)"], **NAME, "hard_deletes": "new_record"},
        "`unique_key` of the dbt snapshot is 'upper(name)', but it must be a column of",
        SHOWN.format("upper(name)"),
        {"unique_key": ["id", "shown"], **NAME, "hard_deletes": "new_record"},
    ),
}


def test_what_a_dbt_snapshot_could_not_compare_is_refused_in_its_first_run(
    project: Project,
) -> None:
    project.model(f"select {', '.join(map('{} as {}'.format, COLUMNS.values(), COLUMNS))}", "rows")
    history(project, EVERY, "twice", check_cols=["name", "name"])
    history(project, EVERY, "switched", strategy="timestamp", updated_at="at", mirror=False)
    for name, wrong in WRONG.items():
        history(project, EVERY, name, **wrong.config)

    assert not project.dbt("build")

    told = messages(project)
    for name, wrong in WRONG.items():
        assert wrong.message in told[name]
        assert "Nothing was changed." in told[name]
    assert project.tables() == ["rows", "switched", "twice"]

    # the ways out
    selected = {
        "all_maps": re.findall("in the source, in place of them: (.+); or", told["all_maps"])[0],
        "map_keys": re.findall("Select (.+) under a name", told["map_keys"])[0],
    }
    for name, wrong in WRONG.items():
        sql = wrong.source.format(selected[name]) if name in selected else wrong.source
        history(project, sql, name, mirror=False, **wrong.way_out)
    history(project, EVERY, "switched", check_cols="all", mirror=False)
    assert "all_maps" not in project.fail(command="snapshot")
    assert WRONG["all_maps"].message in messages(project)["switched"]
    sql = WRONG["all_maps"].source.format(selected["all_maps"])
    history(project, sql, "switched", check_cols="all", mirror=False)
    project.run(command="snapshot")

    assert project.results()["twice"]["adapter_response"]["publication"] == "unchanged"
    assert {name: len(rows(project, name)) for name in WRONG} == dict.fromkeys(WRONG, 1)
