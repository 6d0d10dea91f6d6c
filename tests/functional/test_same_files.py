"""Rows in files that are the same as those of the snapshot are not compared."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.project import Project
from tests.statements import statements

pytestmark = [
    pytest.mark.usefixtures("each_size"),
    pytest.mark.needs(session="files are looked at only on this machine"),
    pytest.mark.needs(parquet="only files of Parquet tables are looked at"),
]

# a file for each partition
ROWS = "select id, if(id = {changed}, 'new', 'old') as name from range(0, 1000, 1, 4)"


def comparisons(sent: list[str]) -> list[str]:
    return [sql for sql in sent if "union all" in sql and "__rowMarker__" not in sql]


@pytest.mark.parametrize("config", [{"unique_key": "id"}, {}], ids=["keyed", "keyless"])
@pytest.mark.core
def test_nothing_is_compared_if_all_files_are_the_same(
    project: Project, config: dict[str, Any]
) -> None:
    project.model(ROWS.format(changed=1), **config)
    project.run()

    sent = statements(lambda: project.run())

    assert not comparisons(sent)
    assert project.results()["orders"]["adapter_response"]["publication"] == "unchanged"
    project.assert_mirrored()


def test_files_that_differ_are_compared(project: Project) -> None:
    project.model(ROWS.format(changed=1), unique_key="id")
    project.run()
    project.model(ROWS.format(changed=999), unique_key="id")

    [compared] = comparisons(statements(lambda: project.run()))

    # the second and the third of four
    assert compared.count(".parquet'") == 4
    assert project.results()["orders"]["message"] == "+0 ~2 -0 · #2"
    project.assert_mirrored()


# files with four times 250 numbers, and a row more
NUMBERS = "select id from range(0, 1000, 1, 4)"


def test_a_row_beside_files_that_are_the_same_is_published_or_its_key_is_taken(
    project: Project,
) -> None:
    added = {"keyless": 1, "new": 1000, "taken": 1}
    configs: dict[str, dict[str, Any]] = {name: {"unique_key": "id"} for name in added}
    configs["keyless"] = {}
    for name, config in configs.items():
        project.model(NUMBERS, name, **config)
    project.run()
    before = project.state("taken")[1]
    for name, config in configs.items():
        project.model(f"{NUMBERS} union all select {added[name]}", name, **config)

    assert "not unique" in project.fail()

    for name in ("keyless", "new"):
        assert project.results()[name]["message"] == "+1 ~0 -0 · #2"
    assert project.relation("taken") == before
    for name in added:
        project.assert_mirrored(name)


def test_rows_that_somebody_else_has_written_are_seen_if_the_model_has_them_too(
    project: Project,
) -> None:
    project.model("select id from range(0, 4, 1, 2)")
    project.run()
    project.sql(f"insert into {project.schema}.orders select id from range(4, 6, 1, 1)")
    project.model("select id from range(0, 6, 1, 3)")

    assert "somebody else has written to the table" in project.fail()

    project.run("--full-refresh")
    project.assert_mirrored()
