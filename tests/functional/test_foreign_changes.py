"""`on_foreign_changes: publish`: what others write to a table between two runs is published."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.project import Project

# a table that a package fills at the end of each run: an empty model, and an `insert`
LOG = """
    select * from (select cast(null as string) as run, cast(null as int) as n) where false
"""
ON_RUN_END = (
    "insert into {{ ref('orders') }} values ('{{ invocation_id }}', {{ results | length }})"
)

REPLICATED = pytest.mark.needs(
    local="Fabric replicates what is in OneLake", session="only on this machine is it replicated"
)


@pytest.fixture
def project(project: Project) -> Project:
    if not project.is_remote:
        project.target["replicate"] = True
    project.write_project()
    return project


def fill_at_the_end(project: Project, **config: Any) -> None:
    options = {"materialized": "incremental", "on_foreign_changes": "publish", **config}
    project.model(LOG, **options)
    project.write_project(**{"on-run-end": [ON_RUN_END]})


def published(project: Project) -> str:
    return str(project.results()["orders"]["message"]).partition(" · ")[0]


@REPLICATED
def test_a_table_that_is_filled_at_the_end_of_each_run_is_mirrored(project: Project) -> None:
    fill_at_the_end(project)

    for told in ("initial +0", "+1 ~0 -0", "+1 ~0 -0"):
        project.run()

        assert published(project) == told

    assert len(project.mirror()) == 2
    assert len(project.relation()) == 3
    project.write_project(**{"on-run-end": []})
    project.run()
    assert published(project) == "+1 ~0 -0"
    project.assert_mirrored()
    project.run()
    assert published(project) == "unchanged"


@REPLICATED
def test_rows_that_are_changed_and_deleted_are_published_by_their_key(project: Project) -> None:
    project.model(
        "select id, 'a' as name from range(4) {% if is_incremental() %} where id > 2 {% endif %}",
        materialized="incremental",
        unique_key="id",
        on_foreign_changes="publish",
    )
    project.run()
    schema = project.schema
    project.sql(f"create table {schema}.changed as select * from {schema}.orders where id > 0")
    project.sql(f"insert overwrite {schema}.orders select id, 'b' as name from {schema}.changed")
    project.sql(f"drop table {schema}.changed")

    with project.dry_run():
        project.run()
    would = published(project)
    project.run()

    assert would == "would publish +0 ~2 -1"
    assert published(project) == "+0 ~2 -1"
    project.assert_mirrored()


@pytest.mark.needs(local="a server's replica is not on this machine")
def test_a_change_by_others_is_refused_and_names_the_ways_out(project: Project) -> None:
    fill_at_the_end(project, on_foreign_changes="fail")
    project.run()

    refused = project.fail()

    assert "set `on_foreign_changes: publish`" in refused
    assert "or `mirror: false`" in refused
    fill_at_the_end(project)
    project.write_project(**{"on-run-end": []})
    project.run()
    assert published(project) == "+2 ~0 -0"
