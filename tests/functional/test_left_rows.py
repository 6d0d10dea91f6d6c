"""New rows with the keys of published rows that an incremental model leaves beside them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.functional.project import Project
from tests.variants import parts

FIRST = "select * from values (1, 'a', 'x'), (2, 'a', 'y'), (3, 'b', 'z') as t(id, day, name)"
# 1 has moved to another day
MOVED = "select 1 as id, 'c' as day, 'X' as name"

OVERWRITE = {"incremental_strategy": "insert_overwrite", "partition_by": "day"}
PREDICATES = {"incremental_predicates": ["DBT_INTERNAL_DEST.day > 'a'"]}

# options, what the message says, and the way out: new rows and options
CASES: dict[str, tuple[dict[str, Any], list[str], str, dict[str, Any]]] = {
    "another partition": (
        OVERWRITE,
        ["insert_overwrite leaves it", "published in day=a, new in day=c", "merge or delete"],
        MOVED,
        {"partition_by": "day", "incremental_strategy": "merge"},
    ),
    "predicates": (
        {**PREDICATES, "incremental_strategy": "merge"},
        ["`incremental_predicates` leave out", "(published and new)"],
        MOVED,
        {"incremental_predicates": ["DBT_INTERNAL_DEST.day >= 'a'"]},
    ),
    "append": (
        {"incremental_strategy": "append"},
        ["the strategy append leaves"],
        MOVED,
        {"incremental_strategy": "merge"},
    ),
    "all rows of the old partition": (
        OVERWRITE,
        ["insert_overwrite leaves it"],
        f"{MOVED} union all select 2, 'a', 'y'",
        OVERWRITE,
    ),
}


def model(project: Project, sql: str, name: str = "orders", **config: Any) -> None:
    project.model(sql, name, materialized="incremental", unique_key="id", **config)


@pytest.mark.usefixtures("each_size")
@pytest.mark.parametrize("cases", parts(CASES, 2))
def test_the_message_says_which_row_is_the_published_one(
    project: Project, cases: list[str]
) -> None:
    gates = {"at_once": {}, "held": {"publish": "on_request"}}
    tables = {
        re.sub(r"\W", "_", f"{case} {gate}"): (case, config)
        for case in cases
        for gate, config in gates.items()
    }
    for name, (case, _) in tables.items():
        model(project, FIRST, name, **CASES[case][0])
    project.run()
    before = {name: project.state(name) for name in tables}
    for name, (case, gate) in tables.items():
        model(project, MOVED, name, **CASES[case][0], **gate)

    project.fail()

    for name, (case, _) in tables.items():
        _, says, mended, way_out = CASES[case]
        error = project.results()[name]["message"]
        for part in ("1 of the keys (id) are in two rows", "published row", "id=1", *says):
            assert part in error
        assert "Nothing was published" in error
        model(project, mended, name, **way_out)
    assert {name: project.state(name) for name in tables} == before
    project.run()
    for name, response in project.responses().items():
        assert response["rows_updated"] == 1
        project.assert_mirrored(name)


@pytest.mark.core
def test_new_rows_that_are_not_unique_are_reported_as_such(project: Project) -> None:
    model(project, FIRST, **OVERWRITE)
    project.run()
    model(project, "select 9 as id, 'c' as day, 'X' as name from range(2)", **OVERWRITE)

    assert "1 of the keys (id) are NULL or not unique, e.g. id=9 (2 rows)" in project.fail()

    model(project, "select cast(null as int) as id, 'c' as day, 'X' as name", **OVERWRITE)
    assert "id=NULL (1 row)" in project.fail()
