"""Options, names, landing zone and identity are checked before the first node is built."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.project import Project
from tests.variants import some

ROWS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"

# what is wrong with a model, and how the message begins
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a misspelled option": (
        {"on_breaking_changes": "fail"},
        "Unknown option `on_breaking_changes`. Did you mean `on_breaking_change`?",
    ),
    "an unknown value": ({"publish": "later"}, "`publish` is 'later'"),
    "an option of another adapter": ({"row_filter": "f"}, "`row_filter` is not supported"),
    "grants": ({"grants": {"select": ["me"]}}, "`grants` cannot be applied"),
    "grants of a view": (
        {"materialized": "view", "grants": {"select": ["me"]}},
        "`grants` cannot be applied",
    ),
    "a name": ({"alias": "_late"}, "The table name '_late' cannot be a folder"),
    "a path as a name": ({"alias": "a/b"}, "'a/b' cannot be the name of a table"),
    "columns to merge": (
        {
            "materialized": "incremental",
            "unique_key": "id",
            "merge_update_columns": ["name"],
            "merge_exclude_columns": ["id"],
        },
        "`merge_update_columns` contradicts `merge_exclude_columns`",
    ),
}


@pytest.mark.parametrize("wrong", some(list(WRONG), 4))
@pytest.mark.core
def test_no_node_is_built_if_a_selected_one_is_not_configured_right(
    project: Project, wrong: str
) -> None:
    config, message = WRONG[wrong]
    project.model(ROWS, name="early")
    project.model("select * from {{ ref('early') }}", name="late", **config)

    for command in (
        ["run"],
        ["build", "--select", "late"],
        ["run", "--empty"],
        ["run", "--no-populate-cache"],
        ["compile"],
        ["parse"],
    ):
        error = project.stop(*command[1:], command=command[0])
        assert f"model.shop.late (models/late.sql): {message}" in error

    assert project.tables() == []
    assert not project.landing_zone.exists()
    project.run("--select", "early")
    project.assert_mirrored("early")


def test_all_nodes_that_are_not_configured_right_are_named_at_once(project: Project) -> None:
    project.model(ROWS, compression="lz4")
    project.write("seeds/days.csv", "id\n1\n")
    project.write("seeds/days.yml", "seeds: [{name: days, config: {publish: sometimes}}]")
    project.write(
        "snapshots/past.yml",
        "snapshots: [{name: past, relation: ref('orders'), config: {unique_key: id, "
        "strategy: check, check_cols: all, landing_format: xml}}]",
    )

    error = project.stop(command="build")

    assert "model.shop.orders (models/orders.sql): `compression`" in error
    assert "seed.shop.days (seeds/days.csv): `publish`" in error
    assert "snapshot.shop.past (snapshots/past.yml): `landing_format`" in error


def test_a_constraint_without_columns_is_found_before_rows_are_computed(project: Project) -> None:
    project.model("select raise_error('computed') as id", name="orders")
    project.write(
        "models/orders.yml",
        "models: [{name: orders, config: {contract: {enforced: true}}, constraints: "
        "[{type: check}], columns: [{name: id, data_type: int}]}]",
    )

    assert "A check constraint needs an `expression`" in project.stop()


def test_a_landing_zone_that_cannot_be_written_stops_the_run_before_its_first_node(
    project: Project,
) -> None:
    (project.path / "mirror.MirroredDatabase").write_text("in the way")
    project.model("select raise_error('computed') as id")

    for dry_run in (False, True):
        project.target["dry_run"] = dry_run
        project.write_profile()
        error = project.stop()
        assert "Not a directory" in error
        assert "`landing_zone` in the profile" in error

    assert project.tables() == []
