"""Options, names, landing zone and identity are checked before the first node is built."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.project import Project

ROWS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"

# what is wrong with a model, and how the message begins
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a misspelled option": (
        {"on_breaking_changes": "fail"},
        "Unknown option `on_breaking_changes`. Did you mean `on_breaking_change`?",
    ),
    "an empty list that dbt takes for all columns": (
        {"materialized": "incremental", "unique_key": "id", "merge_update_columns": []},
        "`merge_update_columns` is empty.",
    ),
    "grants of a view": (
        {"materialized": "view", "grants": {"select": ["me"]}},
        "`grants` cannot be applied",
    ),
    "a name": ({"alias": "_late"}, "The table name '_late' cannot be a folder"),
    "a path as a name": ({"alias": "a/b"}, "'a/b' cannot be the name of a table"),
}


@pytest.mark.core
def test_no_node_is_built_if_selected_ones_are_not_configured_right_and_all_are_named(
    project: Project,
) -> None:
    project.model(ROWS, "early")
    for number, (config, _) in enumerate(WRONG.values()):
        project.model("select * from {{ ref('early') }}", f"late{number}", **config)
    project.write("seeds/days.csv", "id\n1\n")
    project.write("seeds/days.yml", "seeds: [{name: days, config: {publish: sometimes}}]")
    project.write(
        "snapshots/past.yml",
        "snapshots: [{name: past, relation: ref('early'), config: {unique_key: id, "
        "strategy: check, check_cols: all, hard_deletes: Invalidate}}]",
    )

    for command in (
        ["run"],
        ["run", "--empty"],
        ["run", "--no-populate-cache"],
        ["build"],
        ["compile"],
        ["parse"],
    ):
        error = project.stop(*command[1:], command=command[0])
        for number, (wrong, (_, message)) in enumerate(WRONG.items()):
            assert f"model.shop.late{number} (models/late{number}.sql): {message}" in error, wrong
    error = project.stop(command="build")
    assert "seed.shop.days (seeds/days.csv): `publish`" in error
    assert "snapshot.shop.past (snapshots/past.yml): `hard_deletes`" in error

    assert project.tables() == []
    assert not project.landing_zone.exists()
    project.run("--select", "early")
    project.assert_mirrored("early")
