"""Refusals have a way out, and leave mirror and snapshot as they are."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.functional.project import Project
from tests.variants import some

ROWS = "select * from values (1, 'a'), (2, 'b') as t(id, name)"

REFUSED: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "duplicate keys": (
        "select * from values (1, 'a'), (1, 'b'), (2, 'b'), (2, 'c'), (3, 'x') as t(id, name)",
        {"unique_key": "id"},
        ["2 of the keys (id)", "id=1 (2 rows)", "id=2 (2 rows)", "unique_key"],
    ),
    "a NULL in a composite key": (
        "select * from values (1, 'a'), (2, null) as t(id, name)",
        {"unique_key": ["id", "name"]},
        ["id=2, name=NULL (1 row)"],
    ),
    "a key that is no column": (
        ROWS,
        {"unique_key": ["id", "nmae"]},
        ["'nmae'", "no such column", "id, name"],
    ),
    "a reserved column name": (
        "select 1 as id, 4 as `__ROWMARKER__`",
        {"unique_key": "id"},
        ["row marker", "Rename"],
    ),
    "a void column": ("select 1 as id, null as nothing", {}, ["`nothing`", "void", "Cast it"]),
    "an interval": (
        "select 1 as id, interval '1' day as i",
        {},
        ["`i`", "interval day", "Cast it"],
    ),
    "a misspelled option": (
        ROWS,
        {"on_breaking_changes": "fail"},
        ["`on_breaking_changes`", "Did you mean `on_breaking_change`?"],
    ),
    "SQL that fails half-way": (
        "select id, if(id = 999, raise_error('boom'), 'x') as name from range(0, 1000, 1, 4)",
        {},
        ["boom"],
    ),
    "a format that Spark does not know": (
        "select 1 as id, 'x' as name",
        {"file_format": "parkuet"},
        ["parkuet"],
    ),
}


@pytest.mark.parametrize("published", some([True, False]), ids=["later", "first"])
def test_what_cannot_be_published_is_refused_and_nothing_is_changed(
    project: Project, published: bool
) -> None:
    cases = {re.sub(r"\W", "_", why).lower(): case for why, case in REFUSED.items()}
    if project.file_format != "parquet":  # which have no intervals, as Spark itself says
        del cases["an_interval"]
    before = {}
    if published:
        for name in cases:
            project.model(ROWS, name, unique_key="id")
        project.run()
        before = {name: project.state(name) for name in cases}
    for name, (sql, config, _) in cases.items():
        project.model(sql, name, **config)
        project.model(f"select * from {{{{ ref('{name}') }}}}", f"after_{name}")

    # with it, no node is built
    told = {"a_misspelled_option": project.stop()}
    project.fail("--exclude", "a_misspelled_option+")

    told |= {name: result["message"] for name, result in project.results().items()}
    for name, (*_, message) in cases.items():
        for part in message:
            assert part in told[name]
        assert "\tat org.apache" not in told[name], "no JVM stack"
        assert "in macro" not in told[name], "no macro of the adapter"
        assert f"after_{name}" not in project.tables()
    if published:
        assert {name: project.state(name) for name in cases} == before
        project.assert_tidy()
    else:
        assert not any(path.is_file() for path in project.landing_zone.rglob("*"))


@pytest.mark.core
def test_a_landing_zone_that_cannot_be_written(project: Project) -> None:
    (project.path / "mirror.MirroredDatabase").write_text("in the way")
    project.model(ROWS)

    error = project.fail()

    assert "LandingZone" in error
    assert "Not a directory" in error
    assert "`landing_zone` in the profile" in error


def test_grants_of_a_view_are_refused_too(project: Project) -> None:
    project.model("select 1 as id", materialized="view", grants={"select": ["me"]})

    assert "in Fabric" in project.fail()
