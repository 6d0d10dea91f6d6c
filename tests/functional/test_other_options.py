"""Options of other adapters are refused by name, and what the message says gives the same rows."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.functional.project import Project
from tests.variants import parts

FIRST = "select * from values (1, 'a'), (2, 'b') as t(id, name)"
NEXT = "select * from values (2, 'B'), (3, 'c') as t(id, name)"

IF_INCREMENTAL = "{{% if is_incremental() %}} {} {{% endif %}}"

# option, its value, the model and the options of the way out, and the rows that they lead to
CASES: dict[str, tuple[Any, str, dict[str, Any], str]] = {
    "skip_matched_step": (
        True,
        f"select * from ({NEXT}) "
        + IF_INCREMENTAL.format("where id not in (select id from {{ this }})"),
        {},
        "1a 2b 3c",
    ),
    "skip_not_matched_step": (
        "true",
        f"select * from ({NEXT}) "
        + IF_INCREMENTAL.format("where id in (select id from {{ this }})"),
        {},
        "1a 2B",
    ),
    "matched_condition": (
        "DBT_INTERNAL_DEST.name <> 'b'",
        f"select n.* from ({NEXT}) n "
        + IF_INCREMENTAL.format(
            "left join {{ this }} t on t.id = n.id where t.id is null or t.name <> 'b'"
        ),
        {},
        "1a 2b 3c",
    ),
    "not_matched_by_source_action": ("delete", NEXT, {"materialized": "table"}, "2B 3c"),
    "merge_with_schema_evolution": (
        True,
        NEXT,
        {"on_schema_change": "append_new_columns"},
        "1a 2B 3c",
    ),
    "target_alias": (
        "t",
        NEXT,
        {"incremental_predicates": ["DBT_INTERNAL_DEST.id > 0"]},
        "1a 2B 3c",
    ),
}


@pytest.mark.parametrize("options", parts(CASES, 3))
def test_the_way_out_of_a_refused_option_gives_its_rows(
    project: Project, options: list[str]
) -> None:
    cases = {option: CASES[option] for option in options}
    incremental = {"materialized": "incremental", "unique_key": "id"}
    for option in cases:
        project.model(FIRST, option, **incremental)
    project.run()
    before = {option: project.state(option) for option in cases}
    for option, (value, *_) in cases.items():
        project.model(NEXT, option, **incremental, **{option: value})

    error = project.fail()

    assert {option: project.state(option) for option in cases} == before
    for option, (_, sql, config, _) in cases.items():
        assert f"`{option}` is not supported" in error
        project.model(sql, option, **{**incremental, **config})
    project.run()
    for option, (*_, rows) in cases.items():
        project.assert_mirrored(option)
        found = sorted("".join(v[4:] for _, v in row) for row in project.relation(option))
        assert " ".join(found) == rows


def test_a_database_or_a_catalog_of_other_adapters_is_refused(project: Project) -> None:
    for option in ("catalog_name", "database"):
        project.model(FIRST, **{option: "lake"})

        assert f"`{option}` is not supported" in project.fail()


CUSTOMERS = "select * from values (1, 'me@shop.example') as t(id, email)"
MASK = {"function": "shop.hide", "using_columns": "id"}

# properties of a column, and options of a node, that hide values or rows from some readers
HIDES: dict[str, dict[str, Any]] = {
    "of a column": {"columns": [{"name": "email", "column_mask": MASK}]},
    "in the config of a column": {
        "columns": [{"name": "email", "config": {"column_mask": MASK}}],
    },
    "of BigQuery": {"columns": [{"name": "email", "policy_tags": ["projects/p/tags/1"]}]},
    "of Snowflake": {"config": {"row_access_policy": {"rows": ["id"]}}},
    "of Athena": {"config": {"lf_tags_config": {"enabled": True}}},
    "of a node": {"config": {"row_filter": MASK}},
}


def test_what_other_adapters_hide_is_refused_and_masked_by_the_model(project: Project) -> None:
    # dbt tells of keys that it does not know
    project.write_project(flags={"warn_error_options": {"error": []}})
    properties = []
    for number, hidden in enumerate(HIDES.values()):
        project.model(CUSTOMERS, f"m{number}", unique_key="id")
        properties.append({"name": f"m{number}", **hidden})
    project.write("models/models.yml", yaml.safe_dump({"models": properties}))

    for _ in range(2):  # the second time, dbt does not read the file again
        message = project.stop()

        for number, where in enumerate(HIDES):
            told = message.partition(f"model.shop.m{number} ")[2].partition("model.shop.")[0]
            assert "is not supported: everybody who reads" in told, where
    assert not project.folder("m0").exists()
    (project.path / "models" / "models.yml").unlink()
    project.model(f"select id, sha2(email, 256) as email from ({CUSTOMERS})", "m0")
    project.run("--select", "m0")
    (row,) = project.mirror("m0")
    assert "@" not in str(row)
